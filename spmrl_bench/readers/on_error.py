"""What becomes of a sentence that breaks its format.

Some releases contain sentences that no reader can make sense of. Whether one of them stops
the reading or is left out is for the caller to say, and what is left out must be counted. A
reader therefore hands each such error to a function of the caller's and, if that returns,
goes on at the next place that is safe.
"""

from __future__ import annotations

from collections.abc import Callable

from spmrl_bench.errors import ReadError

#: Takes the error of one sentence; may raise it, or return to leave the sentence out.
OnError = Callable[[ReadError], None]


def fail(error: ReadError) -> None:
    """Stop at the first error.

    Raises:
        ReadError: the error.
    """
    raise error
