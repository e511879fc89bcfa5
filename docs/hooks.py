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
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page
    from pydantic import BaseModel

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
_SOURCE = re.compile(r"<!-- source: ([\w/]+\.(\w+)) -->")


_CONFIGURATION = """\
# Configuration

Every key that a recipe, a run or the manifest of a treebank can have. The tables are made from the
classes that check the files, so they say what this version of the program allows. The command
`spmrl-bench recipes show` prints the settings of a run on the terminal.

## Settings of a run

A recipe gives them in these sections, the command line with `--set KEY=VALUE`, where the key begins
with the name of the section: `model.attention.heads`. The short key does as well: it sets all parts
that read the setting. Those of parts that a parser does not have change nothing. The values are
those of the sizes `published` and `small` before a [variant](#variants) or a language changes
anything. *Not set* means that the key is absent.

{runs}
### What is stored with a run

`run.json` in the folder of a run has them resolved, with these keys:

{run}
## Recipes

`recipes/LANGUAGE.toml` says which treebanks a language has, and what differs from
`recipes/base.toml`, which all languages share. Of a setting that several layers give, the last one
holds: the size, the track, the language, the language's size, the variant, the variant's size and
track, the command line.

### A language

{language}
### What all languages share

{base}
### Variants

A variant is written as the list of its lexical inputs, `charlstm = ["charlstm"]`, or as a table of
these keys:

{variant}
The variants of `recipes/base.toml`:

{variants}
## Manifests of treebanks

`treebanks/NAME.toml` says where the sentences of a treebank lie and how they are read. A table
`[editions.EDITION]` in it has keys that replace these in the treebank `NAME-EDITION`.

{manifest}
### Transforms

{transforms}
### A split of a treebank: `[splits.NAME]`

{split}
There is one table for each of {splits}.

### The rows of a table: `[splits.NAME.rows]`

{rows}
### A second layer: `[dependencies]`

{dependencies}
It has `format` and its options too ([below](#formats-and-their-options)).

### Rules of attachment scores: `[attachment]`

{attachment}
### Downloads: `[[fetch]]`

{fetch}
### Formats and their options

{formats}
What the options mean; one that is not set has the default of the format:

{options}
"""


def configuration() -> str:
    """The reference of recipes, runs and manifests."""
    from spmrl_bench.experiments import recipe
    from spmrl_bench.treebanks import manifest

    without = set(manifest.SourceFormat.model_fields)
    return _CONFIGURATION.format(
        runs="\n".join(_run_tables()),
        run=_keys(recipe.RunConfig),
        language=_section(recipe.LanguageRecipe),
        base=_section(recipe.BaseRecipe),
        variant=_keys(recipe.Variant),
        variants=_variants(),
        manifest=_keys(manifest.Manifest, without),
        transforms=transforms(),
        split=_section(manifest.Split),
        splits=_coded(manifest.Splits.model_fields),
        rows=_section(manifest.SplitTable),
        dependencies=_section(manifest.DependencyLayer, without),
        attachment=_section(manifest.Attachment),
        fetch=_section(manifest.Fetch),
        formats=_formats(),
        options=_keys(manifest.SourceFormat),
    )


def _run_tables() -> Iterator[str]:
    """The settings of a parser, those of each of its parts, and those of training."""
    from spmrl_bench.experiments.model_settings import all_parts
    from spmrl_bench.experiments.reference import run_settings, value_text

    settings = run_settings()
    kinds = {kind for setting in settings for kind in setting.kinds}
    for table in dict.fromkeys(setting.key.rpartition(".")[0] for setting in settings):
        own = [each for each in settings if each.key.rpartition(".")[0] == table]
        yield f"### `[{table}]`\n"
        if table.count("."):
            yield f"{_summary(all_parts()[table.removeprefix('model.')])}\n"
        for names in dict.fromkeys(setting.kinds for setting in own):
            if {*names} != kinds:
                keys = _coded(each.entry.name for each in own if each.kinds == names)
                yield f"Of the kinds {' and '.join(f'`{kind}`' for kind in names)}: {keys}.\n"
        rows = (
            (
                f"`{each.entry.name}`",
                _coded(each.short),
                each.entry.allowed,
                *map(value_text, each.values.values()),
                each.entry.meaning,
            )
            for each in own
        )
        yield _table(f"key | short | allowed | {' | '.join(own[0].values)} | what it does", rows)


