"""Training that is stopped anywhere ends, when it goes on, with the bits of one that was not."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from spmrl_bench.process.signals import Interrupted
from spmrl_bench.training.schedule import read_progress
from tests.reliability.faults import hidden
from tests.reliability.kinds import BATCHES, KINDS, make_trainer, state_of
from tests.reliability.tally import Tally


class Place:
    """Counts what training does, and sends a signal at one moment of it."""

    def __init__(self, moment: int | None, number: int = signal.SIGTERM) -> None:
        self.moment, self.number = moment, number
        self.seen: list[str] = []

    def __call__(self, what: str) -> None:
        self.seen.append(what)
        if len(self.seen) - 1 == self.moment:
            signal.raise_signal(self.number)


def train(
    name: str, folder: Path, place: Place, monkeypatch: pytest.MonkeyPatch, epochs: int = 1
) -> None:
    """Train, or go on, until the signal or the end."""
    from spmrl_bench.training import trainer as loop

    with monkeypatch.context() as patch:
        for function in ("save_best", "save_checkpoint"):
            real = getattr(loop, function)

            def saved(*arguments: object, real: object = real, what: str = function) -> None:
                place(what)
                real(*arguments)

            patch.setattr(loop, function, saved)
        make_trainer(name, folder, watch=place, epochs=epochs).fit()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("epochs", "positions"),
    [(1, 2), pytest.param(3, None, marks=pytest.mark.campaign)],
    ids=["some", "all"],
)
def test_stopped_anywhere_and_resumed_is_bit_identical(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tally: Tally,
    name: str,
    epochs: int,
    positions: int | None,
) -> None:
    held = tally("R15", f"positions at which training was stopped and resumed, {name}")
    again = tally("R16", f"runs with the same seed, {name}")
    whole = Place(None)
    train(name, tmp_path / "whole", whole, monkeypatch, epochs)
    expected = state_of(tmp_path / "whole")
    again.add()
    train(name, tmp_path / "again", Place(None), monkeypatch, epochs)
    assert state_of(tmp_path / "again") == expected
    assert whole.seen.count("step") == BATCHES * epochs

    moments = range(len(whole.seen))
    if positions is None:
        assert len(moments) >= 50
        assert b'"decay"' in expected["log"]
    else:  # one in a dev evaluation, one elsewhere
        first = KINDS.index(name)
        scores = [moment for moment in moments if whole.seen[moment] == "score"]
        others = [moment for moment in moments if whole.seen[moment] != "score"]
        moments = [scores[first + 1], others[len(others) * (first + 1) // 5]]
    for moment in moments:
        held.add()
        folder = tmp_path / str(moment)
        number = (signal.SIGTERM, signal.SIGINT)[moment % 2]
        with pytest.raises(Interrupted) as caught:
            train(name, folder, Place(moment, number), monkeypatch, epochs)
        assert caught.value.number == number
        assert hidden(folder) == []
        saved = read_progress(folder / "last")
        # Nothing that was done is lost: the batch in work was finished.
        assert saved.steps == whole.seen[: moment + 1].count("step"), whole.seen[moment]
        train(name, folder, Place(None), monkeypatch, epochs)
        assert state_of(folder) == expected, (moment, whole.seen[moment])


def test_stopped_at_every_step_is_resumed_as_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    """Each session does a batch, or less: a dev evaluation is broken off once."""
    held = tally("R15", "sessions of one run, stopped one after the other")
    train("biaffine", tmp_path / "whole", Place(None), monkeypatch)
    sessions = 0
    while True:
        held.add()
        sessions += 1
        try:
            train("biaffine", tmp_path / "parts", Place(0), monkeypatch)
        except Interrupted:
            # The next one would be broken off at the same place for ever.
            due = read_progress(tmp_path / "parts" / "last")
            if due.evaluation_due:
                try:
                    train("biaffine", tmp_path / "parts", Place(2), monkeypatch)
                except Interrupted:
                    continue
                break
            continue
        break
    assert sessions >= BATCHES
    assert state_of(tmp_path / "parts") == state_of(tmp_path / "whole")
