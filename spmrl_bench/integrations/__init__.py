"""A trained parser inside the libraries that people have their text in."""

from __future__ import annotations

from spmrl_bench.errors import SpmrlError


class MissingExtraError(SpmrlError, ImportError):
    """A library that an integration is for, and its extra, is not installed."""

    def __init__(self, library: str) -> None:
        extra = f"spmrl-bench[{library.lower()}]"
        super().__init__(f"parsing with {library} needs it: pip install '{extra}'")
