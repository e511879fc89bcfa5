"""A trained parser inside the libraries that people have their text in."""

from __future__ import annotations

from spmrl_bench.errors import SpmrlError


class MissingExtraError(SpmrlError, ImportError):
    """A library that an integration is for is not installed."""

    @classmethod
    def of(cls, library: str, extra: str) -> MissingExtraError:
        """The error of an integration that needs a library.

        Args:
            library: as people call it.
            extra: of pyproject.toml that brings it.
        """
        return cls(f"parsing with {library} needs it: pip install 'spmrl-bench[{extra}]'")
