"""Treebanks by name: which files are meant, what is read and kept, what is refused."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import re
import shutil
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.storage.digests import digest
from spmrl_bench.storage.paths import home
from spmrl_bench.treebanks.cache import cached, from_bytes, to_bytes
from spmrl_bench.treebanks.catalogue import load_manifest, treebank_statuses
from spmrl_bench.treebanks.check import validate
from spmrl_bench.treebanks.patterns import check_range, find_files
from spmrl_bench.treebanks.reading import SplitData
from spmrl_bench.treebanks.split_files import TreebankFiles, same_places
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.laboratory import make_trees
from tests.treebanks.conftest import WriteManifest
from tests.trees.strategies import dependency_trees, trees


def test_splits_are_read_transformed_and_counted(
    manifests: WriteManifest, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifests()
    treebank = open_treebank("tiny", root)
    assert (treebank.name, treebank.track, treebank.language) == ("tiny", "open", "elvish")
    with caplog.at_level(logging.WARNING):
        train = treebank.split("train")
    assert [tree.words for tree in train] == [("a",), ("b", "c"), ("d", "e")]
    assert train[0] == Tree.build(["a"], ["N"], [(0, 1, "S")])
    assert [tree.words for tree in treebank.split("dev")] == [("f",), ("g",), ("h",)]
    assert treebank.split("test")[0].words == ("i", "(")
    assert [treebank.data(name).dropped for name in ("train", "dev", "test")] == [1, 0, 0]
    assert caplog.messages == ["tiny, split train: 1 sentence(s) without words left out"]
    with pytest.raises(TreebankError, match=r"unknown split 'tests'\. Did you mean test\?"):
        treebank.split("tests")


def test_root_from_the_environment_may_be_relative(
    manifests: WriteManifest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()
    monkeypatch.chdir(root)
    monkeypatch.setenv("TREEBANKS", "../treebanks")
    treebank = open_treebank("tiny")
    monkeypatch.chdir("/")
    assert len(treebank.split("test")) == 1


def test_absent_folder_says_what_to_do(
    manifests: WriteManifest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()
    manifests("gone", path='"gone_data"')
    manifests("foreign", path='"gone_data"', language='"orkish"')
    monkeypatch.delenv("TREEBANKS", raising=False)
    with pytest.raises(TreebankError) as caught:
        open_treebank("gone")
    assert str(caught.value).splitlines() == [
        "treebank gone is not present",
        "  looked in: nowhere: set TREEBANKS (environment) to the directory with your treebanks",
        "  missing: gone_data/",
        "  expected layout: gone_data/a_*.mrg, gone_data/d_{08..10}.mrg, gone_data/t.mrg",
        "  how to get it: Ask the elves.",
        "  then set TREEBANKS to the directory that has gone_data/",
        "  present for elvish: none",
    ]
    monkeypatch.setenv("TREEBANKS", str(root))
    with pytest.raises(TreebankError) as caught:
        open_treebank("gone")
    assert f"looked in: {root}/gone_data\n" in str(caught.value)
    assert str(caught.value).endswith("present for elvish: tiny (--treebank NAME)")
    with pytest.raises(TreebankError, match="present for orkish: none"):
        open_treebank("foreign")


def test_absent_files_are_named(manifests: WriteManifest, root: Path) -> None:
    rows = 'rows = { table = "t.tsv", column = "c", equals = "x" }'
    manifests(**{"splits.test": f'{{ files = ["t.mrg"], sentences = 1, {rows} }}'})
    for name in ("a_1.mrg", "a_2.mrg", "d_09.mrg"):
        (root / "tiny_data" / name).unlink()
    with pytest.raises(TreebankError, match=re.escape("missing: a_*.mrg, d_09.mrg, t.tsv")):
        open_treebank("tiny", root)
    ((status,), _) = treebank_statuses(root)
    assert not status.present
    assert status.missing == ("a_*.mrg", "d_09.mrg", "t.tsv")
    assert (status.manifest.name, status.where) == ("tiny", str(root / "tiny_data"))


def test_another_size_than_declared(manifests: WriteManifest, root: Path) -> None:
    for sizes, message in (
        ("sentences = 4", "expected 4 sentences, found 3 (1 without words left out). The files"),
        ("sentences = [4, 5]", "expected 4 or 5 sentences, found 3"),
        ("sentences = 4, tokens = 9", "expected 4 sentences, found 3; expected 9 tokens, found 5"),
    ):
        manifests(**{"splits.train": f'{{ files = ["a_*.mrg"], {sizes} }}'})
        with pytest.raises(TreebankError) as caught:
            open_treebank("tiny", root).split("train")
        assert f"tiny, split train in {root}/tiny_data: {message}" in str(caught.value)
    manifests(**{"splits.train": '{ files = ["a_*.mrg"], sentences = [4, 3] }'})
    assert len(open_treebank("tiny", root).split("train")) == 3


def test_bad_files(manifests: WriteManifest, root: Path) -> None:
    manifests()
    for text, message in (
        ("\n \n", r"t\.mrg: found no sentence in the file"),
        ("", r"t\.mrg: found no sentence in the file"),
        ("(S (N i)", r"t\.mrg:1:1: sentence 1: "),
    ):
        (root / "tiny_data" / "t.mrg").write_text(text)
        with pytest.raises(ReadError, match=message):
            open_treebank("tiny", root).split("test")


def test_rows_of_a_table_choose_sentences(manifests: WriteManifest, root: Path) -> None:
    rows = '{ table = "ids.tsv", column = "split", equals = "x" }'
    split = f'{{ files = ["a_2.mrg", "d_08.mrg", "t.mrg"], sentences = 2, rows = {rows} }}'
    manifests(**{f"splits.{name}": split for name in ("train", "dev", "test")})
    table = root / "tiny_data" / "ids.tsv"
    table.write_text('id\tsplit\n"1\tx\n2\ty\n3\tx\n')
    bank = open_treebank("tiny", root)
    assert [tree.words for tree in bank.split("dev")] == [("d", "e"), ("i", "(")]
    assert [(place.path.name, place.name) for place in bank.places("dev")] == [
        ("a_2.mrg", "1"), ("t.mrg", "1")
    ]  # fmt: skip
    for text, message in (
        ("id\tset\n1\tx\n", r"ids\.tsv:1: found no column 'split' in the first line"),
        ("", r"ids\.tsv:1: found no column 'split' in the first line"),
        ("split\nx\nx\n", r"ids\.tsv: found 2 lines below the first, expected 3"),
    ):
        table.write_text(text)
        with pytest.raises(ReadError, match=message):
            open_treebank("tiny", root).split("dev")


def test_the_first_folder_and_encoding_that_fit(manifests: WriteManifest, root: Path) -> None:
    manifests(path='"TINY | tiny_data"', encoding='"utf-8 | gb18030"')
    for text, encoding in (("(S (N 中) (N 文))", "gb18030"), ("(S (N 中) (N 国))", "utf-8")):
        (root / "tiny_data" / "t.mrg").write_bytes(text.encode(encoding))
        assert str(open_treebank("tiny", root).split("test")[0]) == text


def test_range_counts_before_anything_is_left_out(manifests: WriteManifest, root: Path) -> None:
    text = "(S (N a))\n(S (-NONE- *))\n(S (N b)\n(S (N c))\n(S (N d))\n"
    (root / "tiny_data" / "r.mrg").write_text(text)
    manifests(
        on_error='"skip"',
        shared='"allowed"',
        **{
            "splits.train": '{ files = ["r.mrg"], range = "2..4", sentences = 1, skipped = 1, '
            "dropped = 1 }",
            "splits.dev": '{ files = ["r.mrg"], range = "5..5", sentences = 1 }',
            "splits.test": '{ files = ["r.mrg"], range = "5..6", sentences = 1 }',
        },
    )
    bank = open_treebank("tiny", root)
    assert [tree.words for tree in bank.split("train")] == [("c",)]
    assert [tree.words for tree in bank.split("dev")] == [("d",)]
    assert [place.name for place in bank.places("train")] == ["4"]
    with pytest.raises(TreebankError, match=r"range 5\.\.6 of r\.mrg ends beyond the last of 5"):
        bank.split("test")


def test_broken_sentences_are_left_out_counted_and_told(
    manifests: WriteManifest, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / "tiny_data" / "t.mrg").write_text("(S (N a))\n(S (N x) b)\n(S (N c))\n")
    split = {"splits.test": '{ files = ["t.mrg"], sentences = 2, skipped = 1 }'}
    manifests(**split)
    with pytest.raises(ReadError, match=r"t\.mrg:2:10: sentence 2: "):
        open_treebank("tiny", root).split("test")
    manifests(on_error='"skip"', **split)
    for _ in range(2):  # read, and from the cache
        caplog.clear()
        bank = open_treebank("tiny", root)
        with caplog.at_level(logging.WARNING):
            assert [tree.words for tree in bank.split("test")] == [("a",), ("c",)]
        assert caplog.messages == ["tiny, split test: 1 sentence(s) that break the format left out"]
        assert "t.mrg:2:10: sentence 2: " in bank.data("test").skipped[0]
    manifests(on_error='"skip"', **{"splits.test": '{ files = ["t.mrg"], sentences = 2 }'})
    with pytest.raises(TreebankError, match="expected 0 broken sentences, found 1"):
        open_treebank("tiny", root).split("test")


def test_text_transforms_come_before_reading(manifests: WriteManifest, root: Path) -> None:
    manifests(transforms='["strip-features", "strip-root"]')
    (root / "tiny_data" / "t.mrg").write_text("(TOP (S (N##lem=a b ( ## i)))")
    assert open_treebank("tiny", root).split("test")[0].tags == ("N",)


def test_graphs_that_are_no_trees_name_file_and_sentence(
    manifests: WriteManifest, root: Path
) -> None:
    manifests(
        format='"tiger-xml"',
        escapes=None,
        transforms="[]",
        **{"splits.test": '{ files = ["t.xml"], sentences = 1 }'},
    )
    (root / "tiny_data" / "t.xml").write_text(
        '<corpus><s id="s5"><graph><t id="1" word="a" pos="N"/><t id="2" word="b" pos="N"/>'
        '<nt id="3" cat="S"><edge idref="1"/></nt></graph></s></corpus>'
    )
    with pytest.raises(ReadError, match=r"t\.xml: sentence s5: token 2 \('b'\) is attached now"):
        open_treebank("tiny", root).split("test")


def test_fingerprint_follows_content_and_what_changes_trees(
    manifests: WriteManifest, root: Path
) -> None:
    manifests()
    first = open_treebank("tiny", root).fingerprint
    assert re.fullmatch("[0-9a-f]{64}", first)
    assert open_treebank("tiny", root).fingerprint == first
    manifests(title='"New"', prm='"COLLINS"', obtain='"Elsewhere."')
    (root / "tiny_data").rename(root / "moved")
    manifests("renamed", path='"moved"', shared='"allowed"')
    assert open_treebank("renamed", root).fingerprint == first
    changed = set()
    for key, value in {
        "escapes": '"brackets"',
        "transforms": '["strip-root", "drop-traces"]',
        "encoding": '"latin-1"',
        "splits.test": '{ files = ["a_2.mrg"], sentences = 1 }',
    }.items():
        manifests("renamed", path='"moved"', shared='"allowed"', **{key: value})
        changed.add(open_treebank("renamed", root).fingerprint)
    manifests("renamed", path='"moved"')
    with (root / "moved" / "d_09.mrg").open("a") as file:
        file.write("\n")
    changed.add(open_treebank("renamed", root).fingerprint)
    assert len(changed - {first}) == 5


def test_mini_treebanks_come_with_the_program(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies under the directory of treebanks, or none is named."""
    (root / "mini" / "german").mkdir(parents=True)
    for directory in (None, str(root)):
        if directory is None:
            monkeypatch.delenv("TREEBANKS", raising=False)
        else:
            monkeypatch.setenv("TREEBANKS", directory)
        bank = open_treebank("german-mini")
        assert [len(bank.examples(split)) for split in ("train", "dev", "test")] == [2000, 300, 300]
        assert bank.layers == bank.examples("dev")[0].layers == ("constituents", "dependencies")


