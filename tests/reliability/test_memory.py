"""Memory stays level over text, epochs, files and treebanks, measured in processes of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import pytest

from spmrl_bench.nn.device import REMEMBERED
from tests.builders import environment, process
from tests.reliability.tally import Tally

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the system does not say what a process holds"
)


def grown(work: str, variant: str, amount: int) -> dict[int, float]:
    """Megabytes by what had been done, of a process that does nothing else."""
    own = {
        name: value
        for name, value in environment(OMP_NUM_THREADS="1").items()
        if not name.startswith(("MALLOC_", "GLIBC_")) and name not in REMEMBERED
    }
    program = (sys.executable, "-P", "-m", "tests.reliability.growth")
    done = process(*program, work, variant, amount, env=own)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def growth(held: dict[int, float], first: int) -> float:
    """By how much the memory of the last quarter is larger than that of the first, by medians.

    What is there at one moment differs by some per cent from the next, with the sizes of sentences.
    """
    after = [size for done, size in sorted(held.items()) if done >= first]
    quarter = max(1, len(after) // 4)
    return median(after[-quarter:]) / median(after[:quarter])


def campaign(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.campaign)


VARIANTS = ("charlstm", "word-charlstm", "joint", "dependencies", "stack-attention")


# Before the sizes of products were bounded, the quick one found 1.15 times as much.
@pytest.mark.parametrize(
    ("variant", "first", "last", "more"),
    [
        ("bilstm", 2000, 3500, 1.08),
        campaign("bilstm", 5000, 60_000, 1.10),
        *(campaign(variant, 5000, 20_000, 1.10) for variant in VARIANTS),
    ],
)
def test_ever_other_sentences_take_no_more_memory(
    tally: Tally, variant: str, first: int, last: int, more: float
) -> None:
    tally("R27", "sentences of ever other lengths and words, parsed").add(last)
    held = grown("parsing", variant, last)
    assert growth(held, first) < more


@pytest.mark.parametrize(
    ("variant", "first", "last", "more"),
    [
        ("charlstm", 2, 6, 1.05),
        # By then most sizes of products of the treebank's batches have been met; the last of those
        # that are remembered take some megabytes more, here and there, until 300 epochs.
        *(campaign(variant, 75, 100, 1.03) for variant in ("charlstm", "bilstm", "dependencies")),
    ],
)
def test_epochs_take_no_more_memory(
    tally: Tally, variant: str, first: int, last: int, more: float
) -> None:
    tally("R27", "epochs, each with an evaluation").add(last)
    assert growth(grown("training", variant, last + 1), first) < more


# A treebank that is not let go holds 2.5 MB; malloc takes as much at once, now and then.
@pytest.mark.parametrize(
    ("work", "what", "first", "last", "more"),
    [
        ("scoring", "sentences scored", 5000, 30_000, 1.08),
        campaign("scoring", "sentences scored", 10_000, 1_000_000, 1.05),
        ("reading", "readings of a treebank", 10, 40, 1.08),
        campaign("reading", "readings of a treebank", 10, 1000, 1.05),
    ],
)
def test_repeated_work_takes_no_more_memory(
    tally: Tally, work: str, what: str, first: int, last: int, more: float
) -> None:
    tally("R27", what).add(last)
    assert growth(grown(work, "-", last), first) < more
