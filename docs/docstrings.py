"""Docstrings as the site shows them: the roles of Sphinx in them become links of Markdown.

A role may name an object in full, ``:class:`~spmrl_bench.trees.Tree```, or as the code beside it
would, ``:func:`decode```. Where no page has the object its name is code without a link.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

# ``start, end: fenceposts.`` in a section describes several names at once.
_TOGETHER = re.compile(r"^( +)((?:\w+, )+\w+)(: .*(?:\n\1 +.*)*)$", re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`(~?)\.?([\w.]+)`")


class Roles(griffe.Extension):
    """Rewrites the docstring of every object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = _TOGETHER.sub(_apart, obj.docstring.value)
            text = _ROLE.sub(lambda role: _link(obj, role), text)
            # Two colons announce a block of code, which its indentation says too.
            obj.docstring.value = re.sub(r"::\n\n(?=    )", ":\n\n", text)


def _apart(entry: re.Match[str]) -> str:
    """An entry of several names as one for each of them."""
    return "\n".join(f"{entry[1]}{name}{entry[3]}" for name in entry[2].split(", "))


def _link(obj: griffe.Object, role: re.Match[str]) -> str:
    shown = role[2].rpartition(".")[2] if role[1] else role[2]
    target = role[2]
    if not target.startswith("spmrl_bench"):
        try:
            target = obj.resolve(target)
        except griffe.NameResolutionError:
            target = f"{obj.path}.{target}"
    return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'
