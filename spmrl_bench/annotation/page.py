"""Pages in HTML that need nothing but themselves: trees as boxes, readable by day and by night.

Words and labels come from files, so all of them are escaped, and none decides the direction in
which the text around it runs.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence

from spmrl_bench.annotation.listing import Heading
from spmrl_bench.annotation.tree_text import Node, Span, nodes
from spmrl_bench.trees.tree import Tree

_STYLE = """\
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6676; --paper: #fdfdfb;
  --line: #d5dae1; --band: #f1f4f7; --gold: #8a5a00; --parser: #1f5f8b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9fabba;
  --paper: #15191f; --line: #343c47; --band: #1d232b; --gold: #f0b95a; --parser: #7fbce6; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 100rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.05rem; margin: 0 0 .4rem; }
h3 { font-size: .9rem; margin: 0 0 .3rem; }
.note, .soft { color: var(--soft); max-width: 75ch; }
section { margin-top: 2rem; padding-top: 1rem; border-top: 1px solid var(--line); }
.sentence { font-size: 1.05rem; margin: .3rem 0 .6rem; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr));
  gap: 1rem; }
.side, .wide { overflow-x: auto; }
.gold h3, .gold.mark, .gold .mark > b, mark.gold { color: var(--gold); }
.parser h3, .parser.mark, .parser .mark > b, mark.parser { color: var(--parser); }
.node { display: inline-block; vertical-align: top; margin: 0 .12rem .12rem 0; padding: 0 .2rem
  .15rem; border: 1px solid var(--line); border-radius: .25rem; }
.node > b { display: block; font-size: .72rem; font-weight: 600; color: var(--soft);
  line-height: 1.3; }
.mark { border-width: 2px; border-color: currentColor; background: var(--band); }
.gold .node.mark { border-color: var(--gold); } .parser .node.mark { border-color: var(--parser); }
mark { background: var(--band); font-weight: 650; padding: 0 .15rem; border-radius: .2rem; }
.word { padding: 0 .15rem; white-space: nowrap; }
table { border-collapse: collapse; font-size: .9rem; margin: .3rem 0 .8rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: start; border-bottom: 1px solid var(--line); }
tr.differs { background: var(--band); font-weight: 600; }
.number { text-align: end; }
@media print { body { max-width: none; padding: 0; } section { break-inside: avoid; } }
"""


def page(heading: Heading, sections: Iterable[str]) -> str:
    """A whole page; the sections are HTML."""
    title = escaped(heading.title)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>\n{_STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<h1>{title}</h1>",
            *(f'<p class="note">{escaped(note)}</p>' for note in heading.notes),
            *(f"<section>\n{section}\n</section>" for section in sections),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def escaped(text: str) -> str:
    return html.escape(text, quote=True)


def sentence_line(words: Sequence[str], marked: Collection[Span], kind: str = "gold") -> str:
    """The words of a sentence; those of the spans stand out."""
    inside = {word for start, end in marked for word in range(start, end)}
    parts = []
    for k, word in enumerate(words):
        text = escaped(word)
        parts.append(f'<mark class="{kind}">{text}</mark>' if k in inside else text)
    return f'<p class="sentence" dir="auto">{" ".join(parts)}</p>'


def table(headings: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]]) -> str:
    """A table of text; rows that are marked stand out."""
    head = "".join(f"<th>{escaped(cell)}</th>" for cell in headings)
    lines = "\n".join(
        ('<tr class="differs">' if marked else "<tr>")
        + "".join(f'<td dir="auto">{escaped(cell)}</td>' for cell in row)
        + "</tr>"
        for marked, row in rows
    )
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def tree_boxes(tree: Tree, marked: Collection[Span], side: str, title: str = "") -> str:
    """A tree as boxes within boxes, under a title or the name of the side that it is of."""
    parts: list[str] = []
    # What is to be written: a node, a word, or text as it is.
    waiting: list[Node | int | str] = [nodes(tree, marked)[0]]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
        elif isinstance(item, int):
            parts.append(f'<span class="word">{escaped(tree.words[item])}</span>')
        else:
            if item.label:
                mark = " mark" if item.marked else ""
                parts.append(f'<span class="node{mark}"><b>{escaped(item.label)}</b>')
                waiting.append("</span>")
            waiting += reversed(item.children)
    inside = "".join(parts)
    return f'<div class="side {side}" dir="auto"><h3>{escaped(title or side)}</h3>{inside}</div>'
