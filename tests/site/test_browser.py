"""The site in a real browser: sorting, filtering, its width, and what axe has to say.

Needs Chromium (in the PATH, or named by the variable CHROMIUM) and the extra ``browser``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site.generated import NASTY
from tests.site.test_site import build, fill

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright: pip install 'spmrl-bench[browser]'"
)
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium in the PATH, nor in CHROMIUM"),
]

#: One page of each kind.
KINDS = [
    "index.html", "reading.html", "published.html", "treebanks/german-mini.html",
    "treebanks/polish-mini.html", "treebanks/german-spmrl.html", "runs/*.html",
    "compare/german-mini/charlstm_small.html", "compare/basque-mini/stack_small.html",
    "systems/charlstm_small.html",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    fill(folder)
    build(folder, folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        # Tests may run as root, in a container without the kernel's sandboxes.
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Any]:
    """The page of a treebank, which says nothing on its console and asks for nothing elsewhere."""
    said: list[str] = []
    asked: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "treebanks/polish-mini.html").as_uri(), wait_until="load")
    yield page
    context.close()
    assert said == []
    assert all(address.startswith("file:") for address in asked)


def column(page: Any, title: str) -> list[str]:
    """The texts of the rows that are shown in a column, without marks and tags."""
    found: list[str] = page.evaluate(
        """title => {
          const grid = document.getElementById("table-1").closest("table");
          const at = [...grid.tHead.rows[0].cells].findIndex(cell => cell.textContent === title);
          return [...grid.tBodies[0].rows].filter(row => !row.hidden)
            .map(row => text(row.cells[at]).split(" ±")[0]);
        }""",
        title,
    )
    return found


def test_sorting_by_a_number_a_word_and_back(opened: Any) -> None:
    table = opened.locator("div.grid:has(#table-1)")
    for title in ("test F1", "dev F1"):
        button = table.get_by_role("button", name=title)
        for order, sign in (("descending", -1), ("ascending", 1)):
            button.click()
            *shown, last = column(opened, title)
            numbers = [sign * float(text) for text in shown if text]
            assert numbers == sorted(numbers)
            if title == "dev F1":  # the entered system has none, and is last whichever way
                assert (len(numbers), last) == (5, "")
            assert table.locator("th[aria-sort]").get_attribute("aria-sort") == order
    table.get_by_role("button", name="system").click()
    assert column(opened, "system") == sorted(column(opened, "system"), key=str.lower)


def test_filtering_by_words_and_by_choice(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    grid = page.locator("div.grid:has(#treebanks)")
    rows = grid.locator("tbody tr:visible th")
    everything = rows.all_inner_texts()
    search = page.get_by_role("searchbox", name="Find")
    search.fill("mini POLISH")
    assert rows.all_inner_texts() == ["polish-mini"]
    assert grid.get_by_role("status").inner_text() == f"1 of {len(everything)} rows"
    search.fill("")
    assert rows.all_inner_texts() == everything
    grid.get_by_role("combobox", name="track").select_option("spmrl")
    assert rows.all_inner_texts() == ["german-spmrl"]
    page.close()


def test_without_scripts_the_pages_are_whole(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "treebanks/polish-mini.html").as_uri())
    assert page.locator("form").count() == 0
    assert page.get_by_role("link", name=f"{NASTY} 2").first.is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_no_wider_than_the_screen_and_axe_finds_nothing(
    browser: Any, site: Path, kind: str, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_core_python", reason="pip install 'spmrl-bench[browser]'")
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(next(iter(sorted(site.glob(kind)))).as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    wrong = [(one["id"], [node["html"][:200] for node in one["nodes"][:3]])
             for one in found["violations"]]  # fmt: skip
    assert wrong == []
    checked = {one["id"] for one in found["passes"]}
    assert {"color-contrast", "document-title", "landmark-one-main", "skip-link"} <= checked
    context.close()
