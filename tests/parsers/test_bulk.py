"""Bulk parsing: windows, batches and processes change no tree, and what is long is declared."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from multiprocessing import active_children
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.errors import CheckpointError, ReadError, SentenceTooLongError, SpmrlError
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.bulk import (
    Answerer,
    Answers,
    Manner,
    OnLong,
    Tally,
    WorkerLostError,
    answering,
    parse_given,
)
from spmrl_bench.parsers.registry import load_parser
from spmrl_bench.parsers.streams import Given
from spmrl_bench.processes import available_threads
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.escapes import write_brackets
from tests.builders import TREES, tiny

LIMIT = 18
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
def crews(folder: Path) -> Iterator[list[Answers]]:
    """Two processes that make batches of several sentences, and two of one each."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(answering(folder, "cpu", Manner("flat", max_tokens=max_tokens), 2))
            for max_tokens in (100, 1)
        ]


def make(lengths: Iterable[int], seed: int = 0, *, tagged: bool = False) -> list[Given]:
    choose = random.Random(seed)
    return [
        Given(choose.choices(WORDS, k=n), [f"T{k}"] * n if tagged else None, f"x:{k}")
        for k, n in enumerate(lengths, start=1)
    ]


def here(parser: Parser, on_long: OnLong, max_tokens: int = 100) -> Answers:
    """Answers of this process."""
    answerer = Answerer(parser, Manner(on_long, max_tokens=max_tokens))
    return lambda windows: map(answerer, windows)


def run(
    sentences: Iterable[Given], answers: Answers, window: int = 1000
) -> tuple[list[str], Tally]:
    """The texts, which are lines here, and what was counted."""
    tally = Tally()
    texts: list[str] = []
    for some in parse_given(sentences, answers, tally, window=window):
        assert tally.sentences == len(texts)
        texts += some
    assert tally.sentences == len(texts)
    assert all(text.count("\n") == 1 for text in texts)
    return [text.removesuffix("\n") for text in texts], tally


def run_until_error(
    sentences: Iterable[Given], answers: Answers, window: int
) -> tuple[list[str], Tally, SpmrlError]:
    """The lines in front of an error, what was counted, and the error."""
    tally = Tally()
    lines: list[str] = []
    try:
        for some in parse_given(sentences, answers, tally, window=window):
            lines += [text.removesuffix("\n") for text in some]
    except SpmrlError as error:
        return lines, tally, error
    pytest.fail("no error")


def one_by_one(parser: Parser, sentences: Iterable[Given]) -> list[str]:
    """The specification under the policy ``flat``."""
    lines = []
    for words, tags, *_ in sentences:
        given_tags = ["XX"] * len(words) if tags is None else tags
        if len(words) > LIMIT:
            leaves = " ".join(
                write_brackets(parse_brackets("(T w)").build([word], [tag], []))
                for word, tag in zip(words, given_tags, strict=True)
            )
            lines.append(f"(S {leaves})")
        elif words:
            (parse,) = parser.parse([words], [given_tags])
            lines.append(str(parse))
        else:
            lines.append("")
    return lines


@given(
    st.lists(st.integers(0, LIMIT + 3), max_size=40),
    st.integers(0, 9),
    st.booleans(),
    st.integers(1, 45),
    st.sampled_from([1, 30, 100, 2000]),
)
def test_windows_and_batches_change_no_tree(
    parser: Parser, lengths: list[int], seed: int, tagged: bool, window: int, budget: int
) -> None:
    sentences = make(lengths, seed, tagged=tagged and 0 not in lengths)
    lines, tally = run(sentences, here(parser, "flat", budget), window=window)
    assert lines == one_by_one(parser, sentences)
    assert tally.long == sum(length > LIMIT for length in lengths)


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, LIMIT + 3), max_size=40),
    st.integers(0, 9),
    st.booleans(),
    st.integers(1, 45),
)
def test_processes_change_no_tree(
    parser: Parser,
    crews: list[Answers],
    lengths: list[int],
    seed: int,
    tagged: bool,
    window: int,
) -> None:
    sentences = make(lengths, seed, tagged=tagged and 0 not in lengths)
    expected = one_by_one(parser, sentences)
    for answers in crews:
        lines, tally = run(sentences, answers, window=window)
        assert lines == expected
        assert tally.long == sum(length > LIMIT for length in lengths)


def test_the_example_parser_is_worth_comparing(parser: Parser) -> None:
    lines = one_by_one(parser, make([9] * 30))
    shapes = {"".join(c for c in line if c in "()") for line in lines}
    assert len(shapes) > 10


def test_skipped_sentences_keep_their_lines(parser: Parser) -> None:
    sentences = make([3, LIMIT + 1, 0, LIMIT, LIMIT + 9])
    lines, tally = run(sentences, here(parser, "skip"), window=2)
    expected = one_by_one(parser, sentences)
    assert lines == [expected[0], "(())", "", expected[3], "(())"]
    assert (tally.sentences, tally.long) == (5, 2)
    assert tally.first_long.startswith(f"x:2: a sentence of {LIMIT + 1} words, but the parser's")


def test_flat_trees_keep_words_and_tags(parser: Parser) -> None:
    long = Given(["a("] * (LIMIT + 1), ["D"] * (LIMIT + 1), "x:1")
    lines, _ = run([long], here(parser, "flat"))
    assert lines == [f"(S {' '.join(['(D a-LRB-)'] * (LIMIT + 1))})"]


