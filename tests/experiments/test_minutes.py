"""A run is given a time to train, and more of it later."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import Result

from tests.builders import cli
from tests.laboratory import Laboratory


def run(command: str, laboratory: Laboratory, *options: str) -> Result:
    arguments = [command, str(laboratory.recipe), "--variant", "charlstm", *options]
    return cli(*arguments)


def state(laboratory: Laboratory) -> tuple[Path, dict[str, object]]:
    (path,) = Path("runs").rglob("last/progress.json")
    return path.parents[1], json.loads(path.read_text())


def test_the_same_command_with_more_goes_on(laboratory: Laboratory) -> None:
    first = run("train", laboratory, "--minutes", "0.00001")
    assert first.exit_code == 0, first.output
    folder, progress = state(laboratory)
    assert progress["stopped_by"] == "max_minutes"
    assert "minutes" not in folder.name
    assert run("train", laboratory, "--minutes", "0.00001").exit_code == 0
    assert state(laboratory)[1]["steps"] == progress["steps"], "it was finished"

    scored = run("eval", laboratory, "--minutes", "0.00001")
    assert scored.exit_code == 0, scored.output
    assert "charlstm (max_minutes=1e-05)" in scored.stdout
    other = run("eval", laboratory)
    assert other.exit_code == 1, "what was cut off is not scored as if it were whole"
    assert "train.max_minutes" in other.stderr

    assert run("train", laboratory, "--minutes", "5").exit_code == 0
    again, progress = state(laboratory)
    assert again == folder
    assert progress["stopped_by"] == "max_epochs"
    assert run("eval", laboratory, "--minutes", "5").exit_code == 0
    whole = run("eval", laboratory)
    assert whole.exit_code == 0, "a limit that was not reached has decided nothing"
    assert run("eval", laboratory, "--minutes", "0.00001").exit_code == 1
