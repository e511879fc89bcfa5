"""The engine on small grammars: what is drawn, what is linked, and what is refused and where."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tools.minigen.__main__ import ROOT, SHIPPED, main
from tools.minigen.generate import REPEATABLE_WORDS, generate, read_grammar

SMALL = r"""
language = "Small"
[settings]
start = "TOP"
capitalise = true
zipf_pools = ["Noun"]
[features]
case = "nom dat"
num = "sg pl"
gender = "masc fem"
ptk = { values = "0 ab", default = "0" }
[phrases]
TOP = ""
S = ""
NP = { features = "case num", unary = false }
NX = { features = "case num", label = "" }
PP = ""
[words]
NN = { features = "num gender", tail = "lower" }
[categories]
Noun = "num gender"
Art = "case num gender"
V = { features = "num ptk", tag = "VVFIN" }
Part = { features = "ptk", tag = "PTKVZ" }
P = "case"
Dot = { tag = "$." }
[rules]
main = '''
TOP -> S Dot
S -> NP[nom,num] V[num,ptk=0] PP?0.5
S -> NP[nom,num] V[num,ptk=?p:!0] PP?0.5 Part[ptk=?p]
PP -> P[case] NX[case]
NP[case,num] -> NX[case,num] nmod:PP?0.2
NX[case,num] -> Art[case,num,gender] NN[num,gender]
NX[case,num=pl] -> NN[num=pl]
3 NN[num,gender] -> Noun[num,gender]
NN[num,gender] -> Noun[num=sg] Noun[num,gender]
'''
[dependencies]
nsubj = "NP[nom]"
obl = "PP"
det = "Art"
case = "P"
"compound:prt" = "Part"
punct = "Dot"
[lexicon]
Dot = "."
P = "mit dat"
Part = "ab ptk=ab"
Art = '''
der nom sg masc
die nom sg fem
dem dat sg masc
der dat sg fem
die nom pl
den dat pl
'''
[paradigms.noun]
stems = 2
cells = '''
Noun[sg] : {1}
Noun[pl] : {2}
'''
lexemes = '''
Hund/Hunde masc
Wolf/Wölfe masc
Hase/Hasen masc
Maus/Mäuse fem
Gans/Gänse fem
'''
[paradigms.verb]
cells = '''
V[sg] : {1}+t
V[pl] : {1}+en
'''
lexemes = '''
sag
wart
nehm ptk=ab
'''
[[spelling]]
pattern = 't\+t$'
replace = 't+et'
"""
# Every device of the notation of dependencies. Each word has a tag of its own, so that the analyses
# read like the rules. `Field` is headless and may be empty, `Group` is dropped over one word.
LINKS = r"""
language = "Notation"
settings = { start = "TOP" }
features = { case = "nom acc gen", kind = "active passive cop" }
words = { Compound = "" }
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
[categories]
N = "case"
Verb = "kind"
Adv = ""
Art = ""
Stem = ""
P = ""
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
[lexicon]
Verb = '''
verb active
verben passive
'''
N = "noun"
Adv = "adv"
Art = "art"
Stem = "stem"
P = "p"
Be = "be"
And = "and"
Comma = ","
Dot = "."
[dependencies]
headless = "Field"
passive = "Verb[passive]"
nsubj = "NP[nom]"
obj = "NP[acc]"
"obl:first" = "PP"
obl = "PP"
advmod = "Adv"
det = "Art"
case = "P"
cop = "Be"
cc = "And"
punct = "Comma Dot"
"""
ANALYSES = """
noun/nsubj/2 verb/root/0 ./punct/2
art/det/2 noun/nsubj/3 verb/root/0 ./punct/3
noun/nsubj/3 adv/advmod/3 verb/root/0 adv/advmod/3 ./punct/3
noun/nsubj/3 noun/obj/3 verb/root/0 adv/advmod/3 ./punct/3
noun/nsubj/5 noun/obj/5 p/case/4 noun/obl:first/5 verb/root/0 ./punct/5
noun/nsubj/4 adv/advmod/3 noun/obj/4 verb/root/0 ./punct/4
noun/nsubj/2 verb/root/0 stemnoun/obj/2 p/case/5 noun/nmod/3 ./punct/2
noun/nsubj:pass/2 verben/root/0 adv/advmod/2 ./punct/2
noun/nsubj/4 be/cop/4 p/case/4 noun/root/0 ./punct/4
noun/nsubj/3 be/cop/3 adv/root/0 noun/obj/3 ./punct/3
noun/root/0 ,/punct/3 noun/conj/1 and/cc/6 art/det/6 noun/conj/1 ./punct/1
"""
# What is changed in SMALL, and what of the place and of the mistake the message then has.
MISTAKES = [
    ("language =", "tongue =", "tongue", "unknown key"),
    ('start = "TOP"', 'start = "ROOT"', "settings.start", "'ROOT'"),
    ("-> S Dot", "-> S Dott", "rules.main line 1", "'Dott'. Did you"),
    ("Art[case,num,gender]", "Art[kasus]", "line 6", "'kasus'"),
    ("NX[case,num=pl]", "NX[case,num=du]", "line 7", "'du'"),
    ("S Dot", "S Dot ]", "rules.main line 1", "cannot read ']'"),
    ("TOP -> S Dot", "TOP S Dot", "rules.main line 1", "expected 'Symbol ->"),
    ("-> S Dot", "->", "rules.main line 1", "'()'"),
    ("PP?0.5 Part", "PP?7 Part", "line 3", "cannot read '?7"),
    ("V[num,ptk=0]", "V[num,num]", "line 2", "given twice"),
    ("NN[num,gender] -> Noun[num,gender]", "NN -> PP", "line 8", "cannot be made"),
    ("Noun[num=sg] Noun", "Noun[num=sg] NN", "words.NN", "itself"),
    ('P = "mit dat"', "", "P", "no rule and no word"),
    ('P = "mit dat"', 'P = "mit"\nQ = "x"', "lexicon.Q", "'Q'"),
    ('P = "mit dat"', 'P = "mit dat *x"', "lexicon.P line 1", "> 0"),
    ('PP = ""', 'PP = ""\nP = ""', "P", "twice"),
    ("Noun[pl] : {2}", "Noun[pl] : {3}", "noun.cells line 2", "stems = 2"),
    ("Wolf/Wölfe masc", "Wolf masc", "line 2 'Wolf masc'", "2 expected"),
    ('zipf_pools = ["Noun"]', 'zipf_pools = ["N"]', "zipf_pools", "'N'"),
    ("pattern = ", 'pattern = "("#', "spelling.0", "regular"),
    ('num = "sg pl"', 'num = { like = "numm" }', "num.like", "'numm'"),
    ('obl = "', 'obll = "', "dependencies.obll", "Did you mean obl"),
    ('obl = "', 'headless = "', "dependencies.headless", "label"),
    ("-> S Dot", "-> (S Dot", "line 1", "no ')'"),
    ('det = "Art"\n', "", "line 6", "'Art' and 'NN': which"),
    ("-> S Dot", "-> head:S head:Dot", "line 1", "'S' and 'Dot': which"),
    ("-> Art[", "-> head:Art[", "line 6", "'NN' bears no relation"),
    ('obl = "PP', 'headless = "NX"\nobl = "PP', "line 5", "'NX': which is"),
    ("TOP -> S Dot", "TOP -> TOP Dot", "settings.start", "no sentence"),
]


def write_grammar(folder: Path, *edits: tuple[str, str], text: str = SMALL) -> Path:
    """A grammar with each old text replaced by the new one, as a file."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


