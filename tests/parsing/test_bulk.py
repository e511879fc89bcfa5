"""Models are found, and parse in bulk: windows, batches and processes change no tree."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.errors import (
    CheckpointError,
    PackageError,
    ReadError,
    RecipeError,
    SentenceTooLongError,
    SpmrlError,
)
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsing.bulk import (
    Counts,
    OnLong,
    ParseOptions,
    ParseWindows,
    Worker,
    WorkerLostError,
    open_workers,
    parse_input,
)
from spmrl_bench.parsing.models import identity, load_parser
from spmrl_bench.parsing.streams import InputSentence
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.tree import Tree
from tests.builders import LEXICAL, TREES, tiny

LIMIT = 18
LONG = f"a sentence of {LIMIT + 1} words, but the parser's"
WORDS = [*sorted({word for tree in TREES for word in tree.words}), "zebra", "(", "日本"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved parser of sentences of up to :data:`LIMIT` words."""
    path = tmp_path_factory.mktemp("parser")
    tiny(seed=3, max_positions=LIMIT + 2).save(path)
    return path


@pytest.fixture(scope="module")
def parser(folder: Path) -> Parser:
    return load_parser(folder, "cpu")


@pytest.fixture(scope="module")
def crews(folder: Path) -> Iterator[list[ParseWindows]]:
    """Two processes that make batches of several sentences, and two of one each."""
    options = [ParseOptions("flat", max_tokens=most) for most in (100, 1)]
    with ExitStack() as stack:
        yield [stack.enter_context(open_workers(folder, "cpu", each, 2)) for each in options]


def make(lengths: Iterable[int], seed: int = 0, *, tagged: bool = False) -> list[InputSentence]:
    choose = random.Random(seed)
    return [
        InputSentence(choose.choices(WORDS, k=n), [f"T{k}"] * n if tagged else None, f"x:{k}")
        for k, n in enumerate(lengths, start=1)
    ]


def here(parser: Parser, on_long: OnLong = "flat", max_tokens: int = 100) -> ParseWindows:
    return partial(map, Worker(parser, ParseOptions(on_long, max_tokens=max_tokens)))


def run(
    sentences: Iterable[InputSentence], parse_windows: ParseWindows, window: int = 1000
) -> tuple[list[str], Counts, SpmrlError | None]:
    """The texts, which are lines here, what was counted, and the error that ended them."""
    counts, texts, end = Counts(), list[str](), None
    try:
        for some in parse_input(sentences, parse_windows, counts, window=window):
            assert counts.sentences == len(texts)
            texts += some
    except SpmrlError as error:
        end = error
    assert counts.sentences == len(texts)
    assert all(text.count("\n") == 1 for text in texts)
    return [text.removesuffix("\n") for text in texts], counts, end


def one_by_one(parser: Parser, sentences: Iterable[InputSentence]) -> list[str]:
    """The specification under the policy ``flat``."""
    lines = []
    for words, tags, *_ in sentences:
        row = ["XX"] * len(words) if tags is None else tags
        if len(words) > LIMIT:
            leaves = (Tree.build([w], [t], []) for w, t in zip(words, row, strict=True))
            lines.append(f"(S {' '.join(map(write_brackets, leaves))})")
        elif words:
            lines.append(str(next(parser.parse([words], [row]))))
        else:
            lines.append("")
    return lines


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, LIMIT + 3), max_size=40),
    st.integers(0, 9),
    st.booleans(),
    st.integers(1, 45),
    st.sampled_from([1, 30, 100, 2000]),
)
def test_windows_batches_and_processes_change_no_tree(
    parser: Parser,
    crews: list[ParseWindows],
    lengths: list[int],
    seed: int,
    tagged: bool,
    window: int,
    budget: int,
) -> None:
    sentences = make(lengths, seed, tagged=tagged and 0 not in lengths)
    expected = one_by_one(parser, sentences)
    for parse_windows in (here(parser, "flat", budget), *crews):
        lines, counts, _ = run(sentences, parse_windows, window)
        assert lines == expected
        assert counts.long == sum(length > LIMIT for length in lengths)


def test_a_long_sentence_is_an_error_behind_all_answers(parser: Parser) -> None:
    sentences = make([3, 4, LIMIT + 1, 5, LIMIT + 2])
    for window in (1, 3, 9):
        lines, _, error = run(sentences, here(parser, "error"), window)
        assert lines == one_by_one(parser, sentences[:2])
        assert isinstance(error, SentenceTooLongError)
        assert str(error).startswith(f"x:3: {LONG}")
        assert "'--on-long skip'" in str(error)


@pytest.mark.parametrize("window", [1, 3, 100])
def test_what_is_in_front_of_a_mistake_is_answered(
    parser: Parser, crews: list[ParseWindows], window: int
) -> None:
    sentences = make([3, 0, 7, LIMIT + 1, 5, 2, 9])

    def broken_off() -> Iterator[InputSentence]:
        yield from sentences
        raise ReadError("bad", path="x", line=8)

    for parse_windows in (here(parser), crews[0]):
        lines, _, error = run(broken_off(), parse_windows, window)
        assert lines == one_by_one(parser, sentences)
        assert str(error) == "x:8: bad"


