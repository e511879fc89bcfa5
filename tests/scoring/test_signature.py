"""A signature names what a score depends on, and what was done rather than asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import BracketCounts, MissingParse, Policy, Punctuation, load_prm
from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
from spmrl_bench.scoring.prm import Parameters
from spmrl_bench.scoring.signature import KEYS, Signature, Source, sign
from tests.scoring.test_counts import ROWS

SPMRL = load_prm("spmrl")
COUNTS = BracketCounts.from_rows(ROWS)


def signed(prm: Parameters = SPMRL, **source: Any) -> Signature:
    return sign(BRACKETS, COUNTS, BracketRules(prm), Source(**source))


def test_long_and_short_form() -> None:
    signature = signed(
        treebank="german-squoia",
        fingerprint="9ab0" * 16,
        split="test",
        tags="none",
        transforms=("raise-crossing-branches", "strip-functions"),
        variant="charlstm",
        settings={"train.max_epochs": 5, "model.matrices": "full"},
        ensemble=3,
        size="small",
        precision="bf16",
        seed=3,
    )
    prm = f"spmrl({SPMRL.sha256[:8]})"
    assert signature.long() == str(signature)
    assert signature.long() == (
        f"scorer:own|match:labelled|prm:{prm}|treebank:german-squoia(9ab09ab0)|split:test"
        "|sentences:5|skipped:2|tags:none|transforms:raise-crossing-branches+strip-functions"
        f"|variant:charlstm|settings:matrices=full,max_epochs=5|ensemble:3|size:small|precision:bf16|seed:3|version:{__version__}"
    )
    assert signature.short() == (
        f"sc:own|m:labelled|p:{prm}|tb:german-squoia(9ab09ab0)|s:test|n:5|skip:2|t:none"
        "|tr:raise-crossing-branches+strip-functions|var:charlstm|set:matrices=full,max_epochs=5|ens:3|sz:small|prec:bf16|seed:3"
        f"|v:{__version__}"
    )
    assert signature.as_dict()["skipped"] == "2"
    of_others = ("punctuation", "missing", "relations", "roots")
    assert list(signature.as_dict()) == [key for key in KEYS if key not in of_others]


def test_a_policy_that_is_not_the_published_one_is_named() -> None:
    policy = Policy(MissingParse.COUNT, Punctuation.BY_GOLD)
    signature = sign(BRACKETS, COUNTS, BracketRules(SPMRL, policy))
    assert signature.as_dict()["missing"] == "count"
    assert signature.as_dict()["punctuation"] == "by-gold"
    assert "|punct:by-gold|miss:count|" in signature.short()


def test_the_usual_precision_is_not_named() -> None:
    assert "precision" not in signed(precision="float32").as_dict()


def test_keys_that_do_not_apply_are_absent() -> None:
    signature = signed(replace(SPMRL, labeled=False), treebank="mini")
    assert list(signature.as_dict()) == [
        "scorer",
        "match",
        "prm",
        "treebank",
        "sentences",
        "skipped",
        "version",
    ]
    assert signature.as_dict()["match"] == "unlabelled"
    assert signature.as_dict()["treebank"] == "mini"


def test_seed_zero_is_a_seed() -> None:
    assert signed(seed=0).as_dict()["seed"] == "0"


def test_parameter_files_of_one_name_differ() -> None:
    other = replace(SPMRL, delete_labels=frozenset(["TOP"]))
    assert signed() != signed(other)


def test_settings_of_the_recipe_and_single_parsers_are_not_named() -> None:
    keys = signed(variant="charlstm", settings={}).as_dict()
    assert "settings" not in keys
    assert "ensemble" not in keys


def test_a_setting_cannot_forge_a_key() -> None:
    signature = signed(settings={"model.vectors": "v|skipped:0"})
    assert signature.as_dict()["settings"] == 'vectors="v%7Cskipped%3A0"'
    assert signature.long().count("|") == len(signature.items) - 1


def test_a_value_cannot_forge_a_key() -> None:
    with pytest.raises(ScoreError, match=r"the split 'test\|skipped:0'"):
        signed(split="test|skipped:0")
