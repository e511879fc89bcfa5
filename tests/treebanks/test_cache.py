"""A split is read once; nothing that happens to the stored file can change what it is."""

from __future__ import annotations

import logging
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.treebanks import cache
from spmrl_bench.treebanks.cache import cached, from_bytes, to_bytes
from spmrl_bench.treebanks.reading import SplitData
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.treebanks.conftest import WriteManifest
from tests.trees.dependency_strategies import dependency_trees
from tests.trees.strategies import trees

TREES = [Tree.build(["a", "b"], ["N", "N"], [(0, 2, "S")]), Tree.build(["c"], ["N"], [(0, 1, "S")])]
PARSES = list(map(Parse.of, TREES))
CONTENT = SplitData(PARSES, 1, ("f:1: broken",))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))


class Reads:
    """Gives the content and counts how often it was asked."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> SplitData:
        self.number += 1
        return CONTENT


def stored() -> list[Path]:
    return sorted(cache.folder().glob("*"))


def test_the_second_time_nothing_is_read() -> None:
    reads = Reads()
    for _ in range(3):
        content = cached("tiny-train", {"file": "x"}, reads)
        assert list(content.sentences) == PARSES
        assert (content.dropped, content.skipped) == (1, ("f:1: broken",))
    assert reads.number == 1
    assert len(stored()) == 1


def test_another_key_is_read_and_replaces_the_old_file() -> None:
    reads = Reads()
    cached("tiny-train", {"file": "x"}, reads)
    cached("tiny-train-too", {"file": "x"}, reads)
    (first,) = [path for path in stored() if path.name.startswith("tiny-train.")]
    cached("tiny-train", {"file": "y"}, reads)
    assert reads.number == 3
    assert not first.exists()
    assert len(stored()) == 2


def test_damage_is_noticed_and_counts_as_absent(caplog: pytest.LogCaptureFixture) -> None:
    cached("tiny-train", {}, Reads())
    (path,) = stored()
    data = path.read_bytes()
    flipped = (
        data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        for place in range(0, len(data), 41)
    )
    for damaged in (b"", data[:10], data[:100], data[:-1], *flipped):
        reads = Reads()
        path.write_bytes(damaged)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert list(cached("tiny-train", {}, reads).sentences) == PARSES
        assert reads.number == 1
        assert "is damaged; reading the treebank again" in caplog.text
        assert path.read_bytes() == data


def test_what_is_interrupted_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> SplitData:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("tiny-train", {}, stop)
    monkeypatch.setattr("os.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        cached("tiny-train", {}, Reads())
    assert stored() == []


def test_a_folder_that_cannot_be_written_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("")  # where the folder would be
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    reads = Reads()
    for _ in range(2):
        assert list(cached("tiny-train", {}, reads).sentences) == PARSES
    assert reads.number == 2
    assert "cannot keep the treebank for the next time" in caplog.text


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPMRL_BENCH_CACHE", "0")
    cached("tiny-train", {}, Reads())
    assert stored() == []


def _read_many(number: int) -> int:
    for round_ in range(10):
        content = cached("tiny-train", {"round": round_ % 3}, Reads())
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
        patch.setattr("spmrl_bench.treebanks.treebank.read_first_layer", no_reading)
        assert open_treebank("tiny", root).split("dev") == first
        (root / "tiny_data" / "d_08.mrg").write_text("(S (N z))")
        with pytest.raises(AssertionError, match="read again"):
            open_treebank("tiny", root).split("dev")
    assert open_treebank("tiny", root).split("dev")[0].words == ("z",)


def test_a_broken_treebank_is_not_kept(manifests: WriteManifest, root: Path) -> None:
    manifests()
    (root / "tiny_data" / "t.mrg").write_text("(S (N i)")
    with pytest.raises(ReadError):
        open_treebank("tiny", root).split("test")
    assert stored() == []


# ---- Columns ----


@st.composite
def both(draw: st.DrawFn) -> Parse:
    """A sentence with two layers, whose tags may differ."""
    dependencies = draw(dependency_trees())
    words, n = dependencies.words, len(dependencies)
    tags = draw(st.just(dependencies.tags) | st.lists(st.text(), min_size=n, max_size=n))
    return Parse.of(Tree.build(words, tags, [(0, n, draw(st.text()))]), dependencies)


KINDS = [
    trees().map(Parse.of),
    dependency_trees().map(lambda tree: Parse.of(dependencies=tree)),
    both(),
]


@pytest.mark.parametrize("sentences", KINDS)
@given(drawn=st.data())
def test_sentences_come_back_from_their_columns(
    sentences: st.SearchStrategy[Parse], drawn: st.DataObject
) -> None:
    parses = drawn.draw(st.lists(sentences, max_size=6))
    data = SplitData(parses, 2, ("ä",))
    assert from_bytes(to_bytes(data)) == data


def test_what_comes_back_cannot_be_changed_nor_be_a_part() -> None:
    data = to_bytes(CONTENT)
    tree = from_bytes(data).sentences[0].tree
    assert tree is not None
    with pytest.raises(ValueError, match="read-only"):
        tree.spans[0, 0] = 1
    for length in (0, 1, 7, 8, 100, -1):
        with pytest.raises(ValueError, match="no stored sentences"):
            from_bytes(data[:length])
