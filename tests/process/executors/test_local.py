"""What becomes of units, whatever happens to those that do them; processes of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import RecipeError, RunOwnedError, TrainingError
from spmrl_bench.process.executors import local, units
from spmrl_bench.process.executors.backend import LOCAL, Backend, parse_backend
from spmrl_bench.process.executors.local import InProcess, LocalExecutor
from spmrl_bench.process.executors.units import RESTARTS, Executor, Outcome, Status, Unit, run_units
from spmrl_bench.process.signals import Interrupted
from tests.conftest import until
from tests.process.executors.work import die, diverge, note, refuse, wait


def all_of(executor: Executor, units: int) -> dict[str, Outcome]:
    """How so many units have ended, by their titles."""
    found: dict[str, Outcome] = {}

    def are_found() -> bool:
        found.update({each.unit.title: each for each in executor.outcomes(1.0)})
        return len(found) >= units

    until(are_found)
    return found


def ways(outcomes: dict[str, Outcome]) -> dict[str, tuple[str, str]]:
    """The statuses of units, and what is said of them."""
    return {title: (each.status, str(each.error)) for title, each in outcomes.items()}


def of_all_ends(path: Path) -> list[Unit]:
    units = [Unit("diverge", diverge, ()), Unit("refuse", refuse, ())]
    return [Unit("note", note, (str(path),)), *units]


ENDS = {
    "note": ("done", "None"),
    "diverge": ("failed", "diverged"),
    "refuse": ("locked", "process 7 trains here"),
}


def test_units_end_in_their_own_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "9")
    executor = LocalExecutor(4, "cpu")
    units = [*of_all_ends(tmp_path / "noted"), Unit("die", die, ())]
    assert [executor.start(unit) for unit in units] == [""] * 4
    found = all_of(executor, 4)
    executor.close()
    said = "its process has ended (SIGKILL(-9); is there enough memory? Fewer --jobs or --workers "
    assert ways(found) == ENDS | {"die": ("lost", f"{said}need less)")}
    assert (tmp_path / "noted").read_text(encoding="utf-8") == "cpu 2"
    assert active_children() == []


@pytest.mark.parametrize("way", ["ask", "close"])
def test_units_in_work_can_be_asked_to_stop_or_ended(tmp_path: Path, way: str) -> None:
    executor = LocalExecutor(2, "cpu")
    begun = [tmp_path / "first", tmp_path / "second"]
    for path in begun:
        executor.start(Unit(path.name, wait, (str(path),)))
    until(lambda: all(path.exists() for path in begun))
    if way == "ask":
        executor.ask_to_stop()
        assert {each.status for each in all_of(executor, 2).values()} == {"stopped"}
    executor.close()
    assert active_children() == []


class Played:
    """A process that is nowhere, and has ended as soon as it is told to."""

    def __init__(self, unit: Unit, device: str, threads: int) -> None:
        self.unit, self.device = unit, device
        self.future: Future[None] = Future()

    def outcome(self) -> Outcome:
        return Outcome(self.unit, "done")


@pytest.mark.parametrize(
    ("device", "cards", "expected"),
    [
        ("auto", 2, ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]),
        ("cuda", 3, ["cuda:0", "cuda:1", "cuda:2", "cuda:1"]),
        ("auto", 1, ["auto"] * 4),
        ("cuda:1", 2, ["cuda:1"] * 4),
    ],
)
def test_cards_take_turns_and_one_that_is_free_again_gets_the_next_unit(
    device: str, cards: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local.pools, "cards", lambda: cards)
    monkeypatch.setattr(local, "Job", Played)
    executor, unit = LocalExecutor(3, device), Unit("a", note, ())
    places = [executor.start(unit) for _ in range(3)]
    jobs: list[Any] = list(executor._jobs)
    jobs[1].future.set_result(None)
    assert len(executor.outcomes(0.0)) == 1
    places.append(executor.start(unit))
    assert [job.device for job in [*jobs, [*executor._jobs][-1]]] == expected
    assert places == ["" if device == each else f"on {each}" for each in expected]


def fail_or_note(path: str, number: int, *, device: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {device}\n")
    if number == 1:
        raise ValueError("a defect")
    if number == 2:
        signal.raise_signal(signal.SIGTERM)


def test_units_in_this_process_come_one_after_the_other(tmp_path: Path, said: list[str]) -> None:
    """One that fails stops no other; a signal is that of the unit, and ends all."""
    path = tmp_path / "noted"
    units = [Unit(str(k), fail_or_note, (str(path), k)) for k in range(4)]
    failed = run_units(units[:2], InProcess("cpu"))
    assert [(each.unit, str(each.error)) for each in failed] == [(units[1], "a defect")]
    assert said == ["1 of 2 done"]
    with pytest.raises(Interrupted) as caught:
        run_units(units[2:], InProcess("cpu"))
    assert caught.value.number == signal.SIGTERM
    assert path.read_text(encoding="utf-8") == f"{os.getpid()} cpu\n" * 3


# The executor that --on names --------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    return tmp_path / "config.toml"


def test_where_units_are_done(config: Path) -> None:
    assert parse_backend(None) == parse_backend("local") == LOCAL
    assert parse_backend("dask://host:8786") == Backend("dask", "tcp://host:8786")
    assert parse_backend("tls://host:1") == Backend("dask", "tls://host:1")
    assert parse_backend("slurm") == Backend("slurm")
    config.write_text('[slurm]\npartition = "gpu"\ncpus = 4\n', encoding="utf-8")
    expected = {"partition": "cpu", "cpus": 4, "minutes": "9"}
    assert parse_backend("slurm:partition=cpu, minutes = 9") == Backend("slurm", settings=expected)
    executors = [LOCAL.executor(jobs, device="cpu", shared=config) for jobs in (1, 2)]
    assert [type(each) for each in executors] == [InProcess, LocalExecutor]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("dask", "dask://HOST:PORT"),
        ("dask://", "unknown place to work"),
        ("slrum", "Did you mean slurm"),
        ("slurm:gpu", "'gpu' is not KEY=VALUE"),
    ],
)
def test_what_is_no_place(config: Path, text: str, problem: str) -> None:
    with pytest.raises(RecipeError, match=problem):
        parse_backend(text)
    config.write_text("slurm = 3", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"config\.toml: slurm is 3; expected a section"):
        parse_backend("slurm")
    on = Backend("slurm", settings={"cluster": "local"})
    with pytest.raises(RecipeError, match=r"the settings of SLURM.*cluster"):
        on.executor(1, device="cpu", shared=config)


# What becomes of units -----------------------------------------------------------------------

LOST, OWNED = TrainingError("its process was killed"), RunOwnedError("process 7 trains here")


def nothing(*_: object, **__: object) -> None:
    """Never called."""


def unit(name: str, cost: float = 1.0) -> Unit:
    return Unit(name, nothing, (), cost=cost, folder=Path(name))


class Scripted:
    """Ends units one at a time, as its script has it for each name; done where that is over."""

    def __init__(
        self, script: dict[str, list[Status]], room: Sequence[int] = (), preemptible: bool = False
    ) -> None:
        self.script, self.room, self.preemptible = script, iter(room), preemptible
        self.in_work: list[Unit] = []
        self.begun: list[str] = []
        self.most = 0
        self.stopping = self.closed = False
        self.when_started: Callable[[], None] = lambda: None
        self.when_asked: Callable[[], None] = lambda: None

    @property
    def capacity(self) -> int:
        return next(self.room, 2)

    def start(self, unit: Unit) -> str:
        assert not self.stopping
        self.in_work.append(unit)
        self.begun.append(unit.title)
        self.most = max(self.most, len(self.in_work))
        self.when_started()
        return "here"

    def outcomes(self, seconds: float) -> list[Outcome]:
        self.when_asked()
        if not self.in_work:
            return []
        unit = self.in_work.pop(0)
        ends = self.script.get(unit.title, [])
        how: Status = "stopped" if self.stopping else ends.pop(0) if ends else "done"
        errors = {"done": None, "locked": OWNED, "failed": TrainingError("diverged")}
        return [Outcome(unit, how, errors.get(how, LOST))]

    def ask_to_stop(self) -> None:
        self.stopping = True

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "AGAIN", 0.0)
    monkeypatch.setattr(units, "_GLANCE", 0.0)


def done(executor: Scripted, *units: Unit) -> tuple[list[str], list[str]]:
    """What failed and why, and what was said."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spmrl_bench.process.executors.units.say", said.append)
        failures = run_units(units, executor)
    assert executor.closed
    return [f"{each.unit.title}: {each.error}" for each in failures], said


