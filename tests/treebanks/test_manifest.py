"""Manifests: those shipped are valid, mistakes are told, and one can stand on another."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.catalogue import (
    is_known,
    language_of,
    load_manifest,
    manifest_names,
    read_manifest,
    treebank_statuses,
)
from spmrl_bench.treebanks.treebank import open_treebank
from tests.treebanks.conftest import WriteManifest

DP = '{ format = "dp", train = ["a"], dev = ["a"], test = ["a"] }'
ABC = 'train = ["x"], dev = ["x"], test = ["x"]'


def test_shipped_manifests_are_valid() -> None:
    names = manifest_names()
    assert {"english-mini", "french-sequoia", "german-spmrl", "german-spmrl-gold"} <= set(names)
    for name in names:
        manifest = load_manifest(name)
        assert manifest.name == name
        assert name.startswith(f"{manifest.language}-")


#: Keys that are changed (or left out), and part of the one line that tells what is wrong.
MISTAKES: list[tuple[dict[str, str | None], str]] = [
    ({"name": '"other"'}, "name: must be 'tiny', as the file is called; found 'other'"),
    ({"escapes": '"pbt"'}, "escapes: unknown escape policy 'pbt'. Did you mean ptb?"),
    ({"encoding": '"utf-9"'}, "encoding: no such text encoding; found 'utf-9'"),
    ({"transforms": '["drop-trace"]'}, "unknown transform 'drop-trace'. Did you mean drop-traces?"),
    *(
        ({"splits.dev": f'{{ files = ["a"], sentences = {number} }}'}, "expected a number from 1, ")
        for number in ('"3"', "0")
    ),
    ({"format": '"csv"'}, "format: must be one of brackets, "),
    ({"format": None}, "format: missing"),
    ({"format": '"tiger-xml"'}, "escapes: format tiger-xml has no such option; it has none"),
    ({"escapes": None}, "escapes: missing"),
    ({"leaf": '"TAG WORD"'}, "leaf: "),
    ({"prm": None}, "prm: missing"),
    ({"path": '"a | /b/../c"'}, "path: has the part '..'"),
    ({"path": '"/"'}, "path: is absolute"),
    ({"prm": '"SPMRL"'}, "prm: unknown parameter set 'SPMRL'"),
    ({"splits.dev": '{ files = ["a"], range = "5..4" }'}, "splits.dev.range: expected two numbers"),
    ({"transforms": '["add-vroot"]'}, "add-vroot applies to a graph, which this format does"),
    ({"transforms": '["strip-root", "strip-features"]'}, "must stand before those for a tree"),
    ({"transforms": '"strip-root"'}, "transforms: input should be a valid list"),
    ({"attachment": "{}"}, "attachment: has no dependencies to score: leave it out"),
    (
        {"dependencies": DP, "attachment": '{ punctuation = "ptb" }'},
        "attachment.punctuation: unknown punctuation rule 'ptb'. Did you mean ptb-ctb?",
    ),
    ({"dependencies": DP, "attachment": '{ relations = "some" }'}, "attachment.relations: "),
    ({"dependencies": DP, "attachment": '{ tags = "upos" }'}, "attachment.tags: unknown key"),
    (
        {"format": '"dp"', "escapes": None, "prm": None, "transforms": "[]", "dependencies": DP},
        "dependencies: dp has dependencies, and they are the first layer",
    ),
    ({"dependencies": '{ format = "conll" }'}, "or else their ending"),
    ({"dependencies": '{ format = "conll", train = ["x"], ending = ".x" }'}, "else their ending"),
    ({"dependencies": '{ format = "conll", ending = "x" }'}, "dependencies.ending: "),
    ({"dependencies": f'{{ format = "conll", {ABC}, parts = "x" }}'}, "words = 'merged'"),
    ({"dependencies": f'{{ format = "conll", {ABC}, ids = "x" }}'}, "which split train has not"),
    ({"dependencies": f'{{ format = "dp", {ABC}, multiword = "whole" }}'}, "has no such option"),
    *(({"fetch": f'[{{ url = "{url}" }}]'}, "fetch.0.") for url in ("ftp://x/y", "http:///y")),
    ({"fetch": '[{ url = "http://x/y.zip" }]'}, "fetch.0: an archive needs"),
    ({"fetch": '[{ url = "http://x/y/", members = { "a" = "b" } }]'}, "fetch.0: an archive needs"),
    ({"title": '""'}, "title: string should have at least 1 character"),
    ({"editions": "3"}, "editions: must be tables, [editions.NAME]"),
    ({"base": '"nothing"'}, "base: unknown treebank 'nothing'"),
    ({"base": "3"}, "base: unknown treebank"),
    ({"base": '"tiny"'}, "base: more than 8 manifests stand on each other, or in a circle"),
]


def test_mistakes(manifests: WriteManifest) -> None:
    for changes, message in MISTAKES:
        with pytest.raises(TreebankError) as caught:
            read_manifest(manifests(**changes))
        (line,) = str(caught.value).splitlines()
        assert "tiny.toml" in line
        assert message in line, line


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("name = ")
    with pytest.raises(TreebankError, match=r"x\.toml: not valid TOML: Invalid value"):
        read_manifest(path)
    with pytest.raises(TreebankError, match=r"y\.toml: cannot be read"):
        read_manifest(tmp_path / "y.toml")


def test_unknown_treebanks_name_near_matches() -> None:
    with pytest.raises(TreebankError, match=r"treebank 'german-squoja'\. Did you mean german-squ"):
        load_manifest("german-squoja")
    for name in ("../treebanks/german-squoia", "german-squoia.toml", "x" * 300, "a\0", ""):
        assert not is_known(name)


def test_a_broken_file_hides_no_other_treebank(manifests: WriteManifest, root: Path) -> None:
    manifests()
    broken = manifests("broken")
    broken.write_text("name =")
    assert manifest_names() == ["broken", "tiny"]
    (status,), (error,) = treebank_statuses(root)
    assert status.manifest.name == "tiny"
    assert "broken.toml: not valid TOML" in str(error)
    with pytest.raises(TreebankError, match=r"broken\.toml: not valid TOML"):
        load_manifest("broken")
    with pytest.raises(TreebankError, match=r"unknown treebank 'tinny'\. Did you mean tiny"):
        load_manifest("tinny")


EDITIONS = {
    "editions.gold": '{ tags = "gold", title = "Gold" }',
    "editions.small": '{ splits = { train = { files = ["a_2.mrg"], sentences = 1, tokens = 2 } } }',
}


def test_an_edition_replaces_keys_and_is_a_treebank_of_its_own(
    manifests: WriteManifest, root: Path
) -> None:
    manifests(tags='"predicted"', **EDITIONS)
    assert manifest_names() == ["tiny", "tiny-gold", "tiny-small"]
    gold = load_manifest("tiny-gold")
    assert (gold.name, gold.title, gold.tags) == ("tiny-gold", "Gold", "gold")
    assert load_manifest("tiny").tags == "predicted"
    small = open_treebank("tiny-small", root)
    assert [tree.words for tree in small.split("train")] == [("d", "e")]
    assert small.split("dev") == open_treebank("tiny", root).split("dev")
    assert small.fingerprint != open_treebank("tiny", root).fingerprint


def test_gold_and_predicted_files(manifests: WriteManifest, root: Path) -> None:
    test = '{ files = ["{tags}.mrg"], sentences = 1 }'
    manifests(**{"splits.test": test, "tags": '"predicted"'}, **EDITIONS)
    (root / "tiny_data" / "gold.mrg").write_text("(S (G a))")
    (root / "tiny_data" / "pred.mrg").write_text("(S (P a))")
    assert open_treebank("tiny", root).split("test")[0].tags == ("P",)
    assert open_treebank("tiny-gold", root).split("test")[0].tags == ("G",)


def test_mistakes_of_an_edition_name_it(manifests: WriteManifest) -> None:
    path = manifests(**{"editions.odd": '{ track = "odd" }'})
    with pytest.raises(TreebankError) as caught:
        load_manifest("tiny-odd")
    assert str(caught.value).startswith(f"{path}, edition odd: track: input should be 'spmrl'")
    with pytest.raises(TreebankError, match=r"unknown treebank 'tiny-old'\. Did you mean tiny-odd"):
        load_manifest("tiny-old")


def test_a_manifest_on_another_replaces_its_keys(manifests: WriteManifest, root: Path) -> None:
    path = manifests(**EDITIONS, dependencies=DP)
    checksums = path.parent / "checksums"
    checksums.mkdir()
    (checksums / "tiny.sha256").write_text(f"{'0' * 64}  t.mrg\n")
    text = 'name = "{}"\nbase = "{}"\nsplits.train.sentences = {}\n{}'
    mine_on_small = text.format("mine", "tiny-small", 9, "dependencies = false")
    path.with_name("mine.toml").write_text(mine_on_small)
    mine = load_manifest("mine")
    assert (mine.name, mine.language, language_of("mine")) == ("mine", "elvish", "elvish")
    assert (mine.splits.train.sentences, mine.splits.train.tokens) == ((9,), 2)
    assert mine.layers == ("constituents",)
    assert mine.sha256 == {"t.mrg": "0" * 64}
    assert "mine-small" not in manifest_names()
    with pytest.raises(TreebankError, match=r"mine, split train .* expected 9 sentences, found 1"):
        open_treebank("mine", root).split("train")
    path.with_name("again.toml").write_text(text.format("again", "mine", 1, "sha256 = false"))
    bank = open_treebank("again", root)
    assert [len(bank.split(name)) for name in ("train", "dev", "test")] == [1, 3, 1]
    path.with_name("mine.toml").write_text(text.format("mine", "again", 9, ""))
    with pytest.raises(TreebankError, match=r"base: .* in a circle"):
        load_manifest("mine")
