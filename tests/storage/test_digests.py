"""Pre-trained files count by their content, in runs as well."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from spmrl_bench.experiments.recipe import RunConfig, load_recipe
from spmrl_bench.storage.digests import digests, file_digest


def sha256(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_content_counts_and_not_the_path(tmp_path: Path) -> None:
    one, other = tmp_path / "one.txt", tmp_path / "folder" / "other.bin"
    other.parent.mkdir()
    for path in (one, other):
        path.write_bytes(b"numbers")
    found = digests({"vectors": str(one), "elmo_weights": str(other)})
    assert found == dict.fromkeys(("vectors", "elmo_weights"), sha256(b"numbers"))


def test_a_changed_file_counts_anew(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    for number, content in enumerate((b"numbers", b"NUMBERS", b"more numbers")):
        path.write_bytes(content)
        os.utime(path, ns=(number, number))  # whatever the clock of the file system shows
        assert digests({"vectors": str(path)}) == {"vectors": sha256(content)}


def test_a_file_that_was_just_written_may_change_within_a_tick(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    for content in (b"one", b"two", b"six"):
        path.write_bytes(content)
        assert file_digest(path) == sha256(content)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a named pipe"):
        file_digest(tmp_path / "pipe")


def test_of_a_folder_the_weights_count(tmp_path: Path) -> None:
    def digest() -> str:
        return digests({"transformer": str(tmp_path)})["transformer"]

    (tmp_path / "b.safetensors").write_bytes(b"2")
    (tmp_path / "a.safetensors").write_bytes(b"1")
    both = digest()
    assert both == sha256(sha256(b"1").encode(), sha256(b"2").encode())
    (tmp_path / "README.md").write_text("Read me.")
    assert digest() == both
    (tmp_path / "c.safetensors").write_bytes(b"3")
    assert digest() != both


def test_names_of_a_hub_are_no_files(tmp_path: Path) -> None:
    assert digests({"transformer": "elves/quenya-base", "vectors": str(tmp_path / "gone")}) == {}


def test_a_run_knows_the_content_of_its_files(tmp_path: Path) -> None:
    def run(path: Path) -> RunConfig:
        return load_recipe("english").resolve(
            treebank="english-mini",
            track="mini",
            fingerprints={"constituents": "f"},
            variant="vectors",
            settings={"model.vectors": str(path)},
        )

    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_bytes(b"numbers")
    other.write_bytes(b"others")
    assert run(one).files == {"vectors": sha256(b"numbers")}
    assert run(other).files == {"vectors": sha256(b"others")}
    recipe = load_recipe("english")
    plain = recipe.resolve(
        treebank="english-mini", track="mini", fingerprints={"constituents": "f"}, variant="word"
    )
    assert plain.files == {}
