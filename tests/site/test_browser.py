"""The site in a real browser: what scripts do, how fast pages are, and what axe has to say.

Needs Chromium (in the PATH, or named by the variable CHROMIUM) and the extra ``browser``.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.site.atlas import Atlas
from spmrl_bench.site.building import site_pages
from spmrl_bench.site.writing import write_site
from tests.site.generated import NASTY, write_many
from tests.site.test_site import fill

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright: pip install 'spmrl-bench[browser]'"
)
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium in the PATH, nor in CHROMIUM"),
]

SYSTEMS = 50
RECORDS = 5_000
BANKS = [f"{name}-mini" for name in (
    "arabic", "basque", "chinese", "english", "french", "german", "hebrew", "hungarian", "korean",
    "polish", "swedish",
)]  # fmt: skip

LOADED = "performance.timing.loadEventEnd - performance.timing.navigationStart"

#: One page of each kind.
KINDS = [
    "index.html", "reading.html", "systems.html", "published.html", "published/english-ptb.html",
    "treebanks/german-mini.html", "treebanks/polish-mini.html", "treebanks/german-spmrl.html",
    "entries/german-mini/charlstm-small.html", "entries/basque-mini/stack-small.html",
    "compare/german-mini.html", "systems/charlstm-small.html", "runs/*.html",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    fill(folder)
    write_site(folder / "site", site_pages(load_results([folder])))
    return folder / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        # Tests may run as root, in a container without the kernel's sandboxes.
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """A page of a site, and all that its console said and that it asked for."""

    def __init__(self, browser: Any, **options: Any) -> None:
        usual = {"viewport": {"width": 1280, "height": 900}}
        self.context = browser.new_context(**(usual | options))
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def go(self, path: Path) -> Any:
        self.page.goto(path.as_uri(), wait_until="load")
        return self.page

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    found = Opened(browser)
    yield found
    assert found.said == []
    assert all(address.startswith("file:") for address in found.asked)
    found.close()


def names(page: Any, table: str) -> list[str]:
    """The heads of the rows that are shown."""
    rows = page.locator(f"div.grid:has(#{table}) tbody tr:visible th")
    return [re.sub(r" +(shipped|entered)$", "", text) for text in rows.all_inner_texts()]


def column(page: Any, table: str, title: str) -> list[str]:
    """The texts of a column, without marks."""
    found: list[str] = page.evaluate(
        """([table, title]) => {
          const grid = document.getElementById(table).closest("table");
          const heads = [...grid.tHead.rows[0].cells];
          const at = heads.findIndex(cell => cell.textContent.trim() === title);
          return [...grid.tBodies[0].rows].filter(row => !row.hidden)
            .map(row => row.cells[at].innerText.split(/[\\s±a]/)[0]);
        }""",
        [table, title],
    )
    return found


def test_sorting_by_a_number_a_word_and_back(opened: Opened, site: Path) -> None:
    page = opened.go(site / "treebanks/polish-mini.html")
    before = names(page, "table-1")
    button = page.get_by_role("button", name="test F1")
    button.click()
    down = [float(text) for text in column(page, "table-1", "test F1") if text]
    assert len(down) == 5
    assert down == sorted(down, reverse=True)
    head = page.locator("th[aria-sort]")
    assert head.get_attribute("aria-sort") == "descending"
    button.click()
    texts = column(page, "table-1", "test F1")
    assert [float(text) for text in texts if text] == down[::-1]
    assert head.get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="system").click()
    assert names(page, "table-1") == sorted(before, key=str.lower)
    assert page.locator("th[aria-sort]").count() == 1


def test_missing_values_come_last_whichever_way(opened: Opened, site: Path) -> None:
    page = opened.go(site / "treebanks/polish-mini.html")
    button = page.get_by_role("button", name="dev F1")  # the entered system has none
    for _ in range(2):
        button.click()
        texts = column(page, "table-1", "dev F1")
        assert texts[-1] == ""
        assert all(texts[:-1])


def test_filtering_by_words_and_by_choice(opened: Opened, site: Path) -> None:
    page = opened.go(site / "treebanks/polish-mini.html")
    everything = names(page, "table-1")
    search = page.get_by_role("searchbox", name="Find")
    search.fill("word CHARLSTM")
    assert names(page, "table-1") == ["word-charlstm"]
    assert page.get_by_role("status").inner_text() == f"1 of {len(everything)} rows"
    search.fill("")
    assert names(page, "table-1") == everything
    page.get_by_role("combobox", name="Origin").select_option("entered")
    assert names(page, "table-1") == [f"{NASTY} 2"]
    page.get_by_role("combobox", name="Origin").select_option("shipped")
    search.fill("nothing like that")
    assert names(page, "table-1") == []


def test_any_two_are_compared_as_the_program_compares_them(opened: Opened, site: Path) -> None:
    page = opened.go(site / "compare/polish-mini.html")
    atlas = Atlas(load_results([site.parent]))
    bank = next(bank for bank in atlas.banks if bank.name == "polish-mini")
    (table,) = bank.groups
    order = atlas.standing(table, ("brackets", "test"))
    page.get_by_role("combobox", name="First").select_option(atlas.slug(order.best))
    compared = 0
    for entry, p in order.p.items():
        page.get_by_role("combobox", name="Second").select_option(atlas.slug(entry))
        said = page.locator("#verdict").inner_text()
        found = re.search(r"p is about ([\d.]+)\.", said)
        assert found is not None, said
        # Other random numbers: four standard errors of the difference of two such p.
        assert abs(float(found[1]) - p) < 4 * (2 * max(p * (1 - p), 2e-4) / 10_000) ** 0.5
        compared += 1
    assert compared == 4
    page.get_by_role("combobox", name="Second").select_option(atlas.slug(order.best))
    assert page.locator("#verdict").inner_text() == "Choose two different ones."


def test_trees_of_any_two_are_drawn_on_demand(opened: Opened, site: Path) -> None:
    page = opened.go(site / "compare/german-mini.html")
    page.get_by_role("combobox", name="Second").select_option("charlstm-small")
    assert page.locator(".node").count() == 0
    button = page.locator("button.more").first
    button.click()
    page.locator(".side.gold .node").first.wait_for()
    assert page.locator(".side").count() == 3
    assert page.locator(".parser .node.mark").count() > 0
    words = page.locator(".side").evaluate_all(
        """sides => sides.map(side =>
          [...side.querySelectorAll(".word")].map(word => word.textContent).join(" "))"""
    )
    assert len(set(words)) == 1
    button.click()
    assert page.locator(".side").count() == 0


def test_trees_of_licensed_treebanks_are_not_offered(opened: Opened, site: Path) -> None:
    page = opened.go(site / "compare/german-spmrl.html")
    assert page.locator("#differing tbody tr").count() > 5
    assert page.locator("button.more").count() == 0


def test_without_scripts_the_pages_are_whole(browser: Any, site: Path) -> None:
    opened = Opened(browser, java_script_enabled=False)
    page = opened.go(site / "compare/german-mini.html")
    assert page.locator("#comparison").is_hidden()
    assert page.get_by_role("link", name="charlstm small").first.is_visible()
    page = opened.go(site / "treebanks/polish-mini.html")
    assert page.locator("form").count() == 0
    assert page.locator("tbody tr").count() > 4
    opened.close()


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_no_wider_than_a_phone(browser: Any, site: Path, kind: str) -> None:
    opened = Opened(browser, viewport={"width": 390, "height": 800})
    page = opened.go(next(iter(sorted(site.glob(kind)))))
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.said == []
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_serious(browser: Any, site: Path, kind: str, scheme: str) -> None:
    missing = "no axe: pip install 'spmrl-bench[browser]'"
    axe = pytest.importorskip("axe_core_python", reason=missing)
    opened = Opened(browser, color_scheme=scheme)
    page = opened.go(next(iter(sorted(site.glob(kind)))))
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    wrong = [
        (one["id"], one["impact"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found["violations"]
    ]
    assert wrong == []
    checked = {one["id"] for one in found["passes"]}
    assert {"color-contrast", "document-title", "landmark-one-main", "skip-link"} <= checked
    opened.close()


def test_pages_of_five_thousand_records_are_there_within_a_second(
    browser: Any, tmp_path: Path
) -> None:
    write_many(RECORDS, SYSTEMS, BANKS, tmp_path)
    write_site(tmp_path / "site", site_pages(load_results([tmp_path])))
    assert (tmp_path / "site/index.html").stat().st_size < 300_000
    opened = Opened(browser)
    for name in ("index.html", "treebanks/german-mini.html", "compare/german-mini.html"):
        seconds = []
        for _ in range(3):
            page = opened.go(tmp_path / "site" / name)
            seconds.append(page.evaluate(LOADED) / 1000)
        assert statistics.median(seconds) < 1, (name, seconds)
    assert opened.said == []
    opened.close()
