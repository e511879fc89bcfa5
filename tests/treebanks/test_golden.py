"""Fingerprints stay as long as sentences are read alike, and change by themselves when not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from spmrl_bench.treebanks.golden import FIRST_VERSION, part_digest, reading_version

from spmrl_bench.readers import dialect, formats
from spmrl_bench.treebanks import golden
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.transforms import TRANSFORMS
from tests.treebanks.conftest import WriteManifest

PARTS = [*formats.FORMATS, *TRANSFORMS]


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    """Digests and words are computed once in a process; here something changes in between."""
    caches = (part_digest, dialect._dialect)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_every_format_and_transform_has_its_digest() -> None:
    assert {part: part_digest(part) for part in PARTS} == FIRST_VERSION
    assert reading_version(PARTS) == 1


@pytest.mark.parametrize("name", formats.FORMATS)
def test_every_format_reads_sentences_and_a_broken_one(name: str) -> None:
    read = golden._read(name, golden._OPTIONS.get(name, ({},))[0], name)
    assert sum(sentence is not None for sentence in read) >= 2
    assert None in read or name == "alpino-xml"


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_does_something(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest is not that of a transform that does nothing, or drops every sentence."""
    found = part_digest(name)
    for apply in (lambda value: value, lambda value: None):
        part_digest.cache_clear()
        monkeypatch.setitem(TRANSFORMS, name, replace(TRANSFORMS[name], apply=apply))
        assert part_digest(name) != found


def test_a_change_separates_the_treebanks_that_it_concerns(
    manifests: WriteManifest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()  # with strip-root
    found: dict[str | None, str] = {None: open_treebank("tiny", root).fingerprint}
    for name in ("ensure-top", "strip-root"):
        with monkeypatch.context() as patch:
            changed = replace(TRANSFORMS[name], apply=lambda tree: tree)
            patch.setitem(TRANSFORMS, name, changed)
            part_digest.cache_clear()
            found[name] = open_treebank("tiny", root).fingerprint
    assert found["ensure-top"] == found[None] != found["strip-root"]


def test_a_reader_that_reads_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = dialect._decoder

    def shouting(escapes: str, replace: Mapping[str, str]) -> Callable[[str], str]:
        decode = decoder(escapes, replace)
        return lambda text: decode(text).upper()

    monkeypatch.setattr(dialect, "_decoder", shouting)
    assert part_digest("psd") != FIRST_VERSION["psd"]
    assert reading_version(["dp", "psd"]) == reading_version(["psd"]) != 1
    assert reading_version(["dp", "strip-root"]) == 1


def test_the_digests_are_the_same_in_every_process() -> None:
    code = (
        "from spmrl_bench.treebanks.golden import FIRST_VERSION, reading_version\n"
        "print(reading_version(FIRST_VERSION))"
    )
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "LC_ALL": "C"}
        found = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout == "1\n"
