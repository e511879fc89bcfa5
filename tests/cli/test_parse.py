"""The command ``parse``: files and pipes in, lines out, and what happens when either breaks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import Result

from spmrl_bench.parsing.models import load_parser
from tests.builders import MAIN, cli, environment
from tests.conftest import PATIENCE, until

LIMIT = 8


def parse(model: Path | str, *arguments: object, stdin: bytes | None = None) -> Result:
    return cli("parse", "--model", model, "--device", "cpu", *arguments, stdin=stdin)


def expected(model: Path, *sentences: str) -> list[str]:
    words = [sentence.split() for sentence in sentences]
    return [str(parse) for parse in load_parser(model, "cpu").parse(words)]


def test_standard_input_and_files_in_their_order(model: Path, tmp_path: Path) -> None:
    first, empty = tmp_path / "first", tmp_path / "empty"
    first.write_text("the dog barks\n\ncats sleep")  # the last line need not end
    empty.touch()
    one, two, three = expected(model, "the dog barks", "cats sleep", "dogs")
    result = parse(model, first, "-", empty, first, stdin=b"dogs\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.split("\n") == [one, "", two, three, one, "", two, ""]
    assert parse(model, stdin=b"dogs\n").stdout == f"{three}\n"
    for arguments in ((), ("--workers", "3")):  # found before the parser is loaded
        result = parse("nowhere", *arguments, tmp_path / "gone")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"spmrl-bench: {tmp_path}/gone: cannot be read: No such")


CONLLU = """# a comment
1-2\tau\t_\t_\t_\t_\t_\t_\t_\tM=|
1\tà\tà\tADP\tD\tA=b=c\t_\t_\t_\tM=a
2\tle\tle\tDET\tN\tA=\t1\tgold\t0:x\t_
2.1\t_\t_\t_\t_\t_\t_\t_\t_\t_

1\t!\t_\tX\t_\t_\t_\t_\t_\t_\r

