"""The words of a second layer beside those of the trees, and its sentences in another order."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.treebank import open_treebank
from tests.conftest import shared_data
from tests.treebanks.conftest import WriteManifest

TREES = ["(S (N du) (N pain))", "(S (N parce_que) (V va))", "(S (N ex-) (N roi))", "(S (N C02))"]
# a: amalgam; b: compound; c: a word that the trees cut; d: another spelling
SENTENCES = {
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
    for row in SENTENCES[name]:
        number, form, head, relation = [*row.split(), "_", "_"][:4]
        lines.append("\t".join([number, form, "_", "X", "Y", "_", head, relation, "_", "_"]))
    return "\n".join(lines) + "\n\n"


@pytest.fixture
def write(manifests: WriteManifest, root: Path) -> object:
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
        (folder / "x.mrg").write_text("\n".join(TREES) + "\n")
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


EXPECTED = ["du/case/2 pain/root/0", "ex-/part/2 roi/root/0", "C02/root/0"]


def test_sentences_in_another_order_with_other_words(write: object, root: Path) -> None:
    write()  # type: ignore[operator]
    assert heads(root) == EXPECTED
    write("acd")  # type: ignore[operator]
    assert heads(root) == EXPECTED


@pytest.mark.parametrize(
    ("order", "changes", "message"),
    [
        ("dba", {}, "1 of 3 sentences are not among the 3 of the dependencies, 'c' first"),
        ("dbcad", {}, "two sentences of the dependencies are called 'd'"),
        ("dbca", {"multiword": None}, "word 1 of sentence 1 is 'du' and 'de le'"),
        ("dbca", {"parts": None}, "word 1 of sentence 2 is 'ex-' and 'ex-roi'"),
        ("dbca", {"respelt": None}, "word 1 of sentence 3 is 'C02' and 'C O2'"),
        (
            "acd",
            {"ids": None, "words": None, "parts": None, "respelt": None},
            "sentence 2 is 'ex-'",
        ),
        ("ac", {"ids": None}, "there are 4 or 3 and 2 sentences"),
        ("dbca", {"ids": '"name"'}, "found the columns id, split, expected 'name'"),
    ],
)
def test_what_else_differs_is_refused(
    write: object, root: Path, order: str, changes: dict[str, str | None], message: str
) -> None:
    write(order, **changes)  # type: ignore[operator]
    with pytest.raises(Exception, match=message) as found:
        open_treebank("tiny", root).examples("train")
    assert isinstance(found.value, TreebankError) or "columns" in message


@pytest.mark.parametrize("key", KEYS)
def test_each_key_changes_the_fingerprint(write: object, root: Path, key: str) -> None:
    write()  # type: ignore[operator]
    bank = open_treebank("tiny", root)
    changes: dict[str, str | None] = {key: None}
    if key == "words":
        changes |= {"parts": None, "respelt": None}
    write(**changes)  # type: ignore[operator]
    other = open_treebank("tiny", root)
    assert other.fingerprint == bank.fingerprint
    assert other.fingerprint_of("dependencies") != bank.fingerprint_of("dependencies")


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


FILES = 'train = ["x"], dev = ["x"], test = ["x"]'


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ('{ format = "conll" }', "needs the files of train, dev and test, or else their ending"),
        ('{ format = "conll", train = ["x"], ending = ".x" }', "or else their ending"),
        ('{ format = "conll", ending = "x" }', "ending"),
        (f'{{ format = "conll", {FILES}, parts = "x" }}', "words = 'merged'"),
        (f'{{ format = "conll", {FILES}, ids = "x" }}', "the table of rows, which split train has"),
        (f'{{ format = "dp", {FILES}, multiword = "whole" }}', "format dp has no such option"),
    ],
)
def test_mistakes_of_a_manifest(manifests: WriteManifest, layer: str, message: str) -> None:
    manifests(dependencies=layer)
    with pytest.raises(TreebankError, match=message):
        load_manifest("tiny")


def test_sequoia_has_both_layers() -> None:
    bank = open_treebank("french-sequoia", shared_data("treebanks"))
    original = open_treebank("french-ud-sequoia", shared_data("treebanks"))
    divided = 0
    for split, sentences in (("train", 2231), ("dev", 412), ("test", 456)):
        parses = bank.examples(split)
        assert len(parses) == sentences
        relations = {
            relation
            for parse in original.examples(split)
            if parse.dependencies is not None
            for relation in parse.dependencies.relations
        }
        for parse in parses:
            assert parse.dependencies is not None
            divided += parse.dependencies.relations.count("compound")
            assert set(parse.dependencies.relations) <= relations | {"compound"}
    assert divided == 77
