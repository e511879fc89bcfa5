"""What is written of a parse: its tree in brackets, its dependencies in CoNLL-U, or all in JSON.

A sentence that was given up has no parse, and is written all the same, so that what comes out can
be set beside what went in. JSON is for programs: one object on each line, line ``k`` for sentence
``k``. A key is left out where the parser does not find the layer, or found none for the sentence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, cast, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from spmrl_bench.errors import ReadError, SpmrlError, TreeError
from spmrl_bench.parsing.streams import InputSentence, check_readable
from spmrl_bench.readers.conll import UNSPECIFIED, TagColumn, conll_lines
from spmrl_bench.readers.text import stream_lines
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.transforms import with_root
from spmrl_bench.trees.tree import NO_TAG, Tree

Output = Literal["brackets", "conllu", "json"]
OUTPUTS: tuple[Output, ...] = get_args(Output)

#: Answers a sentence that was given up, as EVALB expects it.
NO_PARSE = "(())"

_NEEDED: dict[Output, Layer] = {"brackets": "constituents", "conllu": "dependencies"}

#: What CoNLL-U calls probabilities of words.
_IN_MISC = {
    "head_probabilities": "HeadProbability",
    "relation_probabilities": "RelationProbability",
    "tag_probabilities": "TagProbability",
}

Place = Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True))
class ParseLine(TypedDict):
    """A sentence and its parse."""

    status: Literal["parsed", "too long", "empty"]
    """`parsed`; `too long`, and what else is there is a flat parse at most; `empty`: no words."""
    words: list[str]
    """The words as they came in, never escaped."""
    tags: list[str] | None
    """As they came in, or as predicted, or `XX`; null if the sentence was given up without any."""
    tree: NotRequired[str]
    """The tree in brackets, in whose words brackets are escaped (`-LRB-`)."""
    constituents: NotRequired[list[tuple[Place, Place, str]]]
    """`[start, end, label]` of each, top-down: words `start` (from 0) to `end`, without it."""
    heads: NotRequired[list[Place]]
    """The head of each word, counted from 1; 0 for the root."""
    relations: NotRequired[list[str]]
    """The relation of each word to its head."""
    probability: NotRequired[float | None]
    """With `--scores`: of the whole parse, without relations and tags; null if it has none."""
    constituent_probabilities: NotRequired[list[float]]
    """Likewise of each of `constituents`; 0 below 0.001."""
    head_probabilities: NotRequired[list[float]]
    """Likewise of each of `heads`."""
    relation_probabilities: NotRequired[list[float]]
    """Likewise of each of `relations`, given the head."""
    tag_probabilities: NotRequired[list[float]]
    """Likewise of each of `tags`, if the parser has predicted these."""


#: Reads lines, and has their JSON Schema.
PARSE_LINE: TypeAdapter[ParseLine] = TypeAdapter(ParseLine)


def chosen_output(wanted: Output | None, layers: Sequence[Layer]) -> Output:
    """Return what is written of parses with these layers, brackets if they have them; raise a
    SpmrlError if what is wanted shows a layer that is not there."""
    natural: Output = "brackets" if "constituents" in layers else "conllu"
    if wanted in _NEEDED and _NEEDED[wanted] not in layers:
        raise SpmrlError(
            f"--output {wanted} shows {_NEEDED[wanted]}, but this parser finds only "
            f"{' and '.join(layers)}: use '--output {natural}' or '--output json'"
        )
    return wanted or natural


def write_answer(
    sentence: InputSentence,
    parse: Parse | None,
    output: Output,
    tag_column: TagColumn,
    *,
    escapes: str = "ptb",
    too_long: bool,
) -> str:
    """Return the text that answers a sentence; ``parse`` is None if it was given up.

    One line in brackets, spelt and with a root as brackets of the input, else by these ``escapes``;
    or JSON. In CoNLL-U the lines of CoNLL-U in the input with other heads and relations, else rows
    with tags in ``tag_column`` if there are any; a comment for a sentence without words. Raise a
    TreeError if the format cannot hold a word, a tag or a relation.
    """
    if output == "json":
        line = _line(sentence, parse, escapes, too_long)
        return json.dumps(line, ensure_ascii=False) + "\n"
    if output == "brackets":
        if parse is None or parse.tree is None:
            return f"{NO_PARSE}\n"
        tree, spelt = parse.tree, sentence.spelt
        if spelt and spelt.root is not None and len(tree):
            tree = with_root(tree, spelt.root)
        words = spelt.words if spelt else None
        return (write_brackets(tree, escapes, spelt=words) if len(tree) else "") + "\n"
    if not sentence.words:
        return "# text =\n\n"
    heads = relations = [UNSPECIFIED] * len(sentence.words)
    if parse is not None and parse.dependencies is not None:
        heads = [str(head) for head in parse.dependencies.heads.tolist()]
        relations = list(parse.dependencies.relations)
    known = {} if parse is None else _probabilities(parse, sentence.tags is None)
    noted = {name: known[key] for key, name in _IN_MISC.items() if key in known}
    notes = [
        "|".join(f"{name}={value}" for name, value in zip(noted, row, strict=True))
        for row in zip(*noted.values(), strict=True)
    ]
    if sentence.source is not None:
        return sentence.source.with_dependencies(heads, relations, notes)
    tags = (sentence.tags if parse is None else parse.tags) or [NO_TAG] * len(sentence.words)
    shown = [UNSPECIFIED if tag == NO_TAG else tag for tag in tags]
    columns = sentence.words, shown, heads, relations
    return conll_lines(*columns, tag_column=tag_column, notes=notes or None)


def _line(sentence: InputSentence, parse: Parse | None, escapes: str, too_long: bool) -> ParseLine:
    tags = sentence.tags if parse is None else parse.tags
    line: ParseLine = {
        "status": "too long" if too_long else "parsed" if sentence.words else "empty",
        "words": list(sentence.words),
        "tags": None if tags is None else list(tags),
    }
    if parse and parse.tree is not None:
        line["tree"] = write_brackets(parse.tree, escapes)
        line["constituents"] = list(parse.tree.constituents())
    if parse and parse.dependencies is not None:
        line["heads"] = parse.dependencies.heads.tolist()
        line["relations"] = list(parse.dependencies.relations)
    if parse and parse.probabilities is not None:
        whole = math.exp(parse.probabilities.log_tree)
        line["probability"] = None if math.isnan(whole) else float(f"{whole:.4g}")
        line |= cast(Any, _probabilities(parse, sentence.tags is None))
    return line


def _probabilities(parse: Parse, tagged: bool) -> dict[str, list[float]]:
    """Return those of each constituent, word and, if the parser has tagged it, tag, by their key in
    a :class:`ParseLine`."""
    known, found = parse.probabilities, dict[str, Iterable[float] | None]()
    if known is None:
        return {}
    if parse.tree is not None and known.constituents is not None:
        of = known.constituents
        found["constituent_probabilities"] = (of.get(one, 0.0) for one in parse.tree.constituents())
    if parse.dependencies is not None and known.arcs is not None:
        arcs = [*enumerate(parse.dependencies.heads.tolist(), 1)]
        heads = [known.arcs.get(arc, 0.0) for arc in arcs]
        named = zip(arcs, parse.dependencies.relations, heads, strict=True)
        of_arcs = known.relations or {}
        found["head_probabilities"] = heads
        found["relation_probabilities"] = (
            of_arcs.get((*arc, name), 0.0) / (sure or 1.0) for arc, name, sure in named
        )
    found["tag_probabilities"] = known.tags if tagged else None
    return {
        key: [round(min(one, 1.0), 4) for one in row]
        for key, row in found.items()
        if row is not None
    }


def read_parse_lines(path: str | Path) -> Iterator[ParseLine]:
    """Yield the objects of a file that ``--output json`` wrote; raise a ReadError if it cannot be
    read, or a line is not as declared, with its number."""
    check_readable([str(path)])
    with open(path, "rb") as stream:
        for number, line in stream_lines(stream, str(path)):
            try:
                yield PARSE_LINE.validate_json(line)
            except ValidationError as error:
                mistake = error.errors()[0]
                key = ".".join(map(str, mistake["loc"]))
                problem = f"{key}: {mistake['msg']}" if key else mistake["msg"]
                raise ReadError(f"no parse as JSON ({problem})", path=path, line=number) from None


def to_parse(line: ParseLine) -> Parse | None:
    """Return the parse of a line, None where it has none; raise a TreeError if its parts do not
    fit each other."""
    words, tags = line["words"], line["tags"] or [NO_TAG] * len(line["words"])
    tree = dependencies = None
    if "constituents" in line:
        tree = Tree.build(words, tags, line["constituents"])
    if "heads" in line:
        if "relations" not in line:
            raise TreeError("a parse has heads, but no relations")
        dependencies = DependencyTree.build(words, tags, line["heads"], line["relations"])
    return None if tree is None and dependencies is None else Parse.of(tree, dependencies)
