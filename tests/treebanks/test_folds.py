"""Treebanks without one fold of their training sentences."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from spmrl_bench.treebanks.folds import divided, fold_treebanks

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.treebank import ClosedSplitError, open_treebank
from tests.laboratory import Laboratory


def test_every_sentence_is_held_out_once(laboratory: Laboratory) -> None:
    bank = open_treebank("tiny-open")
    train = bank.examples("train")
    folds = fold_treebanks(bank, 3, 1)
    assert [fold.name for fold in folds] == [f"tiny-open+fold{k}of3" for k in (1, 2, 3)]
    held_out = [place for fold in folds for place in fold.held_out]
    assert sorted(held_out) == list(range(len(train)))
    assert {len(fold.held_out) for fold in folds} == {13, 14}
    for fold in folds:
        without = [each for k, each in enumerate(train) if k not in fold.held_out]
        assert fold.examples("train") == without
        assert [parse.tree for parse in without] == fold.split("train")
        assert fold.examples("dev") == bank.examples("dev")
        assert fold.content("train", "constituents").sentences == without


def test_a_fold_is_another_treebank_also_for_another_process(laboratory: Laboratory) -> None:
    bank = open_treebank("tiny-open")
    one, other = fold_treebanks(bank, 2, 1)
    digests = {each.fingerprint_of("constituents") for each in (bank, one, other)}
    assert len(digests) == 3
    (again, _), (changed, _) = fold_treebanks(bank, 2, 1), fold_treebanks(bank, 2, 2)
    assert again.fingerprint == one.fingerprint != changed.fingerprint
    sent = pickle.loads(pickle.dumps(one.without_test()))
    assert (sent.name, sent.held_out, sent.fingerprint) == (one.name, one.held_out, one.fingerprint)
    assert sent.examples("train") == one.examples("train")
    with pytest.raises(ClosedSplitError):
        sent.examples("test")
    assert sent.with_test().examples("test") == bank.examples("test")


def test_where_sentences_stand_is_known_of_files(laboratory: Laboratory) -> None:
    bank = open_treebank("tiny-open")
    origins = bank.origins("train")
    assert origins is not None
    assert [origin.name for origin in origins] == [str(k) for k in range(1, 41)]
    assert {origin.path.name for origin in origins} == {"train.mrg"}
    fold, _ = fold_treebanks(bank, 2, 1)
    left = [origin.name for origin in fold.origins("train") or ()]
    assert left == [str(k + 1) for k in range(40) if k not in fold.held_out]
    with pytest.raises(ClosedSplitError):
        bank.without_test().origins("test")


def test_generated_sentences_stand_nowhere() -> None:
    assert open_treebank("german-mini").origins("train") is None


def test_documents_stay_together_if_there_are_many() -> None:
    documents = [f"d{k // 7}" for k in range(100)]
    folds = divided(documents, 5, 1)
    assert folds == divided(documents, 5, 1) != divided(documents, 5, 2)
    assert all(len({f for f, d in zip(folds, documents, strict=True) if d == own}) == 1
               for own in documents)  # fmt: skip
    assert max(Counter(folds).values()) - min(Counter(folds).values()) <= 7
    for too_few in (["a"] * 50 + ["b"] * 50, ["a"] * 90 + [f"d{k}" for k in range(10)]):
        sizes = Counter(divided(too_few, 5, 1))
        assert set(sizes.values()) == {20}
        assert len(set(divided(too_few, 5, 1)[:50])) == 5


def test_folds_that_cannot_be_are_refused(laboratory: Laboratory) -> None:
    bank = open_treebank("tiny-open")
    for folds in (1, 41):
        with pytest.raises(TreebankError, match=f"tiny-open: {folds} folds of 40 training"):
            fold_treebanks(bank, folds, 1)
