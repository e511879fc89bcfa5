"""Which files are for what: by lists, by names, by position, or refused; never test in train."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.split_names import Files, split_of_list
from spmrl_bench.treebanks.split_proposals import propose_splits
from tests.reliability.tally import Tally

SIZE = 100  # sentences of each file
WSJ = [f"{section:02d}/wsj_{section:02d}{n:02d}.mrg" for section in range(25) for n in (1, 2)]


def distinct(paths: Sequence[str]) -> tuple[Files, list[int]]:
    return tuple(paths), [SIZE] * len(paths)


def of(*sections: int) -> str:
    return " ".join(path for path in WSJ if int(path[:2]) in sections)


#: Files; then those of train, dev and test, each with a range if it shares them, and those unused.
LAYOUTS = {
    "plain": ("train.mrg dev.mrg test.mrg", "train.mrg", "dev.mrg", "test.mrg", ""),
    "ud": (
        "x-ud-dev.conllu x-ud-test.conllu x-ud-train.conllu",
        "x-ud-train.conllu",
        "x-ud-dev.conllu",
        "x-ud-test.conllu",
        "",
    ),
    "spmrl": (
        "dev/dev.German.gold.ptb test/test.German.gold.ptb train/train.German.gold.ptb "
        "train5k/train5k.German.gold.ptb",
        "train/train.German.gold.ptb train5k/train5k.German.gold.ptb",
        "dev/dev.German.gold.ptb",
        "test/test.German.gold.ptb",
        "",
    ),
    "all called gold": ("heb.train.gold heb.dev.gold heb.test.gold", "heb.train.gold",
                        "heb.dev.gold", "heb.test.gold", ""),
    "gold is the test set": ("heb.train heb.dev heb.gold", "heb.train", "heb.dev", "heb.gold", ""),
    "no dev, gold": ("x.train x.gold", "x.train 1..90", "x.train 91..100", "x.gold", ""),
    "no dev, test": ("x.train x.test", "x.train 1..90", "x.train 91..100", "x.test", ""),
    "no dev, eval": ("x_train.mrg x_eval.mrg", "x_train.mrg 1..90", "x_train.mrg 91..100",
                     "x_eval.mrg", ""),
    "no test": ("train.mrg dev.mrg", "train.mrg 1..90", "dev.mrg", "train.mrg 91..100", ""),
    "train alone": ("a-train.mrg b-train.mrg", "a-train.mrg b-train.mrg 1..160",
                    "a-train.mrg b-train.mrg 161..180", "a-train.mrg b-train.mrg 181..200", ""),
    "sets as folders, the rest beside": ("a.mrg b.mrg devset/c.mrg testset/d.mrg", "a.mrg b.mrg",
                                         "devset/c.mrg", "testset/d.mrg", ""),
    "test set as folder": ("a.mrg b.mrg testset/d.mrg", "a.mrg b.mrg 1..180",
                           "a.mrg b.mrg 181..200", "testset/d.mrg", ""),
    "folders": ("training/1.xml training/2.xml validation/1.xml testing/1.xml",
                "training/1.xml training/2.xml", "validation/1.xml", "testing/1.xml", ""),
    "folders with many files": ("Train/a.mrg Train/b.mrg Dev/a.mrg Dev/b.mrg Test/a.mrg Test/b.mrg",
                                "Train/a.mrg Train/b.mrg", "Dev/a.mrg Dev/b.mrg",
                                "Test/a.mrg Test/b.mrg", ""),
    "numbered parts": ("train-01.mrg train-02.mrg dev-01.mrg dev-02.mrg test-01.mrg",
                       "train-01.mrg train-02.mrg", "dev-01.mrg dev-02.mrg", "test-01.mrg", ""),
    "capitals": ("TRAIN.MRG DEVEL.MRG TEST.MRG", "TRAIN.MRG", "DEVEL.MRG", "TEST.MRG", ""),
    "camel": ("TrainingSet.mrg DevSet.mrg TestSet.mrg", "TrainingSet.mrg", "DevSet.mrg",
              "TestSet.mrg", ""),
    "short": ("ctb.trn.mrg ctb.val.mrg ctb.tst.mrg", "ctb.trn.mrg", "ctb.val.mrg", "ctb.tst.mrg",
              ""),
    "tune": ("train.ptb tune.ptb test.ptb", "train.ptb", "tune.ptb", "test.ptb", ""),
    "held out": ("train.ptb heldout.ptb test.ptb", "train.ptb", "heldout.ptb", "test.ptb", ""),
    "glued in front": ("hebtrain.mrg hebdev.mrg hebtest.mrg", "hebtrain.mrg", "hebdev.mrg",
                       "hebtest.mrg", ""),
    "glued behind": ("trainheb.mrg devheb.mrg testheb.mrg", "trainheb.mrg", "devheb.mrg",
                     "testheb.mrg", ""),
    "what corpora are called": ("traindata.mrg devdata.mrg testdata.mrg", "traindata.mrg",
                                "devdata.mrg", "testdata.mrg", ""),
    "in a folder of all": ("testbank/train.mrg testbank/dev.mrg testbank/test.mrg",
                           "testbank/train.mrg", "testbank/dev.mrg", "testbank/test.mrg", ""),
    "all in a gold folder": ("gold/train.mrg gold/dev.mrg gold/other.mrg",
                             "gold/train.mrg 1..90", "gold/dev.mrg", "gold/train.mrg 91..100",
                             "gold/other.mrg"),
    "more than the three": ("train.mrg dev.mrg test.mrg extra.mrg blind.mrg", "train.mrg",
                            "dev.mrg", "test.mrg", "extra.mrg blind.mrg"),
    "dev test of another kind": ("train.mrg dev.mrg devtest.mrg test.mrg", "train.mrg", "dev.mrg",
                                 "test.mrg", "devtest.mrg"),
    "words within words": ("trainer.mrg device.mrg attest.mrg",
                           "trainer.mrg device.mrg attest.mrg 1..240",
                           "trainer.mrg device.mrg attest.mrg 241..270",
                           "trainer.mrg device.mrg attest.mrg 271..300", ""),
    "one file": ("all.mrg", "all.mrg 1..80", "all.mrg 81..90", "all.mrg 91..100", ""),
    "numbers": (" ".join(f"{n:02d}.mrg" for n in range(1, 11)),
                " ".join(f"{n:02d}.mrg" for n in range(1, 9)), "09.mrg", "10.mrg", ""),
    "sections of the WSJ": (" ".join(WSJ), of(*range(2, 22)), of(22), of(23), of(0, 1, 24)),
    "ranges of sections": ("02-21.10way.clean 22.auto.clean 23.auto.clean", "02-21.10way.clean",
                           "22.auto.clean", "23.auto.clean", ""),
    "dates": ("1994-train.mrg 1995-train.mrg 1996-dev.mrg 1997-test.mrg",
              "1994-train.mrg 1995-train.mrg", "1996-dev.mrg", "1997-test.mrg", ""),
    "a genre for each": ("economy-train.xml sophie-dev.xml alpine-test.xml", "economy-train.xml",
                         "sophie-dev.xml", "alpine-test.xml", ""),
}  # fmt: skip

REFUSED = {
    "two splits in a name": (
        "train-dev.mrg test.mrg",
        r"train-dev\.mrg: its name says train and dev",
    ),
    "no training data": ("devset/a.mrg testset/b.mrg", "none is left for train"),
    "only test": ("x.test", "found files for test, but none is left for train"),
    "train, and what?": ("x.train other.mrg", r"no name says what other\.mrg is for"),
    "several treebanks": (
        "de-train.mrg de-dev.mrg de-test.mrg fr-train.mrg fr-dev.mrg fr-test.mrg",
        r"found 2 treebanks or editions.*de-\w+\.mrg, fr-\w+\.mrg",
    ),
    "treebanks as folders": (
        "UD_German/de-ud-train.conllu UD_German/de-ud-test.conllu "
        "UD_French/fr-ud-train.conllu UD_French/fr-ud-test.conllu",
        "found 2 treebanks",
    ),
    "gold and predicted": (
        "gold/train/train.ptb gold/test/test.ptb pred/train/train.ptb pred/test/test.ptb",
        "found 2 treebanks or editions",
    ),
    "too small to cut": ("x.train x.test few", "too few to cut dev from"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_gives_the_splits_that_its_names_tell(name: str, tally: Tally) -> None:
    tally("R23", "folders whose splits have names, divided or refused").add()
    files, *expected = LAYOUTS[name]
    paths = sorted(files.split())
    found = propose_splits(paths, distinct)
    said = [
        " ".join([*split.files, *([f"{split.range[0]}..{split.range[1]}"] if split.range else [])])
        for split in found.splits.values()
    ]
    ordered = [
        " ".join(sorted(part.split(), key=lambda item: (".." in item, item))) for part in expected
    ]
    assert [*said, " ".join(found.unused)] == ordered
    claimed = [path for path in paths if path not in found.unused]
    assert {path for split in found.splits.values() for path in split.files} == set(claimed)


@pytest.mark.parametrize("name", REFUSED)
def test_what_names_leave_open_is_refused(name: str, tally: Tally) -> None:
    tally("R23", "folders whose splits have names, divided or refused").add()
    files, problem = REFUSED[name]
    few = "few" in files
    paths = [path for path in files.split() if path != "few"]
    with pytest.raises(TreebankError, match=problem):
        propose_splits(paths, lambda some: (tuple(some), [1 if few else SIZE] * len(some)))


def test_there_are_enough_of_them() -> None:
    assert len(LAYOUTS) + len(REFUSED) >= 40


def test_lists_of_documents_decide() -> None:
    paths = [f"{name}.mrg" for name in ("news1", "news2", "news3", "web1", "web2")]
    lists = {
        "train": ("ids-train.txt", ["news1", "news2.mrg"]),
        "test": ("ids-test.txt", ["web*"]),
    }
    found = propose_splits(paths, distinct, lists=lists)
    assert found.splits["test"].files == ("web1.mrg", "web2.mrg")
    assert [split.ids for split in found.splits.values()] == ["ids-train.txt", None, "ids-test.txt"]
    assert found.splits["train"].range == (1, 180)
    assert found.splits["dev"].range == (181, 200)
    assert found.unused == ("news3.mrg",)
    rest = propose_splits(paths, distinct, lists={"dev": ("d", ["news3"]), "test": ("t", ["web?"])})
    assert rest.splits["train"].files == ("news1.mrg", "news2.mrg")
    both = {"train": ("ids-train.txt", ["news*"]), "dev": ("ids-dev.txt", ["news3"])}
    with pytest.raises(TreebankError, match=r"ids-dev\.txt and ids-train\.txt both list"):
        propose_splits(paths, distinct, lists=both)


@pytest.mark.parametrize(
    ("name", "split"),
    [("ids-train.txt", "train"), ("dev_docs.lst", "dev"), ("test.ids", "test"), ("ids.txt", None)],
)
def test_lists_are_known_by_their_names(name: str, split: str | None) -> None:
    assert split_of_list(name) == split


def test_the_user_decides_over_names() -> None:
    paths = ["a.mrg", "b.mrg", "odd-train.mrg"]
    found = propose_splits(
        paths, distinct, given={"train": ("a.mrg",), "dev": ("b.mrg",), "test": ("odd-train.mrg",)}
    )
    assert [split.files for split in found.splits.values()] == [
        ("a.mrg",),
        ("b.mrg",),
        ("odd-train.mrg",),
    ]
    partly = propose_splits(["x.train", "y", "z"], distinct, given={"test": ("y",), "dev": ("z",)})
    assert partly.splits["train"].files == ("x.train",)
    assert propose_splits(["a", "b"], distinct, given={"test": ("b",)}).splits["train"].range == (
        1,
        90,
    )
