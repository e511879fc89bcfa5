"""The command ``parse``: files and pipes in, lines out, and what happens when either breaks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import Result

from spmrl_bench.parsers.baselines import AttachNeighbour
from spmrl_bench.parsing.models import load_parser
from tests.builders import MAIN, cli, environment, tiny
from tests.conftest import PATIENCE

LIMIT = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("parser")
    tiny(seed=3, max_positions=LIMIT + 2).save(path)
    return str(path)


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A parser of dependencies alone: every word hangs from the next."""
    path = tmp_path_factory.mktemp("neighbours")
    counted = {"side": "right", "root": "root", "any": "dep", "by_tag": {"D": "det"}}
    AttachNeighbour(counted).save(path)
    return str(path)


def parse(model: str, *arguments: object, stdin: bytes | None = None) -> Result:
    return cli("parse", "--model", model, "--device", "cpu", *arguments, stdin=stdin)


def expected(model: str, *sentences: str) -> list[str]:
    words = [sentence.split() for sentence in sentences]
    return [str(parse) for parse in load_parser(model, "cpu").parse(words)]


def test_standard_input_and_files_in_their_order(model: str, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("the dog barks\n\ncats sleep\n")
    one, two, three = expected(model, "the dog barks", "cats sleep", "dogs")
    result = parse(model, first, "-", first, stdin=b"dogs\n")
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


def test_forms_of_input_and_output(model: str, neighbours: str) -> None:
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


def test_long_sentences_follow_the_policy_and_are_counted(model: str) -> None:
    long = " ".join(["dog"] * (LIMIT + 1))
    stdin = f"cats\n{long}\ndogs\n{long}\n".encode()
    cats, dogs = expected(model, "cats", "dogs")
    problem = f"<standard input>:2: a sentence of {LIMIT + 1} words, but the parser's position "
    flat = f"(S {' '.join(['(XX dog)'] * (LIMIT + 1))})"
    for policy, instead in (("skip", "(())"), ("flat", flat)):
        result = parse(model, "--on-long", policy, stdin=stdin)
        assert (result.exit_code, result.stdout.splitlines()) == (0, [cats, instead, dogs, instead])
        start = "spmrl-bench: 2 of 4 sentences not parsed because of their length, "
        assert result.stderr.startswith(start)
        assert f"written instead. The first is {problem}" in result.stderr


# ---- real processes ---------------------------------------------------------------------


@contextmanager
def started(model: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process group of its own, of which nothing may be left at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "parse", "--model", model, "--device", "cpu", *arguments],
        env=environment(OMP_NUM_THREADS="2"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
        assert gone(process.pid), "processes are left"
    finally:
        if not gone(process.pid, seconds=0):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def gone(group: int, seconds: float = PATIENCE) -> bool:
    """Whether all processes of a group end within some time."""
    end = time.monotonic() + seconds
    with suppress(ProcessLookupError):
        while os.killpg(group, 0) is None and time.monotonic() < end:
            time.sleep(0.05)
        return False
    return True


def feed(process: subprocess.Popen[bytes], lines: int) -> None:
    process.stdin.write(b"the dog barks\n" * lines)
    process.stdin.flush()


@pytest.mark.parametrize(
    ("number", "group", "status"),
    [(signal.SIGINT, True, 130), (signal.SIGTERM, False, 143)],  # as a terminal, as a scheduler
)
def test_a_signal_ends_all_processes_with_one_message(
    model: str, number: signal.Signals, group: bool, status: int
) -> None:
    with started(model, "--workers", "2") as process:
        feed(process, 4500)  # it waits for more
        for _ in range(1000):
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


def test_a_closed_pipe_ends_all_processes_quietly(model: str) -> None:
    with started(model, "--workers", "2") as process:
        feed(process, 3000)
        assert process.stdout.readline().startswith(b"(")
        process.stdout.close()
        for act in (lambda: feed(process, 3000), process.stdin.close):
            with suppress(BrokenPipeError):  # it may have ended already
                act()
        assert process.wait(PATIENCE) == 1
        assert process.stderr.read() == b""
        process.stdin = process.stdout = None


def test_nothing_survives_the_death_of_the_command(model: str) -> None:
    with started(model, "--workers", "2") as process:
        feed(process, 2500)
        assert process.stdout.readline().startswith(b"(")
        process.kill()
        process.wait()
