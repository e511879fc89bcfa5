"""All pages of a site, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from spmrl_bench.leaderboard.board import Results
from spmrl_bench.site.atlas import Atlas
from spmrl_bench.site.compare_pages import compare_pages
from spmrl_bench.site.downloads import Files
from spmrl_bench.site.entry_pages import entry_pages
from spmrl_bench.site.forms import assets, page
from spmrl_bench.site.published_pages import published_pages
from spmrl_bench.site.run_pages import run_pages
from spmrl_bench.site.start_page import start_pages
from spmrl_bench.site.system_pages import system_pages
from spmrl_bench.site.treebank_pages import treebank_pages

_PARTS = (
    start_pages,
    treebank_pages,
    entry_pages,
    run_pages,
    system_pages,
    compare_pages,
    published_pages,
)


def site_pages(gathered: Results) -> Iterator[Files]:
    """The files of a site by address, some at a time."""
    yield assets()
    yield {"reading.html": page("reading", "reading.html")}
    atlas = Atlas(gathered)
    for part in _PARTS:
        yield from part(atlas)