"""


def test_forms_of_input_and_output(model: Path, neighbours: Path) -> None:
    stdin = CONLLU.encode()
    result = parse(neighbours, "--input", "conllu", "--workers", "2", stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout_bytes.decode() == (
        CONLLU.replace("A=b=c\t_\t_", "A=b=c\t2\tdet")
        .replace("1\tgold", "0\troot")
        .replace("X\t_\t_\t_\t_", "X\t_\t_\t0\troot")
    )
    lines = parse(model, "--input", "conllu", "--tags", "upos", stdin=stdin).stdout.splitlines()
    tags = [re.findall(r"\((\w+) [^()]+\)", line) for line in lines]
    assert tags == [["ADP", "DET"], ["X"]]
    lines = parse(neighbours, "--output", "json", stdin=b"the dog\n\n").stdout.splitlines()
    assert [json.loads(line).get("heads") for line in lines] == [[2, 0], None]
    stdin = rb"(N dog) (S (D the) (N a\x09b)) (N cat)"
    result = parse(neighbours, "--input", "brackets", "--output", "conllu", stdin=stdin)
    assert (result.exit_code, result.stdout.count("\troot\t")) == (1, 1)
    problem = "<standard input>: sentence 2: word 2: CoNLL cannot hold 'a\\tb'"
    assert result.stderr == f"spmrl-bench: {problem}\n"


def test_parses_are_parsed_again_around_what_is_given(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "parses.jsonl"
    shown = parse(model, "--output", "json", stdin=b"the dog barks\ncats sleep\n").stdout
    lines = [*map(json.loads, shown.splitlines())]
    label = "VP" if [0, 2, "VP"] not in lines[0]["constituents"] else "NP"
    lines[0]["given"] = {"constituents": [[0, 2, label]]}

    def again(*options: str) -> Result:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return parse(model, "--input", "json", "--output", "json", *options, path)

    first, second = map(json.loads, again("--scores").stdout.splitlines())
    assert [0, 2, label] in first["constituents"]
    assert first["given"] == lines[0]["given"]
    assert first["constituent_probabilities"][first["constituents"].index([0, 2, label])] == 1
    assert second["tree"] == lines[1]["tree"]
    lines[1]["given"] = {"constituents": [[1, 4, None]]}
    assert again().stderr == (
        f"spmrl-bench: {path}:2: given: [1, 4] is no span of 2 words: 0 <= start < end <= 2\n"
    )
    lines[1]["given"] = {"constituents": [[0, 1, "XX"]]}
    result = again()
    assert result.stderr.startswith(f"spmrl-bench: {path}:2: no parse of this parser holds")
    assert len(result.stdout.splitlines()) == 1
    lines[1]["given"] = {"nothing": []}
    assert f"{path}:2: no parse as JSON (given.nothing: Extra" in again().stderr


def test_the_best_parses_of_each_sentence(model: Path) -> None:
    shown = parse(model, "--output", "json", "--best", 3, "--scores", stdin=b"the dog barks\n\n")
    first, empty = map(json.loads, shown.stdout.splitlines())
    assert "best" not in empty
    assert len(first["best"]) == 3
    assert first["best"][0]["tree"] == first["tree"]
    assert first["best"][0]["probability"] == first["probability"]
    assert first["best"][0]["score"] >= first["best"][1]["score"] >= first["best"][2]["score"]
    assert "need '--output json'" in parse(model, "--best", 3, stdin=b"the dog\n").stderr


def test_long_sentences_follow_the_policy_and_are_counted(model: Path, tmp_path: Path) -> None:
    long = " ".join(["dog"] * (LIMIT + 1))
    path = tmp_path / "some.txt"
    path.write_text(f"cats\n{long}\n\ndogs\n{long}\n")
    cats, dogs = expected(model, "cats", "dogs")
    problem = f"{path}:2: a sentence of {LIMIT + 1} words, but the parser's position "
    flat = f"(S {' '.join(['(XX dog)'] * (LIMIT + 1))})"
    for policy, instead in (("skip", "(())"), ("flat", flat)):
        result = parse(model, "--on-long", policy, path)
        lines = [cats, instead, "", dogs, instead]
        assert (result.exit_code, result.stdout.splitlines()) == (0, lines)
        start = "spmrl-bench: 2 of 5 sentences not parsed because of their length, "
        assert result.stderr.startswith(start)
        assert f"written instead. The first is {problem}" in result.stderr


@contextmanager
def started(model: Path, lines: int) -> Iterator[subprocess.Popen[bytes]]:
    """The command, which has answered the first line, in a process group of its own.

    Nothing may be left of it at the end.
    """
    options = ("--model", str(model), "--device", "cpu", "--workers", "2")
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "parse", *options],
        env=environment(OMP_NUM_THREADS="2"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        feed(process, lines)
        assert process.stdout.readline().startswith(b"(")
        yield process
        until(lambda: gone(process.pid))
    finally:
        if not gone(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def gone(group: int) -> bool:
    """Whether all processes of a group have ended."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def feed(process: subprocess.Popen[bytes], lines: int) -> None:
    process.stdin.write(b"the dog barks\n" * lines)
    process.stdin.flush()


@pytest.mark.parametrize(
    ("number", "group", "status"),
    [
        (signal.SIGINT, True, 130),  # as a terminal
        pytest.param(signal.SIGTERM, False, 143, marks=pytest.mark.campaign),  # as a scheduler
    ],
)
def test_a_signal_ends_all_processes_with_one_message(
    model: Path, number: signal.Signals, group: bool, status: int
) -> None:
    with started(model, 4500) as process:  # it waits for more
        for _ in range(999):
            assert process.stdout.readline().startswith(b"(")
        (os.killpg if group else os.kill)(process.pid, number)
        rest = process.stdout.read().splitlines()
        assert process.wait(PATIENCE) == status
        message = process.stderr.read().decode().strip()
    said = re.fullmatch(r"spmrl-bench: interrupted; the first ([0-9,]+) sentences have .*", message)
    assert said, message
    # It may have been writing a window of 250 when it was interrupted.
    written = 1000 + len(rest)
    assert written - 250 <= int(said[1].replace(",", "")) <= written


def test_a_closed_pipe_ends_all_processes_quietly(model: Path) -> None:
    with started(model, 3000) as process:
        process.stdout.close()
        for act in (lambda: feed(process, 3000), process.stdin.close):
            with suppress(BrokenPipeError):  # it may have ended already
                act()
        assert process.wait(PATIENCE) == 1
        assert process.stderr.read() == b""
        process.stdin = process.stdout = None


def test_nothing_survives_the_death_of_the_command(model: Path) -> None:
    with started(model, 2500) as process:
        process.kill()
        process.wait()
