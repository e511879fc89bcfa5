"""The card of a package: what a model is, for people, with what the hub reads of it in front.

Everything in it comes from the record of the run, the manifest of the treebank and the parser
itself. The part in front is YAML, in which every value is written as JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jinja2

from spmrl_bench.packages.description import Package
from spmrl_bench.packages.hub_names import language_code, licence_identifier
from spmrl_bench.packages.wheel import wheel_name
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring.metric import metric_named

#: The tracks of treebanks that only those have who were given a licence.
LICENSED = ("spmrl", "ptb", "ctb")

_TASKS = {
    "brackets": ("constituency-parsing", "Constituency parsing"),
    "attachment": ("dependency-parsing", "Dependency parsing"),
}
#: How the program is cited, as the README has it.
SOFTWARE = """\
@software{{spmrl_bench,
  author  = {{{{spmrl_bench contributors}}}},
  title   = {{{{spmrl_bench: a benchmark suite for neural parsers over many treebanks}}}},
  version = {{{version}}},
  year    = {{2026}}
}}"""
_LABEL_ATTENTION = (
    "Mrini, Dernoncourt, Tran, Bui, Chang & Nakashole (2020). Rethinking Self-Attention: Towards "
    "Interpretability in Neural Parsing. Findings of EMNLP."
)
# What the hub calls figures; others are left out there, and stand in the table all the same.
_FIGURES = {
    "f1": "f1",
    "precision": "precision",
    "recall": "recall",
    "las": "accuracy",
    "uas": "accuracy",
}


@dataclass(frozen=True)
class Nature:
    """What is known of a parser once it is loaded."""

    parameters: int
    words: int  # of its vocabulary
    longest: int | None  # words of a sentence that it takes
    reads_tags: bool
    predicts_tags: bool
    label_attention: bool
    citations: tuple[str, ...]


def summary(package: Package) -> str:
    layers = " and ".join(kind_named(package.kind).layers)
    return f"{package.treebank.language.capitalize()} parser of {layers}, {package.treebank.title}"


def write_card(package: Package, nature: Nature) -> str:
    forms = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown
    )
    forms.filters["json"] = partial(json.dumps, ensure_ascii=False)
    forms.filters["number"] = lambda value: f"{value:,}"
    forms.filters["line"] = _line
    forms.filters["cell"] = lambda text: _line(text).replace("|", "\\|")
    identifier = licence_identifier(package.license)
    layers = kind_named(package.kind).layers
    return forms.get_template("card.md.jinja").render(
        package=package,
        nature=nature,
        summary=summary(package),
        layers=" and ".join(layers),
        finds_trees="constituents" in layers,
        finds_heads="dependencies" in layers,
        code=language_code(package.treebank.language),
        licence=identifier or "other",
        tags=_tags(package),
        papers=[*nature.citations, *[_LABEL_ATTENTION][: nature.label_attention]],
        software=SOFTWARE.format(version=package.program),
        metrics=_metrics(package),
        tables=_tables(package),
        results=_results(package),
        wheel=wheel_name(package),
        licensed=package.treebank.track in LICENSED,
        generated=package.treebank.track == "mini",
        sizes={
            name: " or ".join(map("{:,}".format, found)) or "not stated"
            for name, found in package.treebank.sentences.items()
        },
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def _tags(package: Package) -> list[str]:
    tasks = [_TASKS[metric][0] for metric in kind_named(package.kind).metrics if metric in _TASKS]
    return ["spmrl_bench", *tasks, "parsing", "treebank", package.kind]


def _metrics(package: Package) -> list[str]:
    """The names that the hub has for the figures of the package."""
    shown = {
        _FIGURES[figure]
        for scores in package.scores.values()
        for score in scores.values()
        for figure in score.figures
        if figure in _FIGURES
    }
    return sorted(shown)


def _tables(package: Package) -> list[dict[str, Any]]:
    """A table for each metric: its title, headings, rows and signatures."""
    tables = []
    for name in dict.fromkeys(name for scores in package.scores.values() for name in scores):
        metric = metric_named(name)
        rows, signatures = [], []
        for split, scores in package.scores.items():
            if name not in scores:
                continue
            figures = scores[name].figures
            rows.append([split, *(_shown(figures.get(figure)) for figure in metric.tabled)])
            signatures.append(f"{split}: {scores[name].signature}")
        titles = [metric.title(figure) for figure in metric.tabled]
        task = _TASKS.get(name, ("", name))[1]
        tables.append({"title": task, "titles": titles, "rows": rows, "signatures": signatures})
    return tables


def _results(package: Package) -> list[dict[str, Any]]:
    """What the index of models has of the scores: those on test, or on dev where there are none."""
    split = "test" if "test" in package.scores else "dev"
    found = []
    for name, score in package.scores.get(split, {}).items():
        metric = metric_named(name)
        metrics = [
            {"type": _FIGURES[figure], "name": metric.title(figure), "value": round(value, 2)}
            for figure, value in score.figures.items()
            if figure in _FIGURES and value is not None
        ]
        task = _TASKS.get(name, ("", name))[1]
        found.append({"task": task, "split": split, "metrics": metrics, "signed": score.signature})
    return found


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
