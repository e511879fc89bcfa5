"""Heads and relations of a small grammar, whose analyses are written out by hand."""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.treebanks.mini.generate import generate

from .grammars import write_grammar
from .heads import written
from .language import dependencies

# Every device of the notation. Each word has a tag of its own, so that the analyses below read
# like the rules. `Field` is headless and may be empty, `Group` is dropped over a single word.
NOTATION = r"""
language = "Notation"
[settings]
start = "TOP"
[features]
case = "nom acc gen"
kind = "active passive cop"
[phrases]
TOP = ""
Active = ""
Passive = ""
Copular = ""
Listed = ""
Field = { label = "" }
Group = { features = "case", unary = false }
NP = "case"
PP = ""
Pred = { label = "" }
[words]
Compound = ""
[categories]
Adv = ""
Art = ""
N = "case"
Stem = ""
P = ""
Verb = "kind"
Be = ""
And = ""
Comma = ""
Dot = ""
[rules]
main = '''
TOP -> Active Dot
TOP -> Passive Dot
TOP -> Copular Dot
TOP -> Listed Dot
Active -> NP[nom] Field Verb[active] Field
Passive -> NP[nom] Verb[passive] Field
Copular -> NP[nom] Be Pred
Listed -> NP[gen] (Comma conj:NP[gen]) (And conj:NP[gen])
Field -> ()
Field -> Adv
Field -> NP[acc] PP?0.5
Field -> obj:(Adv head:NP[gen])
NP[case] -> Group[case]
Group[case] -> Art?0.5 N[case]
NP[case=acc] -> Compound nmod:PP
PP -> P NP[acc]
Pred -> PP
Pred -> head:Adv NP[acc]
Compound -> Stem N[nom]
'''
[dependencies]
headless = "Field"
passive = "Verb[passive]"
nsubj = "NP[nom]"
obj = "NP[acc]"
obl = "PP"
advmod = "Adv"
det = "Art"
case = "P"
cop = "Be"
cc = "And"
punct = "Comma Dot"
[lexicon]
Adv = "adv"
Art = "art"
N = "noun"
Stem = "stem"
P = "p"
Verb = '''
verb active
verben passive
'''
Be = "be"
And = "and"
Comma = ","
Dot = "."
"""
ANALYSES = """
noun/nsubj/2 verb/root/0 ./punct/2
art/det/2 noun/nsubj/3 verb/root/0 ./punct/3
noun/nsubj/3 adv/advmod/3 verb/root/0 adv/advmod/3 ./punct/3
noun/nsubj/3 noun/obj/3 verb/root/0 adv/advmod/3 ./punct/3
noun/nsubj/5 noun/obj/5 p/case/4 noun/obl/5 verb/root/0 ./punct/5
noun/nsubj/4 adv/advmod/3 noun/obj/4 verb/root/0 ./punct/4
noun/nsubj/2 verb/root/0 stemnoun/obj/2 p/case/5 noun/nmod/3 ./punct/2
noun/nsubj:pass/2 verben/root/0 adv/advmod/2 ./punct/2
noun/nsubj/4 be/cop/4 p/case/4 noun/root/0 ./punct/4
noun/nsubj/3 be/cop/3 adv/root/0 noun/obj/3 ./punct/3
noun/root/0 ,/punct/3 noun/conj/1 and/cc/6 art/det/6 noun/conj/1 ./punct/1
"""


def test_a_small_grammar_gives_these_analyses_and_no_others_of_their_words(tmp_path: Path) -> None:
    path = tmp_path / "notation.toml"
    path.write_text(NOTATION, encoding="utf-8")
    parses = generate(path, {"train": 700}, seed=1)["train"]
    found: dict[tuple[str, ...], set[str]] = {}
    for parse in parses:
        found.setdefault(parse.words, set()).add(written(parse))
    for analysis in ANALYSES.strip().split("\n"):
        words = tuple(item.split("/")[0] for item in analysis.split())
        assert found.get(words) == {analysis}


def test_the_first_default_that_fits_counts(tmp_path: Path) -> None:
    path = write_grammar(tmp_path, ('obl = "PP"', '"obl:first" = "PP"\nobl = "PP"'))
    parses = generate(path, {"train": 60}, seed=1)["train"]
    relations = {kind for parse in parses for kind in dependencies(parse).relations}
    assert "obl:first" in relations
    assert "obl" not in relations
