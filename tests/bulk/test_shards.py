"""Shards, each read alone, hold what the whole file holds: sentences, places and mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.bulk import shards
from spmrl_bench.bulk.compression import Source
from spmrl_bench.bulk.shards import BEGINNING, Cut, Shard, shard_at
from spmrl_bench.errors import ReadError
from spmrl_bench.parsing import given_trees
from spmrl_bench.parsing.streams import Form, InputSentence, sentences_of
from tests.bulk.folders import conllu, packed, tokens, trees

BLOCK = 40


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_SENTENCES", 3)
    monkeypatch.setattr(shards, "SHARD_BYTES", 150)
    monkeypatch.setattr(given_trees, "BLOCK", BLOCK)


def shards_of(path: Path, form: Form, compression: str = "none") -> Iterator[Shard]:
    source = Source(path, compression, "x")
    cut: Cut | None = BEGINNING
    while cut is not None:
        shard = shard_at(source, form, cut)
        yield shard
        cut = None if shard.is_last else shard.end()
    source.close()


#: The sentences in front of a mistake, and the mistake.
Found = tuple[list[InputSentence], str]


def whole(data: bytes, form: Form) -> Found:
    sentences: list[InputSentence] = []
    try:
        for each in sentences_of(BytesIO(data), "x", form):
            sentences.append(each)
    except ReadError as error:
        return sentences, str(error)
    return sentences, ""


def in_shards(path: Path, form: Form) -> Found:
    sentences: list[InputSentence] = []
    try:
        for shard in shards_of(path, form):
            sentences.extend(shard.given())
    except ReadError as error:
        return sentences, str(error)
    return sentences, ""


PIECES: dict[Form, list[str]] = {
    "tokens": ["the dog\n", "\n", "a\r\n", "  \n", "cats sleep .", "\ufeff", "\x0b"],
    "conllu": [
        "1\tthe\tthe\tDET\tD\t_\t_\t_\t_\t_\n",
        "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\r\n",
        "2\tdog\t_\tN\tN\t_\t_\t_\t_\t_\n",
        *("\n", "\n", "\r\n", "# text = x\n", "# sent_id = 7\n", "nonsense\n", "\ufeff"),
    ],
    "brackets": [
        "(S (D the) (N dog))\n",
        "(S (N cats)) (S (N dogs))\n",
        "( (S\n  (N cats)))\n",
        *("\n", "\n", "(())\n", "(S (N a)", ")", "\n", "\ufeff", "word\n"),
    ],
}


@settings(max_examples=300)
@given(st.data(), st.sampled_from(sorted(PIECES)))
def test_shards_are_read_as_the_whole_file_is(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, form: Form
) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES[form]), max_size=30))
    text = "".join(pieces).encode()
    path = tmp_path_factory.getbasetemp() / "x"
    path.write_bytes(text)
    sentences, problem = whole(text, form)
    shared, its_problem = in_shards(path, form)
    assert bool(problem) == bool(its_problem)
    if not problem:
        assert shared == sentences
    else:
        assert (shared, its_problem) == (sentences, problem)


@pytest.mark.parametrize(
    ("form", "text", "least"),
    [
        ("tokens", tokens(40), 14),
        ("conllu", conllu(40), 14),
        ("brackets", trees(40), 14),
        ("brackets", trees(40, lines=False), 14),
        ("brackets", trees(30) + trees(30, lines=False) + trees(9), 20),
        ("brackets", b"\n" * 100 + trees(9), 10),
        ("tokens", b"", 1),
    ],
)
@pytest.mark.parametrize("compression", ["none", "gz", "zst"])
def test_shards_are_bounded_and_many(
    tmp_path: Path, form: Form, text: bytes, least: int, compression: str
) -> None:
    path = tmp_path / f"x.{compression}"
    path.write_bytes(packed(text, path.name))
    cut = list(shards_of(path, form, compression))
    assert len(cut) >= least
    assert b"".join(shard.data for shard in cut) == text
    assert max(len(shard.data) for shard in cut) < 300
    assert [each for shard in cut for each in shard.given()] == whole(text, form)[0]
    if compression == "none":
        assert sum(shard.consumed for shard in cut) == len(text)


@pytest.mark.parametrize("compression", ["none", "gz", "zst"])
def test_any_shard_is_found_from_any_place(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(packed(tokens(60), f"x.{compression}"))
    cut = [(shard.cut, shard.data) for shard in shards_of(path, "tokens", compression)]
    source = Source(path, compression, "x")
    for number in (7, 9, 2, 3, 0, 12, 12):
        where, data = cut[number]
        assert shard_at(source, "tokens", where).data == data
    source.close()


@pytest.mark.parametrize(("form", "begin"), [("brackets", b"(S (N a) "), ("brackets", b"a ")])
def test_what_has_no_end_is_a_mistake_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form, begin: bytes
) -> None:
    monkeypatch.setitem(shards._ENDLESS, form, 1000)
    path = tmp_path / "x"
    path.write_bytes(b"(S (N cats))\n" * 5 + begin + b"(N a) (N b)\n" * 500 + b")" * 9)
    _, problem = in_shards(path, form)
    assert problem.startswith("x:")


@pytest.mark.parametrize("compression", ["gz", "zst"])
@pytest.mark.parametrize("damage", ["cut", "changed", "none of it"])
def test_broken_files_are_mistakes_with_the_name(
    tmp_path: Path, compression: str, damage: str
) -> None:
    data = packed(tokens(500), f"x.{compression}")
    broken = {
        "cut": data[: len(data) - 9],
        "changed": data[:60] + bytes(byte ^ 255 for byte in data[60:90]) + data[90:],
        "none of it": b"the dog barks\n" * 9,
    }
    path = tmp_path / "x"
    path.write_bytes(broken[damage])
    with pytest.raises(ReadError, match=r"^x: cannot be (read|decompressed): .*[a-z]"):
        list(shards_of(path, "tokens", compression))
