"""What is written of a parse: its tree in brackets, its dependencies in CoNLL-U, or all in JSON.

A sentence that was given up has no parse, and is written all the same, so that what comes out can
be set beside what went in. JSON is for programs: one object on each line, line ``k`` for sentence
``k``. A key is left out where the parser does not find the layer, or found none for the sentence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Literal, cast

from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsing.json_lines import ParseLine
from spmrl_bench.parsing.streams import InputSentence
from spmrl_bench.readers.conll import UNSPECIFIED, TagColumn, conll_lines
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.transforms import with_root
from spmrl_bench.trees.tree import NO_TAG

Output = Literal["brackets", "conllu", "json"]

#: Answers a sentence that was given up, as EVALB expects it.
NO_PARSE = "(())"

_NEEDED: dict[Output, Layer] = {"brackets": "constituents", "conllu": "dependencies"}

#: What CoNLL-U calls probabilities of words.
_IN_MISC = {
    "head_probabilities": "HeadProbability",
    "relation_probabilities": "RelationProbability",
    "tag_probabilities": "TagProbability",
}


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
    if sentence.given is not None:
        given = asdict(sentence.given).items()
        line["given"] = cast(Any, {key: [*value] for key, value in given if value})
    if parse:
        line |= _layers(parse, escapes)
        if parse.best:
            ranked = [
                {"score": round(score, 6), **_layers(one, escapes)} for score, one in parse.best
            ]
            line["best"] = cast(Any, ranked)
    if parse and parse.probabilities is not None:
        line |= cast(Any, _probabilities(parse, sentence.tags is None))
    return line


def _layers(parse: Parse, escapes: str) -> Any:
    found = dict[str, Any]()
    if parse.tree is not None:
        found["tree"] = write_brackets(parse.tree, escapes)
        found["constituents"] = list(parse.tree.constituents())
    if parse.dependencies is not None:
        found["heads"] = parse.dependencies.heads.tolist()
        found["relations"] = list(parse.dependencies.relations)
    if parse.probabilities is not None:
        whole = math.exp(parse.probabilities.log_tree)
        found["probability"] = None if math.isnan(whole) else float(f"{whole:.4g}")
    return found


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
