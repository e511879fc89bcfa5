"""The commands that make a record again, and what it was made with, from the record alone."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.frame import resolved_settings
from spmrl_bench.leaderboard.record import Record, System
from spmrl_bench.systems.description import SystemDescription, load_system, system_paths

_WORD = re.compile(r"[A-Za-z][\w./+-]*")
_NO_WORDS = ("true", "false", "inf", "nan")


def commands(record: Record) -> list[str]:
    """What to type, a line for each command; nothing for a system without a description here. One
    that has changed since is said to have."""
    if record.system is not None and record.hardware is None:
        return _entering(record.treebank.name, record.system)
    run_here = record.recipe.get("system")
    about: Mapping[str, Any] = run_here if isinstance(run_here, Mapping) else {}
    options, remarks = ["--treebank", record.treebank.name], []
    if record.system is None:
        options += ["--variant", record.variant]
    else:
        here = _descriptions()
        same = [name for name in here if here[name].digest == about.get("description")]
        alike = [name for name in here if here[name].title == record.system.name]
        if not (same or alike):
            return []
        options += ["--system", (same or alike)[0]]
        remarks = [] if same else ["# the description of this system has changed since"]
    options += ["--size", record.size]
    # The seeds of an ensemble are 1, 2, ... up to the number of its members.
    members = len(record.ensemble)
    if members:
        options += ["--seeds", str(members)]
    elif record.cost is not None:
        options += ["--seed", str(record.seed)]
    for key, value in sorted(record.settings.items()):
        if record.system is None:
            options += ["--set", f"{key}={_value(value)}"]
        elif key.startswith("system."):  # of the type that the description says, so without quotes
            options += ["--set", f"{key.removeprefix('system.')}={value}"]
    if isinstance(minutes := about.get("minutes"), int | float):
        options += ["--minutes", f"{minutes:g}"]
    train = shlex.join(["spmrl-bench", "train", record.lang, *options])
    ensemble = ["--ensemble"] if members else []
    evaluate = shlex.join(["spmrl-bench", "eval", record.lang, *options, *ensemble])
    return [*remarks, *([train] if record.cost is not None else []), evaluate]


def _descriptions() -> dict[str, SystemDescription]:
    found = {}
    for name in system_paths():
        with suppress(OSError, SpmrlError):
            found[name] = load_system(name)
    return found


def _entering(bank: str, system: System) -> list[str]:
    lines = [["task", bank, "--split", split, "--to", "outside"] for split in system.outputs]
    entry = ["enter", "--treebank", bank, "--system", system.name]
    entry += ["--version", system.version] if system.version else []
    for split, output in system.outputs.items():
        for layer in output.sha256:
            ending = "mrg" if layer == "constituents" else "conllu"
            entry += [f"--{split}", f"outside/{split}.{ending}"]
    policies = dict.fromkeys(output.policy for output in system.outputs.values())
    entry += ["--faults", *list(policies)[:1]]
    return [shlex.join(["spmrl-bench", "systems", *line]) for line in (*lines, entry)]


def _value(value: Any) -> str:
    """A setting as ``--set`` takes it: as TOML, or a word."""
    plain = isinstance(value, str) and _WORD.fullmatch(value) and value not in _NO_WORDS
    return value if plain else json.dumps(value, ensure_ascii=False)


def settings(record: Record) -> dict[str, str]:
    """Every resolved setting with its value, and whether it was changed of the recipe."""
    return {
        f"{key} (changed)" if key in record.settings else key: _value(value)
        for key, value in resolved_settings(record.recipe).items()
        if record.system is None or key.startswith("system.")
    }


def environment(record: Record) -> dict[str, Any]:
    """Versions, machine, cost and what a system of others gave, as far as they are known."""
    told: dict[str, Any] = {"commit": record.commit, **record.versions}
    for part in (record.hardware, record.cost):
        for key, value in part.model_dump().items() if part else ():
            told[key.replace("_", " ")] = f"{value:,}" if isinstance(value, float) else value
    for split, output in record.system.outputs.items() if record.system else ():
        faults = ", ".join(f"{kind} {number}" for kind, number in output.handled.items())
        told[f"faults of {split} ({output.policy})"] = faults or "none"
        told |= {f"SHA-256 of {split}, {layer}": own for layer, own in output.sha256.items()}
    told[f"SHA-256 of the {'parses' if record.system else 'weights'}"] = record.weights
    return {key: str(value) for key, value in told.items() if value is not None}
