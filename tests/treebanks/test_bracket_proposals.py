"""Unknown brackets: what is proposed for them, and what is said where nothing fits."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.readers.formats import FORMATS, guess_format
from spmrl_bench.storage.toml import validated
from spmrl_bench.treebanks.bracket_proposals import proposed_format, proposed_options
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.check import validate
from spmrl_bench.treebanks.guessing import guess_files
from spmrl_bench.treebanks.manifest import SourceFormat
from spmrl_bench.treebanks.new import inspect_folder, write_new_treebank
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.brackets import write_brackets
from tests.readers.invented_dialects import INVENTED, OLD_ENGLISH, Invented, listed

each_dialect = pytest.mark.parametrize("dialect", INVENTED, ids=lambda dialect: dialect.name)


@each_dialect
def test_proposals(dialect: Invented) -> None:
    text = dialect.text * 20
    form = proposed_format(text, guess_format(text))
    assert form is not None
    assert form.name == "brackets"
    proposal = listed(tomllib.loads(dialect.proposal or dialect.toml))
    assert proposed_options(text) == proposal


@each_dialect
def test_a_folder_of_a_dialect_becomes_a_treebank(
    dialect: Invented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path / "home"))
    folder = tmp_path / "bank"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.txt").write_text(dialect.text * 3, encoding="utf-8")
    found = inspect_folder(folder, language="elvish", allow_shared=True)
    assert found.errors == []
    write_new_treebank(found, tmp_path / "home")
    manifest = load_manifest("elvish-bank")
    assert validate(manifest).sound
    assert len(open_treebank("elvish-bank").split("dev")) == 3 * len(dialect.trees)


@each_dialect
def test_manifests_say_dialects(dialect: Invented, tmp_path: Path) -> None:
    content = {"format": "brackets"} | tomllib.loads(dialect.toml)
    rules = validated(SourceFormat, content, "x.toml", TreebankError)
    path = tmp_path / "f"
    path.write_text(dialect.text, encoding="utf-8")
    trees = FORMATS["brackets"].read(path, **rules.options)
    assert [write_brackets(tree, "brackets") for tree in trees] == list(dialect.trees)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('leaf = "(TAG)"', "leaf: found no WORD in '(TAG)'"),
        ('node = "S"', "node: found 'S', expected a label and two children in brackets"),
        ('entry = ["x"]', "entry: found 'x', expected one TREE"),
        ("drop = 3", "drop: "),
        ("lemmas = true", "lemmas: format brackets has no such option; it has encoding, escapes"),
        (
            'node = "LABEL(CHILD|CHILD)"\nleaf = "(TAG WORD)"',
            "leaf: found '(TAG WORD)', but labels",
        ),
    ],
)
def test_mistakes_in_manifests(options: str, message: str) -> None:
    content = {"format": "brackets", "escapes": "none"} | tomllib.loads(options)
    with pytest.raises(TreebankError) as caught:
        validated(SourceFormat, content, "x.toml", TreebankError)
    assert message in str(caught.value)
    with pytest.raises(TreebankError, match="drop: format sinica has no such option"):
        validated(SourceFormat, {"format": "sinica", "drop": ["X"]}, "x.toml", TreebankError)


def test_options_that_are_not_said_leave_settings_alone() -> None:
    """Fingerprints of before know the escapes only."""
    plain = {"format": "brackets", "escapes": "ptb"}
    rules = validated(SourceFormat, plain, "x.toml", TreebankError)
    assert rules.settings == {"encoding": "utf-8", "escapes": "ptb"}
    more = validated(SourceFormat, plain | {"drop": ["X"]}, "x.toml", TreebankError)
    assert more.settings == rules.settings | {"drop": ["X"]}


def test_plain_brackets_need_no_description() -> None:
    plain = "( (S (NP (DT the) (NN 1\\/2)) (VP (SYM *) (CD 0) (COM that))))\n" * 9
    assert proposed_options(plain) == {"escapes": "ptb"}
    assert proposed_options("(S (NP (N a)) (VP (V b)))\n" * 9) == {"escapes": "brackets"}


def test_headings_are_no_metadata() -> None:
    """A label of metadata above nodes that trees have too stays."""
    text = re.sub(r"\(AUTHOR Anon\) \(DATE \d+\)", "(NP-NOM (D a-a))", OLD_ENGLISH.text)
    assert proposed_options(text * 9)["drop"] == ["CODE"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (A a) (B b c d) (C))\n(S (A a x y z w))\n" * 3, r"mine\.txt:1:\d+: "),
        ("<doc>\nSome words (and brackets).\n</doc>\n", r"mine\.txt:1"),
        ("(S (NP the dog\n" * 5, r"mine\.txt:1:\d+: sentence 1: "),
    ],
)
def test_nothing_fits(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.txt").write_text(text)
    with pytest.raises(TreebankError) as caught:
        guess_files(tmp_path)
    assert "found no file of a known format among 1 files" in str(caught.value)
    assert "The nearest is " in str(caught.value)
    assert re.search(message, str(caught.value))
