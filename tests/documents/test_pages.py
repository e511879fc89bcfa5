"""The pages: code does what it says, commands are ones that exist, links lead somewhere."""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import tomllib
from functools import cache
from pathlib import Path

import pytest

from spmrl_bench.analysis.study import load_study
from spmrl_bench.errors import SpmrlError
from spmrl_bench.systems.description import (
    COMMON,
    PARSING,
    TRAINING,
    ParseCommand,
    SystemDescription,
    TrainCommand,
    system_paths,
)
from tests.builders import cli
from tests.documents.blocks import PAGES, ROOT, Block, Command, commands_of, documents
from tests.documents.command_line import check, options_of

BLOCKS = documents()
PYTHON = [block for block in BLOCKS if block.language == "python"]
SHELL = [block for block in BLOCKS if block.language == "sh"]
#: What a block may be when it is neither: figures, formulas, what a command prints.
OTHER = {"", "toml", "json"}


def made_by(page: str) -> list[str]:
    """The treebanks and recipes that commands of a page make."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"treebanks add .*--name (\S+)", text)


def test_every_page_is_read() -> None:
    assert {"README.md", "docs/scoring.md", "docs/api.md"} <= set(PAGES)
    assert {block.language for block in BLOCKS} == OTHER | {"python", "sh"}
    assert len(PYTHON) >= 12
    assert len(SHELL) >= 40


def test_commands_that_do_not_exist_are_found() -> None:
    for line in [
        "spmrl-bench trian german",
        "spmrl-bench train german --sed 3",
        "spmrl-bench train germn",
        "spmrl-bench train german --set train.epochs=3",
        "spmrl-bench train german --set train.max_epochs=0",
        "spmrl-bench train german --variant charlstn",
        "spmrl-bench eval german --seeds none",
        "spmrl-bench treebanks check german-min",
        "spmrl-bench score gold.mrg parses.mrg --prm smprl",
        "spmrl-bench study run encoder",
        "make lang=german trian",
        "make lang=german max_epochs=3 train",
        "make lang=germn train",
        "python -m tests.analysis.planted",
        "pip install 'spmrl-bench[ntlk]'",
        "jupyter lab notebooks/second_parser.ipynb",
    ]:
        (command,) = commands_of(Block("page", 1, "sh", line, None))
        with pytest.raises(Exception):  # noqa: B017, PT011  whatever the program says
            check(command)


def test_commands_exist() -> None:
    for block in SHELL:
        commands = list(commands_of(block))
        assert commands
        if shutil.which("make") is None:
            commands = [command for command in commands if command.program != "make"]
        for command in commands:
            check(command, made_by(block.page))


def is_run(block: Block) -> bool:
    """Whether the tests run a block; what make and pip would do is only looked at."""
    programs = {command.program for command in commands_of(block)}
    return block.reason is None and not programs <= {"make", "pip"}


@pytest.mark.parametrize("block", list(filter(is_run, SHELL)), ids=str)
def test_commands_run(block: Block, world: Path) -> None:
    for command in commands_of(block):
        run(command)


def run(command: Command) -> None:
    """Run a command as it stands; a question that it asks is answered by the end of input."""
    assert command.program == "spmrl-bench", f"{command}: only this program is run by tests"
    arguments = [os.path.expanduser(word) for word in command.arguments]
    result = cli(*arguments, stdin=command.stdin)
    if result.exit_code and "pip install" in result.stderr:
        pytest.skip(result.stderr.strip())
    # A new treebank is written with consent alone.
    asked = arguments[:2] == ["treebanks", "add"] and "--yes" not in arguments
    assert result.exit_code == 0 or asked, f"{command}\n{result.output}"
    if command.output:
        Path(command.output).write_text(result.stdout, encoding="utf-8")


@pytest.mark.parametrize("block", [block for block in PYTHON if block.reason is None], ids=str)
def test_python_runs(block: Block, world: Path) -> None:
    lines = "\n" * block.line + block.text  # an error names the line of the page
    try:
        exec(compile(lines, str(ROOT / block.page), "exec"), {"__name__": "__main__"})
    except ModuleNotFoundError as error:
        if str(error.name).startswith("spmrl_bench"):
            raise
        pytest.skip(f"{error.name} is not installed")
    except SpmrlError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))


def test_toml_and_json_are_read(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    for block in BLOCKS:
        if block.language == "toml":
            assert tomllib.loads(block.text)
            if block.page == "docs/experiments.md":
                path.write_text(block.text, encoding="utf-8")
                assert load_study(str(path)).rows
        elif block.language == "json":
            assert json.loads(block.text)


def inline_commands() -> list[tuple[str, str]]:
    """Commands in a sentence, as `spmrl-bench eval LANG`, with the page."""
    found = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        for code in re.findall(r"`([^`]+)`", text):
            if re.match(r"(\.venv/bin/)?spmrl-bench [a-z]", code):
                found.append((page, " ".join(code.split()).partition("spmrl-bench ")[2]))
    return found


def test_commands_in_sentences_exist() -> None:
    found = inline_commands()
    assert len(found) > 10
    for page, text in found:
        words = text.replace("[", " ").replace("]", " ").split()
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        missing = options - options_of(words)
        assert not missing, (page, text, missing)


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


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"^ +- .*?([\w/-]+\.md)$", navigation, re.MULTILINE))
    pages = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")}
    assert pages - listed == set(), "put these pages into the navigation of mkdocs.yml"
    assert listed - pages == {"index.md", "contributing.md", "first_parser.md"}


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def test_the_tests_that_hold_the_protocol_and_promises_are_there() -> None:
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page("protocol") + security)
    assert len(named) > 25
    for path, function in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {function or 'test_'}" in text, (path, function)


def test_every_system_and_every_key_is_described() -> None:
    systems = page("systems")
    rows = set(re.findall(r"^\| `([\w-]+)` \|", systems, re.MULTILINE))
    assert rows >= set(system_paths())
    for model in (SystemDescription, TrainCommand, ParseCommand):
        for key in model.model_fields:
            assert re.search(rf"`\[?{key}[.\]`]", systems), key
    for placeholder in (*COMMON, *TRAINING, *PARSING):
        assert f"{{{placeholder}}}" in systems, placeholder
