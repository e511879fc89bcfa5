"""The notebook for teachers: its code is of this program, it holds no outputs, and it runs.

That its cells compile and use no name before it is there is seen by ruff.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.documents.blocks import ROOT, Block, commands_of
from tests.documents.command_line import check

NOTEBOOK = ROOT / "notebooks" / "first_parser.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


SHELL = "%%bash\n"


def python(source: str) -> str:
    """A cell without the commands of a terminal and of the notebook."""
    return "" if source.startswith(SHELL) else re.sub(r"(?m)^%.*$", "pass", source)


def test_outputs_are_not_kept() -> None:
    for cell in CELLS:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        assert cell["metadata"] == {}


def test_it_is_a_lesson() -> None:
    text = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown"]
    steps = re.findall(r"^## (\d+)\. ", "\n".join(text), re.MULTILINE)
    assert steps == [str(number) for number in range(1, 11)]
    assert len(re.findall(r"\*\*Questions?\.\*\*", "\n".join(text))) >= 8


def test_everything_that_is_imported_exists() -> None:
    found = 0
    for source in CODE:
        for node in ast.walk(ast.parse(python(source))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("spmrl_bench"):
                module = importlib.import_module(str(node.module))
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []
                found += 1
    assert found >= 7


def test_its_commands_exist() -> None:
    cells = [source.removeprefix(SHELL) for source in CODE if source.startswith(SHELL)]
    commands = [
        command for cell in cells for command in commands_of(Block("notebook", 1, "sh", cell, None))
    ]
    for command in commands:
        check(command)
    train, evaluate, compare = (command.arguments for command in commands)
    assert (train[0], evaluate[0], compare[0]) == ("train", "eval", "compare")
    # All are of the same runs, or the later ones would find none.
    assert train[1:] == evaluate[1:]
    assert all("english-mini/small-" in run and "-max_epochs=6-" in run for run in compare[-2:])


@pytest.mark.campaign
def test_it_runs_from_start_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="pip install -e '.[notebook]'")
    client = pytest.importorskip("nbclient", reason="pip install -e '.[notebook]'")
    for library in ("ipykernel", "matplotlib", "nltk"):
        pytest.importorskip(library, reason="pip install -e '.[notebook]'")
    if shutil.which("spmrl-bench", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("the command spmrl-bench is not installed beside Python")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(NOTEBOOK, 4)
    place = {"metadata": {"path": str(tmp_path)}}
    started = time.perf_counter()
    client.NotebookClient(notebook, timeout=3600, resources=place).execute()
    print(f"the notebook took {time.perf_counter() - started:.0f} s")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    text = "".join(output.get("text", "") for output in outputs)
    pictures = [key for output in outputs for key in output.get("data", {}) if "image" in key]
    assert pictures.count("image/svg+xml") == 4
    assert pictures.count("image/png") == 1
    assert "spmrl-bench: " not in text  # a message of failure
    scores = [float(found) for found in re.findall(r"F1 (\d+\.\d+)$", text, re.MULTILINE)]
    assert min(scores[-2:]) > 40  # both parsers have learnt something
    assert "chance alone makes one as large in" in text
    assert "right-branching" in text
