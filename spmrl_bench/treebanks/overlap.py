"""Sentences that two splits have: a test set that was trained on.

Two things are looked at. A sentence that lies in two splits by its place, because their files or
ranges overlap, is a mistake of the manifest, found without reading anything. Equal sentences in
different places are in every treebank (*Thank you very much .*); but where they are a good part of
a split, that split stands in another one. Whoever wants it so says ``shared = "allowed"``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from spmrl_bench.treebanks.manifest import FileManifest
from spmrl_bench.treebanks.patterns import check_range
from spmrl_bench.treebanks.sources import SPLITS
from spmrl_bench.treebanks.split_files import split_files

#: Share of a split's sentences that an earlier split may have too, and a number that is chance.
MOST_SHARED = 0.1
BY_CHANCE = 2
_ALLOW = 'If it is meant to be so, write shared = "allowed" into the manifest'


def same_places(manifest: FileManifest, folder: Path) -> list[str]:
    """Where files or ranges give a sentence to two splits, in words; nothing where that is allowed.

    Of splits that choose by a table nothing is said, nor of ranges of different lists of files.
    """
    if manifest.shared == "allowed":
        return []
    mistakes = []
    files = {name: split_files(manifest, folder, manifest.splits[name]).paths for name in SPLITS}
    for one, other in combinations(SPLITS, 2):
        first, second = manifest.splits[one], manifest.splits[other]
        both = [path for path in files[one] if path in set(files[other])]
        if not both or first.rows is not None or second.rows is not None:
            continue
        file = f"{both[0].relative_to(folder).as_posix()}{_more(len(both) - 1, 'file')}"
        if first.range is None and second.range is None:
            mistakes.append(f"{one} and {other} both have {file}. {_ALLOW}")
        elif files[one] == files[other]:
            start, end = _both(first.range, second.range)
            if end is None or start <= end:
                last = "the last" if end is None else f"{end}"
                mistakes.append(
                    f"{one} and {other} both have sentences {start} to {last} of {file}. {_ALLOW}"
                )
        elif first.range is None or second.range is None:
            whole, part = (one, other) if first.range is None else (other, one)
            mistakes.append(f"{whole} has all of {file}, of which {part} has a range. {_ALLOW}")
    return mistakes


def many_shared(shared: Sequence[tuple[str, int, str, int]], sizes: Mapping[str, int]) -> list[str]:
    """Which splits have too many of the sentences of an earlier one, in words.

    Args:
        shared: as of :func:`spmrl_bench.treebanks.survey.shared_sentences`.
        sizes: number of sentences of each split.
    """
    counts = Counter((split, earlier) for split, _, earlier, _ in shared)
    examples = {(split, earlier): (n, m) for split, n, earlier, m in reversed(shared)}
    return [
        f"{count} of the {sizes[split]} sentences of {split} are in {earlier} too, such as "
        f"{split} {examples[split, earlier][0]} = {earlier} {examples[split, earlier][1]}. {_ALLOW}"
        for (split, earlier), count in counts.items()
        if count > max(BY_CHANCE, MOST_SHARED * sizes[split])
    ]


def _both(one: str | None, other: str | None) -> tuple[int, int | None]:
    """The range that two ranges have in common; its end lies before its start if there is none."""
    ranges = [(1, None) if text is None else check_range(text) for text in (one, other)]
    ends = [end for _, end in ranges if end is not None]
    return max(start for start, _ in ranges), min(ends) if ends else None


def _more(count: int, what: str) -> str:
    if not count:
        return ""
    return f" and {count} other {what}{'' if count == 1 else 's'}"
