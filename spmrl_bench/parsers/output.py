"""What is written of a parse: its tree in brackets, its dependencies in CoNLL-U, or all in JSON.

A sentence that was given up has no parse, and is written all the same, so that what comes out can
be set beside what went in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, get_args

from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsers.parse_lines import Status, to_line
from spmrl_bench.parsers.streams import Given
from spmrl_bench.readers.conll import UNSPECIFIED, TagColumn, conll_lines
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import NO_TAG

Output = Literal["brackets", "conllu", "json"]
OUTPUTS: tuple[Output, ...] = get_args(Output)

#: Answers a sentence that was given up, as EVALB expects it.
NO_PARSE = "(())"

_NEEDED: dict[Output, Layer] = {"brackets": "constituents", "conllu": "dependencies"}


def chosen_output(asked: Output | None, layers: Sequence[Layer]) -> Output:
    """What is written of the parses with these layers; brackets if they have them.

    Raises:
        SpmrlError: what was asked for shows a layer that is not there.
    """
    natural: Output = "brackets" if "constituents" in layers else "conllu"
    if asked in _NEEDED and _NEEDED[asked] not in layers:
        raise SpmrlError(
            f"--output {asked} shows {_NEEDED[asked]}, but this parser finds only "
            f"{' and '.join(layers)}: use '--output {natural}' or '--output json'"
        )
    return asked or natural


def write_parse(
    given: Given, parse: Parse | None, output: Output, tag_column: TagColumn, *, too_long: bool
) -> str:
    """The text that answers a sentence.

    One line in brackets (an empty line answers an empty line), where words that stood in brackets
    stand as they stood there, or JSON. In CoNLL-U it is the lines
    of the input with other heads and relations if the input was CoNLL-U, else rows of their own,
    with tags in ``tag_column`` if there are any; none for a sentence without words.

    Args:
        given: the sentence.
        parse: of it; None if it was given up.
        output, tag_column: see above.
        too_long: whether it was beyond what the parser can take.

    Raises:
        TreeError: the format cannot hold a word, a tag or a relation.
    """
    if output == "json":
        return _json(given, parse, too_long) + "\n"
    if output == "brackets":
        if parse is None or parse.tree is None:
            return f"{NO_PARSE}\n"
        tree = parse.tree
        return (write_brackets(tree, spelt=given.spelt) if len(tree) else "") + "\n"
    if not given.words:
        return ""
    heads = relations = [UNSPECIFIED] * len(given.words)
    if parse is not None and parse.dependencies is not None:
        heads = [str(head) for head in parse.dependencies.heads.tolist()]
        relations = list(parse.dependencies.relations)
    if given.source is not None:
        return given.source.with_dependencies(heads, relations)
    tags = given.tags if parse is None else parse.tags
    known = [UNSPECIFIED if tag == NO_TAG else tag for tag in tags or [NO_TAG] * len(given.words)]
    return conll_lines(given.words, known, heads, relations, tag_column=tag_column)


def _json(given: Given, parse: Parse | None, too_long: bool) -> str:
    status: Status = "too long" if too_long else "parsed" if given.words else "empty"
    tags = None if given.tags is None else list(given.tags)
    return json.dumps(to_line(list(given.words), tags, parse, status), ensure_ascii=False)
