"""``--on BACKEND``: which executor does units of work (docs/runs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from spmrl_bench.errors import RecipeError, unknown_name
from spmrl_bench.process.executors.units import Executor
from spmrl_bench.storage.paths import home
from spmrl_bench.storage.toml import read_toml, validated


@dataclass(frozen=True)
class Backend:
    """Where units are done; the address is of a Dask scheduler, the settings are those of SLURM."""

    kind: Literal["local", "dask", "slurm"] = "local"
    address: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether it is this machine, where ``--jobs`` says how much goes on at once."""
        return self.kind == "local"

    def executor(self, jobs: int, *, device: str, shared: Path) -> Executor:
        """What does units there, where all see ``shared``; a SpmrlError if it is not to be had."""
        if self.kind == "dask":
            from spmrl_bench.process.executors.dask import DaskExecutor

            return DaskExecutor(self.address, shared, device=device)
        if self.kind == "slurm":
            from spmrl_bench.process.executors.slurm import SlurmExecutor, SlurmSettings

            place = "the settings of SLURM (--on slurm:KEY=VALUE, [slurm] in config.toml)"
            settings = validated(SlurmSettings, self.settings, place, RecipeError)
            return SlurmExecutor(settings, shared / ".slurm", device)
        from spmrl_bench.process.executors.local import InProcess, LocalExecutor

        return InProcess(device) if jobs == 1 else LocalExecutor(jobs, device)


LOCAL = Backend()


def parse_backend(text: str | None) -> Backend:
    """What ``--on`` says; a RecipeError if that is unknown, or ``config.toml`` is wrong."""
    if text is None or text == "local":
        return LOCAL
    for scheme in ("dask://", "tcp://", "tls://"):
        if text.startswith(scheme) and text != scheme:
            address = text.removeprefix("dask://")
            return Backend("dask", address if "://" in address else f"tcp://{address}")
    kind, _, changes = text.partition(":")
    if kind != "slurm":
        known = "local", "dask://HOST:PORT", "slurm", "slurm:KEY=VALUE,..."
        raise RecipeError(f"--on: {unknown_name('place to work', text, known)}")
    path = home() / "config.toml"
    settings = read_toml(path, RecipeError).get("slurm", {}) if path.exists() else {}
    if not isinstance(settings, dict):
        raise RecipeError(f"{path}: slurm is {settings!r}; expected a section, [slurm]")
    for pair in filter(None, changes.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise RecipeError(f"--on {text}: '{pair}' is not KEY=VALUE, such as partition=gpu")
        settings[key.strip()] = value.strip()
    return Backend("slurm", settings=settings)
