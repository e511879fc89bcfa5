"""From an unknown folder to a manifest that holds for exactly its files."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError, TreebankError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.readers.conll import conll_lines
from spmrl_bench.readers.formats import guess_format
from spmrl_bench.readers.text import read_text
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.check import validate
from spmrl_bench.treebanks.guess import divide, guess_sources, guess_transforms
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.new import inspect_folder, write_new_treebank
from spmrl_bench.treebanks.treebank import open_treebank
from tests.conftest import shared_data
from tests.laboratory import make_trees
from tests.reliability.tally import Tally

# What is guessed: never a test set in train, nor odd words -------------------------------------

PARTS = ("train-01.mrg", "train-02.mrg", "dev-01.mrg", "dev-02.mrg", "test-01.mrg")

#: Files; then those of train, dev and test ("" where they are cut from train), and those unused.
LAYOUTS = {
    "plain": "train.mrg dev.mrg test.mrg > train.mrg > dev.mrg > test.mrg >",
    "ud": "x-ud-dev.conllu x-ud-test.conllu x-ud-train.conllu > x-ud-train.conllu"
    " > x-ud-dev.conllu > x-ud-test.conllu >",
    "spmrl, with a subset": "dev/dev.German.gold.ptb test/test.German.gold.ptb"
    " train/train.German.gold.ptb train5k/train5k.German.gold.ptb > train/train.German.gold.ptb"
    " > dev/dev.German.gold.ptb > test/test.German.gold.ptb > train5k/train5k.German.gold.ptb",
    "nothing but a subset": "train5k.ptb dev.ptb test.ptb > train5k.ptb > dev.ptb > test.ptb >",
    "subsets": "train.mrg train-small.mrg train500.mrg dev.mrg test.mrg > train.mrg > dev.mrg"
    " > test.mrg > train-small.mrg train500.mrg",
    "all called gold": "heb.train.gold heb.dev.gold heb.test.gold > heb.train.gold > heb.dev.gold"
    " > heb.test.gold >",
    "gold is the test set": "heb.train heb.dev heb.gold > heb.train > heb.dev > heb.gold >",
    "no dev, gold": "x.train x.gold > x.train > > x.gold >",
    "no dev, eval": "x_train.mrg x_eval.mrg > x_train.mrg > > x_eval.mrg >",
    "no test": "train.mrg dev.mrg > train.mrg > dev.mrg > >",
    "train alone": "a-train.mrg b-train.mrg > a-train.mrg b-train.mrg > > >",
    "folders": "training/1.xml training/2.xml validation/1.xml testing/1.xml"
    " > training/1.xml training/2.xml > validation/1.xml > testing/1.xml >",
    "numbered parts": " ".join(PARTS) + " > train-01.mrg train-02.mrg > dev-01.mrg dev-02.mrg"
    " > test-01.mrg >",
    "capitals": "TRAIN.MRG DEVEL.MRG TEST.MRG > TRAIN.MRG > DEVEL.MRG > TEST.MRG >",
    "camel": "TrainingSet.m DevSet.m TestSet.m > TrainingSet.m > DevSet.m > TestSet.m >",
    "short": "ctb.trn.mrg ctb.val.mrg ctb.tst.mrg > ctb.trn.mrg > ctb.val.mrg > ctb.tst.mrg >",
    "tune": "train.ptb tune.ptb test.ptb > train.ptb > tune.ptb > test.ptb >",
    "in a folder of all": "testbank/train.mrg testbank/dev.mrg testbank/test.mrg"
    " > testbank/train.mrg > testbank/dev.mrg > testbank/test.mrg >",
    "gold folder": "gold/train.mrg gold/dev.mrg > gold/train.mrg > gold/dev.mrg > >",
    "gold in a folder of train": "train/x.gold test/x.gold > train/x.gold > > test/x.gold >",
    "more than the three": "train.mrg dev.mrg test.mrg extra.mrg blind.mrg > train.mrg > dev.mrg"
    " > test.mrg > blind.mrg extra.mrg",
    "dev test": "train.mrg dev.mrg devtest.mrg test.mrg > train.mrg > dev.mrg > test.mrg"
    " > devtest.mrg",
    "one file": "all.mrg > all.mrg > > >",
    "dates": "1994-train.mrg 1995-train.mrg 1996-dev.mrg 1997-test.mrg"
    " > 1994-train.mrg 1995-train.mrg > 1996-dev.mrg > 1997-test.mrg >",
    "a genre for each": "economy-train.xml sophie-dev.xml alpine-test.xml > economy-train.xml"
    " > sophie-dev.xml > alpine-test.xml >",
}

#: Files, and what the refusal says.
REFUSED = {
    "no names": ("1.mrg 2.mrg 3.mrg", "train, dev or test; not known: 1.mrg, 2.mrg, 3.mrg"),
    "sections": ("00/wsj_0001.mrg 23/wsj_2301.mrg", "--train '*' takes all that are left"),
    "words within words": ("trainer.mrg device.mrg attest.mrg", "no name says"),
    "two splits in a name": ("train-dev.mrg test.mrg", "not known: train-dev.mrg"),
    "two splits and gold": ("x.train.dev.gold y.train", "not known: x.train.dev.gold"),
    "sets, and the rest beside": ("a.mrg devset/c.mrg testset/d.mrg", "not known: a.mrg"),
    "no training data": ("devset/a.mrg testset/b.mrg", "not known: what is for train"),
    "only test": ("x.test", "test: x.test"),
    "train, and what?": ("x.train other.mrg", "not known: other.mrg"),
    "several treebanks": (
        "de-train.mrg de-dev.mrg de-test.mrg fr-train.mrg fr-dev.mrg fr-test.mrg",
        "found 2 treebanks or editions",
    ),
    "treebanks as folders": (
        "UD_German/de-ud-train.conllu UD_German/de-ud-test.conllu "
        "UD_French/fr-ud-train.conllu UD_French/fr-ud-test.conllu",
        "found 2 treebanks or editions",
    ),
    "gold and predicted": (
        "gold/train/train.ptb gold/test/test.ptb pred/train/train.ptb pred/test/test.ptb",
        "found 2 treebanks or editions",
    ),
}


def divided(files: str, **given: list[str]) -> list[str]:
    found = divide(sorted(files.split()), given, Path("/bank"))  # type: ignore[arg-type]
    assert set(found.files) | set(found.cut) == {"train", "dev", "test"}
    parts = [found.files.get(split, ()) for split in ("train", "dev", "test")]  # type: ignore[call-overload]
    return [" ".join(part) for part in [*parts, found.unused]]


def test_names_tell_the_splits(tally: Tally) -> None:
    held = tally("R23", "folders whose splits have names, divided or refused")
    wrong = {}
    for name, layout in LAYOUTS.items():
        held.add()
        files, *expected = (part.strip() for part in layout.split(">"))
        if (found := divided(files)) != expected:
            wrong[name] = found
    assert wrong == {}


def test_what_names_leave_open_is_refused(tally: Tally) -> None:
    held = tally("R23", "folders whose splits have names, divided or refused")
    wrong = {}
    for name, (files, problem) in REFUSED.items():
        held.add()
        try:
            wrong[name] = str(divided(files))
        except TreebankError as error:
            if problem not in str(error):
                wrong[name] = str(error)
    assert wrong == {}


def test_the_user_decides(tmp_path: Path) -> None:
    assert divided("a b odd-train", train=["a"], dev=["b"], test=["odd-train"]) == [
        "a", "b", "odd-train", ""
    ]  # fmt: skip
    assert divided("x.train y z", test=["y"], dev=["z"]) == ["x.train", "z", "y", ""]
    assert divided("x-dev x-test", train=["x-dev"]) == ["x-dev", "", "x-test", ""]
    assert divided("d/a1 d/a2 d/b", train=["*"], test=["a2"]) == ["d/a1 d/b", "", "d/a2", ""]
    assert divided("p/a p/b q/a", train=["p"], dev=["q/"]) == ["p/a p/b", "q/a", "", ""]
    assert divided("a.x b[1].x b1.x", train=["a"], dev=["b[*"], test=["b1*"]) == [
        "a.x", "b[1].x", "b1.x", ""
    ]  # fmt: skip
    listed = tmp_path / "ids"
    listed.write_text("# test\n\nb.mrg\nc\n")
    assert divided("a.mrg b.mrg c.mrg d.mrg", test=[f"@{listed}"], train=["a"], dev=["d"]) == [
        "a.mrg", "d.mrg", "b.mrg c.mrg", ""
    ]  # fmt: skip
    listed.write_text("nowhere\n")
    for given in ({"dev": [f"@{listed}"]}, {"dev": ["nowhere"]}):
        with pytest.raises(
            TreebankError, match=r"--dev .*'nowhere' is none of the files that are left: a, b"
        ):
            divided("a b", **given)
    with pytest.raises(TreebankError, match=r"gone: cannot be read"):
        divided("a b", dev=["@gone"])
    assert divided("a b x-dev x-test", train=["*"]) == ["a b", "x-dev", "x-test", ""]
    assert divided("a-dev a-train b-dev b-train c", train=["a-train"], dev=["*"], test=["c"]) == [
        "a-train", "a-dev b-dev b-train", "c", ""
    ]  # fmt: skip
    with pytest.raises(TreebankError, match=r"--train \*: '\*' is none .* left: none"):
        divided("x-dev x-test", train=["*"])


def test_files_say_their_encoding(tmp_path: Path) -> None:
    for word, encodings in (("größe", "utf-8 utf-8-sig utf-16 utf-32"), ("plain", "ascii")):
        for encoding in encodings.split():
            (tmp_path / "t.mrg").write_bytes((f"(S (N {word}))\n" * 9).encode(encoding))
            wide = encoding in ("utf-16", "utf-32")
            expected = encoding if wide else "utf-8"
            assert guess_sources(tmp_path)[0].options["encoding"] == expected


def test_other_encodings_have_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text("(S (N größe))\n")
    (tmp_path / "b.mrg").write_bytes(
        ("(S (N Land))\n" * 9 + "(S (N niños))\n" * 99).encode("cp1252")
    )
    with pytest.raises(TreebankError, match=r"b\.mrg:10: byte 0xf1 is not utf-8.*cp1252 \(niños\)"):
        guess_sources(tmp_path)
    assert guess_sources(tmp_path, encoding="cp1252")[0].options["encoding"] == "cp1252"
    odd = "(S (N größe))\n".encode("utf-16").replace("ö".encode("utf-16-le"), b"\0\xd8")
    (tmp_path / "b.mrg").write_bytes(odd)
    with pytest.raises(TreebankError, match=r"b\.mrg:1: byte 0x00 is not utf-16"):
        guess_sources(tmp_path)
    (tmp_path / "b.mrg").write_bytes("(S (N größe))\n".encode("utf-16"))
    with pytest.raises(TreebankError, match="files in utf-16 and utf-8"):
        guess_sources(tmp_path)


def test_encodings_that_there_are_not(tmp_path: Path) -> None:
    for name in ["utf8x", "klingon", "idna", "rot13", ""]:
        with pytest.raises(SpmrlError, match=f"unknown encoding '{name}'"):
            guess_sources(tmp_path, encoding=name)
        with pytest.raises(SpmrlError, match=f"unknown encoding '{name}'"):
            read_text(tmp_path / "a.mrg", name)


def test_no_format_fits(tmp_path: Path) -> None:
    for text, message in [
        ("(S (A a) (B b c d) (C))\n(S (A a x y z w))\n" * 3, r"mine\.txt:1"),
        ("<doc>\nSome words (and brackets).\n</doc>\n", r"mine\.txt:1"),
        ("(S (NP the dog\n" * 5, r"mine\.txt:1"),
        ("1\ta\n2\tb\n", r"mine\.txt:1"),
    ]:
        (tmp_path / "mine.txt").write_text(text)
        (tmp_path / "b.gz").write_bytes(b"\x1f\x8b\0\0")
        with pytest.raises(
            TreebankError, match=f"(?s)no file of a known format among 2.*{message}"
        ):
            guess_sources(tmp_path)
        with pytest.raises(TreebankError, match=r"no file of the format conll among 2.*is conll"):
            guess_sources(tmp_path, format_name="conll")


def test_transforms_follow_from_the_trees() -> None:
    brackets = guess_format("(S (NP (N a)) (VP (V b)))")
    plain = parse_brackets("( (S (NP (N a)) (VP (V b))))")
    assert guess_transforms(brackets, [plain], markup=False) == ["strip-root"]
    rich = parse_brackets("( (S (NP-SBJ (-NONE- *)) (VP (V b))))")
    expected = ["drop-traces", "strip-functions", "strip-root"]
    assert guess_transforms(brackets, [rich], markup=False) == expected


# What is written -------------------------------------------------------------------------------

TREES = make_trees(30, seed=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty trees in one file, and things to pass over."""
    folder = tmp_path / "my_Trees"
    folder.mkdir()
    (folder / "all.mrg").write_text("".join(f"( {tree})\n" for tree in TREES))
    (folder / "README").write_text("(S (N this) (V is) (N no) (N tree))\n")
    (folder / "notes.txt").write_text("Read me, too.\n")
    (folder / ".hidden.mrg").write_text("(S (N a))\n")
    return folder


