"""Whatever is replaced while a run is trained and scored: right figures or none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments import evaluation, plan, run_folder, score, train
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.parsers.saved import TEMPERATURE
from spmrl_bench.treebanks import cache, reading
from spmrl_bench.trees.escapes import write_brackets
from tests.experiments.conftest import FIRST, RESULTS, RUNS, evaluate
from tests.experiments.conftest import train as train_first
from tests.laboratory import Laboratory, build_laboratory, make_trees

#: Where a program that is attacked stands: just before it calls this.
TRAIN_STEPS: dict[str, tuple[Any, str]] = {
    "recipe read": (plan, "choose_treebank"),
    "run planned": (plan.Run, "trained"),
    "a split read": (reading, "read_first_layer"),
    "a split kept": (cache, "write_bytes"),
    "sentences read": (run_folder, "write_settings"),
    "dev scored": (train, "evaluate_parser"),
}
EVAL_STEPS: dict[str, tuple[Any, str]] = {
    "recipe read": (plan, "choose_treebank"),
    "run planned": (plan.Run, "dev_score"),
    "weights hashed": (score, "load_parser"),
    "weights loaded": (score, "score_split"),
    "a split read": (reading, "read_first_layer"),
    "a split parsed": (evaluation, "evaluate_parser"),
    "scored": (score, "write_document"),
}
INPUTS = ("train", "dev", "test", "recipe", "manifest", "weights")


class World:
    """A laboratory, its run, and what is put in the place of each input."""

    def __init__(self, laboratory: Laboratory, other_weights: Path) -> None:
        self.laboratory, self.other_weights = laboratory, other_weights
        self.kept: list[tuple[Path, Path]] = []

    def replace(self, name: str) -> None:
        path = {
            "recipe": self.laboratory.recipe,
            "manifest": self.laboratory.manifests / "tiny-open.toml",
            "weights": FIRST / "best" / "weights.safetensors",
        }.get(name, self.laboratory.treebanks / "tiny-open" / f"{name}.mrg")
        if not path.exists():
            return  # no weights yet
        kept = path.with_name(f"{path.name}.kept")
        shutil.copy2(path, kept)
        self.kept.append((kept, path))
        if name == "weights":
            shutil.copyfile(self.other_weights, path)
        elif path.suffix == ".toml":
            text = path.read_text()
            path.write_text(
                text.replace("Forty", "Fifty")
                + "\n[train]\nlearning_rate = 0.3\n" * (name == "recipe")
            )
        else:
            size = len(path.read_text().splitlines())
            path.write_text("".join(f"{write_brackets(one)}\n" for one in make_trees(size, 4711)))

    def restore(self) -> None:
        while self.kept:
            kept, path = self.kept.pop()
            kept.replace(path)


def what_counts(record: Record, *, timed: bool = False) -> dict[str, Any]:
    """But for the manifest, which names a title that is read at the first step."""
    left_out: Any = {"finished": True, "hardware": True} | ({} if timed else {"training": True})
    found = record.model_dump(exclude=left_out | {"treebank": {"manifest"}})
    for split in ("dev", "test"):
        found[split].pop("tokens_per_second")
    return found


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """A laboratory with a run that nobody disturbed, and its record."""
    folder = tmp_path_factory.mktemp("reference")
    built = build_laboratory(folder / "laboratory")
    with pytest.MonkeyPatch.context() as patch:
        built.in_use(patch)
        patch.chdir(folder)
        train_first(built, variants=["charlstm"], seeds=[1, 2])
        (record,) = evaluate(built, variants=["charlstm"])
    return folder, record


@pytest.fixture
def world(reference: tuple[Path, Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    folder, _ = reference
    shutil.copytree(folder / "laboratory", tmp_path / "laboratory")
    shutil.copytree(folder / RUNS, tmp_path / RUNS)
    laboratory = Laboratory(tmp_path / "laboratory")
    laboratory.in_use(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    return World(
        laboratory, folder / RUNS / "tiny-open/small-charlstm-seed2/best/weights.safetensors"
    )


def disturbed(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str], act: Callable[[], None]
) -> list[bool]:
    """Have something happen once, just before a step; the list has an item once it has."""
    place, name = step
    original, acted = getattr(place, name), []

    def instead(*args: Any, **options: Any) -> Any:
        if not acted:
            acted.append(True)
            act()
        return original(*args, **options)

    monkeypatch.setattr(place, name, instead)
    return acted


@pytest.mark.parametrize("step", EVAL_STEPS)
@pytest.mark.parametrize("name", INPUTS)
def test_eval(
    world: World,
    reference: tuple[Path, Record],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    step: str,
) -> None:
    with monkeypatch.context() as patch:
        acted = disturbed(patch, EVAL_STEPS[step], lambda: world.replace(name))
        try:
            found = evaluate(world.laboratory, variants=["charlstm"])
        except SpmrlError:
            found = []
    assert acted
    for record in found:
        assert what_counts(record) == what_counts(reference[1])
    world.restore()
    (record,) = evaluate(world.laboratory, variants=["charlstm"])
    assert what_counts(record) == what_counts(reference[1])


MUTATIONS: dict[str, Callable[[bytes], bytes | None]] = {
    **{
        f"a bit at {share:.0%}": lambda data, share=share: flipped(data, int(share * len(data)))
        for share in (0.001, 0.2, 0.5, 0.8, 0.999)
    },
    "half of it": lambda data: data[: len(data) // 2],
    "nothing in it": lambda _: b"",
    "more": lambda data: data + b"{}",
    "gone": lambda _: None,
}


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_each_saved_file(world: World, reference: tuple[Path, Record], mutation: str) -> None:
    names = [path.relative_to(FIRST) for path in sorted(FIRST.rglob("*")) if path.is_file()]
    assert len(names) >= 7
    for name in names:
        if (name.name, mutation) == (TEMPERATURE, "gone"):
            continue  # parsers of before have none
        path = FIRST / name
        whole = path.read_bytes()
        if (data := MUTATIONS[mutation](whole)) is None:
            path.unlink()
        else:
            path.write_bytes(data)
        with suppress(SpmrlError):
            (record,) = evaluate(world.laboratory, variants=["charlstm"])
            assert name.parts[0] != "best", f"{name} has been changed, and is taken"
            assert what_counts(record, timed=True) == what_counts(reference[1], timed=True), name
        path.write_bytes(whole)
        shutil.rmtree(RESULTS, ignore_errors=True)


@pytest.mark.parametrize("step", TRAIN_STEPS)
@pytest.mark.parametrize("name", [name for name in INPUTS if name != "weights"])
def test_train(
    world: World,
    reference: tuple[Path, Record],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    step: str,
) -> None:
    shutil.rmtree(RUNS)
    with monkeypatch.context() as patch:
        acted = disturbed(patch, TRAIN_STEPS[step], lambda: world.replace(name))
        with suppress(SpmrlError):
            train_first(world.laboratory, variants=["charlstm"])
    assert acted
    world.restore()
    try:
        found = evaluate(world.laboratory, variants=["charlstm"])
    except SpmrlError:
        return
    for record in found:
        assert what_counts(record) == what_counts(reference[1])