def test_the_fingerprint_of_a_mini_treebank_is_that_of_its_sentences(
    manifests: WriteManifest, root: Path
) -> None:
    layer = '{ format = "dp", train = ["a.dp"], dev = ["a.dp"], test = ["a.dp"] }'
    split = '{ files = ["a_2.mrg"], sentences = 1 }'
    splits = {f"splits.{name}": split for name in ("train", "dev", "test")}
    found = []
    for heads in (("2", "0"), ("0", "1")):
        manifests(track='"mini"', dependencies=layer, shared='"allowed"', **splits)
        (root / "tiny_data/a.dp").write_text(f"d\tN\t{heads[0]}\ne\tN\t{heads[1]}\n")
        bank = open_treebank("tiny", root)
        found.append((bank.fingerprint, bank.fingerprint_of("dependencies")))
        sentences = dict.fromkeys(("train", "dev", "test"), digest(["(S (N d) (N e))"]))
        head = {"format": "mini", "transforms": ["drop-traces", "strip-root"], "version": 1}
        assert bank.fingerprint == digest(head | sentences)
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]


# Files of splits, and what two may not both have -----------------------------------------------

NAMES = ["a_1", "a_2", "a_10", "Z", "n/01", "n/02", "n/04", "pred/x", "train5k", "ä", "old[1]/b?"]

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
    for name in NAMES:
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
    with pytest.raises(TreebankError, match=r"tiny\.sha256:2: found another line than 64 hex"):
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
    (folder / "copy.mrg").write_text((folder / "doc2.mrg").read_text() + "\n")
    train = 'files = ["doc0.mrg", "doc1.mrg", "doc2.mrg"]'
    divide(manifests, train, 'files = ["copy.mrg"]', 'files = ["doc3.mrg"]')
    (problem,) = validate(load_manifest("tiny"), bank).problems
    assert "of the 10 sentences of dev are in train too, such as dev" in problem


