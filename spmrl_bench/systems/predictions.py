"""The files of a parser of somebody else: what it learns from and parses, and what it answers.

It is given the words that our own parsers read, after the treebank's transforms. Many programs
split lines at any white space, so that what is inside a word is ``_``. Trees stand in one
constituent ``ROOT`` more than they have, because programs expect one that is the only one of its
kind; it is taken away from the answers again.

Which sentence an answer is of is never guessed: a file has as many answers as the split has
sentences, in their order. No policy for answers that cannot be scored can raise a score: one that
is of no use has no bracket and no head that is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.leaderboard.saved_parses import empty_parse
from spmrl_bench.readers.brackets import parse_brackets, read_brackets
from spmrl_bench.readers.conll import UNSPECIFIED, conll_lines, looks_like_conll, read_conll
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.attachment import first_other_word
from spmrl_bench.treebanks.reading import transform_parse
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.transforms import transform_named
from spmrl_bench.trees.tree import Tree, readonly_int32

#: What is done with answers that cannot be scored as they stand: nothing is scored; they count as
#: sentences without a parse; the same, but brackets are repaired first where only these are wrong.
Policy = Literal["refuse", "missing", "repair"]
#: What is wrong with an answer that has not the words of its sentence.
OTHER = "other words"

_ROOT, _NO_TAG = "ROOT", "X"
_SHOWN = 20  # answers that an error lists


def file_text(
    parses: Iterable[Parse],
    form: Literal["brackets", "conllu", "words"],
    *,
    tags: bool = False,
    structure: bool = False,
    spaces: bool = False,
) -> str:
    """Sentences as a system reads them: trees, one a line, CoNLL-U, or words, a sentence a line.
    Without ``tags`` those of the treebank are left out; without ``structure`` trees have their root
    alone, and words no heads. Only where ``spaces`` are kept a word has white space."""

    def text(parse: Parse) -> str:
        words = parse.words if spaces else _given(parse.words)
        blank = [UNSPECIFIED] * len(parse)
        if form == "words":
            return f"{' '.join(words)}\n"
        if form == "brackets":
            below = parse.tree if structure and parse.tree else Tree.build((), (), [])
            spans = readonly_int32([[0, len(parse)], *below.spans.tolist()])
            own = parse.tags if tags else (_NO_TAG,) * len(parse)
            return f"{write_brackets(Tree(words, own, (_ROOT, *below.labels), spans))}\n"
        heads, relations = blank, blank
        if structure and (arcs := parse.dependencies):
            heads, relations = [*map(str, arcs.heads.tolist())], [*arcs.relations]
        return conll_lines(words, parse.tags if tags else blank, heads, relations)

    return "".join(map(text, parses))


def _given(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(re.sub(r"\s", "_", word) for word in words)


class Predictions(NamedTuple):
    """The answers to all sentences of a split, with the words and tags of gold."""

    layer: Layer
    parses: list[Parse]
    handled: dict[str, int]
    """How many answers could not be scored as they stood, by what was wrong, or ``repaired``."""


class _Answer(NamedTuple):
    """One answer: a parse, or what is wrong (``kind``, and ``problem`` for people)."""

    line: int
    parse: Parse | None = None
    kind: str = ""
    problem: str = "no parse"


def read_predictions(
    path: Path,
    gold: Sequence[Parse],
    *,
    transforms: Sequence[str] = (),
    policy: Policy = "refuse",
    encoding: str = "utf-8",
) -> Predictions:
    """The answers of a file, trees (one a line or laid out over several) or CoNLL-U, to the
    sentences of a split, which have the layer of the file.

    The treebank's ``transforms`` that change trees, not words, are applied to them. A ReadError if
    the file cannot be read or, laid out over lines, has a malformed tree; a ScoreError if it has
    another number of sentences or, by the policy ``refuse``, answers that cannot be scored.
    """
    text = read_text(path, encoding)
    layer: Layer = "dependencies" if looks_like_conll(text) else "constituents"
    if gold and layer not in gold[0].layers:
        known = " and ".join(gold[0].layers)
        raise ScoreError(f"{path}: has {layer}, but the treebank has {known}")
    if layer == "dependencies":
        answers = _dependency_answers(text, path)
    else:
        answers = _bracket_answers(text, path, len(gold), policy == "repair")
    if len(answers) != len(gold):
        raise ScoreError(
            f"{path}: has {len(answers)} sentences, the split has {len(gold)}; expected the same "
            "in the same order, an answer that failed as a line '(())'"
        )
    names = [name for name in transforms if not transform_named(name).word]
    checked = [_align(answer, right, names) for answer, right in zip(answers, gold, strict=True)]
    invalid = [(k, answer) for k, answer in enumerate(checked, start=1) if answer.parse is None]
    if invalid and policy == "refuse":
        listed = (
            str(ReadError(one.problem, path=path, line=one.line or None, sentence=k))
            for k, one in invalid[:_SHOWN]
        )
        raise ScoreError(
            "\n".join(listed) + f"\n{len(invalid)} of {len(gold)} answers cannot be scored. "
            "--faults missing counts them as sentences without a parse; --faults repair repairs "
            "brackets first"
        )
    handled = Counter(answer.kind for answer in checked if answer.kind)
    parses = [
        answer.parse or empty_parse(sentence, layer)
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
    return [_Answer(0, Parse.of(tree)) for tree in read_brackets(text, path=path, margin=False)]


def _of_line(number: int, line: str, repair: bool) -> _Answer:
    if not line.strip("() \t\r"):
        return _Answer(number, kind="no parse")
    try:
        return _Answer(number, Parse.of(parse_brackets(line)))
    except ReadError as error:
        if repair and (tree := _repair_brackets(line)) is not None:
            return _Answer(number, Parse.of(tree), "repaired")
        return _Answer(number, kind="malformed", problem=error.problem)


def _repair_brackets(line: str) -> Tree | None:
    """The first tree of a line, closed where its end is missing, without what is around it."""
    line, depth = line[line.find("(") :] if "(" in line else "", 0
    for place, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            line = line[: place + 1]
            break
    try:
        return parse_brackets(line + ")" * depth)
    except ReadError:
        return None


def _dependency_answers(text: str, path: Path) -> list[_Answer]:
    answers: list[_Answer] = []

    def note(error: ReadError) -> None:
        answers.append(_Answer(error.line or 0, kind="malformed", problem=error.problem))

    for sentence in read_conll(text, path=path, roots="several", on_error=note):
        answers.append(_Answer(sentence.lines[0], Parse.of(dependencies=sentence.tree)))
    return answers


def _align(answer: _Answer, gold: Parse, transforms: Sequence[str]) -> _Answer:
    """The answer with the words and tags of gold, or why it cannot be scored."""
    parse = answer.parse
    if parse is None:
        return answer
    if parse.tree is not None and (parse := transform_parse(transforms, parse)) is None:
        return _Answer(answer.line, kind="no parse")
    tree, arcs = parse.tree, parse.dependencies
    if tree is not None and gold.tree is not None:
        tree = _without_root(tree, gold.tree)
    if parse.words == _given(gold.words):
        tree = tree and replace(tree, words=gold.words)
        arcs = arcs and replace(arcs, words=gold.words)
    parse = Parse.of(tree, arcs)
    if parse.words == gold.words:
        return answer._replace(parse=parse.with_tags(gold.tags))
    return _Answer(answer.line, kind=OTHER, problem=first_other_word(gold.words, parse.words)[1])


def _without_root(tree: Tree, gold: Tree) -> Tree:
    """The tree without a constituent ``ROOT`` around it that gold has not."""

    def roots(one: Tree) -> int:
        pairs = zip(one.labels, one.spans.tolist(), strict=True)
        return sum(pair == (_ROOT, [0, len(one)]) for pair in pairs)

    if tree.labels[:1] != (_ROOT,) or roots(tree) <= roots(gold):
        return tree
    return replace(tree, labels=tree.labels[1:], spans=readonly_int32(tree.spans[1:]))
