"""``--on WHERE``: which executor does the work.

``local`` is this machine. ``dask`` is a cluster of workers that is set up here, ``dask://HOST:PORT``
the one whose scheduler is there; its workers see the folders that are seen here. ``slurm`` is the
batch system that this machine can hand jobs to; its settings are those of the section ``slurm`` in
``config.toml`` of the user's own folder, and what stands behind a colon changes them:
``slurm:partition=gpu,gpus=1``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spmrl_bench.errors import RecipeError, unknown_name
from spmrl_bench.process.executors.unit import Executor
from spmrl_bench.storage.paths import home
from spmrl_bench.storage.toml import read_toml, validated

#: What ``--on`` takes, for messages.
KINDS = ("local", "dask", "dask://HOST:PORT", "slurm", "slurm:KEY=VALUE,...")

CONFIG = "config.toml"


@dataclass(frozen=True)
class Where:
    """Where work is to be done.

    Attributes:
        kind: ``local``, ``dask`` or ``slurm``.
        address: of a Dask scheduler; empty for a cluster that is set up here.
        settings: of SLURM.
    """

    kind: str = "local"
    address: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether it is this machine, without anything between."""
        return self.kind == "local"

    @property
    def is_here(self) -> bool:
        """Whether it is this machine, so that it is decided here how much goes on at once."""
        return self.is_local or (self.kind == "dask" and not self.address)


LOCAL = Where()


def parse_where(text: str | None) -> Where:
    """What ``--on`` says; without it, this machine.

    Raises:
        RecipeError: it says nothing that is known, or ``config.toml`` is wrong.
    """
    if text is None or text == "local":
        return LOCAL
    if text == "dask":
        return Where("dask")
    for scheme in ("dask://", "tcp://", "tls://"):
        if text.startswith(scheme) and text != scheme:
            address = text.removeprefix("dask://")
            return Where("dask", address if "://" in address else f"tcp://{address}")
    kind, _, changes = text.partition(":")
    if kind != "slurm":
        raise RecipeError(f"--on: {unknown_name('place to work', text, KINDS)}")
    settings = dict(_configured("slurm"))
    for pair in filter(None, changes.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise RecipeError(f"--on {text}: '{pair}' is not KEY=VALUE, such as partition=gpu")
        settings[key.strip()] = value.strip()
    return Where("slurm", settings=settings)


def _configured(section: str) -> Mapping[str, Any]:
    """A section of ``config.toml`` in the user's own folder; empty where there is none."""
    path = home() / CONFIG
    if not path.exists():
        return {}
    found = read_toml(path, RecipeError).get(section, {})
    if not isinstance(found, dict):
        raise RecipeError(f"{path}: {section} is {found!r}; expected a section, [{section}]")
    return found


def executor_for(
    where: Where, *, jobs: int, device: str, shared: Path, say: Callable[[str], None]
) -> Executor:
    """What does units there.

    Args:
        jobs: how many at once, where this is decided here.
        device: as of training.
        shared: a folder that all machines share.
        say: shows a line.

    Raises:
        SpmrlError: it is not to be had.
    """
    if where.kind == "dask":
        from spmrl_bench.process.executors.dask import DaskExecutor

        return DaskExecutor(where.address or None, shared, jobs=jobs, device=device, say=say)
    if where.kind == "slurm":
        from spmrl_bench.process.executors.slurm import SlurmExecutor
        from spmrl_bench.process.executors.slurm_settings import SlurmSettings

        place = "the settings of SLURM (--on slurm:KEY=VALUE, [slurm] in config.toml)"
        settings = validated(SlurmSettings, where.settings, place, RecipeError)
        return SlurmExecutor(settings, shared / ".slurm", device, say)
    from spmrl_bench.process.executors.local import LocalExecutor

    return LocalExecutor(jobs, device)
