"""Answers of parsers of others: each damage is refused or counted, and none raises a score."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.scoring import load_prm
from spmrl_bench.scoring.attachment import ATTACHMENT, AttachmentRules
from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
from spmrl_bench.systems.predictions import POLICIES, Policy, file_text, read_predictions
from spmrl_bench.trees import Parse
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from tests.laboratory import make_trees

RULES = BracketRules(load_prm("spmrl"))
GOLD = [Parse.of(tree) for tree in make_trees(12, 5)]
RIGHT = [write_brackets(parse.tree) for parse in GOLD if parse.tree]


def read(
    path: Path, lines: list[str], policy: Policy = "refuse", **options: Any
) -> tuple[float, dict[str, int]]:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = read_predictions(path, GOLD, policy=policy, **options)
    counts = BRACKETS.count(GOLD, found.parses, RULES)
    assert counts.skipped == 0  # nothing is left out, whatever the answers are
    return float(BRACKETS.values(counts)["f1"] or 0), found.handled


def changed(number: int, change: Callable[[str], str]) -> list[str]:
    return [change(line) if k == number else line for k, line in enumerate(RIGHT)]


#: Damage, what refuses it, and how many answers `missing` and `repair` count as what.
DAMAGED = {
    "unclosed": (changed(3, lambda s: s[:-2]), "closed before|lacks", "malformed", "repaired"),
    "closed too often": (
        changed(3, lambda s: s + ")"), "no bracket is open", "malformed", "repaired",
    ),
    "text around a tree": (
        changed(3, lambda s: f"Sure! {s} Is there more?"), "outside|Sure", "malformed", "repaired",
    ),
    "two trees in a line": (
        changed(3, lambda s: f"{s} {s}"), "found 2 trees", "malformed", "repaired",
    ),
    "no brackets": (changed(3, lambda _: "I cannot"), "I", "malformed", ""),
    "empty line": (changed(3, lambda _: ""), "no parse", "no parse", ""),
    "empty brackets": (changed(3, lambda _: "(())"), "no parse", "no parse", ""),
    "words cut off": (changed(3, lambda s: "(S (NP (DT the)))"), "in gold", "other words", ""),
    "words split": (
        changed(3, lambda s: s.replace("(NN ", "(NN x) (NN ", 1)), "in gold", "other words", "",
    ),
    "other order": ([*reversed(RIGHT)], "word 1 is", "other words", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused_or_counted(tmp_path: Path, name: str) -> None:
    lines, refused, missing, repaired = DAMAGED[name]
    path = tmp_path / "parses.mrg"
    with pytest.raises(ScoreError, match=refused) as caught:
        read(path, lines)
    assert f"{path}:" in str(caught.value)
    assert "--faults missing" in str(caught.value)
    invalid = sum(one != other for one, other in zip(lines, RIGHT, strict=True))
    scores = []
    for policy, kind in (("missing", missing), ("repair", repaired or missing)):
        found, handled = read(path, lines, policy)
        assert handled == {kind: invalid}
        scores.append(found)
    assert scores[0] <= scores[1] <= 100
    if repaired:
        assert scores[0] < scores[1] == 100  # only brackets were wrong


@pytest.mark.parametrize("policy", POLICIES)
def test_the_right_parses_are_taken_as_they_are(tmp_path: Path, policy: Policy) -> None:
    assert read(tmp_path / "parses.mrg", RIGHT, policy) == (100, {})
    wrapped = [f"(TOP {line})" for line in RIGHT]
    assert read(tmp_path / "parses.mrg", wrapped, policy, transforms=["strip-root"]) == (100, {})
    # One blank line at the end is the editor's; trees may be laid out over lines.
    assert read(tmp_path / "parses.mrg", [*RIGHT, "", ""], policy) == (100, {})
    laid_out = [line.replace("(VP", "\n  (VP") for line in RIGHT]
    assert read(tmp_path / "parses.mrg", laid_out, policy) == (100, {})
    laid_out[4] = laid_out[4][:-1]
    with pytest.raises(ReadError, match=r"parses\.mrg:9:1: "):  # over lines, they must be whole
        read(tmp_path / "parses.mrg", laid_out, policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_another_number_of_answers_is_never_guessed_at(tmp_path: Path, policy: Policy) -> None:
    for lines in (RIGHT[:-1], [*RIGHT, RIGHT[0]], [RIGHT[0], *RIGHT], [""]):
        with pytest.raises(ScoreError, match=r"has \d+ sentences, the split has 12"):
            read(tmp_path / "parses.mrg", lines, policy)


def test_tags_are_those_of_the_treebank(tmp_path: Path) -> None:
    path = tmp_path / "parses.mrg"
    lines = [line.replace("(NN ", "(XX ").replace("(IN ", "(. ") for line in RIGHT]
    assert read(path, lines) == (100, {})
    found = read_predictions(path, GOLD)
    assert [parse.tags for parse in found.parses] == [parse.tags for parse in GOLD]


# Dependencies ---------------------------------------------------------------------------

ARCS = [
    Parse.of(None, DependencyTree.build(("a", "b", "c"), ("X", "Y", "Z"), heads, ("r", "s", "t")))
    for heads in ((2, 0, 2), (0, 1, 2), (3, 3, 0))
]
ROWS = [file_text([parse], "conllu", tags=True, structure=True) for parse in ARCS]


def dependency_score(path: Path, text: str, policy: Policy) -> tuple[float, dict[str, int]]:
    path.write_text(text, encoding="utf-8")
    found = read_predictions(path, ARCS, policy=policy)
    counts = ATTACHMENT.count(ARCS, found.parses, AttachmentRules())
    return float(ATTACHMENT.values(counts)["las"] or 0), found.handled


def test_dependencies_that_are_no_tree_count_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "parses.conllu"
    assert dependency_score(path, "".join(ROWS), "refuse") == (100, {})
    cyclic = ROWS[1].replace("\t0\tr", "\t3\tr")
    with pytest.raises(ScoreError, match=r"parses\.conllu:\d+: sentence 2: .*cycle"):
        dependency_score(path, ROWS[0] + cyclic + ROWS[2], "refuse")
    for wrong, kind in ((cyclic, "malformed"), (ROWS[1].replace("b", "bb"), "other words")):
        found = dependency_score(path, ROWS[0] + wrong + ROWS[2], "missing")
        assert found == (pytest.approx(200 / 3), {kind: 1})
    with pytest.raises(ScoreError, match="has 2 sentences, the split has 3"):
        dependency_score(path, ROWS[0] + ROWS[1], "missing")
    with pytest.raises(ScoreError, match="has dependencies, but the treebank has constituents"):
        read_predictions(path, GOLD)
