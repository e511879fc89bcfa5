"""The documentation site: what is generated for it, and that it is built without a warning."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import typer
from pydantic import BaseModel

from spmrl_bench.cli import app
from spmrl_bench.experiments.model_settings import all_parts
from spmrl_bench.experiments.recipe import (
    BaseRecipe,
    LanguageRecipe,
    RunConfig,
    Variant,
    load_recipe,
)
from spmrl_bench.experiments.reference import entries
from spmrl_bench.parsers.kinds import trained_kinds
from spmrl_bench.training.schedule import TrainConfig
from spmrl_bench.treebanks.manifest import (
    Attachment,
    DependencyLayer,
    Fetch,
    Manifest,
    Split,
    Splits,
    SplitTable,
)
from spmrl_bench.trees.transforms import TRANSFORMS
from tests.builders import environment, process
from tests.documents.blocks import ROOT


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """What makes the pages, which needs no MkDocs but to build the site."""
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_is_described(hooks: ModuleType) -> None:
    page = hooks.commands()
    assert page.startswith("# Commands\n")
    headings = re.findall(r"^## `spmrl-bench (\S+)`$", page, re.MULTILINE)
    command = typer.main.get_command(app)
    assert headings == command.list_commands(typer.Context(command))  # type: ignore[attr-defined]
    assert "* `--set KEY=VALUE`: Change one setting of the recipe" in page
    assert "...\n* `" not in page  # the list of all commands, cut to lines
    assert "--help`: Show" not in page


MODELS: tuple[type[BaseModel], ...] = (
    *(kind.parser_class.Config for kind in trained_kinds().values()),
    *(*all_parts().values(), TrainConfig, RunConfig, BaseRecipe, LanguageRecipe, Variant),
    *(Manifest, Splits, Split, SplitTable, DependencyLayer, Attachment, Fetch),
)


def test_every_key_has_a_meaning_and_is_on_the_page(hooks: ModuleType) -> None:
    page = hooks.configuration()
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        columns = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(columns) == 1, table
    for model in MODELS:
        for entry in entries(model):
            assert re.fullmatch(r"[A-Z`].*\.", entry.meaning), f"{model.__name__}.{entry.name}"
            # The variant decides the inputs; parts and splits have tables of their own.
            if entry.name not in ("inputs", *all_parts()) and model is not Splits:
                assert f"| `{entry.name}` |" in page, entry.name
    for name in load_recipe("english").base.variants:
        assert re.search(rf"^\| `{name}`[ ,]", page, re.MULTILINE), name
    (row,) = re.findall(r"^\| `bilstm` .*", page, re.MULTILINE)
    for text in ('`model.encoder = "lstm"`', "track mini: `train.max_epochs = 16`"):
        assert text in row


def test_every_transform_is_described(hooks: ModuleType) -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (text|graph|tree) \| [A-Z].*\. \|$", hooks.transforms(), re.M
    )
    assert rows == [(name, one.stage) for name, one in TRANSFORMS.items()]


def test_a_notebook_becomes_a_page(hooks: ModuleType) -> None:
    page = hooks.source("first_parser.md")
    assert page.startswith("# A first parser\n")
    assert "```python\nimport spmrl_bench\n" in page


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("index.md", "[scoring](docs/scoring.md#speed)", "[scoring](scoring.md#speed)"),
        ("readers.md", "[it](../CONTRIBUTING.md)", "[it](contributing.md)"),
        ("index.md", "[docs/scoring.md](docs/scoring.md)", "[Scoring](scoring.md)"),
        ("scoring.md", "[start](../README.md)", "[start](index.md)"),
        ("api.md", "[keys](configuration.md)", "[keys](configuration.md)"),
        ("readers.md", "[it](../notebooks/first_parser.ipynb)", "[it](first_parser.md)"),
        ("index.md", "[CITATION.cff](CITATION.cff)", "[CITATION.cff](repository/CITATION.cff)"),
        ("results.md", "[them](../results/studies)", "them"),
        ("results.md", "[them](../results/nowhere.md)", "[them](../results/nowhere.md)"),
        ("index.md", "[paper](https://aclanthology.org/P18-1249/)", "[paper](https://aclant"),
        ("index.md", "[above](#settings)", "[above](#settings)"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(
    hooks: ModuleType, page: str, link: str, expected: str
) -> None:
    text = hooks.with_links_of_the_site(page, f"See {link}, too.")
    assert text.startswith(f"See {expected}")
    assert text.endswith(", too.")


@pytest.mark.campaign
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="MkDocs is not installed (pip install -e '.[docs]')")
    pytest.importorskip("material", reason="the theme of the site is not installed")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site")
    done = process(*command, cwd=ROOT, env=environment(NO_MKDOCS_2_WARNING="1"))
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:  # nothing is loaded from anywhere else
        text = page.read_text(encoding="utf-8")
        assert (
            re.findall(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="?https?:', text)
            == []
        )
    scoring = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert 'id="spmrl_bench.scoring.texts.score_files"' in scoring
    assert ":class:`" not in scoring


def test_pages_have_the_files_that_they_name_whole(hooks: ModuleType) -> None:
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="plugins.md"))
    made, named = hooks.on_page_markdown(text, page), re.findall(r"<!-- source: (\S+) -->", text)
    assert len(named) == 6
    for name in named:
        assert f"\n{(ROOT / name).read_text(encoding='utf-8')}```" in made
