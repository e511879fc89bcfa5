"""The answers of a parser of somebody else, set beside the gold sentences one by one.

Parsers leave sentences out, cut them, split words otherwise, and language models write text around
a tree or forget to close it. Which sentence an answer is of is never guessed: a file has as many
answers as the split has sentences, in their order. What becomes of an answer that cannot be scored
as it stands is a policy with a name, and each such answer is counted. No policy can raise a score:
an answer that is of no use has no bracket and no head that is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.readers.brackets import parse_brackets, read_brackets
from spmrl_bench.readers.conll import looks_like_conll, read_conll
from spmrl_bench.readers.text import read_text
from spmrl_bench.systems.material import spelt, without_root
from spmrl_bench.treebanks.reading import transform_parse
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.transforms import transform_named
from spmrl_bench.trees.tree import Tree

#: What is done with answers that cannot be scored as they stand: nothing is scored; they count as
#: sentences without a parse; the same, but brackets are mended first where only these are wrong.
Policy = Literal["refuse", "missing", "repair"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

_SHOWN = 20  # faults that an error lists
_PLACE = re.compile(r"^[:0-9]*:( sentence [0-9]+:)? ")

REPAIRED = "repaired"
NO_PARSE = "no parse"
MALFORMED = "malformed"
OTHER_WORDS = "other words"


@dataclass(frozen=True)
class Predictions:
    """The answers to all sentences of a split.

    Attributes:
        layer: of annotation, that of the file.
        parses: one for each sentence, with the words and tags of gold.
        handled: how many answers could not be scored as they stood, by what was wrong;
            ``repaired`` are those that could be after all.
    """

    layer: Layer
    parses: list[Parse]
    handled: dict[str, int]


@dataclass(frozen=True)
class _Answer:
    """One answer: a parse, or what is wrong (``kind``, and ``problem`` for people)."""

    line: int = 0
    parse: Parse | None = None
    kind: str = ""
    problem: str = ""


def read_predictions(
    path: Path,
    gold: Sequence[Parse],
    *,
    transforms: Sequence[str] = (),
    policy: Policy = "refuse",
    encoding: str = "utf-8",
) -> Predictions:
    """The answers of a file of brackets or CoNLL-U.

    Args:
        path: trees, one a line or laid out over several lines; or CoNLL-U.
        gold: the sentences of the split, with the layer of the file.
        transforms: names of the treebank's; those that change trees, not words, are applied to
            trees that were read.
        policy: what becomes of answers that cannot be scored as they stand.

    Raises:
        ReadError: the file cannot be read, or, laid out over lines, has a malformed tree.
        ScoreError: it has another number of sentences, or, by the policy ``refuse``, answers
            that cannot be scored; the first of them are listed with their lines.
    """
    text = read_text(path, encoding)
    layer: Layer = "dependencies" if looks_like_conll(text) else "constituents"
    if gold and layer not in gold[0].layers:
        raise ScoreError(
            f"{path}: has {layer}, but the treebank has {' and '.join(gold[0].layers)}"
        )
    if layer == "dependencies":
        answers = _dependency_answers(text, path)
    else:
        answers = _bracket_answers(text, path, len(gold), policy == "repair")
    if len(answers) != len(gold):
        raise ScoreError(_other_number(path, answers, gold))
    names = [name for name in transforms if not transform_named(name).word]
    checked = [
        _beside(answer, sentence, names) for answer, sentence in zip(answers, gold, strict=True)
    ]
    faults = [(k, answer) for k, answer in enumerate(checked, start=1) if answer.parse is None]
    if faults and policy == "refuse":
        listed = [f"{path}:{one.line}: sentence {k}: {one.problem}" for k, one in faults[:_SHOWN]]
        more = [f"... and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        raise ScoreError(
            "\n".join([*listed, *more])
            + f"\n{len(faults)} of {len(gold)} answers cannot be scored. --faults missing counts "
            "them as sentences without a parse; --faults repair mends brackets first"
        )
    handled = Counter(answer.kind for answer in checked if answer.kind)
    parses = [
        _nothing(sentence, layer) if answer.parse is None else answer.parse
        for answer, sentence in zip(checked, gold, strict=True)
    ]
    return Predictions(layer, parses, dict(sorted(handled.items())))


def _bracket_answers(text: str, path: Path, sentences: int, repair: bool) -> list[_Answer]:
    """The trees of a file: of each line where it has as many lines, else wherever they are."""
    lines = text.removesuffix("\n").split("\n")
    while len(lines) > sentences and not lines[-1].strip():
        lines.pop()
    if len(lines) == sentences:
        return [_of_line(number, line, repair) for number, line in enumerate(lines, start=1)]
    trees = read_brackets(text, path=path, margin=False)
    return [_Answer(parse=Parse.of(tree)) for tree in trees]


def _of_line(number: int, line: str, repair: bool) -> _Answer:
    if not line.strip("() \t\r"):
        return _Answer(number, kind=NO_PARSE, problem="no parse")
    try:
        return _Answer(number, Parse.of(parse_brackets(line)))
    except ReadError as error:
        if repair and (tree := _mended(line)) is not None:
            return _Answer(number, Parse.of(tree), REPAIRED)
        return _Answer(number, kind=MALFORMED, problem=_problem(error))


def _problem(error: ReadError) -> str:
    """What a reader says, without the place, which is named anew."""
    return _PLACE.sub("", str(error).removeprefix(str(error.path)))


def _mended(line: str) -> Tree | None:
    """The first tree of a line, closed where its end is missing, without what is around it.

    None if that is no tree either.
    """
    start = line.find("(")
    depth = 0
    for place in range(max(start, 0), len(line)):
        depth += (line[place] == "(") - (line[place] == ")")
        if depth == 0:
            line = line[: place + 1]
            break
    try:
        return parse_brackets(line[start:] + ")" * depth) if start >= 0 else None
    except ReadError:
        return None


def _dependency_answers(text: str, path: Path) -> list[_Answer]:
    answers: list[_Answer] = []

    def note(error: ReadError) -> None:
        answers.append(_Answer(error.line or 0, kind=MALFORMED, problem=_problem(error)))

    for sentence in read_conll(text, path=path, roots="several", on_error=note):
        answers.append(_Answer(sentence.lines[0], Parse.of(dependencies=sentence.tree)))
    return answers


def _as_given(parse: Parse, gold: Parse) -> Parse:
    """A parse without what :mod:`~spmrl_bench.systems.material` changed of its sentence."""
    tree, arcs = parse.tree, parse.dependencies
    if tree is not None and gold.tree is not None:
        tree = without_root(tree, gold.tree)
    if parse.words != gold.words and parse.words == tuple(map(spelt, gold.words)):
        tree = tree and replace(tree, words=gold.words)
        arcs = arcs and replace(arcs, words=gold.words)
    return Parse.of(tree, arcs)


def _beside(answer: _Answer, gold: Parse, transforms: Sequence[str]) -> _Answer:
    """The answer with the tags of gold, or why it cannot be scored."""
    parse = answer.parse
    if parse is None:
        return answer
    if parse.tree is not None:
        parse = transform_parse(transforms, parse)
    if parse is None:
        return _Answer(answer.line, kind=NO_PARSE, problem="no parse")
    parse = _as_given(parse, gold)
    if parse.words != gold.words:
        return _Answer(answer.line, kind=OTHER_WORDS, problem=_first_difference(parse, gold))
    return _Answer(answer.line, parse.with_tags(gold.tags), answer.kind)


def _first_difference(parse: Parse, gold: Parse) -> str:
    pairs = enumerate(zip(parse.words, gold.words, strict=False), start=1)
    number = next((n for n, (one, other) in pairs if one != other), min(len(parse), len(gold)) + 1)
    found, expected = (
        f"'{side.words[number - 1]}'" if number <= len(side) else "missing"
        for side in (parse, gold)
    )
    return f"word {number} is {found}, in gold {expected} ({len(parse)} words, in gold {len(gold)})"


def _other_number(path: Path, answers: Sequence[_Answer], gold: Sequence[Parse]) -> str:
    same = 0
    for answer, sentence in zip(answers, gold, strict=False):
        if answer.parse is not None and answer.parse.words != sentence.words:
            break
        same += 1
    return (
        f"{path}: has {len(answers)} sentences, the split has {len(gold)}; expected the same in "
        f"the same order, an answer that failed as a line '(())'. The first {same} are the same"
    )


def _nothing(gold: Parse, layer: Layer) -> Parse:
    """A parse of which nothing is right: no constituent, or no head and no relation."""
    if layer == "constituents":
        return Parse.of(Tree.build(gold.words, gold.tags, []))
    n = len(gold)
    heads = np.full(n, -1, dtype=np.int32)
    heads.flags.writeable = False
    return Parse.of(dependencies=DependencyTree(gold.words, gold.tags, heads, ("",) * n))
