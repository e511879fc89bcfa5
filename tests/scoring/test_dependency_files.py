"""Attachment scores of files: places of mistakes, real treebanks, a second computation."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.scoring.attachment import AttachmentRules
from spmrl_bench.scoring.dependency_files import score_dependency_files
from tests.conftest import shared_data

TREEBANKS = [
    "ud_basque_bdt/eu_bdt-ud-test",
    "ud_french_sequoia/fr_sequoia-ud-test",
    "ud_hungarian_szeged/hu_szeged-ud-test",
    "ud_korean_gsd/ko_gsd-ud-test",
]
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def block(name: str, words: str, heads: str, tag: str = "X", relation: str = "r") -> str:
    lines = [f"# sent_id = {name}"]
    for k, (word, head) in enumerate(zip(words.split(), heads.split(), strict=True), start=1):
        lines.append(f"{k}\t{word}\t_\t_\t{tag}\t_\t{head}\t{relation}\t_\t_")
    return "\n".join(lines) + "\n\n"


GOOD = block("s1", "a b", "0 1")


@pytest.mark.parametrize(
    ("gold", "test", "rules", "problem"),
    [
        ("", GOOD, AttachmentRules(), "{gold}: holds no sentence"),
        (GOOD, "\n", AttachmentRules(), "{test}: holds no sentence"),
        (
            GOOD + block("s2", "c d", "0 1"),
            "\n" + GOOD.replace("s1", "x") + block("p2", "c D", "0 1"),
            AttachmentRules(),
            "{test}:8: sentence p2: word 2 is 'D', in gold 'd'; gold is {gold}:6",
        ),
        (
            GOOD + block("s2", "c d e", "0 1 1"),
            GOOD + block("p2", "c d", "0 1"),
            AttachmentRules(),
            "{test}:7: sentence p2: word 3 is missing, in gold 'e' (2 words, in gold 3); gold is"
            " {gold}:6",
        ),
        (
            GOOD + block("s2", "c", "0") + block("s3", "d", "0"),
            GOOD + block("p2", "d", "0"),
            AttachmentRules(),
            "{gold} has 3 sentences, {test} has 2; they must be the same sentences in the same"
            " order, and the first that differ are s2 at line 6 and p2 at line 6",
        ),
        (
            GOOD,
            GOOD + GOOD,
            AttachmentRules(),
            "{gold} has 1 sentences, {test} has 2; they must be the same sentences in the same"
            " order, and the first 1 are",
        ),
        (
            GOOD + block("s2", "c", "0", tag="_"),
            GOOD + block("s2", "c", "0"),
            AttachmentRules("ptb-ctb"),
            "{gold}:6: sentence s2: word 1 has the tag '_', to which",
        ),
        (
            GOOD + block("s2", "c", "0", relation="_"),
            GOOD + block("s2", "c", "0"),
            AttachmentRules(),
            "{gold}:6: sentence s2: word 1 has no relation ('_')",
        ),
    ],
)
def test_files_that_cannot_be_compared(
    gold: str, test: str, rules: AttachmentRules, problem: str, write: Write
) -> None:
    paths = {"gold": write("gold.conllu", gold), "test": write("test.conllu", test)}
    with pytest.raises(ScoreError) as caught:
        score_dependency_files(paths["gold"], paths["test"], rules)
    assert str(caught.value).startswith(problem.format(**paths))


def test_a_mistake_at_the_end_of_either_file_prevents_any_score(write: Write) -> None:
    good, bad = write("good.conllu", GOOD * 9), write("bad.conllu", GOOD * 8 + "1\ta\n")
    for gold, test in ((good, bad), (bad, good)):
        with pytest.raises(ReadError, match=r"bad\.conllu:33: sentence 9: found 2 columns"):
            score_dependency_files(gold, test, AttachmentRules())


def test_roots_tags_and_encoding_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    lines = ["1\t\xe9\t_\tPU\t_\t_\t0\tr\t_\t_", "2\tb\t_\tNN\t_\t_\t0\tr\t_\t_", "", ""]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    rules = AttachmentRules("ptb-ctb", tags="upos", roots="several")
    counts = score_dependency_files(path, path, rules, encoding="latin-1")
    assert counts.rows.tolist() == [[1, 1, 1, 1, 2, 2, 2, 2]]
    with pytest.raises(ReadError, match="second root"):
        score_dependency_files(path, path, AttachmentRules(), encoding="latin-1")


@pytest.mark.parametrize("name", TREEBANKS)
@pytest.mark.parametrize("punctuation", ["none", "unicode"])
def test_a_real_treebank_agrees_with_itself(name: str, punctuation: str) -> None:
    path = shared_data(f"treebanks/{name}.conllu")
    counts = score_dependency_files(path, path, AttachmentRules(punctuation))
    for part in (counts, counts.with_punctuation()):
        figures = (part.uas, part.las, part.label_accuracy, part.unlabelled_match)
        assert {*figures, part.labelled_match} == {100.0}


def perturbed(source: str, rng: random.Random) -> str:
    """A treebank's text with other heads and relations in every third word, still trees."""
    blocks = []
    for text in source.strip("\n").split("\n\n"):
        lines = text.split("\n")
        rows = {line.split("\t")[0]: k for k, line in enumerate(lines) if line[0] != "#"}
        words = [number for number in rows if number.isdecimal()]
        head = {number: lines[rows[number]].split("\t")[6] for number in words}
        for number in words:
            if rng.random() < 1 / 3:
                columns = lines[rows[number]].split("\t")
                above = rng.choice(words)
                path = [above]
                while path[-1] != "0":
                    path.append(head[path[-1]])
                if head[number] != "0" and number not in path and rng.random() < 0.7:
                    columns[6] = head[number] = above
                if rng.random() < 0.6:
                    columns[7] = rng.choice([columns[7].split(":")[0], "dep", columns[7] + ":x"])
                lines[rows[number]] = "\t".join(columns)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n\n"


@pytest.mark.parametrize("name", TREEBANKS)
@pytest.mark.parametrize("cut", [False, True])
def test_a_second_computation_on_a_perturbed_treebank(name: str, cut: bool, write: Write) -> None:
    """From the lines themselves, with the tags of UD that no rule of ours looks at."""
    path = shared_data(f"treebanks/{name}.conllu")
    source = path.read_text(encoding="utf-8")
    other = write("test.conllu", perturbed(source, random.Random(name)))
    lines = zip(source.split("\n"), other.read_text(encoding="utf-8").split("\n"), strict=False)
    total = [0, 0, 0, 0]
    for one, two in lines:
        gold, test = one.split("\t"), two.split("\t")
        if gold[0].isdecimal():
            labels = gold[7], test[7]
            if cut:
                labels = labels[0].split(":")[0], labels[1].split(":")[0]
            head, label = gold[6] == test[6], labels[0] == labels[1]
            for k, right in enumerate((True, head, label, head and label)):
                total[k] += right
    words, heads, relations, both = total
    rules = AttachmentRules(relations="universal" if cut else "whole")
    counts = score_dependency_files(path, other, rules)
    assert counts.words == words
    assert counts.uas == 100 * heads / words
    assert counts.label_accuracy == 100 * relations / words
    assert counts.las == 100 * both / words
    assert both < min(heads, relations) < max(heads, relations) < words