def test_the_longest_begins_first_and_no_more_at_once_than_there_is_room_for() -> None:
    executor = Scripted({})
    failures, said = done(executor, unit("b", 2), unit("a", 3), unit("d", 0), unit("c", 1))
    assert not failures
    assert executor.begun == ["a", "b", "c", "d"]
    assert executor.most == 2
    begun = [line for line in said if "started" in line]
    assert begun == [f"{name}: started here ({k} of 4)" for k, name in enumerate("abcd", start=1)]
    assert [line for line in said if "done" in line] == [f"{k} of 4 done" for k in (1, 2, 3)]


def test_what_is_lost_is_started_again_but_not_for_ever() -> None:
    tries = RESTARTS["lost"]
    executor = Scripted({"a": ["lost"] * tries, "b": ["lost"] * (tries + 1)})
    failures, said = done(executor, unit("a"), unit("b"), unit("c"))
    assert executor.begun.count("a") == executor.begun.count("b") == tries + 1
    assert failures == [
        "b: b: its process was killed; give the same command again (without --fresh) to continue "
        "from the last checkpoint"
    ]
    assert said.count("a: its process was killed; it is started again") == tries
    assert sum("a: started here" in line for line in said) == 1


@pytest.mark.parametrize("preemptible", [True, False])
def test_what_is_told_to_stop_is_started_again_where_that_makes_room(preemptible: bool) -> None:
    tries = RESTARTS["stopped"] // 2
    executor = Scripted({"a": ["stopped"] * tries}, preemptible=preemptible)
    failures, _ = done(executor, unit("a"))
    assert len(executor.begun) == (tries + 1 if preemptible else 1)
    assert len(failures) == (0 if preemptible else 1)