def parses_of(path: Path, size: int) -> list[Parse]:
    return generate(read_grammar(path), {"train": size}, seed=1)["train"]


def trees_of(path: Path, size: int) -> list[Tree]:
    return [parse.tree for parse in parses_of(path, size) if parse.tree]


def test_the_seed_decides_and_the_order_of_splits_does_not(tmp_path: Path) -> None:
    source = read_grammar(write_grammar(tmp_path))
    one = generate(source, {"train": 60, "dev": 20}, seed=7)
    two = generate(source, {"dev": 20, "train": 60}, seed=7)
    assert one == two
    assert list(two) == ["dev", "train"]
    assert generate(source, {"train": 60}, seed=8)["train"] != one["train"]
    long = [p.words for parses in one.values() for p in parses if len(p.words) > REPEATABLE_WORDS]
    assert len(long) == len(set(long))


def test_a_small_grammar_agrees_and_hides_what_is_invisible(tmp_path: Path) -> None:
    articles = {"masc sg": {"der", "dem"}, "fem sg": {"die", "der"}, "pl": {"die", "den"}}
    genders = {"hund": "masc", "wolf": "masc", "hase": "masc", "maus": "fem", "gans": "fem"}
    compounds = separable = 0
    for tree in trees_of(write_grammar(tmp_path), 300):
        assert set(tree.labels) <= {"TOP", "S", "NP", "PP"}
        assert tree.words[0][0].isupper()
        assert all(label != "NP" or end - start > 1 for start, end, label in tree.constituents())
        words = [word.lower() for word in tree.words]
        for position, tag in enumerate(tree.tags):
            noun = next((noun for noun in genders if words[position].endswith(noun)), "")
            if tag == "NN":
                assert tree.words[position][1:] == words[position][1:]
                compounds += len(noun) < len(words[position]) and noun != ""
                if tree.tags[position - 1] == "Art":
                    kind = f"{genders[noun]} sg" if noun else "pl"
                    assert words[position - 1] in articles[kind], tree.words
        verb = tree.words[tree.tags.index("VVFIN")]
        assert verb in {"sagt", "sagen", "wartet", "warten", "nehmt", "nehmen"}
        assert ("PTKVZ" in tree.tags) == verb.startswith("nehm")
        separable += "PTKVZ" in tree.tags
    assert min(compounds, separable) > 20