def test_a_folder_becomes_a_treebank(folder: Path, home: Path) -> None:
    found = inspect_folder(folder, language="elvish")
    assert (found.name, found.language) == ("elvish-my-trees", "elvish")
    assert (found.source.form.name, found.source.paths) == ("brackets", ("all.mrg",))
    assert (found.source.options["encoding"], found.beside) == ("utf-8", None)
    assert [*found.others] == ["README", "notes.txt"]
    assert [one.sentences for one in found.statistics.values()] == [24, 3, 3]
    assert found.longest == max(map(len, TREES))
    beside = {home / "recipes" / "mine.toml": "x = 1\n"}
    assert {*beside} < {*write_new_treebank(found, home, beside)}
    bank = open_treebank("elvish-my-trees")
    trees = [tree for split in ("train", "dev", "test") for tree in bank.split(split)]
    assert trees == TREES
    assert validate(bank.manifest).sound
    with pytest.raises(TreebankError, match=r"there is a treebank 'elvish-my-trees' already"):
        write_new_treebank(found, home)
    again = inspect_folder(folder, language="elvish", name="second")
    with pytest.raises(TreebankError, match=r"mine\.toml: there already"):
        write_new_treebank(again, home, beside)
    assert not (home / "treebanks" / "second.toml").exists()


