"""The licensed releases as they are laid out: found, read, and refused if they are others."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError, TreebankError
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.escapes import write_brackets
from tests.treebanks.releases import (
    SENTENCES,
    in_hebrew_script,
    shrink_manifest,
    write_ctb,
    write_merged_ptb,
    write_ptb,
    write_spmrl,
)

Use = Callable[..., None]

SMALL_ONLY = ("Hebrew", "Swedish")  # which have train5k only
SIZES = {"train": 3, "dev": 2, "test": 1, "train5k.train": 2}


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Makes a manifest of the program the only one, for a release of other sizes."""
    folder = tmp_path / "manifests"
    monkeypatch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda kind: [folder])

    def use(name: str, **sizes: Any) -> None:
        shrink_manifest(name, folder, SIZES | sizes)

    return use


def texts(treebank: Treebank, split: str) -> list[str]:
    return [write_brackets(tree, escapes="brackets") for tree in treebank.split(split)]


def written(language: str, tmp_path: Path, use: Use, **options: Any) -> None:
    """A release of the shared task and its manifest."""
    small = language in SMALL_ONLY
    if small:
        options.setdefault("folders", ("train5k", "dev", "test"))
    write_spmrl(tmp_path, language, **options)
    use(f"{language.lower()}-spmrl", train=2 if small else 3)


# Language: the first sentence with predicted tags and the others, as a parser is to learn them.
EXPECTED = {
    "Arabic": [
        "(TOP (S (VP (VBD ktb) (NP (DTNNP Alwld)) (NP (NN rsAlp))) (PUNC .)))",
        "(TOP (NP (NN byt) (NP (NNP >Hmd))))",
        "(TOP (XP (NN $kr)))",
    ],
    "Basque": [
        "(S (SINT (ADJ Mirenek)) (SINT (ADT dakar)) (IZE ogia) (PUNT_PUNT .))",
        "(SINT (IZE etxe) (ADJ handia))",
        "(S (PRT Bai))",
    ],
    "French": [
        "(SENT (NP (DET Le) (ADJ chat)) (VN (V dort)) (PONCT .))",
        "(SENT (VN (CLS Elle) (V rit)) (AdP (ADV bien)))",
        "(SENT (I Oui))",
    ],
    "German": [
        "(VROOT (S (NP (PDS Der) (NN Hund)) (VVFIN bellt) ($[ -LRB-) (AVP (ADJD laut)) ($[ -RRB-)) "
        "($. .))",
        "(VROOT (NN Inhalt))",
        "(S (NP (PWS Wer)) (VVFIN kommt) (ADV morgen))",
    ],
    "Hebrew": [
        "(TOP (S (NP (SYN_NN (DEF H) (NNT ILD))) (VP (VB AKL) (NP (NN LXM))) (yyDOT yyDOT)))",
        "(TOP (NP (CD 50O) (NNP CHUL)))",
    ],
    "Hungarian": [
        "(TOP (CP (NP (T A) (A kutya)) (V_ (V ugat)) (. .)))",
        "(TOP (NP (A nagy) (N ház)))",
        "(TOP (CP (I Igen)))",
    ],
    "Korean": [
        "(S (NP (ncn+jxt 나는)) (VP (NP (ncn+jca 학교에)) (VP (pvg+ep+ef 갔다))) (sf .))",
        "(NP (mma 새) (ncn 책))",
        "(VP (pvg+ef 간다))",
    ],
    "Polish": [
        "(wypowiedzenie (zdanie (fno (adj Pies)) (ff (fin szczeka))) (znakkonca (interp .)))",
        "(wypowiedzenie (fpt (adv Dobrze)))",
        "(wypowiedzenie (zdanie (ff (fin Idę))))",
    ],
    "Swedish": [
        "(S (NP (AJ Den) (NN hunden)) (VV skällde) (AVP (AB igår)) (IP .))",
        "(NP (AJ stora) (NN hus))",
    ],
}


def editions(language: str) -> list[str]:
    found = ["", "-gold", "-functions"]
    found += ["-train5k"] if language not in SMALL_ONLY else []
    return found + (["-script"] if language in ("Arabic", "Hebrew") else [])


