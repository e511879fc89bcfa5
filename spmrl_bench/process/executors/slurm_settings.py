"""Settings of jobs of SLURM."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, field_validator

Count = Annotated[int, Field(ge=1)]
#: Where submitit starts jobs.
Cluster = Literal["slurm", "local"]

_TO_SAVE = 120  # seconds

# What says where the files of jobs are and which job is which.
_OWN = frozenset({"array", "error", "job_name", "open_mode", "output", "signal"})


class SlurmSettings(BaseModel):
    """What each run asks of SLURM."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: Cluster = "slurm"
    """SLURM, or ``local`` to try things out: processes of this machine, for which only ``minutes``,
    ``cpus``, ``gpus`` and ``at_once`` count."""
    partition: str | None = None
    """Partition that jobs go to; without it the cluster's own choice."""
    account: str | None = None
    """Account that they are charged to; without it the user's own."""
    qos: str | None = None
    """Quality of service; without it the account's own."""
    minutes: Count = 1440
    """Time limit of a job. A run that needs longer saves shortly before, and goes on in another."""
    memory_gb: Annotated[float, Field(gt=0)] = 8.0
    """Memory of a run."""
    cpus: Count = 1
    """Cores of a run, each for one thread."""
    gpus: Annotated[int, Field(ge=0, le=1)] = 0
    """Graphics cards of a run: 0 trains on the CPU, 1 on a card."""
    at_once: Count = 100
    """Jobs of one array that run at once."""
    queued: Count = 1000
    """Jobs that wait or run at most; more than ``MaxArraySize`` of the cluster it does not take."""
    setup: tuple[str, ...] = ()
    """Lines of shell before the program, such as ``module load cuda``."""
    extra: dict[str, str | StrictInt | StrictFloat | Literal[True]] = {}
    """Further options of ``sbatch`` by their long names, such as ``constraint = "a100"``; ``true``
    where there is no value."""

    @field_validator("extra")
    @classmethod
    def _with_names_of_submitit(cls, options: dict[str, Any]) -> dict[str, Any]:
        named = {name.lstrip("-").replace("-", "_"): value for name, value in options.items()}
        if taken := _OWN & named.keys():
            raise ValueError(f"{', '.join(sorted(taken))}: set by the program itself")
        return named

    @property
    def seconds_to_save(self) -> int:
        """Time before the end of a job at which it is told to save."""
        return min(_TO_SAVE, 30 * self.minutes)

    def parameters(self) -> dict[str, Any]:
        """Those of submitit's executor."""
        if self.cluster == "local":
            return {
                "timeout_min": self.minutes,
                "signal_delay_s": self.seconds_to_save,
                "gpus_per_node": self.gpus,
            }
        return {
            "job_name": "spmrl_bench",
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "time": self.minutes,
            "signal_delay_s": self.seconds_to_save,
            "nodes": 1,
            "ntasks_per_node": 1,
            "cpus_per_task": self.cpus,
            # Else a step has one core since SLURM 22.05, however many its job has.
            "srun_args": [f"--cpus-per-task={self.cpus}"],
            "gpus_per_node": self.gpus or None,
            "mem": f"{round(1024 * self.memory_gb)}M",
            "array_parallelism": self.at_once,
            "wckey": None,
            "setup": list(self.setup),
            "additional_parameters": {"requeue": True} | self.extra,
        }
