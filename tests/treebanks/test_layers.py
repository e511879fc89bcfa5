"""Sentences with one layer or two: which are given, which are left out, and which they were."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.storage.digests import digest, file_digest
from spmrl_bench.storage.paths import home
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
        assert parse.dependencies.heads.tolist() == heads.get("".join(parse.words), [0])
    (trees,) = {parse.layers for parse in bank.examples(split, ["constituents"])}
    assert trees == ("constituents",)
    assert bank.examples(split, []) == both
    data = bank.data(split)
    assert (data.dropped, len(data.skipped)) == (1, int(split == "dev"))
    assert sum("without words" in message for message in caplog.messages) == 1


def test_files_that_lack_sentences_already(bank: Treebank, root: Path) -> None:
    for split, sentences in (
        ("train", "abcef"),  # all but the one without words
        ("train", "abc"),  # those in the range, with words
        ("dev", "bcef"),  # likewise; the broken one is here
        ("dev", "bcf"),  # those that are left
        ("test", "af"),
    ):
        write(root, *sentences)
        found = open_treebank("tiny", root).examples(split)
        assert words(found) == EXPECTED[split], sentences


def test_other_sentences_are_refused(bank: Treebank, root: Path) -> None:
    for sentences, message in (
        ("ab", "there are 6 or 5 or 3 and 2 sentences"),
        ("abf", "word 1 of sentence 3 is 'c' and 'f'"),
        ("ab*cc", "sentence 3 has 2 and 1 words|word 1 of sentence 3 is 'c' and '\\*'"),
    ):
        write(root, *sentences)
        other = open_treebank("tiny", root)
        place = f"tiny, split train: the trees and .*: ({message})"
        with pytest.raises(TreebankError, match=place):
            other.examples("train")
        assert words(other.examples("train", ["constituents"])) == EXPECTED["train"]


def test_layers_of_different_length_are_refused(
    bank: Treebank, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of the sentences is left out in silence, whatever a layer was read as."""
    first = bank.data("train", "dependencies")
    shorter = replace(first, sentences=first.sentences[:-1])
    monkeypatch.setattr("spmrl_bench.treebanks.reading.read_layer", lambda *_: shorter)
    monkeypatch.setenv("SPMRL_BENCH_CACHE", "0")
    with pytest.raises(TreebankError, match=r"split train: .* 3 constituents, 2 dependencies"):
        open_treebank("tiny", root).examples("train")


def test_the_second_layer_is_read_once(
    bank: Treebank, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bank.examples("dev")
    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.treebanks.reading.read_layer", None)
        assert open_treebank("tiny", root).examples("dev") == first
        write(root, "a", "b", "*", "c", "e", "b")
        with pytest.raises(TypeError):
            open_treebank("tiny", root).examples("dev")
    assert len(list((home() / "cache").glob("tiny-dev-dependencies.*"))) == 1


def test_an_absent_layer(bank: Treebank, root: Path) -> None:
    (root / "tiny_data/x.dp").unlink()
    without = open_treebank("tiny", root)
    assert without.layers == ("constituents",)
    assert without.fingerprint == bank.fingerprint
    assert words(without.examples("train")) == EXPECTED["train"]
    with pytest.raises(TreebankError, match=r"dependencies of tiny are not present: x\.dp in .*da"):
        without.examples("train", ["dependencies"])
    ((status,), _) = treebank_statuses(root)
    assert status.present
    assert (status.layers, status.layer_missing) == (("constituents",), ("x.dp",))


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
        "attachment": {"punctuation": "none", "tags": "upos", "relations": "whole", "roots": "one" }
    }  # fmt: skip
    for ask in (lambda: bank.examples("train", ["constituents"]), lambda: bank.split("train")):
        with pytest.raises(TreebankError, match="tiny has dependencies only, no constituents"):
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
    usual = {"punctuation": "none", "tags": "xpos", "relations": "whole", "roots": "one"}
    for name, changes in {
        "german-spmrl": {"roots": "several"},
        "german-mini": {},
        "hungarian-ud-szeged": {"tags": "upos"},
        "english-ptb-predicted": {"punctuation": "ptb-ctb"},
    }.items():
        assert load_manifest(name).rules["attachment"] == usual | changes


def test_the_fingerprint_of_trees_is_that_of_the_first_version(bank: Treebank, root: Path) -> None:
    trees, table = (file_digest(root / "tiny_data" / name) for name in ("x.mrg", "x.tsv"))
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
        **{name: [file_digest(root / "tiny_data/x.dp")] for name in ("train", "dev", "test")},
    }  # fmt: skip
    assert bank.fingerprint_of("dependencies") == digest(layer)


# ---- Other words, and another order ----

TREES_TO_ALIGN = """\
(S (N du) (N pain))
(S (N parce_que) (V va))
(S (N ex-) (N roi))
(S (N C02))
"""
# a: amalgam; b: compound; c: a word that the trees cut; d: another spelling
BLOCKS = {
    "a": ["1-2 du", "1 de 3 case", "2 le 3 det", "3 pain 0 root"],
    "b": ["1 parce 3 mark", "2 que 1 fixed", "3 va 0 root"],
    "c": ["1 ex-roi 0 root"],
    "d": ["1 C 0 root", "2 O2 1 flat"],
}
KEYS = {
    "multiword": '"whole"', "ids": '"id"', "words": '"merged"', "parts": '"part"',
    "respelt": '{ CO2 = "C02" }',
}  # fmt: skip