def test_trees_with_nothing_in_them_are_not_sound(manifests: WriteManifest, bank: Path) -> None:
    for number in range(3):
        text = "".join(f"( (N a{number}) (N b{line}))\n" for line in range(10))
        (bank / "tiny_data" / f"doc{number}.mrg").write_text(text)
    divide(manifests, *(f'files = ["doc{number}.mrg"]' for number in range(3)))
    problem = "no constituent in any tree but the bracket around it"
    assert f"train: {problem}" in validate(load_manifest("tiny"), bank).problems
    with pytest.raises(TreebankError, match=problem):
        open_treebank("tiny", bank).split("train")


COPIES = {"symbolic link": Path.symlink_to, "hard link": Path.hardlink_to, "copy": shutil.copyfile}


@pytest.mark.parametrize("way", COPIES)
def test_two_splits_of_one_content_are_a_mistake(
    manifests: WriteManifest, bank: Path, way: str
) -> None:
    first, again = bank / "tiny_data" / "doc0.mrg", bank / "tiny_data" / "again.mrg"
    COPIES[way](*((first, again) if way == "copy" else (again, first)))
    files = 'files = ["doc0.mrg"]', 'files = ["doc1.mrg"]', 'files = ["again.mrg"]'
    divide(manifests, *files)
    message = r"train and test both have doc0.mrg \(in test it is again.mrg\)"
    with pytest.raises(TreebankError, match=message):
        open_treebank("tiny", bank)


