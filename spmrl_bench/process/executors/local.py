"""Units side by side on this machine, each in a process of its own."""

from __future__ import annotations

from joblib.externals.loky import FIRST_COMPLETED, wait

from spmrl_bench.nn.device import cards, device_of_job
from spmrl_bench.process.executors.process import Job, start_job
from spmrl_bench.process.executors.unit import Ended, Unit
from spmrl_bench.process.pools import available_threads


class LocalExecutor:
    """Processes of joblib; each has its share of the threads.

    Whoever tells one of them to stop is a person. Where there are several graphics cards and
    ``device`` names none of them, they take turns.
    """

    makes_room = False

    def __init__(self, jobs: int, device: str = "auto") -> None:
        """So many units at once."""
        self.capacity = jobs
        self._device = device
        self._cards = cards()
        self._threads = max(1, available_threads() // jobs)
        self._free = list(range(jobs))
        self._jobs: dict[Job, int] = {}  # with a number that no other has at the same time

    def start(self, unit: Unit) -> str:
        """Start a process for a unit; says on which graphics card, where there are several."""
        number = self._free.pop(self._free.index(min(self._free)))
        device = device_of_job(number, self._device, self._cards)
        self._jobs[start_job(unit, device, self._threads)] = number
        return f"on {device}" if device != self._device else ""

    def ended(self, seconds: float) -> list[Ended]:
        """The units whose processes have answered or are gone."""
        futures = {job.future: job for job in self._jobs}
        over = [futures[each] for each in wait(futures, seconds, FIRST_COMPLETED).done]
        self._free += [self._jobs.pop(job) for job in over]
        return [job.ended() for job in over]

    def ask_to_stop(self) -> None:
        """SIGTERM to every process."""
        for job in self._jobs:
            job.terminate()

    def close(self) -> None:
        """SIGKILL to every process that is left."""
        for job in self._jobs:
            job.kill()
        for job in self._jobs:
            job.pool.shutdown()
        self._jobs.clear()
