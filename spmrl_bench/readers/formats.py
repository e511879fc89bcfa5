"""The treebank formats by name: what reads each, what comes out, which options it takes.

Manifests name a format, and an unknown folder is inspected by asking every format whether a
file looks like it. Nothing else in the program knows which formats there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spmrl_bench.readers.alpino import looks_like_alpino_xml, read_alpino_xml
from spmrl_bench.readers.brackets import looks_like_brackets
from spmrl_bench.readers.conll import looks_like_conll, read_conll_file
from spmrl_bench.readers.described import read_described
from spmrl_bench.readers.dialect import DEFAULTS
from spmrl_bench.readers.dp import looks_like_dp, read_dp
from spmrl_bench.readers.named_dialects import (
    looks_like_bracketed_words,
    looks_like_psd,
    looks_like_sinica,
    looks_like_tbf,
    read_bracketed_words,
    read_psd,
    read_sinica,
    read_tbf,
)
from spmrl_bench.readers.negra_export import looks_like_negra_export, read_negra_export
from spmrl_bench.readers.tigerxml import looks_like_tiger_xml, read_tiger_xml
from spmrl_bench.readers.visl import looks_like_visl, read_visl

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
    """

    name: str
    title: str
    yields: Yields
    read: Callable[..., Iterator[Any]]
    looks_like: Callable[[str], bool]
    options: Mapping[str, Any]


_ENCODED = {"encoding": "utf-8"}

_FORMATS = (
    Format(
        "brackets", "bracketed trees (Penn Treebank, SPMRL; others by description)", "trees",
        read_described, looks_like_brackets, {**_ENCODED, "escapes": ..., **DEFAULTS},
    ),
    Format(
        "psd", "CorpusSearch bracketed trees with ID nodes", "trees",
        read_psd, looks_like_psd, _ENCODED | {"lemmas": False},
    ),
    Format(
        "tbf", "bracketed trees with three-part leaves: tag, word, lemma (CESS)", "trees",
        read_tbf, looks_like_tbf, _ENCODED,
    ),
    Format(
        "visl", "VISL trees (Floresta): FUNCTION+form labels, a line of text before each tree",
        "trees", read_visl, looks_like_visl, _ENCODED,
    ),
    Format(
        "bracketed-words", "bracketed trees whose words are in brackets of their own", "trees",
        read_bracketed_words, looks_like_bracketed_words, _ENCODED,
    ),
    Format("sinica", "Sinica Treebank lines", "trees", read_sinica, looks_like_sinica, _ENCODED),
    Format("tiger-xml", "TIGER-XML", "graphs", read_tiger_xml, looks_like_tiger_xml, {}),
    Format("alpino-xml", "Alpino XML", "graphs", read_alpino_xml, looks_like_alpino_xml, {}),
    Format(
        "negra-export", "NEGRA export format, versions 3 and 4", "graphs",
        read_negra_export, looks_like_negra_export, _ENCODED,
    ),
    Format(
        "conll", "CoNLL-U and CoNLL-X dependencies", "dependencies",
        read_conll_file, looks_like_conll,
        _ENCODED
        | {"tag_column": "xpos", "roots": "one", "escapes": None, "multiword": "split"},
    ),
    Format(
        "dp", "dependencies in three columns (word, tag, head)", "dependencies",
        read_dp, looks_like_dp, _ENCODED,
    ),
)  # fmt: skip

#: Every format by its name.
FORMATS: Mapping[str, Format] = {form.name: form for form in _FORMATS}


def guess_format(text: str) -> Format | None:
    """The format that the beginning of a file looks like.

    Plain brackets come last, because CorpusSearch files are such brackets too.
    """
    ordered = sorted(FORMATS.values(), key=lambda form: form.name == "brackets")
    return next((form for form in ordered if form.looks_like(text)), None)
