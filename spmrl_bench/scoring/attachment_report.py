"""What attachment scores say of themselves: every figure, and by which rules it was made."""

from __future__ import annotations

from spmrl_bench.scoring.attachment import AttachmentRules
from spmrl_bench.scoring.attachment_counts import AttachmentCounts
from spmrl_bench.scoring.report import Figure

_ROWS = {
    "sentences": "sentences",
    "words": "words",
    "uas": "UAS",
    "las": "LAS",
    "label_accuracy": "label accuracy",
    "unlabelled_match": "complete match, heads",
    "labelled_match": "complete match, labelled",
}
_LABELLED = ("las", "label_accuracy", "labelled_match")


def attachment_figures(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, Figure]:
    """The figures of the scored words by name: counts, percentages, None for 0 of 0.

    Rules that do not compare relations give no labelled figures.
    """
    return {
        name: getattr(counts, name)
        for name in _ROWS
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
    for name, title in _ROWS.items():
        if name in columns[0]:
            lines.append(f"{title:24}" + "".join(f"{_shown(each[name]):>22}" for each in columns))
    if len(columns) > 1 and counts.words == counts.with_punctuation().words:
        lines += ["", f"The rule {rules.punctuation} found no punctuation."]
    return "\n".join(lines) + "\n"


def _parts(counts: AttachmentCounts, rules: AttachmentRules) -> dict[str, AttachmentCounts]:
    whole = {"all_words": counts.with_punctuation()}
    if rules.punctuation == "none":
        return whole
    return {"without_punctuation": counts} | whole


def _shown(figure: Figure) -> str:
    if figure is None:
        return "n/a"
    return str(figure) if isinstance(figure, int) else f"{figure:.2f}"