@pytest.mark.parametrize("language", EXPECTED)
def test_a_release_of_the_shared_task(tmp_path: Path, use: Use, language: str) -> None:
    name, tokens = f"{language.lower()}-spmrl", SENTENCES[language][0].tokens
    written(language, tmp_path, use, line_end="\r\n" if language < "G" else "\n")
    bank = open_treebank(name, tmp_path)
    assert (bank.track, bank.rules["brackets"]) == ("spmrl", {"prm": "spmrl"})
    assert texts(bank, "train") == EXPECTED[language]
    assert texts(bank, "dev")[0] == EXPECTED[language][0]
    assert texts(bank, "test") == [EXPECTED[language][1]]
    assert len(bank.split("dev")) == 2
    gold = open_treebank(f"{name}-gold", tmp_path)
    for split in SPLITS:
        for one, other in zip(gold.split(split), bank.split(split), strict=True):
            assert (one.words, one.labels) == (other.words, other.labels)
    tags = tuple(token.gold for token in tokens)
    assert gold.split("train")[0].tags == gold.split("dev")[0].tags == tags
    assert bank.split("train")[0].tags != tags
    assert gold.fingerprint != bank.fingerprint
    for edition in editions(language):
        bank = open_treebank(f"{name}{edition}", tmp_path)
        for split in SPLITS:
            for parse in bank.examples(split):
                assert parse.tree.tags == parse.dependencies.tags
            assert [parse.tree for parse in bank.examples(split)] == bank.split(split)
        first = bank.examples("dev", ["dependencies"])[0].dependencies
        assert first.heads.tolist() == [token.head for token in tokens]
        assert first.relations == tuple(token.relation for token in tokens)
        if edition == "-train5k":
            assert texts(bank, "train") == EXPECTED[language][:2]
    (tmp_path / f"{language.upper()}_SPMRL/pred/ptb/test/test.{language}.pred.ptb").unlink()
    with pytest.raises(TreebankError, match=rf"missing: pred/ptb/test/test\.{language}\.pred\.ptb"):
        open_treebank(name, tmp_path)
    assert len(open_treebank(f"{name}-gold", tmp_path).split("test")) == 1


@pytest.mark.parametrize("language", EXPECTED)
def test_words_as_they_stand_as_the_code_of_kitaev_and_klein_reads_them(
    tmp_path: Path, use: Use, language: str
) -> None:
    written(language, tmp_path, use)
    name = f"{language.lower()}-spmrl"
    as_they_stand = open_treebank(f"{name}-kk18", tmp_path)
    assert as_they_stand.layers == ("constituents",)
    with_functions = open_treebank(f"{name}-functions", tmp_path)
    for split in ("dev", "test"):
        file = tmp_path / f"{language.upper()}_SPMRL/pred/ptb/{split}/{split}.{language}.pred.ptb"
        lines = ["".join(line.split("##")[::2]) for line in file.read_text("utf-8").splitlines()]
        leaves = [re.findall(r"\(([^ ()]+) ([^ ()]+)\)", line) for line in lines]
        trees = as_they_stand.split(split)
        assert [list(zip(tree.tags, tree.words, strict=True)) for tree in trees] == leaves
        for tree, other in zip(trees, with_functions.split(split), strict=True):
            assert (tree.labels, tree.spans.tolist()) == (other.labels, other.spans.tolist())
    if language == "German":
        assert as_they_stand.split("dev")[0].words[3:6] == ("-LRB-", "laut", "-RRB-")
        assert with_functions.split("dev")[0].words[3:6] == ("(", "laut", ")")
        trained_on = texts(with_functions, "train")
        assert trained_on[0].startswith("(VROOT (S (NP-SB (PDS Der)")
        assert trained_on[1] == "(VROOT (NN Inhalt))"


