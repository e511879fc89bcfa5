"""The published figures that the program carries, and files that are none."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.leaderboard.frame import resolved_settings
from spmrl_bench.leaderboard.published import COLUMNS, load_published
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names
from tests.reliability.tally import Tally

FIGURES, _ = load_published()


def test_figures_of_the_reference_are_of_the_published_recipes() -> None:
    for figure in [one for one in FIGURES if one.variant]:
        track = "ptb" if figure.language == "english" else "spmrl"
        config = load_recipe(figure.language).resolve(
            treebank=figure.treebank,
            track=track,
            fingerprints={"constituents": "", "dependencies": ""},
            variant=figure.variant,
        )
        resolved = resolved_settings(config.model_dump(mode="json"))
        stated = [word.partition("=") for word in figure.recipe.split()]
        there = {key: json.loads(value) for key, _, value in stated if key in resolved}
        assert there.keys() >= {"model.layers", "train.learning_rate"}
        assert {key: resolved[key] for key in there} == there


LINE = {
    "system": "S", "paper": "P (ACL)", "year": "2020", "language": "german", "treebank": "x",
    "setting": "", "variant": "", "recipe": "", "split": "test", "metric": "brackets",
    "figure": "f1", "value": "90.5", "source": "Table 1",
}  # fmt: skip


def write(path: Path, *changes: dict[str, str]) -> Path:
    """A file with a line for each dict of changed fields."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows({**LINE, **change} for change in changes)
    return path


WRONG_LINES: list[tuple[dict[str, str], str]] = [
    ({"value": "ninety"}, "value: Input should be a valid number"),
    ({"value": "901"}, "value: Input should be less than or equal to 100"),
    ({"value": "nan"}, "value: "),
    ({"value": "-1"}, "value: "),
    ({"value": ""}, "value: "),
    ({"source": " "}, "source: String should have at least 1 character"),
    ({"language": ""}, "language: "),
    ({"split": "train"}, "split: Input should be 'dev' or 'test'"),
    ({"metric": "bracket"}, "document: Value error, unknown metric 'bracket'. Did you mean brack"),
    ({"figure": "F1"}, "document: Value error, 'brackets.F1': metric brackets has no figure 'F1';"),
    ({"year": "MMXX"}, "year: Input should be a valid integer"),
    ({"year": "1" + 40 * "0" + ".5"}, "year: "),
]
BROKEN_FILES = {
    "empty.csv": (b"", ":1: columns are ; needed: system,"),
    "latin.csv": (",".join(COLUMNS).encode() + b"\n\xe9\n", ": cannot read published figures: "),
    "long.csv": (
        ",".join(COLUMNS).encode() + b"\n" + b"x" * 200_000,
        ": cannot read published figures: field",
    ),
    "zeros.csv": (bytes(100), ":1: columns are "),
    "short.csv": (",".join(COLUMNS).encode() + b"\nK,german\n", ":2: year: Input should be"),
    "other.csv": (b"a,b\n1,2\n", ":1: columns are a,b; needed: system,"),
}  # fmt: skip


def test_broken_lines_and_files_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    held = tally("R11", "broken lines and files among published figures")
    folder = tmp_path / "published"
    folder.mkdir()
    lines = [{}, *(line for wrong, _ in WRONG_LINES for line in (wrong, {}))]
    write(folder / "mine.csv", *lines)
    for name, (data, _) in BROKEN_FILES.items():
        (folder / name).write_bytes(data)
    (folder / "folder.csv").mkdir()
    os.mkfifo(folder / "pipe.csv")
    (folder / "gone.csv").symlink_to("nowhere")
    with (folder / "huge.csv").open("wb") as file:
        file.truncate(2**40)
    held.add(len(WRONG_LINES) + len(BROKEN_FILES) + 4)
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    found, mistakes = load_published()
    assert found[: len(FIGURES)] == FIGURES  # those of the user stand behind
    assert len(found) == len(FIGURES) + len(WRONG_LINES) + 1
    expected = {f"{folder}/{name}{reason}" for name, (_, reason) in BROKEN_FILES.items()}
    expected |= {
        f"{folder}/mine.csv:{3 + 2 * number}: {message}"
        for number, (_, message) in enumerate(WRONG_LINES)
    }
    expected |= {f"{folder}/{name}.csv: cannot read" for name in ("folder", "gone", "huge", "pipe")}
    assert len(mistakes) == len(expected)
    for beginning in expected:
        assert any(mistake.startswith(beginning) for mistake in mistakes), beginning
    assert max(map(len, mistakes)) < 1000


def test_prior_work_is_of_known_treebanks_and_its_f1_follows() -> None:
    names = set(manifest_names())
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    # Treebanks of UD are brought by users, who name them so.
    for one in [one for one in FIGURES if not one.variant and one.family != "ud217"]:
        assert one.treebank in names
        if one.family != "ctb":  # whose dependencies everybody converts in a way of their own
            assert one.metric in load_manifest(one.treebank).rules
        found = values.setdefault((one.system, one.setting, one.treebank), {})
        found[f"{one.split} {one.figure}"] = one.value
    whole = [found for found in values.values() if "test recall" in found]
    assert len(whole) > 10
    for found in whole:
        recall, precision = found["test recall"], found["test precision"]
        f1 = 2 * recall * precision / (recall + precision)
        assert found["test f1"] == pytest.approx(f1, abs=0.06)