def block(name: str) -> str:
    lines = [f"# sent_id = {name}"]
    for row in BLOCKS[name]:
        number, form, head, relation = [*row.split(), "_", "_"][:4]
        lines.append("\t".join([number, form, "_", "X", "Y", "_", head, relation, "_", "_"]))
    return "\n".join(lines) + "\n\n"


@pytest.fixture
def align(manifests: WriteManifest, root: Path) -> Callable[..., None]:
    def make(order: str = "dbca", **changes: str | None) -> None:
        keys = {key: value for key, value in (KEYS | changes).items() if value is not None}
        layer = "".join(f", {key} = {value}" for key, value in keys.items())
        files = 'format = "conll", train = ["x.conllu"], dev = ["x.conllu"], test = ["x.conllu"]'
        rows = '{ table = "x.tsv", column = "split", equals = "train" }'
        split = f'{{ files = ["x.mrg"], sentences = 3, rows = {rows} }}'
        manifests(
            dependencies=f"{{ {files}{layer} }}",
            transforms="[]",
            **{f"splits.{name}": split for name in ("train", "dev", "test")},
        )
        folder = root / "tiny_data"
        (folder / "x.mrg").write_text(TREES_TO_ALIGN)
        table = ["id\tsplit", *(f"{n}\t{'dev' if n == 'b' else 'train'}" for n in "abcd")]
        (folder / "x.tsv").write_text("\n".join(table) + "\n")
        (folder / "x.conllu").write_text("".join(map(block, order)))

    return make


def heads(root: Path) -> list[str]:
    return [
        " ".join(
            f"{word}/{relation}/{head}"
            for word, relation, head in zip(
                parse.words, parse.dependencies.relations, parse.dependencies.heads, strict=True
            )
        )
        for parse in open_treebank("tiny", root).examples("train")
        if parse.dependencies is not None
    ]


ALIGNED = ["du/case/2 pain/root/0", "ex-/part/2 roi/root/0", "C02/root/0"]


def test_sentences_in_another_order_with_other_words(
    align: Callable[..., None], root: Path
) -> None:
    align()
    assert heads(root) == ALIGNED
    align("acd")
    assert heads(root) == ALIGNED


def test_what_else_differs_is_refused(align: Callable[..., None], root: Path) -> None:
    plain = dict.fromkeys(("ids", "words", "parts", "respelt"))
    for order, changes, message in (
        ("dba", {}, "1 of 3 sentences are not among the 3 of the dependencies, 'c' first"),
        ("dbcad", {}, "two sentences of the dependencies are called 'd'"),
        ("dbca", {"multiword": None}, "word 1 of sentence 1 is 'du' and 'de le'"),
        ("dbca", {"parts": None}, "word 1 of sentence 2 is 'ex-' and 'ex-roi'"),
        ("dbca", {"respelt": None}, "word 1 of sentence 3 is 'C02' and 'C O2'"),
        ("acd", plain, "sentence 2 is 'ex-'"),
        ("ac", {"ids": None}, "there are 4 or 3 and 2 sentences"),
        ("dbca", {"ids": '"name"'}, "found no column 'name' in the first line"),
    ):
        align(order, **changes)
        with pytest.raises((TreebankError, ReadError), match=message):
            open_treebank("tiny", root).examples("train")


def test_each_key_changes_the_fingerprint(align: Callable[..., None], root: Path) -> None:
    align()
    bank = open_treebank("tiny", root)
    for key in KEYS:
        others = ("parts", "respelt") if key == "words" else ()
        align(**dict.fromkeys((key, *others)))
        other = open_treebank("tiny", root)
        assert other.fingerprint == bank.fingerprint
        assert other.fingerprint_of("dependencies") != bank.fingerprint_of("dependencies"), key


def test_files_with_another_ending(manifests: WriteManifest, root: Path) -> None:
    splits = {
        name: f'{{ files = ["{name}_*.mrg"], exclude = ["{name}_2.mrg"], sentences = 1 }}'
        for name in ("train", "dev", "test")
    }
    manifests(
        dependencies='{ format = "dp", path = "beside", ending = ".dp" }',
        **{f"splits.{name}": split for name, split in splits.items()},
    )
    (root / "beside").mkdir()
    for name in splits:
        for number in (1, 2):
            (root / f"tiny_data/{name}_{number}.mrg").write_text(f"(S (N {name}{number}))\n")
            (root / f"beside/{name}_{number}.dp").write_text(f"{name}{number}\tN\t0\n")
    bank = open_treebank("tiny", root)
    assert bank.layers == ("constituents", "dependencies")
    for name in splits:
        (parse,) = bank.examples(name)
        assert parse.words == (f"{name}1",)
    (root / "beside/dev_1.dp").unlink()
    (root / "beside/dev_2.dp").unlink()
    assert open_treebank("tiny", root).layers == ("constituents",)


@pytest.mark.campaign
def test_sequoia_has_both_layers() -> None:
    bank = open_treebank("french-sequoia", shared_data("treebanks"))
    original = open_treebank("french-ud-sequoia", shared_data("treebanks"))
    divided = 0
    for split, sentences in (("train", 2231), ("dev", 412), ("test", 456)):
        found, known = (
            [tree.relations for one in each.examples(split) if (tree := one.dependencies)]
            for each in (bank, original)
        )
        assert len(found) == sentences
        divided += sum(relations.count("compound") for relations in found)
        assert set().union(*found) <= set().union(*known) | {"compound"}
    assert divided == 77
