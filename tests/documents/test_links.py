"""Links between the documents lead somewhere, as the repository shows them and as the site does."""

from __future__ import annotations

import posixpath
import re
from functools import cache

from tests.documents.blocks import PAGES, ROOT

_LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")


@cache
def text_of(page: str) -> str:
    """A page without its fenced blocks, whose brackets are no links."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors_of(page: str) -> frozenset[str]:
    """The anchors of the headings of a page, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return frozenset(heading.replace(" ", "-") for heading in plain)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in _LINK.findall(text_of(page)):
            if re.match(r"\w+:", target):
                assert target.startswith(("https://", "http://")), target
                continue
            path, _, anchor = target.partition("#")
            found = (
                posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            )
            assert (ROOT / found).exists(), (page, target)
            # What is generated has its anchors on the site alone, whose building checks them.
            if anchor and "<!-- generated:" not in text_of(found):
                assert anchor in anchors_of(found), (page, target)


def test_anchors_are_made_of_headings() -> None:
    found = anchors_of("docs/treebanks.md")
    assert {"a-new-treebank-step-by-step", "the-manifest"} <= found


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"^ +- .*?([\w/-]+\.md)$", navigation, re.MULTILINE))
    pages = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    assert pages - listed == set(), "put these pages into the navigation of mkdocs.yml"
    assert listed - pages == {"index.md", "contributing.md", "first_parser.md"}
