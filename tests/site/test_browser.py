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

from tests.site.test_site import build, fill

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright: pip install 'spmrl-bench[browser]'"
)
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium in the PATH, nor in CHROMIUM"),
]


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


def test_sorting_and_filtering(browser: Any, site: Path) -> None:
    said: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site / "treebanks/polish-mini.html").as_uri())
    table = page.locator("div.grid:has(#table-1)")
    for order, sign in (("descending", -1), ("ascending", 1)):
        table.get_by_role("button", name="dev F1").click()
        assert table.locator("th[aria-sort]").get_attribute("aria-sort") == order
        *shown, last = table.locator("tbody td:nth-child(2)").all_inner_texts()
        numbers = [sign * float(text.split()[0].rstrip("a")) for text in shown]
        assert numbers == sorted(numbers)
        assert last == ""  # of the entered system, which has none, whichever way
    page.goto((site / "published.html").as_uri())
    rows = page.locator("tbody tr:visible")
    everything = rows.count()
    page.get_by_role("searchbox").fill("K&K18 GERMAN")
    assert 0 < rows.count() < everything
    assert page.locator("output").inner_text() == f"{rows.count()} of {everything}"
    page.get_by_role("searchbox").fill("")
    assert rows.count() == everything
    page.close()
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("kind", ["", "treebanks/", "compare/*/", "runs/", "systems/"])
def test_pages_are_no_wider_than_the_screen_and_axe_finds_nothing(
    browser: Any, site: Path, kind: str, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_core_python", reason="pip install 'spmrl-bench[browser]'")
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    for path in sorted(site.glob(f"{kind}*.html"))[:6]:
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        cut = "[...document.querySelectorAll('.wide')].some(it => it.scrollWidth > it.clientWidth)"
        assert not page.evaluate(cut), path
        page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")
        wrong = {one["id"]: [node["html"] for node in one["nodes"]] for one in found["violations"]}
        assert wrong == {}, path
        assert {"color-contrast", "skip-link"} <= {one["id"] for one in found["passes"]}
    page.close()
