"""Heads and relations: what a small grammar gives, and what holds of every grammar's sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from spmrl_bench.data import data_dir
from spmrl_bench.treebanks.mini.generate import available_grammars, generate
from spmrl_bench.treebanks.mini.grammar import load_grammar
from spmrl_bench.treebanks.mini.ground import GroundGrammar, Option, ground
from spmrl_bench.treebanks.mini.links import Links, attach
from spmrl_bench.trees.parse import Parse

from .grammars import write_grammar
from .language import constituents, dependencies, parses_of

RELATIONS = """
acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse
dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct
reparandum root vocative xcomp
"""
UNIVERSAL = set(RELATIONS.split())
each_grammar = pytest.mark.parametrize("name", available_grammars(), scope="module")

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


def written(parse: Parse) -> str:
    """The words with relation and head, without the constituents."""
    return str(Parse.of(dependencies=parse.dependencies))


def projective(heads: Sequence[int]) -> bool:
    """Whether all words between a word and its head are below that head."""
    return all(
        head in chain(heads, between)
        for word, head in enumerate(heads, start=1)
        for between in range(min(word, head) + 1, max(word, head))
    )


def chain(heads: Sequence[int], word: int) -> list[int]:
    """A word, its head, the head of that, and so on; ends with 0."""
    found = [word]
    while found[-1] and len(found) <= len(heads) + 1:
        found.append(heads[found[-1] - 1])
    return found


def outside(heads: Sequence[int], start: int, end: int) -> int:
    """How many words of a span (fenceposts) have a head that is not in it."""
    return sum(not start < heads[place] <= end for place in range(start, end))


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


@each_grammar
def test_layers_are_over_the_same_words_and_every_relation_is_universal(name: str) -> None:
    for parse in all_of(name):
        tree, layer = constituents(parse), dependencies(parse)
        assert layer.words == tree.words
        assert layer.tags == tree.tags
        assert {kind.split(":")[0] for kind in layer.relations} <= UNIVERSAL


@each_grammar
def test_heads_form_a_projective_tree_with_one_root(name: str) -> None:
    for parse in all_of(name):
        layer = dependencies(parse)
        heads = layer.heads.tolist()
        roots = [kind for head, kind in zip(heads, layer.relations, strict=True) if head == 0]
        assert roots == ["root"]
        assert layer.relations.count("root") == 1
        assert all(chain(heads, word)[-1] == 0 for word in range(1, len(heads) + 1))
        assert projective(heads), written(parse)


@each_grammar
def test_one_word_of_every_constituent_has_its_head_outside(name: str) -> None:
    for parse in all_of(name):
        heads = dependencies(parse).heads.tolist()
        for start, end, label in constituents(parse).constituents():
            assert outside(heads, start, end) == 1, (label, written(parse))


@each_grammar
def test_punctuation_and_conjunctions_govern_nothing_and_subjects_are_single(name: str) -> None:
    several = 0
    for parse in all_of(name):
        layer = dependencies(parse)
        subjects = []
        for head, kind in zip(layer.heads.tolist(), layer.relations, strict=True):
            above = layer.relations[head - 1] if head else ""
            assert above != "punct", written(parse)
            assert above != "cc" or kind == "fixed", written(parse)
            if kind.split(":")[0] in {"nsubj", "csubj"}:
                subjects.append(head)
        several += len(subjects) > len(set(subjects))
    assert several <= 10  # of 2600: a topic, or a relative clause without its noun


def all_of(name: str) -> list[Parse]:
    return [parse for parses in parses_of(name).values() for parse in parses]


@each_grammar
def test_every_rule_links_its_daughters_to_a_tree(name: str) -> None:
    """One derivation for each rule and each way in which its daughters are linked."""
    source = ground(load_grammar(data_dir("treebanks") / "mini" / f"{name}.toml"))
    used = set()
    for key, derivation in derivations(source):
        used.add(key)
        heads, relations = attach(derivation.parents, derivation.links, ())
        assert heads.count(0) == 1, key
        assert relations[heads.index(0)] == "root"
        assert all(chain(heads, word)[-1] == 0 for word in range(1, len(heads) + 1)), key
        assert projective(heads), key
        for start, end in derivation.headed:
            assert outside(heads, start, end) == 1, key
    rules = {rule.key for found in source.grammar.rules.values() for rule in found}
    words = {
        rule.key
        for name, found in source.grammar.rules.items()
        for rule in found
        if source.grammar.symbols[name].kind == "word"
    }
    assert used == rules - words


@dataclass
class Derivation:
    """What the sampler records of a derivation, and the spans of phrases with a head."""

    parents: list[int]
    links: list[Links | None]
    headed: list[tuple[int, int]]


Step = tuple[int, Option, int]  # node, its option, the row


def derivations(source: GroundGrammar) -> Iterator[tuple[str, Derivation]]:
    """A derivation, as small as can be, through each rule with each of its links."""
    nodes = source.nodes
    above: dict[int, tuple[Step, int]] = {0: ((0, nodes[0].options[0], 0), -1)}
    targets: dict[tuple[str, Links], Step] = {}
    todo = [0]
    for number in todo:  # breadth first, so that the way from the root is short
        for option in nodes[number].options:
            for row, children in enumerate(option.rows):
                if option.links:
                    targets.setdefault((option.rule.key, option.links[row]), (number, option, row))
                for place, child in enumerate(children):
                    if child not in above:
                        above[child] = ((number, option, row), place)
                        todo.append(child)
    for (key, _), step in targets.items():
        way: dict[tuple[int, ...], Step] = {}
        places: list[int] = []
        steps = [step]
        while steps[-1][0]:
            before, place = above[steps[-1][0]]
            steps.append(before)
            places.append(place)
        for depth, taken in enumerate(reversed(steps)):
            way[tuple(places[len(places) - depth :][::-1])] = taken
        yield key, expanded(source, way)


def expanded(source: GroundGrammar, way: dict[tuple[int, ...], Step]) -> Derivation:
    """The derivation that takes these steps at these places and the smallest ones elsewhere."""
    nodes, symbols = source.nodes, source.grammar.symbols
    result = Derivation([], [], [])
    words = 0

    def expand(number: int, parent: int, at: tuple[int, ...]) -> None:
        nonlocal words
        unit = len(result.parents)
        result.parents.append(parent)
        if symbols[nodes[number].symbol].kind != "phrase":
            result.links.append(None)
            words += 1
            return
        if at in way:
            _, option, row = way[at]
        else:
            option = min(nodes[number].options, key=lambda known: known.height)
            row = min(
                range(len(option.rows)),
                key=lambda known: max((nodes[c].height for c in option.rows[known]), default=0),
            )
        start = words
        result.links.append(option.links[row])
        for place, child in enumerate(option.rows[row]):
            expand(child, unit, (*at, place))
        if option.links[row].head >= 0 and words > start:
            result.headed.append((start, words))

    expand(0, -1, ())
    return result
