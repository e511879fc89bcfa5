"""Data flows one way: a room imports what is below it, and no module leads back to itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import spmrl_bench

PACKAGE = Path(spmrl_bench.__file__).parent
#: From the ground up; modules beside the rooms lie below them.
ROOMS = ("storage", "trees", "readers", "scoring", "treebanks")


def imports(node: ast.AST) -> Iterator[str]:
    """Modules of the program that some code imports, in functions too, but for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("spmrl_bench."):
            yield str(child.module)
        yield from imports(child)


def test_no_room_imports_upwards_and_no_module_itself() -> None:
    graph: dict[str, set[str]] = {}
    upwards = []
    beside = {path.stem for path in PACKAGE.glob("*.py")}
    for height, room in enumerate(ROOMS):
        below = {*ROOMS[: height + 1], *beside}
        for path in sorted((PACKAGE / room).glob("*.py")):
            module = ".".join(("spmrl_bench", room, path.stem)).removesuffix(".__init__")
            graph[module] = set(imports(ast.parse(path.read_text(encoding="utf-8"))))
            wrong = [name for name in graph[module] if name.split(".")[1] not in below]
            upwards += [f"{module} imports {name}" for name in wrong]
    assert not upwards
    assert len(graph) > 40
    TopologicalSorter(graph).prepare()  # CycleError names a circle