@pytest.mark.parametrize("window", [1, 2, 3, 9])
def test_a_long_sentence_is_an_error_behind_all_answers(parser: Parser, window: int) -> None:
    sentences = make([3, 4, LIMIT + 1, 5, LIMIT + 2])
    lines, tally, error = run_until_error(sentences, here(parser, "error"), window)
    assert isinstance(error, SentenceTooLongError)
    assert lines == one_by_one(parser, sentences[:2])
    assert tally.sentences == 2
    assert str(error).startswith(f"x:3: a sentence of {LIMIT + 1} words, but the parser's")
    assert "'--on-long skip'" in str(error)


def broken_off(sentences: list[Given]) -> Iterator[Given]:
    yield from sentences
    raise ReadError("bad", path="x", line=len(sentences) + 1)


@pytest.mark.parametrize("window", [1, 3, 100])
def test_what_is_in_front_of_a_mistake_is_answered(
    parser: Parser, crews: list[Answers], window: int
) -> None:
    sentences = make([3, 0, 7, LIMIT + 1, 5, 2, 9])
    for answers in (here(parser, "flat"), crews[0]):
        lines, _, error = run_until_error(broken_off(sentences), answers, window)
        assert lines == one_by_one(parser, sentences)
        assert str(error) == "x:8: bad"


def test_an_abandoned_stream_leaves_the_processes_usable(
    parser: Parser, crews: list[Answers]
) -> None:
    sentences = make([5] * 40)
    for _ in range(3):
        stream = parse_given(sentences, crews[0], Tally(), window=1)
        next(stream)
        stream.close()
    assert run(sentences, crews[0], window=2)[0] == one_by_one(parser, sentences)


def test_input_is_read_a_few_windows_ahead(parser: Parser, crews: list[Answers]) -> None:
    for answers, most in ((here(parser, "flat"), 1), (crews[0], 5)):
        taken = 0

        def endless() -> Iterator[Given]:
            nonlocal taken
            while True:
                taken += 1
                yield Given(["dog"], None, "x")

        stream = parse_given(endless(), answers, Tally(), window=10)
        for answered in range(1, 20):
            assert len(next(stream)) == 10
            assert taken <= 10 * (answered - 1 + most)
        stream.close()


def test_a_killed_process_is_one_error_behind_all_answers(folder: Path, parser: Parser) -> None:
    sentences = make([5] * 60)
    before = {*active_children()}
    with answering(folder, "cpu", Manner("flat", max_tokens=100), 2) as answers:

        def killing() -> Iterator[Given]:
            for k, sentence in enumerate(sentences):
                if k == 30:
                    workers = {*active_children()} - before
                    assert len(workers) == 2
                    os.kill(workers.pop().pid or 0, signal.SIGKILL)
                    while {*active_children()} - before:  # the other one is ended
                        time.sleep(0.01)
                yield sentence

        lines, tally, error = run_until_error(killing(), answers, 4)
    assert isinstance(error, WorkerLostError)
    message = str(error)
    assert message.startswith("a process that parses has ended (SIGKILL(-9); is there enough")
    assert f"The sentences in front of x:{len(lines) + 1} have been answered" in message
    assert lines == one_by_one(parser, sentences)[: len(lines)]
    assert len(lines) % 4 == 0
    assert 12 <= tally.sentences == len(lines) < 32


def test_no_process_is_left(folder: Path) -> None:
    before = {*active_children()}
    with answering(folder, "cpu", Manner("flat"), 2) as answers:
        run(make([3, 4]), answers)
        assert len({*active_children()} - before) == 2
    assert {*active_children()} == before


def test_a_folder_without_a_parser_is_one_error(tmp_path: Path) -> None:
    with (
        pytest.raises(CheckpointError, match="no trained parser here"),
        answering(tmp_path, "cpu", Manner()),
    ):
        pass
    with (
        answering(tmp_path, "cpu", Manner(), workers=2) as answers,
        pytest.raises(CheckpointError, match="no trained parser here"),
    ):
        run(make([1]), answers)


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, expected in (("7", 7), ("3,2", 3)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert available_threads() == expected
    for value in ("", "many", "0"):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert 1 <= available_threads() <= (os.cpu_count() or 1)


STREAM = """
import sys
from pathlib import Path
from spmrl_bench.parsers.bulk import Manner, Tally, answering, parse_given
from spmrl_bench.parsers.streams import read_given
from spmrl_bench.processes import peak_memory_bytes

class Lines:
    number = 0

    def readline(self, most):
        self.number += 1
        if self.number > int(sys.argv[2]):
            return b""
        return b"the dog w%d barks\\n" % self.number

lines = read_given([], "tokens", Lines())
with answering(Path(sys.argv[1]), "cpu", Manner()) as answers:
    for some in parse_given(lines, answers, Tally()):
        pass
print(peak_memory_bytes() >> 20)
"""


def peak_mib(folder: Path, sentences: int) -> int:
    """Peak memory of a process that parses that many sentences, each with a word of its own."""
    result = subprocess.run(
        [sys.executable, "-c", STREAM, str(folder), str(sentences)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(result.stdout)


@pytest.mark.campaign
def test_memory_does_not_grow_with_the_stream(folder: Path) -> None:
    # The cache of forms is full after the first 65,536 words.
    few, many = peak_mib(folder, 5_000), peak_mib(folder, 200_000)
    assert many < few + 60
