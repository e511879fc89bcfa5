"""Manifests: those shipped are valid, and mistakes are reported together."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names, read_manifest
from tests.treebanks.conftest import WriteManifest

FORMAT_NAMES = ", ".join([*FORMATS.names(), "mini"])

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


NOT_OF_DP = dict.fromkeys(("escapes", "prm", "transforms"))
DP = '{ format = "dp", train = ["a"], dev = ["a"], test = ["a"] }'


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
    expected = {
        "name": "must be 'tiny', as the file is called; found 'other'",
        "track": "input should be 'spmrl', 'ptb', 'ctb', 'open' or 'mini'; found 'opn'",
        "escapes": "unknown escape policy 'pbt'. Did you mean ptb? Known: brackets, none, "
        "ptb.; found 'pbt'",
        "encoding": "no such text encoding; found 'utf-9'",
        "licence": "missing",
        "colour": "unknown key. Known: attachment, citation, ",
        "transforms": "unknown transform 'drop-trace'. Did you mean drop-traces?",
        "splits.train.files": "list should have at least 1 item after validation, not 0; found []",
        "splits.train.sentences": "expected a number from 1, or a list of such numbers; found '3'",
        "splits.dev.sentences": "expected a number from 1, or a list of such numbers; found 0",
        "splits.dev.table": "unknown key. Known: dropped, exclude, files, ids, range, rest, rows, ",
        "splits.test": "missing",
    }
    found = {}
    for line in str(caught.value).splitlines():
        place, key, message = line.split(": ", 2)
        assert place == str(path)
        found[key] = message
    assert found.keys() == expected.keys()
    for key, message in expected.items():
        assert found[key].startswith(message), key


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": '"csv"'}, f"format: must be one of {FORMAT_NAMES}; found 'csv'"),
        ({"format": None}, f"format: must be one of {FORMAT_NAMES}; missing"),
        (
            {"format": '"tiger-xml"'},
            "escapes: format tiger-xml has no such option; it has none; found 'ptb'",
        ),
        ({"escapes": None}, "escapes: missing"),
        ({"prm": None}, "prm: missing"),
        ({"splits.dev": '{ files = ["a"], sentences = 1, range = "5..4" }'}, "in rising order"),
        ({**MINI, "path": '"x"'}, "path: unknown key"),
        ({**MINI, "transforms": '["add-vroot"]'}, "add-vroot applies to a graph, which this for"),
        ({"transforms": '["add-vroot"]'}, "add-vroot applies to a graph, which this format does"),
        ({"transforms": '["strip-root", "strip-features"]'}, "must stand before those for a tree"),
        (
            {"transforms": '"strip-root"'},
            "transforms: input should be a valid list; found 'strip-root'",
        ),
        (
            {"attachment": "{}"},
            "attachment: has no dependencies to score: leave it out",
        ),
        (
            {"dependencies": DP, "attachment": '{ punctuation = "ptb" }'},
            "attachment.punctuation: unknown punctuation rule 'ptb'. Did you mean ptb-ctb?",
        ),
        (
            {"dependencies": DP, "attachment": '{ relations = "some" }'},
            "attachment.relations: input should be 'whole', 'universal' or 'none'; found 'some'",
        ),
        (
            {"dependencies": DP, "attachment": '{ tags = "upos" }'},
            "attachment.tags: unknown key. Known: punctuation, relations",
        ),
        (
            {
                "format": '"dp"',
                "escapes": None,
                "prm": None,
                "transforms": "[]",
                "dependencies": DP,
            },
            "dependencies: dp has dependencies, and they are the first layer",
        ),
        ({"title": '""'}, "title: string should have at least 1 character; found ''"),
    ],
)
def test_mistake(manifests: WriteManifest, changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(TreebankError) as caught:
        read_manifest(manifests(**changes))
    assert message in str(caught.value)


def test_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("name = ")
    with pytest.raises(TreebankError, match=r"x\.toml: not valid TOML: Invalid value"):
        read_manifest(path)
    with pytest.raises(TreebankError, match=r"y\.toml: cannot be read"):
        read_manifest(tmp_path / "y.toml")


def test_unknown_treebank_names_near_matches() -> None:
    with pytest.raises(TreebankError, match=r"treebank 'german-squoja'\. Did you mean german-squ"):
        load_manifest("german-squoja")


def test_a_mini_manifest_needs_no_files(manifests: WriteManifest) -> None:
    assert read_manifest(manifests(**MINI)).format == "mini"
