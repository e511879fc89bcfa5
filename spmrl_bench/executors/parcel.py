"""What is sent instead of a unit where machines share no folder."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.executors.unit import Unit
from spmrl_bench.storage.paths import home


class Parcel(NamedTuple):
    """A unit with all that it needs.

    Attributes:
        unit: to be done there.
        files: what it needs, by SHA-256.
        home: the folder that comes back, and is sent first where it is there already.
        lock: on that folder, while the unit is away.
        away: the name of the folder there.
        keep: whether the files may stay there for the next unit.
    """

    unit: Unit
    files: dict[str, bytes]
    home: Path
    lock: AbstractContextManager[None]
    away: str
    keep: bool


def there(part: str) -> Path:
    """Where what is sent lies on the machine that it is sent to: ``files`` or ``runs``."""
    return home() / "sent" / part
