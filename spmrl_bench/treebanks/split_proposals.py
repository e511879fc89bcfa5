"""A division of files into training, development and test data, to be looked at by their owner.

What says most counts: lists of documents beside the files, then the names of files and folders
(:mod:`spmrl_bench.treebanks.split_names`), and only where nothing says anything the position of the
sentences. A proposal says where each split comes from and which files no split has, so that it can
be refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.manifest import SPLITS, SplitName
from spmrl_bench.treebanks.split_names import Files, NamedSplits, documents, named_splits

#: With fewer files than this, whole files make no sensible dev and test sets.
FILES_TO_DIVIDE = 10

#: Of some files those that repeat no other, and the number of sentences of each.
Distinct = Callable[[Sequence[str]], tuple[Files, list[int]]]
_SAY = "say which files are for what with --train, --dev and --test"


@dataclass(frozen=True, slots=True)
class ProposedSplit:
    """What makes a split.

    Attributes:
        files: in reading order.
        range: the first and last of their sentences, from 1, if it does not have all.
        ids: the list of documents that chooses among the files.
    """

    files: Files
    range: tuple[int, int] | None = None
    ids: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A division.

    Attributes:
        splits: all three.
        how: where they come from, for people.
        notes: what was cut from where, and what is left out.
        unused: files that no split has.
    """

    splits: dict[SplitName, ProposedSplit]
    how: str
    notes: tuple[str, ...] = ()
    unused: Files = ()


def propose_splits(
    paths: Sequence[str],
    distinct: Distinct,
    *,
    given: Mapping[SplitName, Files] | None = None,
    lists: Mapping[SplitName, tuple[str, Sequence[str]]] | None = None,
) -> Proposal:
    """Divide the files of a treebank.

    Args:
        paths: of the files, relative to the treebank's folder.
        distinct: gives, of some files, those that repeat no other and their sizes. Some releases
            hold their sentences twice: read together, every test sentence would have been
            trained on.
        given: files of those splits that the user has named; the names of others count too.
        lists: of splits, a file beside the treebank's that lists documents, and the list.

    Raises:
        TreebankError: names contradict each other or the lists, something is missing that cannot
            be cut from training data, or there are too few sentences to cut.
    """
    if given:
        claimed = {path for files in given.values() for path in files}
        rest = tuple(path for path in paths if path not in claimed)
        named = named_splits(rest) if len(given) < len(SPLITS) and rest else None
        told = dict(named.files) if named is not None else {}
        unnamed = rest if named is None else named.unnamed
        return _completed(NamedSplits({**told, **given}, unnamed, "as you said"), distinct)
    if lists:
        return _by_lists(paths, distinct, lists)
    named = named_splits(paths)
    return _by_position(paths, distinct) if named is None else _completed(named, distinct)


def _completed(named: NamedSplits, distinct: Distinct) -> Proposal:
    """All three splits from those that are told of."""
    files, unused, notes = dict(named.files), named.unnamed, []
    if "train" not in files:
        if not unused:
            have = " and ".join(files)
            raise TreebankError(
                f"found files for {have}, but none is left for train; put them into the folder, "
                f"or {_SAY}"
            )
        files["train"], unused = unused, ()
        notes.append("train: all files that are not of the other splits")
    elif unused and len(files) == 1:
        raise TreebankError(
            f"found files for train, but not for dev and test, and no name says what "
            f"{_some(unused)} is for; {_SAY}"
        )
    splits = {name: ProposedSplit(found) for name, found in files.items()}
    lacking = [name for name in SPLITS if name not in files]
    if lacking:
        kept, sizes = distinct(files["train"])
        unused += tuple(path for path in files["train"] if path not in kept)
        files["train"], count = kept, sum(sizes)
        tenth = max(1, count // 10)
        end = count - tenth * len(lacking)
        if end < 1:
            raise TreebankError(
                f"found {count} sentences for train, too few to cut {' and '.join(lacking)} from"
            )
        splits["train"] = ProposedSplit(kept, (1, end))
        for name in lacking:
            splits[name] = ProposedSplit(kept, (end + 1, end + tenth))
            end += tenth
            notes.append(f"{name}: no file is named so; the last sentences of train, cut from it")
    return Proposal({name: splits[name] for name in SPLITS}, named.by, tuple(notes), unused)


def _by_lists(
    paths: Sequence[str],
    distinct: Distinct,
    lists: Mapping[SplitName, tuple[str, Sequence[str]]],
) -> Proposal:
    """The splits whose documents are listed; one without a list has what the others leave."""
    chosen: dict[SplitName, Files] = {
        name: tuple(documents(paths, ids)[0]) for name, (_, ids) in lists.items()
    }
    for one, other in [(a, b) for a in chosen for b in chosen if a < b]:
        if both := set(chosen[one]) & set(chosen[other]):
            raise TreebankError(
                f"{lists[one][0]} and {lists[other][0]} both list {_some(sorted(both))}"
            )
    listed = {path for files in chosen.values() for path in files}
    rest = tuple(path for path in paths if path not in listed)
    found = _completed(NamedSplits(chosen, rest, "by the lists of documents"), distinct)
    splits = {
        name: ProposedSplit(split.files, split.range, lists[name][0]) if name in lists else split
        for name, split in found.splits.items()
    }
    return Proposal(splits, found.how, found.notes, found.unused)


def _by_position(every: Sequence[str], distinct: Distinct) -> Proposal:
    """Splits where nothing tells them: of ten files the ninth is dev and the tenth test.

    With fewer than ten files, the first 80 % of all sentences are train, the next 10 % dev and
    the rest test.
    """
    paths, sizes = distinct(every)
    unused = tuple(path for path in every if path not in paths)
    how = "by position, since no name says anything: 80 % train, 10 % dev, 10 % test"
    if len(paths) >= FILES_TO_DIVIDE:
        parts: dict[SplitName, list[str]] = {name: [] for name in SPLITS}
        for index, path in enumerate(paths):
            place: dict[int, SplitName] = {8: "dev", 9: "test"}
            parts[place.get(index % 10, "train")].append(path)
        how += " (of ten files, the ninth is dev and the tenth is test)"
        whole = {name: ProposedSplit(tuple(parts[name])) for name in SPLITS}
        return Proposal(whole, how, (), unused)
    total = sum(sizes)
    if total < len(SPLITS):
        raise TreebankError(f"found {total} sentences, expected at least 3 to divide")
    tenth = max(1, total // 10)
    borders = [0, total - 2 * tenth, total - tenth, total]
    ranges = [(first + 1, last) for first, last in pairwise(borders)]
    parts_of = zip(SPLITS, ranges, strict=True)
    return Proposal({name: ProposedSplit(paths, part) for name, part in parts_of}, how, (), unused)


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - 3
    return ", ".join(paths[:3]) + (f" and {more} more" if more > 0 else "")
