"""The commands that make a record again, and what it was made with, from the record alone."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.frame import resolved_settings
from spmrl_bench.leaderboard.record import Record, System

_WORD = re.compile(r"[A-Za-z][\w./+-]*")
_NO_WORDS = ("true", "false", "inf", "nan")


def commands(record: Record) -> list[str]:
    """What to type, a line for each command."""
    if record.system is not None and record.hardware is None:
        return _entering(record, record.system)
    options = ["--treebank", record.treebank.name]
    if record.system is None:
        options += ["--variant", record.variant]
    elif (name := _system_name(record)) is not None:
        options += ["--system", name]
    else:
        return []
    options += ["--size", record.size]
    # Of an ensemble, the seeds are 1, 2, ... up to the number of members where `eval` made it.
    members = len(record.ensemble)
    if members:
        options += ["--seeds", str(members)]
    elif record.cost is not None:
        options += ["--seed", str(record.seed)]
    for key, value in sorted(record.settings.items()):
        if record.system is not None and not key.startswith("system."):
            continue  # its time, which is an option of its own
        # A description says of which type a setting is, so that its text needs no quotation marks.
        text = str(value) if record.system is not None else _value(value)
        options += ["--set", f"{key.removeprefix('system.')}={text}"]
    if (minutes := _of_system(record).get("minutes")) is not None:
        options += ["--minutes", f"{minutes:g}"]
    more = ["--ensemble"] if members else []
    train = shlex.join(["spmrl-bench", "train", record.lang, *options])
    evaluate = shlex.join(["spmrl-bench", "eval", record.lang, *options, *more])
    return [train, evaluate] if record.cost is not None else [evaluate]


def _of_system(record: Record) -> Mapping[str, Any]:
    """What a record keeps of how a system of somebody else was run here."""
    found = record.recipe.get("system")
    return found if isinstance(found, Mapping) else {}


def _system_name(record: Record) -> str | None:
    """The name of the description that a system was run by; None where it is not here."""
    from spmrl_bench.systems.description import load_system, system_paths

    digest = _of_system(record).get("description")
    for name in system_paths():
        try:
            if load_system(name).digest == digest:
                return name
        except (OSError, SpmrlError):
            continue
    return None


def _entering(record: Record, system: System) -> list[str]:
    bank = record.treebank.name
    lines = []
    for split, output in system.outputs.items():
        lines.append(shlex.join(["spmrl-bench", "task", bank, "--split", split, "--to", "outside"]))
        about = ["--system", system.name]
        about += ["--version", system.version] if system.version else []
        for layer in output.sha256:
            file = f"outside/{split}.{'mrg' if layer == 'constituents' else 'conllu'}"
            command = ["spmrl-bench", "enter", file, "--treebank", bank, "--split", split]
            lines.append(shlex.join([*command, *about, "--faults", output.policy]))
    return lines


def _value(value: Any) -> str:
    """A setting as ``--set`` takes it: as TOML, or a word."""
    plain = isinstance(value, str) and _WORD.fullmatch(value) and value not in _NO_WORDS
    return value if plain else json.dumps(value, ensure_ascii=False)


def settings(record: Record) -> list[tuple[str, str, bool]]:
    """Every resolved setting with its value, and whether it was changed of the recipe."""
    changed = record.settings
    return [
        (key, _value(value) if value is not None else "none", key in changed)
        for key, value in resolved_settings(record.recipe).items()
        if record.system is None or key.startswith("system.")
    ]


def environment(record: Record) -> dict[str, str]:
    """Versions, machine and cost."""
    told = {f"{name}": version for name, version in sorted(record.versions.items())}
    told = {"program": told.pop("spmrl_bench", ""), **told}
    told["commit"] = record.commit or "outside a checkout"
    if (machine := record.hardware) is not None:
        told |= {
            "device": machine.device,
            "platform": machine.platform,
            "processor": machine.processor or "not known",
            "cores": str(machine.cpu_count),
            "threads": str(machine.threads),
            "kernels": machine.kernels or "not noted",
        }
    if (cost := record.cost) is not None:
        told["training"] = _duration(cost.wall_seconds)
        known = {
            "epochs": ("epochs", "g"),
            "updates": ("updates", ","),
            "weights": ("parameters", ","),
            "training speed, tokens/s": ("tokens_per_second", ",.0f"),
            "memory, bytes": ("peak_memory_bytes", ","),
            "memory of the GPU, bytes": ("peak_gpu_memory_bytes", ","),
            "minutes allowed": ("minutes", "g"),
        }
        told |= {
            name: format(value, form)
            for name, (field, form) in known.items()
            if (value := getattr(cost, field, None)) is not None
        }
    told["SHA-256 of the parses" if record.system else "SHA-256 of the weights"] = record.weights
    return told


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
