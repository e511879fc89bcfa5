"""What the site has beside the files of this folder, and where links out of it lead.

Three pages are files of the repository that stand elsewhere: README is the start page, and the
rules for contributors and the notebook are pages too. Two are made from the program itself. Links
between all of them are written as the repository has them, so that they work wherever it is
shown; here they become links of the site. A file outside of these pages that one of them links to
is put beside them; a folder is named without a link.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

#: Pages of the site that are other files of the repository.
ELSEWHERE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "first_parser.md": "notebooks/first_parser.ipynb",
}
#: Where any other file goes that a page links to.
BESIDE = "repository"

_LINK = re.compile(r"\[([^][]*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
_PLACEHOLDER = re.compile(r"<!-- generated: (\w+) -->")


def configuration() -> str:
    """The reference of recipes, runs and manifests."""
    from spmrl_bench.reference.configuration import configuration_page

    return configuration_page()


def commands() -> str:
    """The reference of the commands, as they describe themselves."""
    import typer
    from typer.cli import get_docs_for_click

    from spmrl_bench.cli import app

    command = typer.main.get_command(app)
    text: str = get_docs_for_click(obj=command, ctx=typer.Context(command), name="spmrl-bench")
    # The list of commands is cut to lines; their headings stand beside the page.
    text = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)+", "", text)
    text = re.sub(r"^\* `--help`: .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\*\*Options\*\*:\n\n(?=\n*(##|\Z))", "", text)
    return text.replace("# `spmrl-bench`", "# Commands", 1)


def notebook(text: str) -> str:
    """A notebook without outputs as a page."""
    import json

    def cells() -> Iterator[str]:
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"

    return "\n\n".join(cells()) + "\n"


GENERATED: dict[str, Callable[[], str]] = {"configuration": configuration, "commands": commands}


def repository_path(page: str) -> str:
    """The file of the repository that a page of the site is made of."""
    inside = f"{BESIDE}/"
    return ELSEWHERE.get(page) or (
        page.removeprefix(inside) if page.startswith(inside) else f"docs/{page}"
    )


def site_path(path: str) -> str | None:
    """Where a file of the repository is in the site; None of a folder and of what is not there."""
    for page, source in ELSEWHERE.items():
        if path == source:
            return page
    if not (ROOT / path).is_file():
        return None
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{BESIDE}/{path}"


def linked(page: str, target: str) -> str:
    """The file of the repository that a link of a page names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(repository_path(page)), target))


def source(page: str) -> str:
    """The text of a page before its links are those of the site."""
    text = (ROOT / repository_path(page)).read_text(encoding="utf-8")
    if not repository_path(page).endswith(".ipynb"):
        return text
    title, _, rest = notebook(text).partition("\n")
    file = repository_path(page)
    return f"{title}\n\n*This page is the notebook [{file}]({BESIDE}/{file}).*\n{rest}"


def with_links_of_the_site(page: str, text: str) -> str:
    """A page whose links to files of the repository lead to where the site has them."""

    def changed(link: re.Match[str]) -> str:
        title, target, anchor = link.groups()
        if re.match(r"\w+:", target):
            return link[0]
        path = linked(page, target)
        place = site_path(path)
        if place is None:  # what is nowhere stays as it is, and is reported
            return title if (ROOT / path).is_dir() else link[0]
        if place.endswith(".md") and posixpath.basename(title) == posixpath.basename(target):
            # On the site a page is known by its title.
            title = source(place).partition("\n")[0].removeprefix("# ")
        place = posixpath.relpath(place, posixpath.dirname(page) or ".")
        return f"[{title}]({place}{anchor or ''})"

    return _LINK.sub(changed, text)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages that stand elsewhere, and the other files that pages link to."""
    from mkdocs.structure.files import File, InclusionLevel

    for page, path in ELSEWHERE.items():
        files.append(File.generated(config, page, content=source(page)))
        if path.endswith(".ipynb"):
            place = f"{BESIDE}/{path}"
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    pages = [file.src_uri for file in files.documentation_pages()]
    for page in pages:
        for link in _LINK.finditer(source(page)):
            place = None if re.match(r"\w+:", link[2]) else site_path(linked(page, link[2]))
            if place is not None and place.startswith(BESIDE) and place not in files.src_uris:
                path = ROOT / place.removeprefix(f"{BESIDE}/")
                aside = InclusionLevel.NOT_IN_NAV
                files.append(File.generated(config, place, abs_src_path=str(path), inclusion=aside))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put what is generated in its place, and lead links into the site."""
    found = _PLACEHOLDER.search(markdown)
    if found:
        return GENERATED[found[1]]()
    return with_links_of_the_site(page.file.src_uri, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Take away the backslash before a bar in the code of a cell, which GitHub needs and hides."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)
