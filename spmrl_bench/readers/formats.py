"""The treebank formats by name: what reads each, what comes out, which options it takes.

Manifests name a format, and an unknown folder is inspected by asking every format whether a
file looks like it. Nothing else in the program knows which formats there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spmrl_bench.readers.alpino import looks_like_alpino_xml, read_alpino_xml
from spmrl_bench.readers.brackets import looks_like_brackets, read_brackets_file
from spmrl_bench.readers.conll import looks_like_conll, read_conll_file
from spmrl_bench.readers.dp import looks_like_dp, read_dp
from spmrl_bench.readers.negra_export import looks_like_negra_export, read_negra_export
from spmrl_bench.readers.tigerxml import looks_like_tiger_xml, read_tiger_xml

Yields = Literal["trees", "graphs", "dependencies"]


@dataclass(frozen=True, slots=True)
class Format:
    """One file format.

    Attributes:
        name: as manifests write it.
        title: for people.
        yields: what the reader makes of a sentence: a ``Tree``, a ``Graph`` (which may have
            crossing branches) or a ``DependencySentence``.
        read: ``read(path, *, on_error, **options)``, an iterator over the sentences of a file.
        looks_like: whether a file is of this format, judged by the first 64 Ki characters.
        options: the keyword arguments of ``read`` that a manifest may set, and their defaults;
            ``...`` stands for one that it must set.
        suffixes: usual endings of file names.
    """

    name: str
    title: str
    yields: Yields
    read: Callable[..., Iterator[Any]]
    looks_like: Callable[[str], bool]
    options: Mapping[str, Any]
    suffixes: tuple[str, ...]


_ENCODED = {"encoding": "utf-8"}

#: Every format by its name.
FORMATS: Mapping[str, Format] = {
    format_.name: format_
    for format_ in (
        Format(
            "brackets",
            "bracketed trees (Penn Treebank, SPMRL)",
            "trees",
            read_brackets_file,
            looks_like_brackets,
            _ENCODED | {"escapes": ...},
            (".mrg", ".ptb", ".fid", ".nw", ".bracket", ".txt"),
        ),
        Format(
            "tiger-xml",
            "TIGER-XML",
            "graphs",
            read_tiger_xml,
            looks_like_tiger_xml,
            {},
            (".xml",),
        ),
        Format(
            "alpino-xml",
            "Alpino XML",
            "graphs",
            read_alpino_xml,
            looks_like_alpino_xml,
            {},
            (".xml",),
        ),
        Format(
            "negra-export",
            "NEGRA export format, versions 3 and 4",
            "graphs",
            read_negra_export,
            looks_like_negra_export,
            _ENCODED,
            (".export",),
        ),
        Format(
            "conll",
            "CoNLL-U and CoNLL-X dependencies",
            "dependencies",
            read_conll_file,
            looks_like_conll,
            _ENCODED | {"tag_column": "xpos", "roots": "one"},
            (".conllu", ".conll"),
        ),
        Format(
            "dp",
            "dependencies in three columns (word, tag, head)",
            "dependencies",
            read_dp,
            looks_like_dp,
            _ENCODED,
            (".dp",),
        ),
    )
}