def test_many_files_are_compared_in_linear_time(manifests: WriteManifest, root: Path) -> None:
    folder = root / "many"
    folder.mkdir()
    for number in range(3_000):
        (folder / f"{number}").write_text(str(number))
    half = 'files = ["{0..1499}"]', 'files = ["{1500..2999}"]'
    divide(manifests, *half, 'files = ["0"]')
    files = TreebankFiles(load_manifest("tiny"), folder)
    for split in ("train", "dev", "test"):
        files.by_content(split)  # type: ignore[arg-type]
    begun = time.process_time()
    (mistake,) = same_places(files)
    assert "train and test both have 0" in mistake
    assert time.process_time() - begun < 0.5


# What is kept of a split that was read ---------------------------------------------------------

KEPT = [Tree.build(["a", "b"], ["N", "N"], [(0, 2, "S")]), Tree.build(["c"], ["N"], [(0, 1, "S")])]
PARSES = list(map(Parse.of, KEPT))
CONTENT = SplitData(PARSES, 1, ("f:1: broken",))

pytestmark = pytest.mark.usefixtures("home")


def reader() -> Mock:
    """Gives the content and counts how often it was asked."""
    return Mock(return_value=CONTENT)


def stored() -> list[Path]:
    return sorted((home() / "cache").glob("*"))


