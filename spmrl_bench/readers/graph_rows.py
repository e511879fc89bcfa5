"""Tokens and nodes of a sentence on their way to a graph, and the checks that every format needs.

A file can give a sentence nodes without children, nodes below themselves, or no words, in any
format that names parents by identifiers. What holds them is the same, whatever the format
calls them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NoReturn

from spmrl_bench.trees.dependencies import head_fault
from spmrl_bench.trees.graph import NO_PARENT, Graph


class SentenceError(Exception):
    """What is wrong with the sentence being read, and the line; its reader adds the rest."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass
class GraphRows:
    """One sentence; the fields are those of :class:`Graph`, and grow."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    token_parents: list[int] = field(default_factory=list)
    token_edges: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # of the nodes

    def add_token(self, word: str, tag: str, edge: str = "", parent: int = NO_PARENT) -> int:
        """A token; its index."""
        self.words.append(word)
        self.tags.append(tag)
        self.token_parents.append(parent)
        self.token_edges.append(edge)
        return len(self.words) - 1

    def add_node(self, label: str, line: int, edge: str = "", parent: int = NO_PARENT) -> int:
        """A node; its index."""
        self.labels.append(label)
        self.parents.append(parent)
        self.edges.append(edge)
        self.lines.append(line)
        return len(self.labels) - 1

    def graph(self, name: str) -> Graph:
        """The sentence; a SentenceError where a node has no child or is below itself."""
        childless = set(range(len(self.labels))).difference(self.parents, self.token_parents)
        if childless:
            self.fail(min(childless), "without children")
        fault = head_fault([parent + 1 for parent in self.parents], roots="several")
        if fault is not None:
            self.fail(fault.word - 1, "below itself")
        columns = {
            column.name: tuple(getattr(self, column.name))
            for column in fields(Graph)
            if column.name != "name"
        }
        return Graph(name, **columns)

    def fail(self, node: int, fault: str) -> NoReturn:
        """Raise the error of a node."""
        raise SentenceError(f"found the node '{self.labels[node]}' {fault}", self.lines[node])
