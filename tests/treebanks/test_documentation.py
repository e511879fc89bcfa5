"""The page on treebanks lists what there is."""

from __future__ import annotations

import re
from inspect import cleandoc
from pathlib import Path

from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.treebanks.manifest import Manifest, SourceFormat
from spmrl_bench.trees.transforms import TRANSFORMS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "treebanks.md").read_text(encoding="utf-8")
ROWS = {row[1]: row[0] for row in re.finditer(r"^\| `([a-z-]+)` \|.*$", PAGE, re.MULTILINE)}


def test_every_transform_with_what_it_says_of_itself() -> None:
    for name, transform in TRANSFORMS.items():
        first = (
            cleandoc(transform.apply.__doc__ or "")
            .split("\n\n")[0]
            .replace("\n", " ")
            .replace("|", "\\|")
        )
        assert ROWS[name] == f"| `{name}` | {transform.stage} | {first} |"


def test_every_format_with_its_options() -> None:
    for name in FORMATS.names():
        options = ROWS[name].rsplit("|", 2)[1]
        assert set(re.findall("`([a-z_]+)`", options)) == set(FORMATS.get(name).options)


def test_every_key_of_a_manifest() -> None:
    section = PAGE[PAGE.index("## The manifest") : PAGE.index("## What is kept")]
    formats = PAGE[PAGE.index("## Formats") : PAGE.index("## Transforms")]
    options = set(SourceFormat.model_fields) - {"format"}
    for key in set(Manifest.model_fields) - {"sha256"}:
        assert re.search(rf"[`\[]{key}\b", formats if key in options else section), key