def test_a_name_that_is_taken_or_none_is_said_first(folder: Path) -> None:
    (folder / "all.mrg").write_text("nothing that can be read")
    with pytest.raises(TreebankError, match="there is a treebank 'german-squoia' already"):
        inspect_folder(folder, name="german-squoia")
    with pytest.raises(TreebankError, match="--name 'a b/2': expected a name"):
        inspect_folder(folder, name="a b/2")


def test_broken_sentences_are_all_listed_and_declared(folder: Path, home: Path) -> None:
    path = folder / "all.mrg"
    lines = path.read_text().splitlines()
    lines[3], lines[28] = "(S (N a)", "(S (N b) c)"
    path.write_text("\n".join(lines))
    found = inspect_folder(folder, language="elvish")
    assert len(found.errors) == 2
    write_new_treebank(found, home)
    manifest = load_manifest("elvish-my-trees")
    assert manifest.on_error == "skip"
    splits = (manifest.splits.train, manifest.splits.dev, manifest.splits.test)
    assert [split.skipped for split in splits] == [1, 0, 1]
    assert [split.sentences for split in splits] == [(23,), (3,), (2,)]
    assert validate(manifest).sound


def test_what_is_missing_is_cut_from_the_end_of_train(folder: Path, home: Path) -> None:
    lines = (folder / "all.mrg").read_text().splitlines(keepends=True)
    (folder / "all.mrg").unlink()
    (folder / "x.train").write_text("".join(lines[:20]))
    (folder / "x.gold").write_text("".join(lines[20:]))
    write_new_treebank(inspect_folder(folder), home)
    bank = open_treebank("my-trees")
    assert [list(bank.split(name)) for name in ("train", "dev", "test")] == [
        TREES[:18], TREES[18:20], TREES[20:]
    ]  # fmt: skip
    (folder / "x.train").write_text(lines[0])
    with pytest.raises(TreebankError, match="found 1 sentences for train, too few to cut dev"):
        inspect_folder(folder, name="few")


