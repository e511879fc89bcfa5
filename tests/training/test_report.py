"""What training prints: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from spmrl_bench.process.console import messages
from spmrl_bench.storage.files import append
from spmrl_bench.training.report import Report
from tests.training.trainers import events, make_trainer


def output(tmp_path: Path, *, terminal: bool) -> str:
    file = StringIO()
    console = Console(force_terminal=terminal, file=file, width=160)
    trainer = make_trainer(tmp_path, console=console, score=lambda _: 43.21)
    with trainer.report as report:
        trainer.fit()
        report.say("[done] after 2 epochs")
    return file.getvalue()


def test_plain_output_is_one_line_for_each_evaluation(tmp_path: Path) -> None:
    lines = output(tmp_path, terminal=False).splitlines()
    assert len(lines) == 4 + 1
    first, second = (line.split() for line in lines[:2])
    assert first[:4] == ["tiny", "epoch", "0.67", "loss"]
    assert first[5:9] == ["dev", "F1", "43.21", "*"]
    assert second[5:8] == ["dev", "F1", "43.21"]
    assert second[8] != "*"
    assert lines[0].split("  ")[-2].endswith(" tokens/s")
    assert lines[0].endswith(" min")
    assert lines[-1] == "[done] after 2 epochs"
    assert "\x1b" not in "".join(lines)


def test_colours_that_are_forced_make_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert Console(stderr=True).is_terminal  # what rich takes it for
    console = messages()
    assert not console.is_terminal
    console.print("[bold]a line")
    assert capsys.readouterr().err == "a line\n"


def test_terminal_output_is_one_line_kept_up_to_date(tmp_path: Path) -> None:
    text = output(tmp_path, terminal=True)
    assert "\x1b[2K" in text  # the line is erased and written anew
    shown = text.rpartition("\x1b[2K")[2]
    for part in ("tiny", "epoch 2/2", "loss ", "dev F1 43.21 (best 43.21)", "tokens/s", "left"):
        assert part in shown
    assert "[done] after 2 epochs" in text
    assert "epoch   0.67" not in text  # no plain lines beside it


def test_both_leave_the_same_events_and_log(tmp_path: Path) -> None:
    kinds, logs = [], []
    for terminal in (True, False):
        output(tmp_path / str(terminal), terminal=terminal)
        kinds.append([event["event"] for event in events(tmp_path / str(terminal))])
        lines = (tmp_path / str(terminal) / "log.txt").read_text(encoding="utf-8").splitlines()
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \S", line) for line in lines)
        logs.append([line.partition(" ")[2].partition("loss")[0] for line in lines])
    assert kinds[0] == kinds[1] == ["evaluation"] * 4 + ["stop"]
    assert logs[0] == logs[1]
    assert [line.split()[:2] for line in logs[0]] == [["tiny", "epoch"]] * 4 + [["[done]", "after"]]


def test_nothing_is_logged_before_the_folder_is_the_runs(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    report = Report(folder, "tiny", "F1", Console(file=StringIO()))
    report.say("first\nsecond")
    assert not folder.exists()
    report.event("start")
    report.say("third")
    lines = (folder / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition("Z ")[2] or line for line in lines] == ["first", "  second", "third"]


def test_a_log_that_cannot_be_written_ends_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        if path.name == "log.txt":
            raise OSError(28, "No space left on device")
        append(path, data)

    monkeypatch.setattr("spmrl_bench.training.report.append", full)
    assert "[done] after 2 epochs" in output(tmp_path, terminal=False)
    assert not (tmp_path / "log.txt").exists()