def test_other_layouts_of_the_shared_task(tmp_path: Path, use: Use) -> None:
    for language in SMALL_ONLY:  # the full training set is preferred where there is one
        write_spmrl(tmp_path, language)
        use(f"{language.lower()}-spmrl", train=3)
        assert len(open_treebank(f"{language.lower()}-spmrl", tmp_path).split("train")) == 3
    written("Polish", tmp_path, use, path="SPMRL_SHARED_2014_NO_ARABIC/POLISH_SPMRL")
    assert texts(open_treebank("polish-spmrl", tmp_path), "train") == EXPECTED["Polish"]
    small = tmp_path / "small letters"
    written("Swedish", small, use, name="swedish")
    for name in ("swedish-spmrl", "swedish-spmrl-gold"):
        parses = open_treebank(name, small).examples("train")
        assert [" ".join(parse.words) for parse in parses] == [
            "Den hunden skällde igår .", "stora hus"
        ]  # fmt: skip


def test_scripts(tmp_path: Path, use: Use) -> None:
    written("Arabic", tmp_path, use)
    trees = open_treebank("arabic-spmrl-script", tmp_path).split("train")
    assert [tree.words for tree in trees] == [
        ("كتب", "الولد", "رسالة", "."), ("بيت", "أحمد"), ("شكر",)
    ]  # fmt: skip
    written("Hebrew", tmp_path, use)
    first = open_treebank("hebrew-spmrl-script", tmp_path).split("train")
    assert [tree.words for tree in first] == [("ה", "ילד", "אכל", "לחם", "."), ("50%", 'צה"ל')]
    other = tmp_path / "other"  # copies that are not transliterated
    sentences = [in_hebrew_script(line) for line in SENTENCES["Hebrew"]]
    written("Hebrew", other, use, sentences=sentences)
    assert open_treebank("hebrew-spmrl-script", other).split("train") == first
    assert open_treebank("hebrew-spmrl", other).split("train") == first
    assert len(open_treebank("hebrew-spmrl", other).examples("train")) == 2


PTB_EXPECTED = [
    "(S (NP (DT The) (NN clerk)) (VP (VBD wanted) (S (VP (TO to) (VP (VB leave) (PRT (RB away))))))"
    " (. .))",
    "(NP (CD 3/4) (-LRB- -LRB-) (NN *) (-RRB- -RRB-))",
]


@pytest.mark.parametrize("inner", ["parsed/mrg/wsj", "PARSED/MRG/WSJ", "wsj", ""])
def test_penn_treebank(tmp_path: Path, use: Use, inner: str) -> None:
    use("english-ptb", train=60, dev=3, test=3)
    section = "(S (NP (NNP Section) (CD {:02})) (VP (VBZ ends)) (. .))"
    line_end = {"parsed/mrg/wsj": "\r", "": "\r\n"}.get(inner, "\n")
    write_ptb(tmp_path, inner=inner, line_end=line_end)
    treebank = open_treebank("english-ptb", tmp_path)
    for split, sections in {"train": range(2, 22), "dev": (22,), "test": (23,)}.items():
        assert texts(treebank, split) == [
            text for number in sections for text in (*PTB_EXPECTED, section.format(number))
        ]


def test_penn_treebank_of_another_size(tmp_path: Path) -> None:
    write_ptb(tmp_path)
    treebank = open_treebank("english-ptb", tmp_path)
    for split, message in {
        "train": "expected 39832 or 39831 sentences, found 60",
        "dev": "expected 1700 sentences, found 3; expected 40117 tokens, found 15",
        "test": "expected 2416 sentences, found 3; expected 56684 tokens, found 15",
    }.items():
        with pytest.raises(TreebankError, match=message):
            treebank.split(split)


def test_merged_penn_files_with_predicted_tags(tmp_path: Path, use: Use) -> None:
    write_merged_ptb(tmp_path)
    use("english-ptb", train="[3, 2]", dev=1, test=2)
    with pytest.raises(TreebankError, match="treebank english-ptb is not present"):
        open_treebank("english-ptb", tmp_path)
    treebank = open_treebank("english-ptb-predicted", tmp_path)
    assert treebank.manifest.tags == "predicted"
    expected = [
        PTB_EXPECTED[0].replace("(RB away)", "(RP away)"),
        PTB_EXPECTED[1].replace("(NN *)", "(SYM *)"),
    ]
    assert texts(treebank, "train") == texts(treebank, "test") == expected
    assert texts(treebank, "dev") == expected[:1]
    as_they_stand = open_treebank("english-ptb-kk18", tmp_path).split("test")
    assert as_they_stand[1].words == (r"3\/4", "-LRB-", r"\*", "-RRB-")
    for tree, other in zip(as_they_stand, treebank.split("test"), strict=True):
        assert (tree.labels, tree.tags) == (other.labels, other.tags)


