"""Checkpoints: complete, and refused in words when they are not."""

from __future__ import annotations

import errno
import os
import re
import shutil
from itertools import product
from pathlib import Path

import pytest
import torch

from spmrl_bench.errors import CheckpointError
from spmrl_bench.training.checkpoint import load_checkpoint, save_checkpoint
from spmrl_bench.training.schedule import read_progress
from tests.training.trainers import make_trainer

FILES = ("parser.json", "progress.json", "weights.safetensors", "optimiser.safetensors")


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    assert load_checkpoint(tmp_path, trainer.parser, trainer.optimiser, {}) is None
    assert read_progress(tmp_path / "last") is None


def test_everything_comes_back(tmp_path: Path) -> None:
    trained, fresh = make_trainer(tmp_path), make_trainer(tmp_path, seed=9)
    done = trained.fit()
    assert load_checkpoint(tmp_path, fresh.parser, fresh.optimiser, {}) == done
    pairs = zip(trained.parser.named_parameters(), fresh.parser.parameters(), strict=True)
    for (name, old), new in pairs:
        assert torch.equal(old, new), name
        before, after = trained.optimiser.state[old], fresh.optimiser.state[new]
        assert before.keys() == after.keys() == {"step", "exp_avg", "exp_avg_sq"}, name
        for key in before:
            torch.testing.assert_close(before[key], after[key], rtol=0, atol=0, msg=f"{name} {key}")


def test_harmed_file_is_named_and_what_to_do_is_said(tmp_path: Path) -> None:
    make_trainer(tmp_path, max_epochs=1).fit()
    for file, kept in product(FILES, (None, -20, 0)):
        path = tmp_path / "last" / file
        data = path.read_bytes()
        if kept is None:
            path.unlink()
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
