"""Killed and resumed training ends with the bytes of training that nothing disturbed.

Real processes run the real command line. Each sends itself a signal, so that a busy machine
cannot delay it: after so many calls of functions, from its second checkpoint on. (All must
compute with as many threads, since sums in another order differ in the last bits.)
"""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest
import torch

from tests.builders import cli_process, environment, works
from tests.laboratory import Laboratory
from tests.training.trainers import events, final_bytes

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

sys.addaudithook(watch)
from spmrl_bench.cli import main
main()
"""
RUN = "tiny-open/small-word-charlstm-seed1"
CALLS = 200_000  # an epoch has about 160,000
SETTINGS = {"max_epochs": 7, "evaluations_per_epoch": 1, "batch_size": 4}


def command(laboratory: Laboratory, runs: Path) -> list[object]:
    options = ["--variant", "word-charlstm", "--device", "cpu", "--runs", runs]
    return ["train", laboratory.recipe, *options]


def disturb(laboratory: Laboratory, runs: Path, number: int, calls: int) -> tuple[int, str]:
    """Status and messages of a process that trains and sends itself a signal."""
    done = cli_process(
        laboratory.manifests, number, calls, *command(laboratory, runs), code=CODE,
        env=environment(OMP_NUM_THREADS=str(torch.get_num_threads())),
    )  # fmt: skip
    return done.returncode, done.stderr


def test_killed_and_resumed_is_bit_identical(laboratory: Laboratory) -> None:
    laboratory.write_recipe(["tiny-open"], train=dict(SETTINGS))
    undisturbed, disturbed = laboratory.folder / "undisturbed", laboratory.folder / "disturbed"
    calls = random.Random(1).randrange(1, CALLS)
    assert disturb(laboratory, disturbed, signal.SIGKILL, calls)[0] == -signal.SIGKILL
    for runs in (undisturbed, disturbed):
        works(*command(laboratory, runs))
    assert len(events(disturbed / RUN, "resume")) == 1
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
    for number in range(50):
        by, expected = [(signal.SIGTERM, 143), (signal.SIGINT, 130)][number % 2]
        status, said = disturb(laboratory, disturbed, by, choose.randrange(1, CALLS))
        assert status == expected, said
        check_that_it_saved(disturbed, said)
    assert len(events(disturbed / RUN, "interrupt")) == 50
    for runs in (undisturbed, disturbed):
        works(*command(laboratory, runs))
    assert final_bytes(disturbed / RUN) == final_bytes(undisturbed / RUN)