def test_what_somebody_else_has_in_work_is_looked_at_again_and_said_once() -> None:
    executor = Scripted({"a": ["locked"] * 5})
    failures, said = done(executor, unit("a"), unit("b"))
    assert not failures
    assert executor.begun.count("a") == 6
    assert said.count("a: waiting, process 7 trains here") == 1


def test_a_failure_stops_no_other_and_is_not_tried_again() -> None:
    executor = Scripted({"a": ["failed"]})
    failures, said = done(executor, unit("a", 2), unit("b"))
    assert failures == ["a: diverged"]
    assert executor.begun == ["a", "b"]
    assert "a: FAILED, diverged" in said
    # What fails last is left to whoever asked for it.
    assert done(Scripted({"a": ["failed"]}), unit("a")) == (
        ["a: diverged"],
        ["a: started here (1 of 1)"],
    )


def test_a_signal_lets_all_save_and_begins_nothing_more() -> None:
    executor = Scripted({})
    executor.when_started = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Interrupted) as caught:
        done(executor, *map(unit, "abcd"))
    assert caught.value.number == signal.SIGTERM
    assert executor.stopping
    assert executor.closed
    assert executor.begun == ["a"]


def test_a_signal_when_all_is_done_is_told_only_if_more_is_to_come() -> None:
    for more in (None, lambda: unit("b")):
        executor = Scripted({})
        executor.when_started = lambda: os.kill(os.getpid(), signal.SIGINT)
        executor.ask_to_stop = lambda: None  # type: ignore[method-assign]  # it was at its end
        with nullcontext() if more is None else pytest.raises(Interrupted):
            assert run_units([unit("a")], executor, next_unit=more) == []
        assert executor.begun == ["a"]


def test_ctrl_c_again_ends_at_once() -> None:
    executor = Scripted({"a": ["locked"] * 3})
    executor.when_asked = lambda: os.kill(os.getpid(), signal.SIGINT)
    executor.ask_to_stop = lambda: executor.in_work.clear()  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt) as caught:
        done(executor, unit("a"), unit("b"))
    assert not isinstance(caught.value, Interrupted)
    assert executor.closed


@pytest.mark.parametrize("room", [(), (0, 0, 1)])
def test_units_may_come_while_others_end_and_wait_for_room(
    room: tuple[int, ...], said: list[str]
) -> None:
    coming, over = iter("cd"), list[str]()

    def more() -> Unit | None:
        # Nothing is known of the third before the first two have ended.
        name = next(coming, None) if len(over) >= 2 else None
        return None if name is None else unit(name)

    executor = Scripted({"b": ["lost", "failed"]}, room=room)
    failures = run_units(
        [unit("a"), unit("b")], executor, next_unit=more,
        on_end=lambda ended: over.append(f"{ended.unit.title} {ended.status}"),
    )  # fmt: skip
    assert executor.begun == ["a", "b", "b", "c", "d"]
    assert over == ["a done", "b failed", "c done", "d done"]
    assert [each.unit.title for each in failures] == ["b"]
    assert said[-1] == "d: started here"
