"""What is guessed of a folder, and what is refused: never a test set in train, nor odd words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError, TreebankError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.readers.formats import guess_format
from spmrl_bench.readers.text import read_text
from spmrl_bench.treebanks.guess import divide, guess_sources, guess_transforms
from tests.reliability.tally import Tally

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
    "glued in front": "hebtrain.mrg hebdev.mrg hebtest.mrg > hebtrain.mrg > hebdev.mrg"
    " > hebtest.mrg >",
    "glued behind": "trainheb.mrg devheb.mrg testheb.mrg > trainheb.mrg > devheb.mrg"
    " > testheb.mrg >",
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
    "no names": (
        "1.mrg 2.mrg 3.mrg",
        "no name says train, dev or test; not known: 1.mrg, 2.mrg, 3.mrg",
    ),
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
    assert divided("d/a1.m d/a2.m d/b.m", train=["*"], test=["a2"]) == [
        "d/a1.m d/b.m",
        "",
        "d/a2.m",
        "",
    ]
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


ENCODED = {
    "utf-8": ("(S (N größe))\n", "utf-8"),
    "utf-8-sig": ("(S (N größe))\n", "utf-8"),
    "utf-16": ("(S (N größe))\n", "utf-16"),
    "utf-32": ("(S (N größe))\n", "utf-32"),
    "ascii": ("(S (N plain))\n", "utf-8"),
}


def test_files_say_their_encoding(tmp_path: Path) -> None:
    for encoding in ENCODED:
        text, expected = ENCODED[encoding]
        (tmp_path / "t.mrg").write_bytes((text * 9).encode(encoding))
        assert guess_sources(tmp_path)[0].options["encoding"] == expected


def test_other_encodings_have_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.mrg").write_text("(S (N größe))\n")
    (tmp_path / "b.mrg").write_bytes(
        ("(S (N Land))\n" * 9 + "(S (N niños))\n" * 99).encode("cp1252")
    )
    with pytest.raises(TreebankError, match=r"b\.mrg:10: byte 0xf1 is not utf-8.*cp1252 \(niños\)"):
        guess_sources(tmp_path)
    assert guess_sources(tmp_path, encoding="cp1252")[0].options["encoding"] == "cp1252"
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    with pytest.raises(TreebankError, match=r"--encoding, such as cp1252"):
        guess_sources(tmp_path)
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
    assert brackets is not None
    plain = parse_brackets("( (S (NP (N a)) (VP (V b))))")
    assert guess_transforms(brackets, [plain]) == ["strip-root"]
    rich = parse_brackets("( (S (NP-SBJ (-NONE- *)) (VP (V b))))")
    assert guess_transforms(brackets, [rich]) == ["drop-traces", "strip-functions", "strip-root"]
