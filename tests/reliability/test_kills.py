"""A run that dies while it saves has its last checkpoint or the new one, and goes on from it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
import torch

from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.training import best_weights
from spmrl_bench.training.checkpoint import load_checkpoint
from spmrl_bench.training.schedule import read_progress
from spmrl_bench.training.trainer import Trainer
from tests.reliability.faults import calls_under, counted, hidden, killed
from tests.reliability.kinds import KINDS, make_trainer
from tests.reliability.tally import Tally


def change(trainer: Trainer) -> None:
    """Go on by a step, in which all that is saved changes."""
    with torch.no_grad():
        for weight in trainer.parser.parameters():
            weight.add_(1.0)
    trainer.progress.steps += 1


def saves(trainer: Trainer) -> None:
    """Save as after a dev evaluation that was the best so far, in a run that owns its folder."""
    from spmrl_bench.training.checkpoint import save_best

    with run_lock(trainer.run_dir):
        save_best(trainer.run_dir, trainer.parser)
        trainer._save()
        trainer.report.event("evaluation", dev=1.0)


def found(run: Path, trainer: Trainer) -> tuple[str | None, tuple[int, float] | None]:
    """Which best parser and which checkpoint are there; both are loaded as a whole."""
    best = None
    if (run / "best").exists() or hidden(run):
        best = best_weights(run)
        load_parser(run, "cpu")
    progress = load_checkpoint(run, trainer.parser, trainer.optimiser, trainer.average.means)
    if progress is None:
        return best, None
    first = next(trainer.parser.parameters())
    assert read_progress(run / "last") == progress
    return best, (progress.steps, first.detach().flatten()[0].item())


def refuse(number: int, name: str, call: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied", name)


@pytest.mark.parametrize(
    ("kind", "every"),
    [("chart", 16), *(pytest.param(kind, 1, marks=pytest.mark.campaign) for kind in KINDS)],
)
def test_a_kill_at_any_call_of_a_save(tmp_path: Path, tally: Tally, kind: str, every: int) -> None:
    held = tally("R14", "kill points of saving a checkpoint and the best parser")
    run = tmp_path / "before" / "run"
    trainer, reader = make_trainer(kind, run), make_trainer(kind, run, seed=2)
    trainer.fit()
    best, last = found(run, reader)
    trainer.progress.steps = 100
    change(trainer)
    trainer.run_dir = tmp_path / "count" / "run"
    shutil.copytree(run, trainer.run_dir)
    calls = counted(tmp_path / "count", lambda: saves(trainer))
    after = found(trainer.run_dir, reader)
    assert after[0] != best
    assert after[1] != last
    assert len(calls) >= 50  # of the four kinds more than 200
    seen = set()
    moves = [k for k, call in enumerate(calls) if call.startswith("rename")]
    assert len(moves) == 4  # the old one aside, the new one in its place, of both folders
    for step in sorted({*range(0, len(calls), every), *moves}):
        held.add()
        folder = tmp_path / str(step) / "run"
        shutil.copytree(run, folder)
        trainer.run_dir = folder
        trainer.report.path = folder / "events.jsonl"
        assert killed(folder.parent, step, lambda: saves(trainer)), calls[step]
        with calls_under(folder.parent, refuse):  # as eval and parse do, which may not write there
            now = found(folder, reader)
        assert now[0] in (best, after[0]), calls[step]
        assert now[1] in (last, after[1]), calls[step]
        seen.add(now)
        with run_lock(folder):  # the next start
            pass
        assert hidden(folder.parent) == [], calls[step]
        assert found(folder, reader) == now, calls[step]
        there = sorted(path.name for path in folder.iterdir())
        assert there == ["best", "events.jsonl", "last", "log.txt"]
        shutil.rmtree(folder.parent)
    assert len(seen) == 3  # neither is new, the best is, both are
