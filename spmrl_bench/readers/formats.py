"""The treebank formats by name: what reads each, what comes out, which options it takes.

Nothing else in the program knows which formats there are. An installed package adds its own by an
entry point of the group ``spmrl_bench.formats``, which names a :class:`Format`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from spmrl_bench.readers import conll, dialects, graphs
from spmrl_bench.readers.brackets import looks_like_brackets
from spmrl_bench.registry import Registry

Yields = Literal["trees", "graphs", "dependencies"]


@dataclass(frozen=True, slots=True)
class Format:
    """One file format."""

    name: str  # as manifests write it
    title: str  # for people
    yields: Yields  # whether a sentence is a `Tree`, a `Graph` or a `DependencySentence`
    # `read(path, *, on_error, **options)`, an iterator over the sentences of a file.
    read: Callable[..., Iterator[Any]]
    # Judges by a file's first 64 Ki characters, without a byte order mark.
    looks_like: Callable[[str], object]
    # Of `read`, that manifests may set; each has its default, or `...` if they must.
    options: Mapping[str, Any]
    version: int = 1  # raised whenever the format is read otherwise, which changes fingerprints


_ENCODED = {"encoding": "utf-8"}

# fmt: off
_FORMATS = (
    Format("brackets", "bracketed trees (Penn Treebank, SPMRL; others by description)", "trees",
           dialects.read_bracket_dialect,
           lambda text: looks_like_brackets(text) or dialects.looks_like_sisters(text),
           {**_ENCODED, "escapes": ..., **dialects.BRACKET_OPTIONS}),
    Format("psd", "CorpusSearch bracketed trees with ID nodes", "trees",
           dialects.read_psd, dialects.looks_like_psd, _ENCODED | {"lemmas": False, "drop": []}),
    Format("tbf", "bracketed trees with three-part leaves: tag, word, lemma (CESS)", "trees",
           dialects.read_tbf, partial(dialects.most_leaves_have, 3), _ENCODED),
    Format("visl", "VISL trees (Floresta): FUNCTION+form labels, a line of text before each tree",
           "trees", dialects.read_visl, dialects.looks_like_visl, _ENCODED),
    Format("bracketed-words", "bracketed trees whose words are in brackets of their own", "trees",
           dialects.read_bracketed_words, dialects.looks_like_bracketed_words, _ENCODED),
    Format("sinica", "Sinica Treebank lines", "trees",
           dialects.read_sinica, dialects.SINICA_START.match, _ENCODED),
    Format("tiger-xml", "TIGER-XML", "graphs",
           graphs.read_tiger_xml, graphs.looks_like_tiger_xml, {}),
    Format("alpino-xml", "Alpino XML", "graphs",
           graphs.read_alpino_xml, graphs.looks_like_alpino_xml, {}),
    Format("negra-export", "NEGRA export format, versions 3 and 4", "graphs",
           graphs.read_negra_export, graphs.looks_like_negra_export, _ENCODED),
    Format("conll", "CoNLL-U and CoNLL-X dependencies", "dependencies",
           conll.read_conll_file, conll.looks_like_conll,
           _ENCODED | {"tag_column": "xpos", "roots": "one", "escapes": None,
                       "multiword": "split"}),
    Format("dp", "dependencies in three columns (word, tag, head)", "dependencies",
           conll.read_dp, conll.looks_like_dp, _ENCODED),
)
# fmt: on

#: Every format by its name.
FORMATS: Registry[Format] = Registry(
    "format", "spmrl_bench.formats", {form.name: form for form in _FORMATS}
)


def guess_format(text: str, among: Iterable[Format] | None = None) -> Format | None:
    """Return the format, of some or all, that the beginning of a file looks like; brackets come
    last."""
    forms = map(FORMATS.get, FORMATS.names()) if among is None else among
    ordered = sorted(forms, key=lambda form: form.name == "brackets")
    return next((form for form in ordered if form.looks_like(text)), None)
