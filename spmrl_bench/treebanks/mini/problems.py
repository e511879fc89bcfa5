"""All mistakes of a grammar file at once.

Somebody who writes a grammar wants the list of what is wrong, not the first item of it. The
loading steps add to one :class:`Problems`; each step ends with :meth:`Problems.check`,
because later steps cannot make sense of what an earlier one rejected.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmrl_bench.errors import TreebankError, unknown_name


class GrammarError(TreebankError):
    """A mini grammar is wrong; ``problems`` lists every mistake found."""

    def __init__(self, path: str, problems: list[str]) -> None:
        lines = "\n".join(f"  {problem}" for problem in problems)
        count = f"{len(problems)} mistake{'s' if len(problems) > 1 else ''}"
        super().__init__(f"{path}: {count}:\n{lines}")
        self.path = path
        self.problems = problems


class Problems:
    """Collects mistakes, each with the key (and line) at which it was found."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[str] = []

    def add(self, key: str, problem: str) -> None:
        """Note one mistake."""
        text = f"{key}: {problem}"
        if text not in self.found:
            self.found.append(text)

    def unknown(self, key: str, kind: str, name: str, known: Iterable[str]) -> None:
        """Note a name that nothing declares."""
        self.add(key, unknown_name(kind, name, known))

    def check(self) -> None:
        """Raise :class:`GrammarError` if anything was noted."""
        if self.found:
            raise GrammarError(self.path, self.found)