def test_a_small_grammar_gives_these_analyses_and_no_others_of_their_words(tmp_path: Path) -> None:
    found: dict[tuple[str, ...], set[str]] = {}
    for parse in parses_of(write_grammar(tmp_path, text=LINKS), 700):
        assert parse.dependencies is not None
        heads, relations = parse.dependencies.heads, parse.dependencies.relations
        items = map("{}/{}/{}".format, parse.words, relations, heads)
        found.setdefault(parse.words, set()).add(" ".join(items))
    for analysis in ANALYSES.strip().split("\n"):
        words = tuple(item.split("/")[0] for item in analysis.split())
        assert found.get(words) == {analysis}


def test_length_bound_and_recursion(tmp_path: Path) -> None:
    path = write_grammar(
        tmp_path,
        ("[settings]\n", "[settings]\nmax_words = 12\ndamping = 1.0\nnesting = 8\n"),
        ("PP -> P[case] NX[case]", "PP -> P[case] NP[case]"),
        ("PP?0.2", "PP?0.9"),
    )
    trees = trees_of(path, 200)
    assert max(len(tree) for tree in trees) in (11, 12)
    assert max(tree.labels.count("PP") for tree in trees) >= 3


def test_adjust_looks_at_the_next_word(tmp_path: Path) -> None:
    adjust = "[[adjust]]\nword = '^die$'\nnext = '^G'\nreplace = \"d'\"\n[[spelling]]"
    trees = trees_of(write_grammar(tmp_path, ("[[spelling]]", adjust)), 200)
    pairs = [pair for tree in trees for pair in pairwise(tree.words)]
    found = [(word, following[0]) for word, following in pairs if word.lower() in ("die", "d'")]
    assert ("D'", "G") in found
    assert all((word.lower() == "d'") == (first == "G") for word, first in found)


def test_a_guard_meets_the_default_of_a_silent_lexeme(tmp_path: Path) -> None:
    path = write_grammar(
        tmp_path,
        ('P = "case"\n', 'P = "case"\nInf = ""\n'),
        ("V[num,ptk=0] PP?0.5", "V[num,ptk=0] xcomp:Inf"),
        ("V[pl] : {1}+en", "V[pl] : {1}+en\nInf[ptk=!0] : {ptk}zu{1}en"),
    )
    found = [zip(tree.words, tree.tags, strict=True) for tree in trees_of(path, 50)]
    assert {word for tokens in found for word, tag in tokens if tag == "Inf"} == {"abzunehmen"}


def test_mistakes_are_told_with_their_place(tmp_path: Path) -> None:
    untold = []
    for old, new, place, problem in MISTAKES:
        path = write_grammar(tmp_path, (old, new))
        try:
            read_grammar(path)
            message = "accepted"
        except TreebankError as error:
            message = str(error)
        start, _, rest = message.partition(f"{path}: ")
        if start or place not in rest or problem not in rest:
            untold.append((old, new, message))
    assert not untold


def test_a_grammar_with_too_few_sentences(tmp_path: Path) -> None:
    limit = ("[settings]\n", "[settings]\nmax_words = 4\n")
    with pytest.raises(TreebankError, match="no new sentence of at most 4 words"):
        parses_of(write_grammar(tmp_path, limit, ("NX[case,num=pl] -> NN[num=pl]\n", "")), 9999)


def test_the_command_writes_what_every_process_writes(tmp_path: Path) -> None:
    path = write_grammar(tmp_path)
    command = [
        sys.executable,
        "-m",
        "tools.minigen",
        str(path),
        "--train=30",
        "--dev=0",
        "--test=2",
    ]
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        options = ["--seed", "3", "--to", str(tmp_path / seed)]
        subprocess.run([*command, *options], env=environment, cwd=ROOT, check=True)
    for name in ("train.mrg", "train.conll", "dev.mrg", "test.conll"):
        content = (tmp_path / "1" / name).read_bytes()
        assert content == (tmp_path / "2" / name).read_bytes()
        assert bool(content) == (name != "dev.mrg")
    assert (tmp_path / "1" / "train.mrg").read_text(encoding="utf-8").count("(TOP ") == 30


def test_the_command_compares_with_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["german", "--check"]) == 0
    path = write_grammar(tmp_path, ("Hase/Hasen", "Igel/Igel"), text=SMALL)
    assert main([str(path), "--check"]) == 1
    assert f"{SHIPPED / 'small' / 'train.mrg'}: differs" in capsys.readouterr().out


def test_arguments_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ("germann --check", "germann: "),
        ("--seed 2", "need --to"),
        ("--to x", "--to needs"),
        ("german --to x --dev -1", "0 or more"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments.split())
        assert message in f"{caught.value}{capsys.readouterr().err}"


def test_unreadable_files(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    for content in (None, b"a = [", b"\xff\xfe"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(TreebankError, match=r"broken\.toml"):
            read_grammar(path)