def test_input_is_read_a_few_windows_ahead(parser: Parser, crews: list[ParseWindows]) -> None:
    for parse_windows, most in ((here(parser), 1), (crews[0], 5)):
        taken = 0

        def endless() -> Iterator[InputSentence]:
            nonlocal taken
            while True:
                taken += 1
                yield InputSentence(["dog"], None, "x")

        stream = parse_input(endless(), parse_windows, Counts(), window=10)
        for answered in range(1, 20):
            assert len(next(stream)) == 10
            assert taken <= 10 * (answered - 1 + most)
        stream.close()
    # An abandoned stream leaves the processes usable.
    sentences = make([5] * 40)
    assert run(sentences, crews[0], window=2)[0] == one_by_one(parser, sentences)


def test_a_killed_process_is_one_error_behind_all_answers(folder: Path, parser: Parser) -> None:
    sentences = make([5] * 60)
    before = {*active_children()}
    with open_workers(folder, "cpu", ParseOptions("flat", max_tokens=100), 2) as parse_windows:

        def killing() -> Iterator[InputSentence]:
            for k, sentence in enumerate(sentences):
                if k == 30:
                    workers = {*active_children()} - before
                    assert len(workers) == 2
                    os.kill(workers.pop().pid or 0, signal.SIGKILL)
                    while {*active_children()} - before:  # the other one is ended
                        time.sleep(0.01)
                yield sentence

        lines, _, error = run(killing(), parse_windows, 4)
    assert isinstance(error, WorkerLostError)
    message = str(error)
    assert message.startswith("a process that parses has ended (SIGKILL(-9); is there enough")
    assert f"The sentences in front of x:{len(lines) + 1} have been answered" in message
    assert lines == one_by_one(parser, sentences)[: len(lines)]
    assert len(lines) % 4 == 0
    assert 12 <= len(lines) < 32
    assert {*active_children()} == before, "no process is left"


SENTENCES = [["the", "dog", "sees", "zebras", "."], ["dogs"], ["cats", "and", "the", "house"]]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    tiny().save(tmp_path)
    return tmp_path


@pytest.mark.parametrize("variant", LEXICAL)
def test_a_loaded_parser_is_the_saved_one(variant: str, tmp_path: Path) -> None:
    parser = tiny(lexical=LEXICAL[variant], seed=5)
    parser.save(tmp_path)
    before = torch.get_rng_state()
    again = load_parser(tmp_path, "cpu")
    assert torch.equal(torch.get_rng_state(), before), "loading draws no random numbers"
    assert (again.config, again.vocabulary) == (parser.config, parser.vocabulary)
    weights, expected = again.state_dict(), parser.state_dict()
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        assert weights[name].dtype == tensor.dtype
        assert torch.equal(weights[name], tensor), name
    assert not again.training
    sentences = [*SENTENCES, *(list(tree.words) for tree in TREES)]
    assert list(again.parse(sentences)) == list(parser.parse(sentences))


def test_saving_again_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "again"
    other.mkdir()
    load_parser(str(saved), "cpu").save(other)
    for name in ("parser.json", "weights.safetensors"):
        assert (other / name).read_bytes() == (saved / name).read_bytes()
    assert identity(other) == identity(saved)
    another = tmp_path / "another"
    another.mkdir()
    tiny(seed=2).save(another)
    assert identity(another) != identity(saved)


def test_a_run_folder_stands_for_its_best_parser(tmp_path: Path) -> None:
    for name, seed in (("best", 1), ("last", 2)):
        (tmp_path / name).mkdir()
        tiny(seed=seed).save(tmp_path / name)
    found = load_parser(tmp_path, "cpu").encoder.positions.weight
    assert torch.equal(found, tiny(seed=1).encoder.positions.weight)
    assert identity(tmp_path) == identity(tmp_path / "best")


def test_what_is_no_parser_is_named(saved: Path) -> None:
    empty = saved / "empty"
    empty.mkdir()
    for place in (saved / "none", empty, saved / "weights.safetensors"):
        for read in (load_parser, identity):
            with pytest.raises(CheckpointError, match=f"{place}: no trained parser here"):
                read(place)
    with pytest.raises(RecipeError, match="unknown device 'gpu'"):
        load_parser(saved, "gpu")
    for text, message in (('{"kind": "chrat"}', "unknown parser kind 'chrat'"), ("{}", "no kind")):
        (saved / "parser.json").write_text(text)
        with pytest.raises(CheckpointError, match=rf"parser\.json: .*{message}"):
            load_parser(saved)
    (saved / "package.json").write_text("{}")
    with pytest.raises(PackageError, match=r"package\.json"):
        load_parser(saved)
