"""What the patterns of a manifest find, and what they say is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.treebanks.patterns import check_range, find_files

FILES = ["a_1", "a_2", "a_10", "Z", "n/01", "n/02", "n/04", "pred/x", "train5k", "ä"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "found", "missing"),
    [
        (["a_2", "a_1"], ["a_2", "a_1"], []),
        (["a_*"], ["a_1", "a_10", "a_2"], []),
        (["*"], ["Z", "a_1", "a_10", "a_2", "train5k", "ä"], []),
        (["b_*", "c"], [], ["b_*", "c"]),
        (["n/{01..02}"], ["n/01", "n/02"], []),
        (["n/{01..04}"], ["n/01", "n/02", "n/04"], ["n/03"]),
        (["n/{01..04?}"], ["n/01", "n/02", "n/04"], []),
        (["n/{05..07?}"], [], ["n/{05..07?}"]),
        (["a_{1..2}", "a_{9..10?}"], ["a_1", "a_2", "a_10"], []),
        (["train | train5k"], ["train5k"], []),
        (["n/{01..03} | Z"], ["n/01", "n/02"], ["n/03"]),
        (["y | w"], [], ["y | w"]),
        (["{tags}/x | Z"], ["pred/x"], []),
        (["n"], [], ["n"]),
    ],
)
def test_patterns(folder: Path, patterns: list[str], found: list[str], missing: list[str]) -> None:
    result = find_files(folder, patterns, tags="pred")
    assert [path.relative_to(folder).as_posix() for path in result.paths] == found
    assert list(result.missing) == missing


def test_excluded_files_are_left_out(folder: Path) -> None:
    result = find_files(folder, ["a_*"], exclude=["a_{1..2?}", "nothing"])
    assert [path.name for path in result.paths] == ["a_10"]


def test_range() -> None:
    assert check_range("3..10") == (3, 10)
    for wrong in ("0..3", "4..3", "3", "a..b", "1...2", ""):
        with pytest.raises(ValueError, match="expected two numbers from 1 in rising order"):
            check_range(wrong)
