"""What docs/protocol.md and docs/systems.md say of tests, systems and keys is so."""

from __future__ import annotations

import re
from pathlib import Path

from spmrl_bench.systems.description import (
    COMMON,
    PARSING,
    TRAINING,
    ParseCommand,
    SystemDescription,
    TrainCommand,
    system_paths,
)

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL, SYSTEMS = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("protocol", "systems")
)


def test_the_tests_that_hold_the_protocol_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PROTOCOL)
    assert len(named) > 15
    for path, function in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {function or 'test_'}" in text, (path, function)


def test_every_system_and_every_key_is_described() -> None:
    rows = set(re.findall(r"^\| `([\w-]+)` \|", SYSTEMS, re.MULTILINE))
    assert rows >= set(system_paths())
    for model in (SystemDescription, TrainCommand, ParseCommand):
        for key in model.model_fields:
            assert re.search(rf"`\[?{key}[.\]`]", SYSTEMS), key
    for placeholder in (*COMMON, *TRAINING, *PARSING):
        assert f"{{{placeholder}}}" in SYSTEMS, placeholder
