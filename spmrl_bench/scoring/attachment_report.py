"""What attachment scores say of themselves: every figure, and by which rules it was made."""

from __future__ import annotations

from operator import attrgetter

from spmrl_bench.scoring.attachment import AttachmentRules
from spmrl_bench.scoring.attachment_counts import AttachmentCounts
from spmrl_bench.scoring.metric import Figure, Number, shown

#: Every figure of attachment by name, in the order of a report.
FIGURES = {
    "sentences": Figure("sentences", attrgetter("sentences")),
    "words": Figure("words", attrgetter("words")),
    "uas": Figure("UAS", attrgetter("uas")),
    "las": Figure("LAS", attrgetter("las")),
    "label_accuracy": Figure("label accuracy", attrgetter("label_accuracy")),
    "unlabelled_match": Figure("complete match, heads", attrgetter("unlabelled_match")),
    "labelled_match": Figure("complete match, labelled", attrgetter("labelled_match")),
}
_LABELLED = ("las", "label_accuracy", "labelled_match")


def attachment_figures(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, Number]:
    """The figures of the scored words by name: counts, percentages, None for 0 of 0.

    Rules that do not compare relations give no labelled figures.
    """
    return {
        name: figure.of(counts)
        for name, figure in FIGURES.items()
        if rules.relations != "none" or name not in _LABELLED
    }


def attachment_dict(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, object]:
    """The report as JSON-able values.

    Keys: ``punctuation``, ``tags``, ``relations``, ``roots`` (the rules), ``sentences``,
    ``all_words`` and, if a rule leaves out punctuation, ``without_punctuation``
    (:func:`attachment_figures`).
    """
    return {
        "punctuation": rules.punctuation,
        "tags": rules.tags,
        "relations": rules.relations,
        "roots": rules.roots,
        "sentences": len(counts),
    } | {name: attachment_figures(part, rules) for name, part in _parts(counts, rules).items()}


def attachment_text(counts: AttachmentCounts, rules: AttachmentRules) -> str:
    """The report for people: a column of figures with punctuation and one without."""
    parts = _parts(counts, rules)
    columns = [attachment_figures(part, rules) for part in parts.values()]
    heads = [name.replace("_", " ") for name in parts]
    lines = [
        f"Attachment scores: punctuation rule {rules.punctuation}, relations {rules.relations}",
        "",
        f"{'':24}" + "".join(f"{head:>22}" for head in heads),
    ]
    for name in columns[0]:
        cells = "".join(f"{shown(each[name]):>22}" for each in columns)
        lines.append(f"{FIGURES[name].title:24}{cells}")
    if len(columns) > 1 and counts.words == counts.with_punctuation().words:
        lines += ["", f"The rule {rules.punctuation} found no punctuation."]
    return "\n".join(lines) + "\n"


def _parts(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, AttachmentCounts]:
    whole = {"all_words": counts.with_punctuation()}
    if rules.punctuation == "none":
        return whole
    return {"without_punctuation": counts} | whole
