"""Killed and resumed training ends with the bytes of training that nothing disturbed.

Real processes run the real command line. Each sends itself a signal, so that a busy machine
cannot delay it: after so many calls of functions, from its second checkpoint on. (All must
compute with as many threads, since sums in another order differ in the last bits.)
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE
from tests.laboratory import Laboratory, build_laboratory
from tests.training.trainers import events, final_bytes

CHECKOUT = Path(__file__).resolve().parents[2]
CODE = """
import os, sys
from pathlib import Path
import spmrl_bench.treebanks.catalogue as catalogue
folder, number, calls = Path(sys.argv.pop(1)), int(sys.argv.pop(1)), int(sys.argv.pop(1))
catalogue.data_dirs = lambda _: [folder]
checkpoints = 0

def watch(event, arguments):
    global checkpoints
    if event == "os.rename" and str(arguments[1]).endswith("last"):
        checkpoints += 1
        if checkpoints == 2:
            sys.setprofile(count)

def count(*_):
    global calls
    calls -= 1
    if calls == 0:
        sys.setprofile(None)
        os.kill(os.getpid(), number)

if number:
    sys.addaudithook(watch)
from spmrl_bench.cli import main
main()
"""
RUN = "tiny-open/small-word-charlstm-seed1"
CALLS = 400_000  # an epoch has about 160,000
SETTINGS = {"max_epochs": 16, "evaluations_per_epoch": 1, "batch_size": 4}


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    built = build_laboratory(tmp_path)
    built.write_recipe(["tiny-open"], train=dict(SETTINGS))
    return built


def start(
    laboratory: Laboratory, runs: Path, number: int = 0, calls: int = 0
) -> subprocess.Popen[str]:
    """``spmrl-bench train`` as a process of its own; it may send itself a signal."""
    arguments = ["train", str(laboratory.recipe), "--variant", "word-charlstm", "--device", "cpu"]
    arguments += ["--runs", str(runs)]
    moment = [str(number), str(calls)]
    own = {"PYTHONPATH": str(CHECKOUT), "TREEBANKS": str(laboratory.treebanks)}
    return subprocess.Popen(
        [sys.executable, "-c", CODE, str(laboratory.manifests), *moment, *arguments],
        cwd=laboratory.folder,
        env=os.environ | own | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and what was said."""
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def test_killed_ended_interrupted_and_resumed_is_bit_identical(laboratory: Laboratory) -> None:
    undisturbed, disturbed = laboratory.folder / "undisturbed", laboratory.folder / "disturbed"
    other = start(laboratory, undisturbed)

    choose = random.Random(1)
    process = start(laboratory, disturbed, signal.SIGKILL, choose.randrange(1, CALLS))
    assert finish(process)[0] == -signal.SIGKILL
    for number, expected in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = start(laboratory, disturbed, number, choose.randrange(1, CALLS))
        status, said = finish(process)
        assert status == expected, said
        assert "continuing after" in said
        check_that_it_saved(disturbed, said)

    status, said = finish(start(laboratory, disturbed))
    assert status == 0, said
    assert len(events(disturbed / RUN, "resume")) == 3

    status, said = finish(other)
    assert status == 0, said
    assert len(events(undisturbed / RUN, "evaluation")) == SETTINGS["max_epochs"]
    assert final_bytes(disturbed / RUN) == final_bytes(undisturbed / RUN)


def check_that_it_saved(runs: Path, said: str) -> None:
    """Check that a run was interrupted and its checkpoint is of that moment."""
    assert "finishing this batch and saving" in said or "breaking off the dev" in said
    assert "interrupted; give the same command again" in said
    assert "Traceback" not in said
    interrupt = events(runs / RUN, "interrupt")[-1]
    saved = json.loads((runs / RUN / "last" / "progress.json").read_text(encoding="utf-8"))
    assert (saved["epoch"], saved["next_batch"]) == (interrupt["epoch"], interrupt["batch"])
    assert saved["steps"] == 10 * saved["epoch"] + saved["next_batch"]
    assert events(runs / RUN, "stop") == []


@pytest.mark.campaign
def test_ended_fifty_times_and_resumed_is_bit_identical(laboratory: Laboratory) -> None:
    settings = SETTINGS | {"max_epochs": 250, "stop_patience": 250}
    laboratory.write_recipe(["tiny-open"], train=settings)
    undisturbed, disturbed = laboratory.folder / "undisturbed", laboratory.folder / "disturbed"
    choose = random.Random(1)
    for _ in range(50):
        process = start(laboratory, disturbed, signal.SIGTERM, choose.randrange(1, CALLS))
        status, said = finish(process)
        assert status == 143, said
        check_that_it_saved(disturbed, said)
    assert len(events(disturbed / RUN, "interrupt")) == 50
    for runs in (undisturbed, disturbed):
        status, said = finish(start(laboratory, runs))
        assert status == 0, said
    assert final_bytes(disturbed / RUN) == final_bytes(undisturbed / RUN)