CTB_SIZES = {"train": 32, "dev": 4, "test": 4} | {
    f"dependency-split.{split}": size for split, size in (("train", 30), ("dev", 8), ("test", 8))
}


def conllx(tab: str) -> str:
    """Penn2Malt's four columns as ten, by the command that the manifest tells its reader to run."""
    obtain = load_manifest("chinese-ctb-penn2malt").obtain
    program = re.search(r"; (awk .*) \$f\S+\.tab > ", obtain)
    return subprocess.run(
        ["sh", "-c", program[1]], input=tab, capture_output=True, text=True, check=True
    ).stdout


CTB_FORMS: dict[str, dict[str, Any]] = {
    "5.1 with CRLF": {"line_end": "\r\n"},
    "5.1 alone in UTF-8 with a mark": {"path": "ctb5.1/bracketed", "encoding": "utf-8-sig"},
    "8": {"release": 8, "encoding": "utf-8", "path": "ctb8.0/data/bracketed"},
}


@pytest.mark.parametrize("form", CTB_FORMS)
def test_chinese_treebank(tmp_path: Path, use: Use, form: str) -> None:
    use("chinese-ctb", **CTB_SIZES)
    write_ctb(tmp_path, penn2malt=conllx, **CTB_FORMS[form])
    treebank = open_treebank("chinese-ctb", tmp_path)
    assert texts(treebank, "test") == [
        text
        for number in (271, 300)
        for text in (
            f"(NP (NR 朱镕基) (CD {number}))",
            "(IP (VP (ADVP (AD 已)) (VP (VV 到达) (NP (NN 沪)))) (PU 。))",
        )
    ]

    def documents(name: str) -> dict[str, list[int]]:
        treebank = open_treebank(name, tmp_path)
        return {
            split: [int(tree.words[1]) for tree in treebank.split(split)[::2]]
            for split in ("train", "dev", "test")
        }

    assert documents("chinese-ctb") == {
        "train": [1, 5, 270, 440, 815, 816, 885, 886, 931, 1001, 1078, 1136, 1137, 1147, 1148,
                  1151],
        "dev": [301, 325],
        "test": [271, 300],
    }  # fmt: skip
    assert documents("chinese-ctb-dependency-split") == {
        "train": [1, 5, 270, 271, 300, 301, 325, 400, 414, 439, 440, 815, 1001, 1078, 1136],
        "dev": [886, 931, 1148, 1151],
        "test": [816, 885, 1137, 1147],
    }
    for name, number in (("chinese-ctb-penn2malt", 271), ("chinese-ctb-dependency-split", 816)):
        one, two = open_treebank(name, tmp_path).examples("test")[:2]
        assert one.words[1] == str(number)
        assert list(one.dependencies.heads) == [2, 0]
        assert list(two.dependencies.heads) == [2, 0, 2, 2]
        assert list(two.dependencies.relations) == ["VMOD", "ROOT", "OBJ", "P"]


# Copies that lie otherwise than the manifest says -------------------------------------------------


def renamed(root: Path, new: str) -> Path:
    """The release of the root under another path; the root."""
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    (root / "GERMAN_SPMRL").rename(root / new)
    return root


def packed(root: Path, pattern: str) -> Path:
    for path in root.rglob(pattern):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return root


def nested(root: Path) -> Path:
    renamed(root, "outer/GERMAN_SPMRL")
    (root / "outer").rename(root / "GERMAN_SPMRL")
    return root


