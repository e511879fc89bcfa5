"""Running a program that may do anything: crash, hang, or print without end.

What it prints goes into files whose growth is watched, so that neither our memory nor our
patience depends on it, and stopping it stops what it started as well.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import ScoreError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02  # seconds between two looks at the program


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program that came to its end left behind.

    Attributes:
        status: its exit status; negative if a signal ended it.
        output: what it wrote on standard output.
        errors: what it wrote on standard error.
    """

    status: int
    output: bytes
    errors: bytes

    @property
    def signal(self) -> str | None:
        """Name of the signal that ended it, such as ``SIGSEGV``."""
        if self.status >= 0:
            return None
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"


def run_program(command: Sequence[str], folder: Path, *, timeout: float, limit: int) -> Finished:
    """Run a program in ``folder`` to its end.

    Args:
        command: the absolute path of the program and its arguments.
        folder: its working directory.
        timeout: seconds after which it is stopped.
        limit: bytes that it may write on standard output, and on standard error.

    Raises:
        ScoreError: it cannot be started, did not finish in time, or wrote more than it may.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=os.environ | {"LC_ALL": "C"},  # points in numbers, English messages
                start_new_session=True,
            )
        except OSError as error:
            raise ScoreError(f"cannot be run: {error.strerror}") from None
        try:
            end = time.monotonic() + timeout
            pause = _FIRST_PAUSE
            while True:
                running = process.poll() is None
                for stream, name in ((output, "standard output"), (errors, "standard error")):
                    if os.fstat(stream.fileno()).st_size > limit:
                        raise ScoreError(f"wrote more than {limit:,} bytes on {name}")
                if not running:
                    break
                if time.monotonic() > end:
                    raise ScoreError(f"did not finish within {timeout:g} seconds")
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            _stop(process)
        output.seek(0)
        errors.seek(0)
        return Finished(process.returncode, output.read(), errors.read())


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a program that still runs, with everything it started."""
    if process.poll() is None:  # else its number may be another's by now
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
