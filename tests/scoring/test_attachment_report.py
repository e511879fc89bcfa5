"""Reports of attachment scores: the figures of the rows, and what the rules leave out of them."""

from __future__ import annotations

import json

import pytest

from spmrl_bench import __version__
from spmrl_bench.scoring.attachment import AttachmentRules
from spmrl_bench.scoring.attachment_counts import AttachmentCounts
from spmrl_bench.scoring.attachment_metric import ATTACHMENT, attachment_dict, attachment_text
from spmrl_bench.scoring.signature import sign

COUNTS = AttachmentCounts.from_rows([(4, 3, 2, 1, 5, 4, 3, 2), (0, 0, 0, 0, 1, 1, 1, 1)])


def test_text_has_a_column_for_each_set_of_words() -> None:
    lines = attachment_text(COUNTS, AttachmentRules("unicode")).splitlines()
    assert lines[0] == "Attachment scores: punctuation rule unicode, relations whole"
    assert [line.split("  ")[0] + "|" + "|".join(line.split()[-2:]) for line in lines[3:]] == [
        "sentences|1|2",
        "words|4|6",
        "UAS|75.00|83.33",
        "LAS|25.00|50.00",
        "label accuracy|50.00|66.67",
        "complete match, heads|0.00|50.00",
        "complete match, labelled|0.00|50.00",
    ]
    assert lines[2].split() == ["without", "punctuation", "all", "words"]


def test_text_without_a_rule_has_one_column() -> None:
    text = attachment_text(COUNTS.with_punctuation(), AttachmentRules())
    assert "without punctuation" not in text
    assert "found no punctuation" not in text
    assert text.splitlines()[5].split() == ["UAS", "83.33"]


def test_a_rule_that_leaves_out_nothing_is_noticed() -> None:
    text = attachment_text(COUNTS.with_punctuation(), AttachmentRules("unicode"))
    assert text.endswith("\nThe rule unicode found no punctuation.\n")


def test_nothing_to_divide() -> None:
    counts = AttachmentCounts.from_rows([(0, 0, 0, 0, 1, 0, 0, 0)])
    text = attachment_text(counts, AttachmentRules("unicode"))
    assert text.splitlines()[5].split() == ["UAS", "n/a", "0.00"]


def test_dict_holds_rules_and_figures() -> None:
    report = json.loads(json.dumps(attachment_dict(COUNTS, AttachmentRules("ptb-ctb", "upos"))))
    assert report["all_words"].pop("uas") == pytest.approx(500 / 6)
    assert report["all_words"].pop("label_accuracy") == pytest.approx(400 / 6)
    assert report == {
        "punctuation": "ptb-ctb",
        "tags": "upos",
        "relations": "whole",
        "roots": "one",
        "sentences": 2,
        "without_punctuation": {
            "sentences": 1,
            "words": 4,
            "uas": 75.0,
            "las": 25.0,
            "label_accuracy": 50.0,
            "unlabelled_match": 0.0,
            "labelled_match": 0.0,
        },
        "all_words": {
            "sentences": 2,
            "words": 6,
            "las": 50.0,
            "unlabelled_match": 50.0,
            "labelled_match": 50.0,
        },
    }


def test_heads_alone_have_no_labelled_figures() -> None:
    rules = AttachmentRules(relations="none")
    assert attachment_dict(COUNTS, rules)["all_words"] == {
        "sentences": 2,
        "words": 6,
        "uas": pytest.approx(500 / 6),
        "unlabelled_match": 50.0,
    }
    assert "LAS" not in attachment_text(COUNTS, rules)
    assert "label" not in attachment_text(COUNTS, rules)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (AttachmentRules(), "punctuation:none|relations:whole|roots:one"),
        (
            AttachmentRules("ptb-ctb", relations="universal", roots="several"),
            "punctuation:ptb-ctb(xpos)|relations:universal|roots:several",
        ),
        (AttachmentRules("ptb-ctb", "upos"), "punctuation:ptb-ctb(upos)|relations:whole|roots:one"),
        (
            AttachmentRules("unicode", "upos", "none"),
            "punctuation:unicode|relations:none|roots:one",
        ),
    ],
)
def test_signature_names_every_rule_that_matters(rules: AttachmentRules, expected: str) -> None:
    signature = sign(ATTACHMENT, COUNTS, rules)
    assert signature.long() == (
        f"scorer:own|match:attachment|{expected}|sentences:2|skipped:0|version:{__version__}"
    )