def _summary(model: type) -> str:
    """The docstring of a class, in Markdown."""
    import inspect

    from spmrl_bench.experiments.reference import markdown

    return markdown(inspect.cleandoc(model.__doc__ or ""))


def _section(model: type[BaseModel], without: Container[str] = ()) -> str:
    return f"{_summary(model)}\n\n{_keys(model, without)}"


def _keys(model: type[BaseModel], without: Container[str] = ()) -> str:
    """A table of the keys of a model."""
    from spmrl_bench.experiments.reference import entries, value_text

    return _table(
        "key | allowed | default | what it does",
        (
            (f"`{entry.name}`", entry.allowed, value_text(entry.default), entry.meaning)
            for entry in entries(model)
            if entry.name not in without
        ),
    )


def _variants() -> str:
    from spmrl_bench.experiments.recipe import SettingsLayer, load_recipe
    from spmrl_bench.experiments.reference import changed_by, value_text

    def settings(layer: SettingsLayer, before: str = "") -> str:
        return before + "<br>".join(
            f"`{key} = {value_text(value).strip('`')}`" for key, value in changed_by(layer).items()
        )

    rows = []
    for name, variant in load_recipe("english").base.variants.items():
        texts = [settings(variant)]
        texts += [settings(layer, f"{size}: ") for size, layer in variant.size.items()]
        texts += [settings(layer, f"track {track}: ") for track, layer in variant.track.items()]
        rows.append(
            (
                f"`{name}`" + (f", like `{variant.like}`" if variant.like else ""),
                f"`{variant.kind}`",
                _coded(variant.inputs) or f"those of `{variant.like}`",
                "when named" if variant.optional else "always",
                "<br>".join(filter(None, texts)),
            )
        )
    return _table("variant | kind | inputs | trained | settings of its own", rows)


def transforms() -> str:
    """What can change trees between the file and the parser."""
    from spmrl_bench.trees.transforms import TRANSFORMS

    def summary(function: Callable[..., Any]) -> str:
        return " ".join((function.__doc__ or "").partition("\n\n")[0].split())

    rows = ((f"`{name}`", one.stage, summary(one.apply)) for name, one in TRANSFORMS.items())
    return _table("name | on | what it does", rows)


def _formats() -> str:
    from spmrl_bench.experiments.reference import value_text
    from spmrl_bench.readers.formats import FORMATS

    def option(name: str, default: Any) -> str:
        shown = "required" if default is ... else value_text(None if default == "" else default)
        return f"`{name}`" + ("" if shown == "not set" else f" ({shown})")

    return _table(
        "`format` | what it is | gives | options, and their defaults",
        (
            (
                f"`{one.name}`",
                one.title,
                one.yields,
                ", ".join(option(*each) for each in one.options.items()),
            )
            for one in map(FORMATS.get, FORMATS.names())
        ),
    )


def _coded(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(header: str, rows: Iterable[Iterable[str]]) -> str:
    # A bar ends a cell, also in code.
    lines = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
    rule = " | ".join("---" for _ in header.split(" | "))
    return "".join(f"| {line} |\n" for line in (header, rule, *lines))


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
    # A file of the repository as it stands, which tests run.
    text = with_links_of_the_site(page.file.src_uri, markdown)
    return _SOURCE.sub(lambda at: f"```{at[2]}\n{(ROOT / at[1]).read_text()}```", text)


def on_page_content(html: str, **_: Any) -> str:
    """Take away the backslash before a bar in the code of a cell, which GitHub needs and hides."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html, flags=re.DOTALL)
