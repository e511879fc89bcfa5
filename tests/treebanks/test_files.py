"""Which files a manifest means, and what two splits may not both have."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.check import validate
from spmrl_bench.treebanks.patterns import check_range, find_files
from spmrl_bench.treebanks.split_files import TreebankFiles, same_places
from spmrl_bench.treebanks.treebank import open_treebank
from tests.laboratory import make_trees
from tests.treebanks.conftest import WriteManifest

FILES = ["a_1", "a_2", "a_10", "Z", "n/01", "n/02", "n/04", "pred/x", "train5k", "ä", "old[1]/b?"]

#: Patterns, what they find, and what they say is missing.
PATTERNS: list[tuple[list[str], list[str], list[str]]] = [
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
    (["old[1]/*"], ["old[1]/b?"], []),  # only the star stands for others
    (["old*/b?", "old1/*", "a_*?"], ["old[1]/b?"], ["old1/*", "a_*?"]),
]


def test_patterns(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    for patterns, found, missing in PATTERNS:
        result = find_files(tmp_path, patterns, tags="pred")
        names = [path.relative_to(tmp_path).as_posix() for path in result.paths]
        assert (names, list(result.missing)) == (found, missing), patterns
    exclude = ["b | a_{1..2?}", "nothing", "{tags}/*"]
    result = find_files(tmp_path, ["*/x", "a_*"], exclude=exclude, tags="pred")
    assert [path.name for path in result.paths] == ["a_10"]


def test_range() -> None:
    found = [check_range(text) for text in ("3..10", "..10", "3..")]
    assert found == [(3, 10), (1, 10), (3, sys.maxsize)]
    for wrong in ("0..3", "4..3", "3", "a..b", "1...2", "", ".."):
        with pytest.raises(ValueError, match="expected two numbers from 1 in rising order"):
            check_range(wrong)


def test_checksums_are_verified(manifests: WriteManifest, root: Path) -> None:
    folder = manifests().parent / "checksums"
    folder.mkdir()
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted((root / "tiny_data").iterdir())
    ]
    (folder / "tiny.sha256").write_text("".join(lines))
    assert len(open_treebank("tiny", root).split("train")) == 3
    (root / "tiny_data" / "a_2.mrg").write_text("( (S (N d) (N x)))\n")
    with pytest.raises(TreebankError, match=r"SHA-256 differs\): a_2\.mrg in .*tiny_data\. Get"):
        open_treebank("tiny", root).split("train")
    assert len(open_treebank("tiny", root).split("dev")) == 3
    (folder / "tiny.sha256").write_text(lines[0] + "abc  x\n")
    with pytest.raises(TreebankError, match=r"tiny\.sha256:2: found 'abc  x', expected 64 hex"):
        open_treebank("tiny", root)


# ---- Sentences of two splits ----


@pytest.fixture
def bank(root: Path) -> Path:
    """Six files of ten different trees each."""
    trees = make_trees(60, seed=3)
    for number in range(6):
        lines = [f"( {tree})\n" for tree in trees[10 * number : 10 * number + 10]]
        (root / "tiny_data" / f"doc{number}.mrg").write_text("".join(lines))
    return root


def divide(manifests: WriteManifest, *splits: str, **more: str) -> None:
    names = zip(("train", "dev", "test"), splits, strict=True)
    manifests(**{f"splits.{name}": f"{{ {split} }}" for name, split in names}, **more)


EVERY = 'files = ["doc*.mrg"]'
OVERLAPS = [
    (
        'files = ["doc0.mrg", "doc1.mrg", "doc2.mrg"]',
        'files = ["doc2.mrg"]',
        'files = ["doc3.mrg"]',
        "train and dev both have doc2.mrg",
    ),
    (
        f'{EVERY}, range = "1..41"',
        f'{EVERY}, range = "41..50"',
        f'{EVERY}, range = "51.."',
        "train and dev both have sentences 41 to 41 of doc0.mrg and 5 other files",
    ),
    (
        f'{EVERY}, range = "1..40"',
        f'{EVERY}, range = "41.."',
        f'{EVERY}, range = "51.."',
        "dev and test both have sentences 51 to the last",
    ),
    (
        EVERY,
        'files = ["doc5.mrg"], range = "1..5"',
        'files = ["doc5.mrg"], range = "6..10"',
        "train has all of doc5.mrg, of which dev has a range",
    ),
]


def test_a_sentence_of_two_splits_is_a_mistake(manifests: WriteManifest, bank: Path) -> None:
    for *splits, problem in OVERLAPS:
        divide(manifests, *splits)
        assert any(problem in each for each in validate(load_manifest("tiny"), bank).problems)
        with pytest.raises(TreebankError, match=f"treebank tiny: .*{problem}"):
            open_treebank("tiny", bank)
        divide(manifests, *splits, shared='"allowed"')
        assert validate(load_manifest("tiny"), bank).sound
        assert open_treebank("tiny", bank)


def test_ranges_that_meet_share_nothing(manifests: WriteManifest, bank: Path) -> None:
    divide(manifests, *(f'{EVERY}, range = "{one}"' for one in ("..40", "41..50", "51..")))
    assert validate(load_manifest("tiny"), bank).sound
    assert len(open_treebank("tiny", bank).split("test")) == 10
    divide(manifests, *(f'{EVERY}, range = "{one}"' for one in ("..40", "41..50", "61..")))
    problems = validate(load_manifest("tiny"), bank).problems
    assert any("begins beyond the last of 60" in each for each in problems)


def test_a_dev_set_that_stands_in_train_is_a_mistake(manifests: WriteManifest, bank: Path) -> None:
    folder = bank / "tiny_data"
    (folder / "copy.mrg").write_text((folder / "doc2.mrg").read_text())
    train = 'files = ["doc0.mrg", "doc1.mrg", "doc2.mrg"]'
    divide(manifests, train, 'files = ["copy.mrg"]', 'files = ["doc3.mrg"]')
    (problem,) = validate(load_manifest("tiny"), bank).problems
    assert "of the 10 sentences of dev are in train too, such as dev" in problem


def test_many_files_are_compared_in_linear_time(manifests: WriteManifest, root: Path) -> None:
    folder = root / "many"
    folder.mkdir()
    for number in range(6_000):
        (folder / f"{number}").touch()
    half = 'files = ["{0..2999}"]', 'files = ["{3000..5999}"]'
    divide(manifests, *half, 'files = ["0"]')
    files = TreebankFiles(load_manifest("tiny"), folder)
    for split in ("train", "dev", "test"):
        files.of(split)  # type: ignore[arg-type]
    begun = time.process_time()
    (mistake,) = same_places(files)
    assert "train and test both have 0" in mistake
    assert time.process_time() - begun < 0.5
