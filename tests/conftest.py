"""What several test modules share: the way to the treebanks that are not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_data(relative: str) -> Path:
    """Path of a file or folder of the shared data, e.g. ``shared_data("treebanks/squoia_de")``.

    The data are under the directory that ``SHARED_DATA`` names, or in ``shared`` beside the
    checkout. The test, or the module when called at its top, is skipped where they are absent.
    """
    default = Path(__file__).resolve().parents[2] / "shared"
    path = Path(os.environ.get("SHARED_DATA", default)) / relative
    if not path.exists():
        pytest.skip(f"no shared data at {path} (set SHARED_DATA)", allow_module_level=True)
    return path
