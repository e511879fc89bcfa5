"""The commands that show how runs stand and what they say."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import Result

from spmrl_bench.experiments import run_log
from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.training.report import write_log
from tests.builders import cli
from tests.conftest import PATIENCE

BEGUN, DONE, FAILED = (Path("runs/bank") / name for name in ("one", "three", "two"))
EVALUATION = {
    "event": "evaluation", "time": "2026-01-01T12:00:00+00:00", "epoch": 2.5, "best_dev": 81.25,
    "tokens_per_second": 1234.5, "train_seconds": 1.0, "dev_seconds": 1.0,
}  # fmt: skip
STOP = {"event": "stop", "time": "2026-01-01T12:30:00+00:00"}
NOTE = {"time": "2026-01-01T12:00:00Z", "host": "node7", "message": "no tree\nin line 7"}


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was interrupted, one that is done, one that failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (DONE / "last").mkdir(parents=True)
    (DONE / "run.json").write_text('{"train": {"max_epochs": 40}}', encoding="utf-8")
    (DONE / "last" / "progress.json").write_text('{"stopped_by": "stop_patience"}')
    lines = [json.dumps(event) for event in (EVALUATION, STOP)]
    (DONE / "events.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    FAILED.mkdir()
    (FAILED / "failed.json").write_text(json.dumps(NOTE), encoding="utf-8")
    BEGUN.mkdir()
    (BEGUN / "run.json").write_text("{}", encoding="utf-8")


def run(*arguments: str) -> Result:
    return cli("runs", *arguments)


def rows(*arguments: str) -> list[list[str]]:
    """The cells of the listing, without its headings and its last line."""
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split() for line in result.stdout.splitlines()[2:-1]]


def test_a_row_says_how_a_run_stands() -> None:
    begun, done, failed = rows()
    assert begun[:2] == ["bank/one", "interrupted"]
    assert done == ["bank/three", "done", "2.5/40", "81.25", "1,234", "2026-01-01", "12:30"]
    assert failed == [
        "bank/two",
        "failed",
        "node7",
        "2026-01-01",
        "12:00",
        "no",
        "tree",
        "in",
        "line",
        "7",
    ]
    result = run()
    assert result.stdout.splitlines()[-1] == "3 runs: 1 failed, 1 interrupted, 1 done"
    assert run("list").stdout == result.stdout


def test_a_running_one_says_how_long_it_takes_at_most() -> None:
    with run_lock(DONE):
        (row,) = rows(str(DONE))
    assert row[1] == "running"
    assert row[3] == "2.5/40"
    assert " ".join(row[6:8]) == "30 s"  # 0.8 seconds an epoch, as of just now


def test_what_is_broken_is_said_in_its_row() -> None:
    (FAILED / "failed.json").write_text("{", encoding="utf-8")
    assert "BROKEN: runs/bank/two/failed.json: cannot be read" in run().stdout


def test_runs_are_chosen_by_state_and_by_name() -> None:
    names = {"bank/one": BEGUN, "bank/two": FAILED}
    assert [row[0] for row in rows("--state", "interrupted", "--state", "failed")] == [*names]
    assert [row[0] for row in rows("--state", "running")] == []
    assert run("--state", "running").stdout == "0 runs\n"
    for options in (["bank/two", "bank/one"], ["runs/bank/two", "runs/bank/one", "bank/one"]):
        assert sorted(row[0] for row in rows(*options)) == [*names]
    assert len(rows("runs/bank")) == len(rows("bank")) == 3
    assert [row[0] for row in rows("--runs", "runs/bank", "--state", "done")] == ["three"]
    for wrong, message in (
        (("--state", "asleep"), "unknown state 'asleep'"),
        (("bank/four",), "unknown run 'bank/four'"),
        (("--runs", "nowhere"), "nowhere: no such folder"),
        (("--watch",), "--watch is for a terminal"),
    ):
        result = run(*wrong)
        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr


def test_an_object_for_each_run() -> None:
    result = run("--json")
    begun, done, failed = map(json.loads, result.stdout.splitlines())
    assert (begun["run"], begun["state"]) == ("bank/one", "interrupted")
    assert (done["folder"], done["dev"], done["max_epochs"]) == (str(DONE), 81.25, 40)
    assert done["since"] == "2026-01-01T12:30:00+00:00"
    assert failed["message"] == "no tree\nin line 7"


def test_the_log_of_a_run() -> None:
    (DONE / "log.txt").write_bytes("Elfen\nÄpfel\n".encode() * 100_000 + b"\xff")
    assert (
        run("log", "bank/three").stdout == "Elfen\nÄpfel\n" * 100_000 + "\N{REPLACEMENT CHARACTER}"
    )
    assert run("log", "bank/three", "--follow").stdout == run("log", str(DONE)).stdout
    (FAILED / "train.log").write_text("of a parser of somebody else\n", encoding="utf-8")
    assert run("log", "bank/two").stdout == "of a parser of somebody else\n"
    result = run("log", "bank/one")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "runs/bank/one: has no log: nothing was said there" in result.stderr


def test_a_log_is_followed_until_the_run_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins, starts anew with --fresh, and ends."""
    monkeypatch.setattr(run_log, "_GLANCE", 0.01)
    log = BEGUN / "log.txt"
    pieces: list[str] = []

    def follow() -> None:
        pieces.extend(run_log.log_of(BEGUN, follow=True))

    def until(end: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not "".join(pieces).endswith(end):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    following = threading.Thread(target=follow)
    with run_lock(BEGUN):
        write_log(log, "a long first line")
        following.start()
        until("first line\n")
        write_log(log, "and the next")
        until("next\n")
        log.write_text("anew\n", encoding="utf-8")
        until("anew\n")
    following.join(PATIENCE)
    assert not following.is_alive()
    assert "".join(pieces).count("\n") == 3


def test_a_terminal_is_kept_up_to_date() -> None:
    """Until Ctrl-C, which is no failure."""
    master, slave = pty.openpty()
    code = "from spmrl_bench.cli import main, run_states; run_states._REFRESH = 0.05; main()"
    root = Path(__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": str(root), "TERM": "xterm"}
    environment |= {"COLUMNS": "100", "LINES": "7"}
    with subprocess.Popen(
        [sys.executable, "-c", code, "runs", "--watch"],
        stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(slave)
        shown = ""

        def until(text: str) -> None:
            nonlocal shown
            while text not in shown:
                shown += os.read(master, 1 << 16).decode(errors="replace")

        try:
            until("3 runs: 1 failed, 1 interrupted, 1 done (1 not shown)")
            assert shown.index("bank/two") < shown.index("bank/one")
            assert "bank/three" not in shown
            shown = ""
            with run_lock(DONE):
                until("3 runs: 1 running, 1 failed, 1 interrupted (1 not shown)")
                assert "bank/three" in shown
            process.send_signal(signal.SIGINT)
            until("\x1b[?25h")  # the cursor is back
            assert process.wait(PATIENCE) == 0
            assert "spmrl-bench: interrupted" not in shown
        finally:
            process.kill()
            os.close(master)