def linked(root: Path) -> Path:
    renamed(root, "store/data")
    (root / "german_spmrl").symlink_to(root / "store" / "data")
    return root


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "lower case": lambda root: renamed(root, "german_spmrl"),
    "with a year": lambda root: renamed(root, "GERMAN_SPMRL_2014"),
    "with a year, in lower case": lambda root: renamed(root, "german_spmrl-2014"),
    "one deeper": lambda root: renamed(root, "spmrl2014/GERMAN_SPMRL"),
    "one deeper, in lower case": lambda root: renamed(root, "data/german_spmrl"),
    "in a folder of its own name": nested,
    "TREEBANKS names it": lambda root: root / "GERMAN_SPMRL",
    "TREEBANKS names it, in lower case": lambda root: (
        renamed(root, "german_spmrl") / "german_spmrl"
    ),
    "all packed": lambda root: packed(root, "*.German.*"),
    "dependencies packed": lambda root: packed(root, "*.conll"),
    "trees packed": lambda root: packed(root, "train.*.ptb"),
    "a link in lower case": linked,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_release_that_lies_otherwise_is_found(tmp_path: Path, use: Use, layout: str) -> None:
    written("German", tmp_path / "as_it_is", use)
    written("German", tmp_path / "other", use)
    usual = open_treebank("german-spmrl", tmp_path / "as_it_is")
    other = open_treebank("german-spmrl", LAYOUTS[layout](tmp_path / "other"))
    assert other.layers == usual.layers == ("constituents", "dependencies")
    for layer in usual.layers:
        assert other.fingerprint_of(layer) == usual.fingerprint_of(layer)
        assert other.examples("train", [layer]) == usual.examples("train", [layer])


def test_what_is_found_elsewhere_is_complete_and_alone(tmp_path: Path, use: Use) -> None:
    written("German", tmp_path, use)
    (tmp_path / "german_spmrl_old").mkdir()
    (tmp_path / "GERMAN_SPMRL").rename(tmp_path / "German_SPMRL")
    assert len(open_treebank("german-spmrl", tmp_path).split("dev")) == 2
    written("German", tmp_path / "spare", use)
    with pytest.raises(TreebankError, match=r"German_SPMRL, .*GERMAN_SPMRL may each be it: rename"):
        open_treebank("german-spmrl", tmp_path)


def test_gold_tags_alone_are_an_edition_that_one_asks_for(tmp_path: Path, use: Use) -> None:
    written("German", tmp_path, use)
    shutil.rmtree(tmp_path / "GERMAN_SPMRL" / "pred")
    with pytest.raises(
        TreebankError, match=r"(?s)missing: pred/ptb.*present for german: german-spmrl-g"
    ):
        open_treebank("german-spmrl", tmp_path)
    assert len(open_treebank("german-spmrl-gold", tmp_path).split("train")) == 3


def test_a_broken_packed_file_is_named(tmp_path: Path, use: Use) -> None:
    written("German", tmp_path, use)
    packed(tmp_path, "train.*.ptb")
    path = tmp_path / "GERMAN_SPMRL/pred/ptb/train/train.German.pred.ptb.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ReadError, match=r"ptb\.gz: cannot be read: no sound gzip file"):
        open_treebank("german-spmrl", tmp_path)


def test_a_manifest_of_the_users_stands_in_front(home: Path, tmp_path: Path) -> None:
    own = home / "treebanks" / "german-spmrl.toml"
    own.parent.mkdir(parents=True)
    shipped = load_manifest("german-spmrl").origin
    own.write_text(
        'base = "german-spmrl"\npath = "tiger"\n'
        + "".join(f"splits.{split}.sentences = {SIZES[split]}\n" for split in SPLITS)
    )
    write_spmrl(tmp_path, "German", path="tiger")
    bank = open_treebank("german-spmrl", tmp_path)
    assert len(bank.split("dev")) == 2
    assert len(open_treebank("german-spmrl-gold", tmp_path).split("dev")) == 2
    assert shipped[0] == ""
    assert load_manifest("german-spmrl").origin[0] == str(own)
    assert load_manifest("german-spmrl").origin[1] != shipped[1]
    own.write_text('title = "Mine"\n')
    with pytest.raises(TreebankError, match=r"home/treebanks/german-spmrl.toml"):
        open_treebank("german-spmrl", tmp_path)
