"""Sentences with one layer or two: which are given, which are left out, and which they were."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

import pytest

from spmrl_bench.errors import RecipeError, TreebankError
from spmrl_bench.experiments.plan import make_plan
from spmrl_bench.treebanks import cache
from spmrl_bench.treebanks.catalogue import load_manifest, treebank_statuses
from spmrl_bench.treebanks.check import validate
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.parse import Parse
from tests.conftest import shared_data
from tests.treebanks.conftest import WriteManifest

# Six sentences; the third is only a trace, and the fifth is broken.
SENTENCES = [
    "(S (N a))",
    "(S (N b))",
    "(S (-NONE- *))",
    "(S (N c) (V d))",
    "(S (N e g))",
    "(S (N f))",
]
ROWS = {"a": "a N 0", "b": "b N 0", "*": "* X 0", "c": "c N 2;d V 0", "e": "e N 0", "f": "f N 0"}
LAYER = '{ format = "dp", train = ["x.dp"], dev = ["x.dp"], test = ["x.dp"] }'


def write(root: Path, *sentences: str) -> None:
    """The two files: six sentences of trees, and those of dependencies that are named."""
    folder = root / "tiny_data"
    (folder / "x.mrg").write_text("\n".join(SENTENCES) + "\n")
    blocks = [ROWS[name].replace(" ", "\t").replace(";", "\n") for name in sentences]
    (folder / "x.dp").write_text("\n\n".join(blocks) + "\n")


def manifest(manifests: WriteManifest, **changes: str | None) -> None:
    """A treebank of that file: train is 1 to 4, dev 2 to 6, test what the table marks."""
    manifests(
        **{
            "on_error": '"skip"',
            "shared": '"allowed"',
            "dependencies": LAYER,
            "splits.train": '{ files = ["x.mrg"], sentences = 3, range = "1..4" }',
            "splits.dev": '{ files = ["x.mrg"], sentences = 3, skipped = 1, range = "2..6" }',
            "splits.test": '{ files = ["x.mrg"], sentences = 2, rows = '
            '{ table = "x.tsv", column = "s", equals = "t" } }',
            **changes,
        }
    )


@pytest.fixture
def bank(manifests: WriteManifest, root: Path) -> Treebank:
    manifest(manifests)
    write(root, "a", "b", "*", "c", "e", "f")
    (root / "tiny_data/x.tsv").write_text("s\nt\no\nt\no\no\nt\n")
    return open_treebank("tiny", root)


def words(parses: list[Parse]) -> list[str]:
    return ["".join(parse.words) for parse in parses]


EXPECTED = {"train": ["a", "b", "cd"], "dev": ["b", "cd", "f"], "test": ["a", "f"]}


@pytest.mark.parametrize("split", EXPECTED)
def test_what_is_left_out_of_the_trees_is_left_out_of_the_dependencies(
    bank: Treebank, split: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        both = bank.examples(split)
    assert words(both) == EXPECTED[split]
    assert all(parse.layers == ("constituents", "dependencies") for parse in both)
    heads = {"cd": [2, 0]}
    for parse in bank.examples(split, ["dependencies"]):
        assert parse.layers == ("dependencies",)
        assert parse.dependencies is not None
        assert parse.dependencies.heads.tolist() == heads.get("".join(parse.words), [0])
    (trees,) = {parse.layers for parse in bank.examples(split, ["constituents"])}
    assert trees == ("constituents",)
    assert bank.examples(split, []) == both
    left_out = bank.content(split).left_out
    assert left_out == {"without words": 1, "that break the format": int(split == "dev")}
    assert sum("without words" in message for message in caplog.messages) == 1


@pytest.mark.parametrize(
    ("split", "sentences"),
    [
        ("train", "abcef"),  # all but the one without words
        ("train", "abc"),  # those in the range, with words
        ("dev", "bcef"),  # likewise; the broken one is here
        ("dev", "bcf"),  # those that are left
        ("test", "af"),
    ],
)
def test_files_that_lack_sentences_already(
    bank: Treebank, root: Path, split: str, sentences: str
) -> None:
    write(root, *sentences)
    assert words(bank.examples(split)) == EXPECTED[split]


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ("ab", "there are 6 or 5 or 3 and 2 sentences"),
        ("abf", "word 1 of sentence 3 is 'c' and 'f'"),
        ("ab*cc", "sentence 3 has 2 and 1 words|word 1 of sentence 3 is 'c' and '\\*'"),
    ],
)
def test_other_sentences_are_refused(
    bank: Treebank, root: Path, sentences: str, message: str
) -> None:
    write(root, *sentences)
    with pytest.raises(TreebankError, match=f"tiny, split train: the trees and .*: ({message})"):
        bank.examples("train")
    assert words(bank.examples("train", ["constituents"])) == EXPECTED["train"]


def test_tag_files_replace_the_tags_of_both_layers(
    bank: Treebank, manifests: WriteManifest, root: Path
) -> None:
    tagged = '{ files = ["x.mrg"], sentences = 3, range = "1..4", tag_files = ["x.tags"] }'
    manifest(manifests, **{"splits.train": tagged})
    (root / "tiny_data/x.tags").write_text("X\nY\nZ W\n")
    for layers in (None, ["dependencies"]):
        parse = open_treebank("tiny", root).examples("train", layers)[2]  # type: ignore[arg-type]
        assert parse.tags == ("Z", "W")
        assert parse.dependencies is not None
        assert parse.dependencies.tags == ("Z", "W")
    assert bank.examples("train")[2].tags == ("N", "V")


def test_the_second_layer_is_read_once(
    bank: Treebank, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bank.examples("dev")
    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.treebanks.treebank.read_layer", None)
        assert open_treebank("tiny", root).examples("dev") == first
        write(root, "a", "b", "*", "c", "e", "b")
        with pytest.raises(TypeError):
            open_treebank("tiny", root).examples("dev")
    assert len(list(cache.folder().glob("tiny-dev-dependencies.*"))) == 1


def test_an_absent_layer(bank: Treebank, root: Path) -> None:
    (root / "tiny_data/x.dp").unlink()
    without = open_treebank("tiny", root)
    assert without.layers == ("constituents",)
    assert without.fingerprint == bank.fingerprint
    assert words(without.examples("train")) == EXPECTED["train"]
    with pytest.raises(TreebankError, match=r"dependencies of tiny are not present: x\.dp in .*da"):
        without.examples("train", ["dependencies"])
    ((status,), _) = treebank_statuses(root)
    assert (status.present, status.layers, status.layer_missing) == (
        True,
        ("constituents",),
        ("x.dp",),
    )


def test_layers_that_there_are_not(manifests: WriteManifest, root: Path) -> None:
    manifests()
    with pytest.raises(TreebankError, match="tiny has constituents only, no dependencies"):
        open_treebank("tiny", root).examples("train", ["dependencies"])


CONLL = "1\ta\t_\tU\tX\t_\t2\tdet:x\t_\t_\n2\tb\t_\tV\tY\t_\t0\troot\t_\t_\n\n"


def test_a_treebank_of_dependencies(manifests: WriteManifest, root: Path) -> None:
    (root / "tiny_data/x.conllu").write_text(CONLL * 3)
    splits = {
        f"splits.{name}": f'{{ files = ["x.conllu"], sentences = {n}, range = "1..{n}" }}'
        for n, name in enumerate(("train", "dev", "test"), start=1)
    }
    options = {"format": '"conll"', "tag_column": '"upos"', "escapes": None, "prm": None}
    manifests(**options, transforms="[]", shared='"allowed"', **splits)
    bank = open_treebank("tiny", root)
    assert bank.layers == ("dependencies",)
    (parse,) = bank.examples("train")
    assert str(parse) == "a/det:x/2 b/root/0"
    assert parse.tags == ("U", "V")
    assert len(bank.examples("test", ["dependencies"])) == 3
    assert bank.rules == {
        "attachment": {
            "punctuation": "none", "tags": "upos", "relations": "whole", "roots": "one"
        }
    }  # fmt: skip
    for ask in (lambda: bank.examples("train", ["constituents"]), lambda: bank.split("train")):
        with pytest.raises(TreebankError, match="tiny has dependencies only, no constituents: it"):
            ask()
    result = validate(load_manifest("tiny"), root)
    assert result.sound
    assert result.dependencies["test"].labels == {"det:x": 3, "root": 3}


def test_rules_of_both_metrics(bank: Treebank, manifests: WriteManifest, root: Path) -> None:
    usual = {"punctuation": "none", "tags": "xpos", "relations": "whole", "roots": "one"}
    assert bank.rules == {"brackets": {"prm": "spmrl"}, "attachment": usual}
    manifest(manifests, attachment='{ punctuation = "ptb-ctb", relations = "none" }')
    others = {"punctuation": "ptb-ctb", "relations": "none"}
    assert open_treebank("tiny", root).rules["attachment"] == usual | others


def test_rules_of_shipped_treebanks() -> None:
    rules = {
        name: tuple(load_manifest(name).rules["attachment"].values())
        for name in ("german-spmrl", "german-mini", "hungarian-ud-szeged", "english-ptb-predicted")
    }
    assert {name: sorted(values) for name, values in rules.items()} == {
        "german-spmrl": ["none", "several", "whole", "xpos"],
        "german-mini": ["none", "one", "whole", "xpos"],
        "hungarian-ud-szeged": ["none", "one", "upos", "whole"],
        "english-ptb-predicted": ["one", "ptb-ctb", "whole", "xpos"],
    }


def digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def file_digest(root: Path, name: str) -> str:
    return hashlib.sha256((root / "tiny_data" / name).read_bytes()).hexdigest()


def test_the_fingerprint_of_trees_is_that_of_the_first_version(bank: Treebank, root: Path) -> None:
    trees, table = file_digest(root, "x.mrg"), file_digest(root, "x.tsv")
    expected = {
        "version": 1,
        "format": "brackets",
        "transforms": ["drop-traces", "strip-root"],
        "encoding": "utf-8",
        "escapes": "ptb",
        "on_error": "skip",
        "train": [None, [trees], "1..4"],
        "dev": [None, [trees], "2..6"],
        "test": [{"column": "s", "equals": "t"}, [trees, table]],
    }
    assert bank.fingerprint == digest(expected)
    layer = {
        "version": 1, "format": "dp", "transforms": [], "encoding": "utf-8",
        "trees": digest(expected),
        **{name: [file_digest(root, "x.dp")] for name in ("train", "dev", "test")},
    }  # fmt: skip
    assert bank.fingerprint_of("dependencies") == digest(layer)


def test_what_changes_the_fingerprint_of_dependencies(
    bank: Treebank, manifests: WriteManifest, root: Path
) -> None:
    first, trees = bank.fingerprint_of("dependencies"), bank.fingerprint
    dev = '{ files = ["x.mrg"], sentences = 2, skipped = 1, range = "4..6" }'
    rows = '{ table = "x.tsv", column = "s", equals = "o" }'
    changes: list[dict[str, str | None]] = [
        {"dependencies": LAYER.replace('"dp"', '"dp", encoding = "latin-1"')},
        {"splits.dev": dev},
        {"splits.test": f'{{ files = ["x.mrg"], sentences = 2, rows = {rows} }}'},
        {"on_error": None},
        {"transforms": '["strip-root"]'},
    ]
    found = []
    for change in changes:
        manifest(manifests, **change)
        found.append(open_treebank("tiny", root).fingerprint_of("dependencies"))
    manifest(manifests, attachment='{ punctuation = "unicode" }')
    assert open_treebank("tiny", root).fingerprint_of("dependencies") == first
    write(root, "a", "b", "*", "c", "e", "a")
    changed = open_treebank("tiny", root)
    assert changed.fingerprint == trees
    found.append(changed.fingerprint_of("dependencies"))
    assert len({*found, first}) == len(changes) + 2


# Made before there were layers, and held by records.
FINGERPRINTS = {
    "english-wsj-sample": "0a58f596ea5b0275584ec4ed47b2bfcbc4d8fb05378241fb687d05f98340dc06",
    "basque-ud-bdt": "0d625a0bc571fe39c20f81b9b02ccaa9013f9b7350551f3b6ca6bf0eb6e3b82e",
    "french-sequoia": "75d2a4c7cb1bf25d729f5a8aa8cc672ab574673f4b87d238cd0b90ad6c14b6d9",
    "german-squoia": "ad5b24995b90a4626d8e033d6edec49bece38fb542e24e0aab4092d6e11b0d03",
    "dutch-alpino-sample": "bb4c0e09b2c18f8360ba84744db69f22d26d402dd18dd01de35e08e3364a3bfd",
    "spanish-cess": "10e3246ba3a51120b20bf70a4052491a66d4b5df3f6194323bba18079a7880f7",
}


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_fingerprints_stay(name: str) -> None:
    assert open_treebank(name, shared_data("treebanks")).fingerprint == FINGERPRINTS[name]


def plainly(path: Path) -> list[list[tuple[str, int, str]]]:
    """Word, head and relation of each sentence, read without the reader."""
    found = []
    for block in path.read_text(encoding="utf-8").strip("\n").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line[0] != "#"]
        found.append([(row[1], int(row[6]), row[7]) for row in rows if row[0].isdecimal()])
    return found


@pytest.mark.parametrize(
    ("name", "folder", "prefix"),
    [
        ("basque-ud-bdt", "ud_basque_bdt", "eu_bdt"),
        ("korean-ud-gsd", "ud_korean_gsd", "ko_gsd"),
    ],
)
def test_treebanks_of_universal_dependencies(name: str, folder: str, prefix: str) -> None:
    root = shared_data("treebanks")
    bank = open_treebank(name, root)
    dev, test = (plainly(root / folder / f"{prefix}-ud-{part}.conllu") for part in ("dev", "test"))
    size = len(bank.examples("train"))
    expected = {"train": dev[:size], "dev": dev[size:], "test": test}
    for split, sentences in expected.items():
        found = [
            list(zip(tree.words, tree.heads.tolist(), tree.relations, strict=True))
            for parse in bank.examples(split)
            if (tree := parse.dependencies) is not None
        ]
        assert found == sentences


def test_dependencies_alone_are_learnt_where_there_is_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TREEBANKS", str(shared_data("treebanks")))
    (config,) = make_plan("basque", treebank="basque-ud-bdt").configs
    assert (config.variant, config.kind, config.select) == (
        "dependencies", "biaffine", "attachment.las"
    )  # fmt: skip
    with pytest.raises(RecipeError, match="charlstm learns from constituents, but treebank basque"):
        make_plan("basque", treebank="basque-ud-bdt", variants=["charlstm"])
    usual = make_plan("basque")
    assert usual.treebank.name == "basque-mini"
    assert "dependencies" not in {config.variant for config in usual.configs}


def test_the_two_layers_of_the_wsj_sample() -> None:
    bank = open_treebank("english-wsj-sample", shared_data("treebanks"))
    examples = bank.examples("dev")
    assert len(examples) == 273
    assert all(parse.layers == ("constituents", "dependencies") for parse in examples)
    assert bank.rules["attachment"]["punctuation"] == "ptb-ctb"
