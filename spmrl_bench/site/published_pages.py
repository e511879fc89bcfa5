"""Figures that others published, on pages of their own, each with its source.

They were measured by others, by their own means, mostly on treebanks that need a licence. None
stands in a table with a score of this program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.site.atlas import Atlas
from spmrl_bench.site.downloads import Files, as_files, links
from spmrl_bench.site.forms import page
from spmrl_bench.site.grids import Cell, Grid, Head, number

_DATA = "data/published"


def published_pages(atlas: Atlas) -> Iterator[Files]:
    """The list of treebanks with published figures, and a page of each."""
    by_bank: dict[str, list[PublishedFigure]] = {}
    for figure in atlas.figures:
        by_bank.setdefault(figure.treebank, []).append(figure)
    rows = []
    for treebank, figures in sorted(by_bank.items()):
        address = atlas.published(treebank)
        yield _page(treebank, figures, address)
        rows.append(
            [
                Cell(treebank, address),
                Cell(", ".join(dict.fromkeys(one.language for one in figures))),
                Cell(str(len({one.system for one in figures}))),
                Cell(str(len(figures))),
            ]
        )
    heads = [
        Head("treebank"),
        Head("language", choice=True),
        Head("systems", True),
        Head("figures", True),
    ]
    grid = Grid(
        "treebanks",
        "Published figures by treebank",
        heads,
        rows,
        len(rows) > 8,
        downloads=links(_DATA),
    )
    yield as_files(_DATA, [one.model_dump(mode="json") for one in atlas.figures])
    yield {
        "published.html": page("published", "published.html", treebank="", grid=grid, sources=())
    }


def _page(treebank: str, figures: Sequence[PublishedFigure], address: str) -> Files:
    keys = dict.fromkeys((one.metric, one.split, one.figure) for one in figures)
    sources = {
        source: n for n, source in enumerate(dict.fromkeys(one.source for one in figures), 1)
    }
    lines: dict[tuple[str, str, str, int], list[PublishedFigure]] = {}
    for one in figures:
        lines.setdefault((one.system, one.variant, one.setting, one.year), []).append(one)
    heads = [Head("system"), Head("year", numeric=True), Head("variant"), Head("setting")]
    heads += [
        Head(f"{split} {metric_named(metric).title(figure)}", numeric=True)
        for metric, split, figure in keys
    ]
    heads.append(Head("source"))
    rows = []
    for (system, variant, setting, year), found in lines.items():
        values = {(one.metric, one.split, one.figure): one.value for one in found}
        numbers = sorted({sources[one.source] for one in found})
        rows.append(
            [
                Cell(system),
                Cell(str(year)),
                Cell(variant),
                Cell(setting),
                *(number(values.get(key)) for key in keys),
                Cell(", ".join(f"[{n}]" for n in numbers)),
            ]
        )
    data = f"data/{address.removesuffix('.html')}"
    grid = Grid(
        "figures",
        f"Published by others, {treebank}",
        heads,
        rows,
        len(rows) > 8,
        downloads=links(data),
    )
    return as_files(data, [one.model_dump(mode="json") for one in figures]) | {
        address: page("published", address, treebank=treebank, grid=grid, sources=list(sources))
    }