@pytest.mark.parametrize("inner", ["wsj[old]", "a?b", "plain"])
def test_whatever_files_are_called_they_are_read(inner: str, tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "bank"
    for split, trees in {"train": TREES[:20], "dev": TREES[20:25], "test": TREES[25:]}.items():
        (folder / inner / split).mkdir(parents=True)
        for number, tree in enumerate(trees):
            (folder / inner / split / f"{number:03}.mrg").write_text(f"( {tree})\n")
    found = inspect_folder(folder, language="elvish")
    assert [one.sentences for one in found.statistics.values()] == [20, 5, 5]
    write_new_treebank(found, home)
    assert validate(load_manifest("elvish-bank")).sound


def test_a_name_that_means_other_files_is_refused(folder: Path) -> None:
    (folder / "all.mrg").rename(folder / "a*.mrg")
    (folder / "ab.mrg").write_text("(S (N other))\n")
    with pytest.raises(TreebankError, match=r"a\*\.mrg: '\*', '\{' and '\|' mean other files"):
        inspect_folder(folder, given={"train": ["a*.mrg"]})


def test_a_split_without_a_sentence_is_refused(folder: Path) -> None:
    for split in ("train", "dev", "test"):
        shutil.copy(folder / "all.mrg", folder / f"{split}.mrg")
    (folder / "test.mrg").write_text("( (S (-NONE- *) (-NONE- *)))\n")
    with pytest.raises(TreebankError, match="no sentence is left for test"):
        inspect_folder(folder)


def test_dependencies_beside_the_trees_are_a_layer(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "both"
    for layer in ("ptb", "dep"):
        (folder / layer).mkdir(parents=True)
    for split, trees in {"train": TREES[:20], "dev": TREES[20:25], "test": TREES[25:]}.items():
        (folder / "ptb" / f"{split}.mrg").write_text("".join(f"( {tree})\n" for tree in trees))
        (folder / "dep" / f"{split}.conll").write_text(
            "".join(
                conll_lines(tree.words, tree.tags, map(str, range(len(tree))), ["x"] * len(tree))
                for tree in trees
            )
        )
    found = inspect_folder(folder, language="elvish")
    assert found.source.form.name == "brackets"
    write_new_treebank(found, home)
    bank = open_treebank("elvish-both")
    assert bank.layers == ("constituents", "dependencies")
    result = validate(bank.manifest)
    assert result.sound, result.problems
    assert result.aligned == sum(map(len, TREES))
    words = (folder / "dep" / "dev.conll").read_text()
    (folder / "dep" / "dev.conll").write_text(words.replace("1\t", "1\tother-", 1))
    other = inspect_folder(folder, language="elvish", name="other")
    assert "[dependencies]" not in other.manifest
    assert "not taken as a layer" in other.notes[0]
    (folder / "dep" / "dev.conll").unlink()
    assert inspect_folder(folder, name="third", format_name="brackets").beside is None


# Folder, what has to be said, format, and sentences of train, dev and test; documentation, which
# tells the splits of people, is left out.
EVERY = {"train": ["*"]}
TENTHS = EVERY | {"dev": ["wsj_*9"], "test": ["wsj_*0"]}
REAL = [
    ("alpino_nl", {}, "alpino-xml", "960 120 120"),
    ("cess_es", {"encoding": "cp1252", "given": EVERY}, "tbf", "1829 228 228"),
    ("floresta_pt", {"encoding": "cp1252", "given": EVERY}, "visl", "1345 164 165"),
    ("icepahc_is", {"given": EVERY}, "psd", "5064 632 631"),
    ("idn_id", {"given": {"train": ["Indonesian_Treebank"]}}, "bracketed-words", "827 103 103"),
    ("keyaki_ja", {"given": EVERY}, "psd", "2873 358 358"),
    ("sequoia_fr", {}, "brackets", "2481 309 309"),
    ("sinica_zh", {}, "sinica", "8000 1000 1000"),
    ("squoia_de", {"given": EVERY}, "tiger-xml", "2260 282 282"),
    ("ud_basque_bdt", {"given": {"train": ["eu_bdt-ud-dev"]}}, "conll", "1619 179 1799"),
    ("ud_hungarian_szeged", {}, "conll", "910 441 449"),
    ("wsj_sample_dep_en", {"given": EVERY}, "dp", "3132 391 391"),
    ("wsj_sample_en", {"given": TENTHS}, "brackets", "3140 423 351"),
]


QUICK = ("idn_id", "ud_hungarian_szeged", "wsj_sample_en")


@pytest.mark.parametrize(
    ("name", "options", "form", "sizes"),
    [
        pytest.param(*real, marks=[pytest.mark.campaign] * (real[0] not in QUICK), id=real[0])
        for real in REAL
    ],
)
def test_real_folders(
    tmp_path: Path, name: str, options: dict[str, object], form: str, sizes: str
) -> None:
    folder = tmp_path / "folder"
    ignored = shutil.ignore_patterns("README*", "LICENSE*")
    shutil.copytree(shared_data(f"treebanks/{name}"), folder, ignore=ignored)
    found = inspect_folder(folder, language="some", **options)  # type: ignore[arg-type]
    assert found.source.form.name == form
    assert " ".join(str(one.sentences) for one in found.statistics.values()) == sizes
    assert all(one.several_roots == 0 for one in found.statistics.values())


# What is no plain bracket -----------------------------------------------------------------------

NAMES = ("Vladimir Putin", "Jón", "hundurinn", "Vigdís Finnbogadóttir", "(", ")")


def greynir(number: int, choose: random.Random) -> tuple[str, list[str]]:
    """A sentence as GreynirCorpus writes it, and its words."""
    words = choose.choices(NAMES, k=3)
    first, verb, last = (re.sub(r"([()])", r"\\\1", word) for word in words)
    return (
        f"((META (ID-CORPUS {number}.1) (URL http://x))\n (S0 (S-MAIN (IP\n"
        f"   (NP-SUBJ (person_nf_kk {first} (lemma {first})))\n"
        f"   (VP (so_et {verb}{number} (lemma {verb}) (exp_seg a-b))\n"
        f"    (NP-OBJ (no_et_þf {last} (lemma {last}))))))\n  (grm \\( (lemma \\())))\n\n"
    ), [words[0], f"{words[1]}{number}", words[2], "("]


def test_a_format_that_is_named_is_taken_where_it_fits(tmp_path: Path) -> None:
    (tmp_path / "a.psd").write_text("( (S (A a) (B b)) (ID 1))\n")
    assert guess_sources(tmp_path)[0].form.name == "psd"
    assert guess_sources(tmp_path, format_name="brackets")[0].form.name == "brackets"


def test_leaves_with_sisters(tmp_path: Path, home: Path) -> None:
    choose = random.Random(1)
    texts, words = zip(*(greynir(number, choose) for number in range(70)), strict=True)
    (tmp_path / "greynir").mkdir()
    (tmp_path / "greynir" / "all.psd").write_text("".join(texts), encoding="utf-8")
    found = inspect_folder(tmp_path / "greynir", allow_shared=True)
    write_new_treebank(found, home)
    assert load_manifest("greynir").leaf == "{tag} {word...} (...)"
    bank = open_treebank("greynir")
    read = [tree for split in SPLITS for tree in bank.split(split)]
    assert [list(tree.words) for tree in read] == list(words)
    assert {tag for tree in read for tag in tree.tags} == {
        "person_nf_kk", "so_et", "no_et_þf", "grm"
    }  # fmt: skip
    assert {label for tree in read for label in tree.labels} == {"S0", "S", "IP", "NP", "VP"}


def corpus(sentence: str, words: int) -> tuple[str, int, int]:
    """A file of sixty sentences, each with its number in it."""
    return "".join(sentence.replace("#", str(n)) for n in range(60)), 60, 60 * words


CORPORA = {
    "a.psd": corpus(
        "( (METADATA (AUTHOR JANE) (DATE #)) (IP (NP (PRO I#)) (VBP go) (. .)) (ID P,#.#))\n\n", 3
    ),
    "b.psd": corpus("( (META (NP (N h#)) (V er) (, :-:) (, ,-,) (. .-.)) (ID F,#.#))\n\n", 5),
    "c.mrg": corpus("<s id=#>\n(S (NP (N ev#)) (VP (V geldi)))\n</s>\n", 2),
    "d.nw": corpus("<DOC>\n<S ID=#>\n( (IP (NN 朱#) (VV 来)) )\n</S>\n</DOC>\n", 2),
}


@pytest.mark.parametrize("name", CORPORA)
def test_what_is_around_trees_and_words_is_no_word(name: str, tmp_path: Path, home: Path) -> None:
    text, sentences, tokens = CORPORA[name]
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / name).write_text(text, encoding="utf-8")
    found = inspect_folder(tmp_path / "my")
    write_new_treebank(found, home)
    splits = [open_treebank("my").data(split) for split in SPLITS]
    counted = [sum(data.counts[what] for data in splits) for what in ("sentences", "tokens")]
    assert counted == [sentences, tokens]
    words = {word for data in splits for parse in data.sentences for word in parse.words}
    assert not {",-,", ":-:", "JANE", ".-."} & words


NO_WORDS = {
    "bundles": ("(S (N {turkish=ev#}{english=house}) (V {x=gel}))\n", "written otherwise here"),
    "tags as labels": ("(S (N# (form ev#) (x l)) (V# (form x) (x y)))\n" * 9, r"with 2 tag\(s\)"),
    "one tag": ("(S (NP (x ev#)) (VP (x gel) (x #)))\n" * 9, r"with 1 tag\(s\)"),
}


@pytest.mark.parametrize("name", NO_WORDS)
def test_leaves_that_are_none_are_refused_with_their_shapes(name: str, tmp_path: Path) -> None:
    sentence, message = NO_WORDS[name]
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "a.mrg").write_text(corpus(sentence, 2)[0])
    with pytest.raises(TreebankError, match=rf"its leaves are read as \(.*{message}"):
        inspect_folder(tmp_path / "my")


def test_empty_files_odd_files_and_files_without_a_mark(folder: Path) -> None:
    for path in folder.glob("*.mrg"):
        path.write_bytes(read_text(path).encode("utf-16-le"))
    assert guess_sources(folder)[0].options["encoding"] == "utf-16-le"
    for path in folder.glob("*.mrg"):
        path.write_text(read_text(path, "utf-16-le"))
    (folder / "extra.mrg").write_text("\n" * 2**17 + "(S (NP (N a)) (V b))\n")
    (folder / "broken.mrg").write_text("\n" * 2**17 + "(S (NP (N a) (V b))\n")
    source, _, others = guess_sources(folder)
    assert "extra.mrg" in source.paths
    assert "the tree that starts here is not closed" in others["broken.mrg"]
    (folder / "broken.mrg").unlink()
    (folder / "dev.mrg").write_text("")
    with pytest.raises(TreebankError, match=r"dev\.mrg: is empty, but its name says"):
        guess_sources(folder)
