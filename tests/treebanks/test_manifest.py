"""Manifests: those shipped are valid, and mistakes are reported together."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.manifest import load_manifest, manifest_names, read_manifest
from tests.treebanks.conftest import WriteManifest

MINI = {
    "format": '"mini"',
    "track": '"mini"',
    "path": None,
    "escapes": None,
    "obtain": None,
    "grammar": '"german"',
    "seed": "1",
    "splits.train": "{ sentences = 5 }",
    "splits.dev": "{ sentences = 5 }",
    "splits.test": "{ sentences = 5 }",
}


@pytest.mark.parametrize("name", manifest_names())
def test_shipped_manifest_is_valid(name: str) -> None:
    manifest = load_manifest(name)
    assert manifest.name == name
    assert name.startswith(f"{manifest.language}-")


def test_expected_manifests_are_shipped() -> None:
    assert set(manifest_names()) >= {
        "english-mini",
        "english-wsj-sample",
        "french-sequoia",
        "german-mini",
        "german-spmrl",
        "german-squoia",
    }


def test_all_mistakes_are_reported_at_once(manifests: WriteManifest) -> None:
    path = manifests(
        name='"other"',
        track='"opn"',
        escapes='"pbt"',
        encoding='"utf-9"',
        licence=None,
        colour='"red"',
        transforms='["drop-trace"]',
        **{
            "splits.train": '{ files = [], sentences = "3" }',
            "splits.dev": '{ files = ["a"], sentences = 0, table = "x" }',
            "splits.test": None,
        },
    )
    with pytest.raises(TreebankError) as caught:
        read_manifest(path)
    first, *mistakes = str(caught.value).splitlines()
    assert first == f"{path}: 12 mistake(s):"
    assert sorted(mistakes) == sorted(
        [
            "  name: found 'other', allowed: 'tiny', as the file is called",
            "  track: found 'opn', allowed: 'spmrl', 'ptb', 'ctb', 'open' or 'mini'",
            "  escapes: found 'pbt': unknown escape policy 'pbt'. Did you mean ptb? "
            "Known: brackets, ptb.",
            "  encoding: found 'utf-9': no such text encoding",
            "  licence: is missing",
            "  colour: unknown key",
            next(line for line in mistakes if "Did you mean drop-traces?" in line),
            next(line for line in mistakes if "splits.train.files: found []" in line),
            "  splits.train.sentences: found '3': Input should be a valid integer",
            "  splits.dev.sentences: found 0: Input should be greater than 0",
            "  splits.dev.table: unknown key",
            "  splits.test: is missing",
        ]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": '"csv"'}, "format: found 'csv', allowed: brackets, tiger-xml, mini"),
        ({"format": None}, "format: is missing, allowed: brackets, tiger-xml, mini"),
        ({"format": '"tiger-xml"'}, "escapes: unknown key"),
        ({**MINI, "path": '"x"'}, "path: unknown key"),
        ({**MINI, "transforms": '["add-vroot"]'}, "add-vroot applies to a graph, which this for"),
        ({"transforms": '["add-vroot"]'}, "add-vroot applies to a graph, which this format does"),
        ({"transforms": '["strip-root", "strip-features"]'}, "must stand before those for a tree"),
        (
            {"transforms": '"strip-root"'},
            "transforms: found 'strip-root': Input should be a valid l",
        ),
        ({"title": '""'}, "title: found ''"),
    ],
)
def test_mistake(manifests: WriteManifest, changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(TreebankError) as caught:
        read_manifest(manifests(**changes))
    assert message in str(caught.value)


def test_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("name = ")
    with pytest.raises(TreebankError, match=r"x\.toml: not TOML: Invalid value"):
        read_manifest(path)
    with pytest.raises(TreebankError, match=r"y\.toml: cannot be read"):
        read_manifest(tmp_path / "y.toml")


def test_unknown_treebank_names_near_matches() -> None:
    with pytest.raises(TreebankError, match=r"treebank 'german-squoja'\. Did you mean german-squ"):
        load_manifest("german-squoja")


def test_a_mini_manifest_needs_no_files(manifests: WriteManifest) -> None:
    assert read_manifest(manifests(**MINI)).format == "mini"
