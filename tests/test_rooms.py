"""Data flows one way: a room imports what is below it, and no module leads back to itself."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import spmrl_bench
from spmrl_bench.parsers.kinds import KINDS

PACKAGE = Path(spmrl_bench.__file__).parent
#: From the ground up; modules beside the rooms lie below them.
ROOMS = (
    *("storage", "process", "trees", "readers", "scoring", "treebanks"),
    *("chart", "transitions", "nn", "parsers", "training", "parsing", "leaderboard"),
    *("experiments", "systems", "analysis", "integrations"),
    *("site", "cli"),
)


def imports(node: ast.AST) -> Iterator[str]:
    """Modules of the program that some code imports, in functions too, but for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("spmrl_bench."):
            yield str(child.module)
        yield from imports(child)


def modules(folder: Path) -> dict[str, set[str]]:
    """What each module of a folder imports."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = set(imports(ast.parse(path.read_text("utf-8"))))
    return found


def test_no_room_imports_upwards_and_no_module_itself() -> None:
    graph: dict[str, set[str]] = {}
    upwards = []
    beside = {path.stem for path in PACKAGE.glob("*.py")}
    for height, room in enumerate(ROOMS):
        below = {*ROOMS[: height + 1], *beside}
        for module, imported in modules(PACKAGE / room).items():
            graph[module] = imported - {module}  # a package names its modules
            wrong = [name for name in imported if name.split(".")[1] not in below]
            upwards += [f"{module} imports {name}" for name in wrong]
    assert not upwards
    assert len(graph) > 90
    TopologicalSorter(graph).prepare()  # CycleError names a circle


def test_no_two_modules_have_one_name() -> None:
    names = [path.stem for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_nothing_outside_parsers_names_the_module_of_a_kind() -> None:
    kinds = {KINDS.get(name).place.partition(":")[0] for name in KINDS.names()}
    assert len(kinds) == 5
    naming = [
        f"{module} imports {name}"
        for module, imported in modules(PACKAGE).items()
        for name in imported & kinds
        if not module.startswith("spmrl_bench.parsers.")
    ]
    assert not naming