def test_another_key_is_read_and_replaces_the_old_file() -> None:
    reads = reader()
    cached("tiny-train", {"file": "x"}, reads)
    cached("tiny-train-too", {"file": "x"}, reads)
    (first,) = [path for path in stored() if path.name.startswith("tiny-train.")]
    cached("tiny-train", {"file": "y"}, reads)
    assert reads.call_count == 3
    assert not first.exists()
    assert len(stored()) == 2


def test_damage_is_noticed_and_counts_as_absent(caplog: pytest.LogCaptureFixture) -> None:
    cached("tiny-train", {}, reader())
    (path,) = stored()
    data = path.read_bytes()
    flipped = (
        data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        for place in range(0, len(data), 41)
    )
    for damaged in (b"", data[:10], data[:100], data[:-1], *flipped):
        reads = reader()
        path.write_bytes(damaged)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert list(cached("tiny-train", {}, reads).sentences) == PARSES
        assert reads.call_count == 1
        assert "is damaged; reading the treebank again" in caplog.text
        assert path.read_bytes() == data


def test_what_is_interrupted_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> SplitData:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("tiny-train", {}, stop)
    monkeypatch.setattr("os.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        cached("tiny-train", {}, reader())
    assert stored() == []


def test_a_folder_that_cannot_be_written_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("")  # where the folder would be
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    reads = reader()
    for _ in range(2):
        assert list(cached("tiny-train", {}, reads).sentences) == PARSES
    assert reads.call_count == 2
    assert "cannot keep the treebank for the next time" in caplog.text


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPMRL_BENCH_CACHE", "0")
    cached("tiny-train", {}, reader())
    assert stored() == []


def _read_many(number: int) -> int:
    for round_ in range(10):
        content = cached("tiny-train", {"round": round_ % 3}, reader())
        assert list(content.sentences) == PARSES
    return number


def test_many_processes_at_once() -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(_read_many, range(4)) == [0, 1, 2, 3]
    assert 1 <= len(stored()) <= 3
    assert all(path.name.endswith(".safetensors") for path in stored())


def test_a_treebank_is_opened_from_the_cache_until_a_file_changes(
    manifests: WriteManifest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()
    first = open_treebank("tiny", root).split("dev")

    def no_reading(*_: object) -> SplitData:
        raise AssertionError("read again")

    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.treebanks.reading.read_first_layer", no_reading)
        assert open_treebank("tiny", root).split("dev") == first
        (root / "tiny_data" / "d_08.mrg").write_text("(S (N z))")
        with pytest.raises(AssertionError, match="read again"):
            open_treebank("tiny", root).split("dev")
    assert open_treebank("tiny", root).split("dev")[0].words == ("z",)


# ---- Columns ----


@st.composite
def both(draw: st.DrawFn) -> Parse:
    """A sentence with two layers, whose tags may differ."""
    dependencies = draw(dependency_trees())
    words, n = dependencies.words, len(dependencies)
    tags = draw(st.just(dependencies.tags) | st.lists(st.text(), min_size=n, max_size=n))
    return Parse.of(Tree.build(words, tags, [(0, n, draw(st.text()))]), dependencies)


KINDS = [trees().map(Parse.of), dependency_trees().map(lambda tree: Parse.of(None, tree)), both()]


@pytest.mark.parametrize("sentences", KINDS)
@given(drawn=st.data())
def test_sentences_come_back_from_their_columns(
    sentences: st.SearchStrategy[Parse], drawn: st.DataObject
) -> None:
    parses = drawn.draw(st.lists(sentences, max_size=6))
    data = SplitData(parses, 2, ("ä",))
    assert from_bytes(to_bytes(data)) == data


def test_what_comes_back_cannot_be_changed() -> None:
    tree = from_bytes(to_bytes(CONTENT)).sentences[0].tree
    with pytest.raises(ValueError, match="read-only"):
        tree.spans[0, 0] = 1
