"""Where the command ``spmrl-bench`` begins: an interrupt is answered in words from here on.

Nothing heavy is imported before :func:`main` has seen to that.
"""

from __future__ import annotations

import os
import signal
import sys

from spmrl_bench.process.console import standard_streams
from spmrl_bench.process.signals import INTERRUPTED, STOPPING, exit_status, interrupt


def main() -> None:
    """Entry point: the command line, whatever its standard streams are."""
    # What was ignored from the start, as nohup and background jobs of scripts have it, stays so.
    answered = [number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN]
    for number in answered:
        signal.signal(number, interrupt)
    # GNU OpenMP threads spin while they wait. When another program needs a core, that slows
    # training down twentyfold; a short spin keeps most of the speed of an idle machine.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    try:
        with standard_streams():
            from spmrl_bench.cli import app

            app(prog_name="spmrl-bench")
    except KeyboardInterrupt as stopped:  # before a command has begun, or after its end
        print(INTERRUPTED, file=sys.stderr)
        sys.exit(exit_status(stopped))
    finally:
        for number in answered:  # nothing is left to be saved
            signal.signal(number, signal.SIG_DFL)
