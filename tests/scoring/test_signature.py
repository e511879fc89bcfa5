"""A signature names what a score depends on, and what was done rather than asked."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import BracketCounts, MissingParse, Policy, Punctuation, Status, load_prm
from spmrl_bench.scoring.attachment import ATTACHMENT, AttachmentRules
from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
from spmrl_bench.scoring.counts import AttachmentCounts
from spmrl_bench.scoring.prm import Parameters
from spmrl_bench.scoring.signature import (
    KEYS,
    Signature,
    settings_folder,
    settings_text,
    sign,
    variant_text,
)
from tests.reliability.tally import Tally
from tests.scoring.test_metrics import ROWS

SPMRL = load_prm("spmrl")
COUNTS = BracketCounts.from_rows(ROWS)


def signed(prm: Parameters = SPMRL, **source: str) -> Signature:
    return sign(BRACKETS, COUNTS, BracketRules(prm), **source)


SOURCE: dict[str, str | None] = {
    "treebank": "german-mini(abababab)",
    "split": "dev",
    "counts": "accepted",
    "tags": "gold",
    "transforms": "drop-traces",
    "variant": "charlstm",
    "settings": "max_epochs=5",
    "ensemble": "2",
    "size": "small",
    "precision": "bf16",
    "seed": "1",
}
POLICY = Policy(MissingParse.COUNT, Punctuation.BY_GOLD)
UNLIKE = AttachmentRules("ptb-ctb")
SCORED = AttachmentCounts.from_rows([(4, 2, 3, 2) * 2])


def brackets(
    rows: BracketCounts = COUNTS,
    prm: Parameters = SPMRL,
    policy: Policy = POLICY,
    **changes: str | None,
) -> Signature:
    return sign(BRACKETS, rows, BracketRules(prm, policy), **(SOURCE | changes))


def attachment(counts: AttachmentCounts = SCORED, **changes: Any) -> Signature:
    return sign(ATTACHMENT, counts, replace(UNLIKE, **changes), **SOURCE)


def test_long_and_short_form() -> None:
    signature = signed(**SOURCE)
    prm = f"spmrl({SPMRL.sha256[:8]})"
    assert signature.long() == str(signature)
    assert signature.long() == (
        f"scorer:own|match:labelled|prm:{prm}|treebank:german-mini(abababab)|split:dev"
        "|sentences:5|skipped:2|counts:accepted|tags:gold|transforms:drop-traces|variant:charlstm"
        f"|settings:max_epochs=5|ensemble:2|size:small|precision:bf16|seed:1|version:{__version__}"
    )
    assert signature.short() == (
        f"sc:own|m:labelled|p:{prm}|tb:german-mini(abababab)|s:dev|n:5|skip:2|cnt:accepted|t:gold"
        f"|tr:drop-traces|var:charlstm|set:max_epochs=5|ens:2|sz:small|prec:bf16|seed:1|v:{__version__}"
    )
    assert signature.as_dict()["skipped"] == "2"
    of_others = ("punctuation", "missing", "outer", "escapes", "relations", "roots", "output")
    of_others += ("learns", "encoder")
    assert list(signature.as_dict()) == [key for key in KEYS if key not in of_others]


#: An ingredient that is another than usual, and the keys that say so.
INGREDIENTS: dict[str, tuple[Callable[[], Signature], set[str]]] = {
    "a label that is removed": (
        lambda: brackets(prm=replace(SPMRL, delete_labels=frozenset({"TOP"}))), {"prm"}
    ),
    "a label that is another": (
        lambda: brackets(prm=replace(SPMRL, eq_labels=frozenset({("A", "B")}))), {"prm"}
    ),
    "the name of the set": (lambda: brackets(prm=replace(SPMRL, name="mine")), {"prm"}),
    # LABELED is a line of the parameter set, too.
    "labels": (lambda: brackets(prm=replace(SPMRL, labeled=False)), {"match", "prm"}),
    "punctuation": (lambda: brackets(policy=Policy(MissingParse.COUNT)), {"punctuation"}),
    "outer brackets": (lambda: brackets(outer="drop"), {"outer"}),
    "escapes": (lambda: brackets(escapes="ptb"), {"escapes"}),
    "no parse": (lambda: brackets(policy=Policy(punctuation=Punctuation.BY_GOLD)), {"missing"}),
    "the treebank": (lambda: brackets(treebank="german-squoia(abababab)"), {"treebank"}),
    "its files": (lambda: brackets(treebank="german-mini(cdcdcdcd)"), {"treebank"}),
    "the split": (lambda: brackets(split="test"), {"split"}),
    "the numbers of its sentences": (lambda: brackets(counts="declared"), {"counts"}),
    "a sentence more": (
        lambda: brackets(BracketCounts.from_rows([*ROWS, (3, Status.VALID, 2, 2, 2, 0, 3, 3)])),
        {"sentences"},
    ),
    "a sentence left out": (
        lambda: brackets(BracketCounts.from_rows([(3, Status.NO_WORDS, *6 * (0,)), *ROWS[1:]])),
        {"skipped"},
    ),
    "the tags": (lambda: brackets(tags="predicted"), {"tags"}),
    "the transforms": (lambda: brackets(transforms="drop-traces+strip-root"), {"transforms"}),
    "their order": (lambda: brackets(transforms="strip-root+drop-traces"), {"transforms"}),
    "the variant": (lambda: brackets(variant="word"), {"variant"}),
    "a setting": (lambda: brackets(settings="max_epochs=6"), {"settings"}),
    "one parser": (lambda: brackets(ensemble=None), {"ensemble"}),
    "the size": (lambda: brackets(size="published"), {"size"}),
    "the precision": (lambda: brackets(precision=None), {"precision"}),
    "the seed": (lambda: brackets(seed="2"), {"seed"}),
    "what is learnt beside": (lambda: brackets(learns="tags"), {"learns"}),
    "an encoder": (lambda: brackets(encoder="e5-small"), {"encoder"}),
    "answers that failed": (lambda: brackets(output="no parse 2"), {"output"}),
    "the rule of punctuation": (lambda: attachment(punctuation="none"), {"punctuation"}),
    "the column of tags": (lambda: attachment(tags="upos"), {"punctuation"}),
    "relations": (lambda: attachment(relations="none"), {"relations"}),
    "roots": (lambda: attachment(roots="several"), {"roots"}),
}  # fmt: skip


def changed_keys(one: Signature, other: Signature) -> set[str]:
    first, second = one.as_dict(), other.as_dict()
    return {key for key in {*first, *second} if first.get(key) != second.get(key)}


def test_each_ingredient_changes_its_key_and_no_other(tally: Tally) -> None:
    for name in INGREDIENTS:
        tally("R25", "ingredients of a signature, changed one by one").add()
        change, keys = INGREDIENTS[name]
        other = change()
        usual = attachment() if other.as_dict()["match"] == "attachment" else brackets()
        assert changed_keys(usual, other) == keys


def test_the_version_and_the_scorer_have_keys_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    tally("R25", "ingredients of a signature, changed one by one").add(2)
    usual = brackets()
    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.scoring.signature.__version__", "9.9")
        assert changed_keys(usual, brackets()) == {"version"}
    usual = brackets()
    monkeypatch.setattr(BRACKETS, "scorer", "own2")
    assert changed_keys(usual, brackets()) == {"scorer"}


def test_every_key_has_an_ingredient() -> None:
    tried = {key for _, keys in INGREDIENTS.values() for key in keys} | {"version", "scorer"}
    assert tried == set(KEYS)


def test_what_is_usual_is_not_named() -> None:
    policy = sign(BRACKETS, COUNTS, BracketRules(SPMRL, POLICY))
    assert "|punct:by-gold|miss:count|" in policy.short()
    usual = signed(replace(SPMRL, labeled=False), treebank="mini").as_dict()
    assert [*usual] == ["scorer", "match", "prm", "treebank", "sentences", "skipped", "version"]
    assert (usual["scorer"], usual["match"]) == ("own", "unlabelled")


def test_a_setting_cannot_forge_a_key() -> None:
    signature = signed(settings=settings_text({"model.vectors": "v|skipped:0"}))
    assert signature.as_dict()["settings"] == 'vectors="v%7Cskipped%3A0"'
    assert signature.long().count("|") == len(signature.items) - 1


def test_a_value_cannot_forge_a_key() -> None:
    with pytest.raises(ScoreError, match=r"the split 'test\|skipped:0'"):
        signed(split="test|skipped:0")


FULL = {"model.matrices": "full", "model.position": "added"}


def test_keys_are_sorted_and_lose_their_section() -> None:
    assert settings_text({"train.max_epochs": 2, "model.d_ff": 8}) == "d_ff=8,max_epochs=2"
    assert settings_folder({"train.max_epochs": 2, "model.d_ff": 8}) == "d_ff=8,max_epochs=2"
    assert variant_text("charlstm", FULL) == "charlstm (matrices=full, position=added)"
    assert variant_text("charlstm", {}) == "charlstm"


def test_a_key_of_two_sections_keeps_them() -> None:
    assert settings_text({"model.rate": 1, "train.rate": 2}) == "model.rate=1,train.rate=2"


def test_values_are_shown_as_in_toml_and_keep_no_mark_of_a_signature() -> None:
    for value, text, folder in [
        ("full", "k=full", "k=full"),
        (True, "k=true", "k=true"),
        (0.0008, "k=0.0008", "k=0.0008"),
        (1e-9, "k=1e-09", "k=1e-09"),
        ([0, 1, 2], "k=[0,1,2]", "k=0+1+2"),
        ([], "k=[]", "k=none"),
        ("~/vectors/en.txt", "k=~/vectors/en.txt", None),
        ("two words", 'k="two words"', None),
        ("a|b:c%d`e", 'k="a%7Cb%3Ac%25d%60e"', None),
        ("a\nb", 'k="a\\nb"', None),
        ("ü", "k=ü", None),
    ]:
        assert settings_text({"model.k": value}) == text
        assert not set(text) & set("|:\n`")
        found = settings_folder({"model.k": value})
        assert re.fullmatch(r"[A-Za-z0-9._+=,-]+", found)
        if folder is None:
            assert re.search("_[0-9a-f]{8}$", found)
        else:
            assert found == folder


def test_other_settings_have_other_folders() -> None:
    values = ["a/b", "a_b", "a b", "a|b", "x" * 200, "x" * 201, True, 1, [1], 1.5]
    folders = [settings_folder({"model.k": value}) for value in values[:-3]]
    for one, other in itertools.combinations(folders, 2):
        assert one != other
    assert max(map(len, folders)) <= 80
