"""Sentences and words of any length are parsed or refused."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, SentenceTooLongError
from spmrl_bench.parsers.batches import LONGEST_WORD, clipped, first_words
from spmrl_bench.parsers.session import WINDOW_SENTENCES, WINDOW_WORDS, weight, windows
from spmrl_bench.parsing.bulk import OnLong, ParseOptions, Worker
from spmrl_bench.parsing.streams import InputSentence, read_input
from spmrl_bench.readers import conll, text
from tests.builders import tiny
from tests.reliability.growth import parser_of as parser_of_variant
from tests.reliability.tally import Tally
from tests.reliability.test_memory import campaign

VARIANTS = ("charlstm", "bilstm", "joint", "dependencies", "stack-attention")
QUICK = (0, 1, 2, 5001, 50_000)
LONG = (511, 512, 513, 1000)


@pytest.mark.parametrize(
    ("variant", "lengths"),
    [
        *((variant, QUICK) for variant in VARIANTS),
        *(campaign(variant, LONG) for variant in VARIANTS),
        *(campaign(variant, (5000,)) for variant in ("charlstm", "joint")),
    ],
)
def test_sentences_are_parsed_or_refused_by_every_policy(
    tally: Tally, variant: str, lengths: tuple[int, ...]
) -> None:
    held = tally("R21", "sentences of 0 to 50,000 words, by parser and policy")
    parser = parser_of_variant(variant, max_positions=60_000, predict_tags="false")
    policies: tuple[OnLong, ...] = ("error", "skip", "flat")
    for n in lengths:
        problem = parser.problem(["w"] * n)
        assert bool(problem) == (n > parser.longest)
        # Where a sentence fits, the policies do the same.
        for policy in policies if problem else policies[:1]:
            held.add()
            given = InputSentence([f"w{k % 53}" for k in range(n)], None, "file:1")
            answer = Worker(parser, ParseOptions(policy, output="json"))([given])
            if policy == "error" and problem:
                assert isinstance(answer.error, SentenceTooLongError)
                assert f"{n} words" in str(answer.error)
                assert answer.texts == []
            else:
                assert answer.error is None
                assert len(answer.texts) == 1
                assert len(answer.long) == bool(problem)


def test_words_of_usual_lengths_are_read_as_they_are(tally: Tally) -> None:
    held = tally("R21", "words of 1 to a million characters")
    for n in (1, 2, LONGEST_WORD - 1, LONGEST_WORD):
        held.add()
        word = "x" * n
        assert clipped(word) is word


@pytest.mark.parametrize("inputs", [("charlstm",), ("charconcat",), ("word", "charlstm")])
def test_of_a_word_without_end_the_ends_are_read(tally: Tally, inputs: tuple[str, ...]) -> None:
    tally("R21", "words of 1 to a million characters").add(3)
    parser = tiny(lexical=inputs, seed=1)
    half = LONGEST_WORD // 2
    word = "do" * half + "zz" * 500_000 + "ca" * half
    read = word[:half] + word[-half:]
    long, cut, whole = parser.parse([["the", word], ["the", read], ["the", "dog"]])
    assert long.words == ("the", word)
    assert len(whole) == 2
    assert long.tree.spans.tolist() == cut.tree.spans.tolist()
    indexer = parser.indexer()
    row = indexer.sentence([word]).forms[1]
    name = inputs[-1]
    assert indexer.lengths(name, [row]) == (16 if name == "charconcat" else LONGEST_WORD + 2)


def test_a_batch_of_many_endless_words_is_bounded() -> None:
    sentences = [["x" * 10_000] * 100] * 100
    assert weight(["word"] * 24) == 24
    found = [len(window) for window in windows(sentences, weight)]
    assert sum(found) == 100
    assert max(found) <= 1 + WINDOW_WORDS // weight(sentences[0]) < 10
    usual = [["word"] * 24] * (WINDOW_SENTENCES + 1)
    assert [len(window) for window in windows(usual, weight)] == [WINDOW_SENTENCES, 1]


def test_a_message_shows_no_endless_word() -> None:
    assert first_words(["x" * 1_000_000] * 9) == " ".join(["x" * 40 + "..."] * 8)
    assert first_words(["the", "dog"]) == "the dog"


def test_a_line_without_end_is_refused_where_it_begins(
    tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "LONGEST", 1000)
    held = tally("R21", "lines and blocks without end")
    for tail, number in ((b"x" * 1000, 0), (b"x" * 1001, 3), (b"a " * 10_000, 3)):
        held.add()
        stream = io.BytesIO(b"one\ntwo\n" + tail)
        if not number:
            assert len(list(text.stream_lines(stream, "file"))) == 3
            continue
        found = text.stream_lines(stream, "file")
        assert [line for _, line in itertools.islice(found, 2)] == ["one\n", "two\n"]
        with pytest.raises(ReadError, match=r"^file:3: a line of more than 0 MiB; expected text"):
            next(found)
        assert stream.tell() <= 8 + 1001


def test_a_block_without_end_is_refused(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conll, "LONGEST", 1000)
    tally("R21", "lines and blocks without end").add()
    row = "{0}\tdog\t_\t_\tNN\t_\t_\t_\t_\t_\n"
    block = "".join(row.format(k) for k in range(1, 100))
    stream = io.BytesIO((row.format(1) + "\n" + block).encode())
    found = conll.read_conllu_stream(stream, path="file")
    assert next(found).column("form") == ["dog"]
    with pytest.raises(ReadError, match=r"^file:3: a sentence of more than 0 MiB begins here"):
        next(found)


@pytest.mark.campaign
def test_a_file_of_one_line_takes_no_memory(tally: Tally, tmp_path: Path) -> None:
    tally("R21", "lines and blocks without end").add()
    path = tmp_path / "text"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(b"word " * (1 << 18))
    with pytest.raises(ReadError, match="a line of more than 16 MiB"):
        list(read_input([str(path)], "tokens", io.BytesIO()))
