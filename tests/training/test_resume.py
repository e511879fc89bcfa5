"""Training that is stopped or killed goes on, and ends with the bytes of undisturbed training.

Of signals at any moment of any kind of parser see :mod:`tests.reliability.test_resume`, of those to
the command :mod:`tests.reliability.test_interrupts`, of kills in the middle of a save
:mod:`tests.reliability.test_kills`.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spmrl_bench.errors import CheckpointError
from spmrl_bench.process.signals import Interrupted
from spmrl_bench.training.checkpoint import load_checkpoint, save_checkpoint
from spmrl_bench.training.schedule import read_progress
from tests.training.trainers import break_off, final_bytes, make_trainer


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("whole")
    make_trainer(folder).fit()
    return final_bytes(folder)


def test_a_second_ctrl_c_ends_at_once_and_a_second_sigterm_does_not(tmp_path: Path) -> None:
    for second, ends_by in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Interrupted)):
        console = Console(file=StringIO(), width=200)
        trainer = make_trainer(tmp_path / second.name, console=console)
        save, step = trainer._save, trainer._step

        def asked(number: int, batch: list[Any], step: Any = step) -> None:
            step(number, batch)
            signal.raise_signal(signal.SIGTERM)

        def asked_again(save: Any = save, second: int = second) -> None:
            signal.raise_signal(second)
            save()

        trainer._step, trainer._save = asked, asked_again
        with pytest.raises(ends_by) as caught:
            trainer.fit()
        assert caught.type is ends_by
        assert "finishing this batch and saving" in console.file.getvalue()
        saved = read_progress(tmp_path / second.name / "last")
        assert (saved and saved.steps) == (1 if second == signal.SIGTERM else None)


def test_another_number_of_threads_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, threads, said in (("same", 1, 0), ("other", 2, 1)):
        monkeypatch.setattr("torch.get_num_threads", lambda: 1)
        break_off(tmp_path / name, 2)
        assert read_progress(tmp_path / name / "last").threads == 1
        monkeypatch.setattr("torch.get_num_threads", lambda threads=threads: threads)
        console = Console(file=StringIO(), width=200)
        assert make_trainer(tmp_path / name, console=console).fit().threads == threads
        lines = console.file.getvalue().splitlines()
        assert sum("1 threads until now, 2 from here on" in line for line in lines) == said


@pytest.mark.parametrize(("minutes", "steps"), [(10, 3), (1e-9, 4)])
def test_a_checkpoint_that_is_old_is_replaced_after_the_batch(
    tmp_path: Path, undisturbed: list[bytes], minutes: float, steps: int
) -> None:
    """Training breaks off after step 5, when dev is scored for the third time."""
    break_off(tmp_path / "parts", 2, checkpoint_minutes=minutes)
    saved = read_progress(tmp_path / "parts" / "last")
    assert saved.steps == steps
    make_trainer(tmp_path / "parts").fit()
    assert final_bytes(tmp_path / "parts") == undisturbed


@pytest.mark.parametrize("batch_size", [8, 24])
def test_a_judgement_of_the_dev_curve_ends_training(tmp_path: Path, batch_size: int) -> None:
    """It is asked at the same places of epochs, whatever number of batches these have."""
    told: list[tuple[int, float]] = []

    def prune(point: int, score: float) -> bool:
        told.append((point, round(score, 4)))
        return point == 4

    trainer = make_trainer(tmp_path, batch_size=batch_size)
    trainer.prune = prune
    state = trainer.fit()
    points = [point for point, _ in told]
    assert points == ([1, 2, 3, 4] if batch_size == 8 else [2, 4])
    assert [score for _, score in told] == [score for _, score in state.curve]
    # Where a rule ends training at the same place, it is the rule that has.
    assert state.stopped_by == "max_epochs"
    earlier = make_trainer(tmp_path / "earlier", batch_size=batch_size)
    earlier.prune = lambda point, _: point == 2
    assert earlier.fit().stopped_by == "pruner"
    saved = read_progress(tmp_path / "earlier" / "last")
    assert (saved.stopped_by, saved.epoch) == ("pruner", 1)
    again = make_trainer(tmp_path / "earlier", batch_size=batch_size)
    assert again.fit().steps == saved.steps  # it stays ended


def test_a_judgement_is_asked_again_where_its_checkpoint_was_not_written(
    tmp_path: Path, undisturbed: list[bytes]
) -> None:
    told: list[int] = []
    trainer = make_trainer(tmp_path)

    def prune(point: int, _: float) -> bool:
        told.append(point)
        if told.count(2) == 1 and point == 2:
            raise RuntimeError("the process dies")
        return False

    trainer.prune = prune
    with pytest.raises(RuntimeError):
        trainer.fit()
    again = make_trainer(tmp_path)
    again.prune = prune
    again.fit()
    assert told == [1, 2, 2, 3, 4]
    assert final_bytes(tmp_path) == undisturbed


FILES = ("parser.json", "progress.json", "weights.safetensors", "optimiser.safetensors")


def test_harmed_file_is_named_and_what_to_do_is_said(tmp_path: Path) -> None:
    make_trainer(tmp_path, max_epochs=1).fit()
    for file, kept in [*product(FILES, (None, -20, 0)), *((file, 1) for file in FILES[2:])]:
        path = tmp_path / "last" / file
        data = path.read_bytes()
        if kept is None:
            path.unlink()
        elif kept == 1:  # a bit has flipped
            path.write_bytes(data[:-4] + bytes([data[-4] ^ 1]) + data[-3:])
        else:
            path.write_bytes(data[:kept])
        with pytest.raises(CheckpointError) as caught:
            make_trainer(tmp_path, max_epochs=2).fit()
        (line,) = str(caught.value).splitlines()
        assert str(tmp_path / "last") in line
        assert file in line
        assert re.search(r"Train again|[Ss]tart anew with --fresh", line)
        path.write_bytes(data)


def test_progress_is_read_while_another_process_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, last = make_trainer(tmp_path, max_epochs=1).fit(), tmp_path / "last"
    read, aside = Path.read_bytes, tmp_path / "aside"

    def read_late(path: Path) -> bytes:
        """The first time, the old folder has been moved aside, and the new one comes after."""
        if aside.exists():
            return read(path)
        last.rename(aside)
        try:
            return read(path)
        finally:
            shutil.copytree(aside, last)

    monkeypatch.setattr(Path, "read_bytes", read_late)
    assert read_progress(last) == done


def test_full_disk_is_one_message_and_keeps_what_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(tmp_path)
    done = trainer.fit()

    for code, advice in ((errno.ENOSPC, "Make room"), (errno.EACCES, "you may write there")):

        def full(*_: object, code: int = code, **__: object) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr("spmrl_bench.training.checkpoint.write_new", full)
        with pytest.raises(CheckpointError, match=rf"last: cannot be written \(.*{advice}, then"):
            save_checkpoint(tmp_path, trainer.parser, trainer.optimiser, {}, done)
    assert load_checkpoint(tmp_path, trainer.parser, trainer.optimiser, {}) == done
