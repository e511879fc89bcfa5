"""The page that sets any two entries of a treebank side by side, and the counts that it needs.

Fifty entries have more than a thousand pairs, too many for pages of their own. So the pages of the
entries have each beside the best, and this one leaves the choice to a script, which reads the
counts of all entries from a file beside it, one for each figure and split. A script may be read
from a disk where data may not, so the file is one. Trees are there for open treebanks only, and
only those of parses that are at hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from spmrl_bench.errors import TreeError
from spmrl_bench.leaderboard.board import Entry, Group, View
from spmrl_bench.site.atlas import Atlas, Bank
from spmrl_bench.site.downloads import Files, as_files, as_json
from spmrl_bench.site.forms import page
from spmrl_bench.site.grids import Cell, Grid, Head, estimated
from spmrl_bench.site.parses import AtHand, parses_of
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse


def compare_pages(atlas: Atlas) -> Iterator[Files]:
    """The page of each treebank, and its counts and trees."""
    for bank in atlas.banks:
        files: Files = {}
        choices = []
        grids = []
        for group in bank.groups:
            for view in group.views:
                entries = [entry for entry in group.entries if entry.sums(view) is not None]
                if len(entries) < 2:
                    continue
                table = f"table {group.number}, " if group.several else ""
                name = f"{view[0]}-{view[1]}-{group.number}"
                trees = _trees(atlas, bank, view, entries)
                counts = _counts(atlas, group, view, entries)
                counts["trees"] = sorted(trees.get("entries", {}))
                files[f"compare/{bank.slug}/{name}.js"] = _script(name, "counts", counts)
                data = bank.data(f"sentences-{view[0]}-{view[1]}", group)
                files |= {**as_files(data, _rows(counts)), f"{data}.json": as_json(counts)}
                if trees:
                    files[f"compare/{bank.slug}/{name}-trees.js"] = _script(name, "trees", trees)
                choices.append({"name": name, "title": f"{table}{group.view_title(view)}"})
                grids.append(_grid(atlas, bank, group, view, entries, table))
        files[bank.comparing] = page(
            "compare", bank.comparing, bank=bank, choices=choices, grids=grids
        )
        yield files


def _counts(atlas: Atlas, group: Group, view: View, entries: Sequence[Entry]) -> dict[str, Any]:
    """What is known of each sentence: sums over the runs of an entry, right above all."""
    first = entries[0].sums(view)
    lengths = first.lengths if first is not None else None
    found = []
    for entry in entries:
        sums, score = entry.sums(view), entry.headline(view)
        if sums is not None and score is not None:
            found.append(
                {
                    "id": atlas.slug(entry),
                    "name": entry.text,
                    "runs": sums.runs,
                    "score": score.mean,
                    "right": sums.ratio.numerator.tolist(),
                    "all": sums.ratio.denominator.tolist(),
                    "left_out": [k + 1 for k, own in enumerate(sums.scored.tolist()) if not own],
                }
            )
    return {
        "treebank": group.treebank,
        "metric": view[0],
        "split": view[1],
        "title": group.view_title(view),
        "words": lengths,
        "entries": found,
    }


def _rows(counts: dict[str, Any]) -> list[dict[str, object]]:
    """The same with a row for each sentence."""
    entries = counts["entries"]
    rows: list[dict[str, object]] = []
    for k in range(len(entries[0]["right"])):
        row: dict[str, object] = {"sentence": k + 1}
        if counts["words"] is not None:
            row["words"] = counts["words"][k]
        for one in entries:
            if k < len(one["right"]):
                row |= {f"{one['id']}:right": one["right"][k], f"{one['id']}:all": one["all"][k]}
        rows.append(row)
    return rows


def _trees(atlas: Atlas, bank: Bank, view: View, entries: Sequence[Entry]) -> dict[str, Any]:
    """Bracketed trees of those entries whose parses are at hand; nothing of licensed treebanks."""
    if not bank.shows_sentences:
        return {}
    hands: dict[str, AtHand] = {}
    for entry in entries:
        found = parses_of(entry, view, bank.facts)
        if found is not None and found.layer == "constituents":
            hands[atlas.slug(entry)] = found
    if not hands:
        return {}
    return {
        "gold": _brackets(next(iter(hands.values())).gold),
        "entries": {slug: _brackets(hand.parses) for slug, hand in hands.items()},
        "runs": {slug: hand.run for slug, hand in hands.items() if hand.run},
    }


def _brackets(parses: Sequence[Parse]) -> list[str]:
    found = []
    for parse in parses:
        try:
            found.append("" if parse.tree is None else write_brackets(parse.tree))
        except TreeError:
            found.append("")
    return found


def _script(name: str, what: str, content: dict[str, Any]) -> bytes:
    # JSON is JavaScript, but for two line ends that old readers take as such.
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return f"spmrlBench.take({json.dumps(name)},{json.dumps(what)},{text});\n".encode()


def _grid(
    atlas: Atlas, bank: Bank, group: Group, view: View, entries: Sequence[Entry], table: str
) -> Grid:
    """Each entry beside the best, as it stands without a script."""
    order = atlas.standing(group, view)
    rows = []
    for entry in order.ordered if order else ():
        if entry not in entries or order is None:
            continue
        p = order.p.get(entry)
        rows.append(
            [
                Cell(entry.text, atlas.entry(bank, group, entry)),
                estimated(entry.headline(view)),
                Cell("the best" if entry is order.best else "" if p is None else f"{p:.4f}"),
            ]
        )
    return Grid(
        f"against-{view[0]}-{view[1]}-{group.number}",
        f"Beside the best, {table}{group.view_title(view)}",
        [Head("system"), Head(group.view_title(view), True), Head("p", True)],
        rows,
    )
