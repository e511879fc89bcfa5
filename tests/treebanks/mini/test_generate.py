"""The sampler: determinism, splits, agreement, invisible phrases, glued words, bounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.mini.generate import (
    REPEATABLE_WORDS,
    available_grammars,
    generate,
)

from .grammars import write_grammar
from .language import constituents


def test_same_seed_same_parses_and_splits_do_not_depend_on_order() -> None:
    one = generate("german", {"train": 60, "dev": 20}, seed=7)
    two = generate("german", {"dev": 20, "train": 60}, seed=7)
    assert one == two
    assert list(two) == ["dev", "train"]
    assert generate("german", {"train": 60}, seed=8)["train"] != one["train"]


def test_parses_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys; from spmrl_bench.treebanks.mini.generate import generate;"
        "from pathlib import Path;"
        "trees = generate(Path(sys.argv[1]), {'a': 20}, 3)['a'];"
        "print([(t.words, t.tags, t.tree.labels, t.tree.spans.tolist(),"
        " t.dependencies.heads.tolist(), t.dependencies.relations) for t in trees])"
    )
    path = write_grammar(tmp_path)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1", "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().strip()


def test_no_long_sentence_occurs_twice() -> None:
    splits = generate("german", {"train": 400, "dev": 100, "test": 100}, seed=1)
    long = [
        tree.words for trees in splits.values() for tree in trees if len(tree) > REPEATABLE_WORDS
    ]
    assert len(long) == len(set(long))


def test_small_grammar_agrees_and_hides_what_is_invisible(tmp_path: Path) -> None:
    parses = generate(write_grammar(tmp_path), {"train": 300}, seed=1)["train"]
    trees = [constituents(parse) for parse in parses]
    articles = {
        "masc sg": {"der", "dem"},
        "fem sg": {"die", "der"},
        "pl": {"die", "den"},
    }
    heads = {"hund": "masc sg", "wolf": "masc sg", "hase": "masc sg", "maus": "fem sg",
             "gans": "fem sg"}  # fmt: skip
    compounds = separable = 0
    for tree in trees:
        assert set(tree.labels) <= {"TOP", "S", "NP", "PP"}
        assert tree.words[0][0].isupper()
        for start, end, label in tree.constituents():
            assert label != "NP" or end - start > 1
        for position, (word, tag) in enumerate(zip(tree.words, tree.tags, strict=True)):
            if tag == "NN":
                assert word[1:] == word[1:].lower()
                compounds += any(
                    word.lower().endswith(head) and word.lower() != head for head in heads
                )
            if tag == "Art":
                noun = tree.words[position + 1].lower()
                kind = next((k for head, k in heads.items() if noun.endswith(head)), "pl")
                assert word.lower() in articles[kind], tree.words
        verb = tree.words[tree.tags.index("VVFIN")]
        assert verb in {"sagt", "sagen", "wartet", "warten", "nehmt", "nehmen"}
        assert ("PTKVZ" in tree.tags) == verb.startswith("nehm")
        separable += "PTKVZ" in tree.tags
    assert compounds > 20
    assert separable > 20


def test_length_bound_and_recursion(tmp_path: Path) -> None:
    path = write_grammar(
        tmp_path,
        ("[settings]\n", "[settings]\nmax_words = 12\ndamping = 1.0\nnesting = 8\n"),
        ("PP -> P[case] NX[case]", "PP -> P[case] NP[case]"),
        ("PP?0.2", "PP?0.9"),
    )
    trees = [constituents(parse) for parse in generate(path, {"train": 200}, seed=1)["train"]]
    assert max(len(tree) for tree in trees) in (11, 12)
    assert max(tree.labels.count("PP") for tree in trees) >= 3


def test_adjust_looks_at_the_next_word(tmp_path: Path) -> None:
    path = write_grammar(
        tmp_path,
        ("[[spelling]]", "[[adjust]]\nword = '^die$'\nnext = '^G'\nreplace = \"d'\"\n[[spelling]]"),
    )
    pairs = [
        pair
        for tree in generate(path, {"train": 200}, seed=1)["train"]
        for pair in zip([word.lower() for word in tree.words], tree.words[1:], strict=False)
    ]
    assert any(word == "d'" for word, _ in pairs)
    assert all((word == "d'") == following.startswith("G") for word, following in pairs
               if word in ("die", "d'"))  # fmt: skip


def test_a_guard_meets_the_default_of_a_silent_lexeme(tmp_path: Path) -> None:
    path = write_grammar(
        tmp_path,
        ('P = "case"\n', 'P = "case"\nInf = ""\n'),
        ("V[num,ptk=0] PP?0.5", "V[num,ptk=0] xcomp:Inf"),
        ("V[pl] : {1}+en", "V[pl] : {1}+en\nInf[ptk=!0] : {ptk}zu{1}en"),
    )
    words = {
        word
        for tree in generate(path, {"train": 50}, seed=1)["train"]
        for word, tag in zip(tree.words, tree.tags, strict=True)
        if tag == "Inf"
    }
    assert words == {"abzunehmen"}


def test_sizes_that_cannot_be(tmp_path: Path) -> None:
    path = write_grammar(
        tmp_path,
        ("[settings]\n", "[settings]\nmax_words = 4\n"),
        ("NX[case,num=pl] -> NN[num=pl]\n", ""),
    )
    with pytest.raises(TreebankError, match="size -1"):
        generate(path, {"train": -1}, seed=1)
    with pytest.raises(TreebankError, match="no new sentence of at most 4 words"):
        generate(path, {"train": 100_000}, seed=1)


def test_names_of_grammars() -> None:
    assert "german" in available_grammars()
    with pytest.raises(TreebankError, match="Did you mean german"):
        generate("germann", {"train": 1}, seed=0)
