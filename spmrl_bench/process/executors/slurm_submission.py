"""Handing units to SLURM: several at once are one job array.

submitit writes what is to be done, and the script, into a folder; each time into another, so that
what a job is called is not needed to tell where its files are.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import pickle
import secrets
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spmrl_bench.errors import SpmrlError, remedy
from spmrl_bench.process.executors.base import Unit
from spmrl_bench.process.executors.slurm_job import Order, do_unit
from spmrl_bench.process.executors.slurm_settings import SlurmSettings
from spmrl_bench.process.pools import interrupts_blocked

if TYPE_CHECKING:
    import submitit

    from spmrl_bench.process.executors.slurm_queue import Job

_COMMANDS = ("sbatch", "srun", "squeue", "scancel")
# What sbatch says, among other things, when the controller does not answer.
_PASSING = ("contact", "timed out", "temporarily", "zero bytes", "transport", "refused")


class JobsRefusedError(SpmrlError):
    """SLURM does not take jobs.

    Attributes:
        reason: what it says.
        is_passing: whether that may be otherwise in a while, whatever is asked for.
    """

    def __init__(self, said: str) -> None:
        lines = [line.removeprefix("sbatch: error: ").strip() for line in said.splitlines()]
        self.reason = f"SLURM takes no jobs ({'; '.join(filter(None, lines))})"
        self.is_passing = any(part in said.lower() for part in _PASSING)
        super().__init__(
            f"{self.reason}. Look at the settings of [slurm]: partition, account, qos, minutes, "
            "memory_gb, cpus, gpus, queued, extra; 'sinfo' lists what the cluster has"
        )


class Submission:
    """What hands units over."""

    def __init__(self, settings: SlurmSettings, folder: Path) -> None:
        """Nothing is handed over yet.

        Args:
            settings: of the jobs.
            folder: below which each submission has a folder.

        Raises:
            SpmrlError: submitit or SLURM is not there.
        """
        try:
            import submitit
        except ImportError:
            raise SpmrlError(
                "jobs of SLURM need the package submitit: pip install 'spmrl-bench[slurm]'"
            ) from None
        missing = [name for name in _COMMANDS if shutil.which(name) is None]
        if settings.cluster == "slurm" and missing:
            raise SpmrlError(
                f"no program '{missing[0]}' here, with which SLURM is told what to do. Give the "
                "command on a machine of the cluster; slurm:cluster=local tries it out without"
            )
        self._submitit, self._settings, self._folder = submitit, settings, folder

    def submit(self, units: Sequence[Unit], device: str) -> list[Job]:
        """Hand units over; returns their jobs, in the same order.

        Raises:
            JobsRefusedError: SLURM does not take them.
            SpmrlError: the files cannot be written.
        """
        now = datetime.datetime.now(datetime.UTC)
        folder = self._folder / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        orders = [self._order(unit, device) for unit in units]
        said = io.StringIO()
        try:
            folder.mkdir(parents=True)
            executor = self._executor(folder)
            # submitit prints what sbatch says, besides raising it.
            with contextlib.redirect_stderr(said), interrupts_blocked(), executor.batch():
                return [executor.submit(do_unit, order) for order in orders]
        except OSError as error:
            raise SpmrlError(
                f"{folder}: cannot be written: {error.strerror}. {remedy(error)}, or choose "
                "another --runs folder"
            ) from None
        except RuntimeError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise JobsRefusedError(str(error)) from None

    def _order(self, unit: Unit, device: str) -> Order:
        return Order(pickle.dumps(unit), device, self._settings.cpus)

    def _executor(self, folder: Path) -> submitit.Executor:
        settings = self._settings
        python = (
            f"env OMP_NUM_THREADS={settings.cpus} PYTHONIOENCODING=utf-8 "
            f"{shlex.quote(sys.executable)} -P"
        )
        kinds = {"slurm": self._submitit.SlurmExecutor, "local": self._submitit.LocalExecutor}
        executor = kinds[settings.cluster](folder, python=python)
        executor.update_parameters(**settings.parameters())
        return executor
