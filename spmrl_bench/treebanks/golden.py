"""What the readers and transforms make of a few sentences, as part of every fingerprint.

A reader that is corrected may give other trees for the same files, and a score on them must not
stand beside one on the trees of before. Nobody has to remember to say so: ``treebanks/golden/``
has a few invented sentences in each format, with the habits of its releases and a broken one
among them, and a digest of what is read from them goes into the fingerprints of the treebanks
of that format. Each transform is likewise known by what it makes of those sentences.

The files are as fixed as the digests. A new format brings its own, ``FORMAT.txt``, and so does a
transform that does nothing to the sentences that are there, ``TRANSFORM.txt``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.conll import DependencySentence
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.trees.graph import Graph, to_tree
from spmrl_bench.trees.transforms import TRANSFORMS, Stage

#: What each format and transform gave for its sentences when fingerprints had the version 1. A
#: line is never changed, so that these treebanks keep their fingerprints as long as they are read
#: in the same way; a new format or transform adds its own.
FIRST_VERSION = {
    "brackets": "5b5f7926", "psd": "3bca3f7b", "tbf": "1cc40dc9", "visl": "2886594f",
    "bracketed-words": "1ba7d68d", "sinica": "6e441245", "tiger-xml": "04981082",
    "alpino-xml": "fdcf9aaa", "negra-export": "a76c6deb", "conll": "c312ea0b", "dp": "6ee6a625",
    "strip-features": "728b5920", "strip-markup": "a7c97589", "add-vroot": "a794d7c5",
    "attach-loose-tokens": "843c34e5", "drop-markup-tokens": "8b3f2fa1",
    "loosen-punctuation": "dd61b31b", "vroot-for-top": "a30ceb64",
    "raise-crossing-branches": "40974a8f", "split-crossing-branches": "78a12011",
    "drop-traces": "3d942c1d", "strip-root": "2a32c1f8", "ensure-top": "6ac894f7",
    "vroot-over-words": "89fad103", "merge-x-over-x": "29f4c090", "strip-functions": "dfb11f57",
    "strip-tag-functions": "f305ddc5", "strip-visl-functions": "b91e0c09",
    "strip-semantic-marks": "39ee62ce", "strip-cess-marks": "46d1796d",
    "coarse-eagles-tags": "bd3c1740", "strip-roles": "f63f175c",
    "coarse-sinica-categories": "d853fdd1", "arabic-script": "96dd9bd9",
    "hebrew-script": "c3035531",
}  # fmt: skip

#: The options that a format's sentences are read with, where it has some that matter.
_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "brackets": ({"escapes": "brackets"}, {"escapes": "ptb"}),
    "psd": ({"lemmas": False}, {"lemmas": True}),
    "conll": (
        {"tag_column": "upos", "roots": "several", "escapes": "ptb"},
        {"tag_column": "xpos"},
    ),
}
#: The format whose sentences the transforms of a stage are applied to.
_SOURCES: dict[Stage, str] = {"graph": "negra-export", "tree": "brackets"}
_TEXT = "<S ID=7>\n(TOP (NN##lem=a b|g=m## Hund) <b> (V##x##y## bellt))\r\n </S> \n"


def reading_version(parts: Iterable[str]) -> int | str:
    """What stands in a fingerprint for the program's part in the trees of a treebank.

    Args:
        parts: the names of its format and transforms.

    Returns:
        1 if all of them do what they did in version 1, else a digest of what those that differ
        do now.
    """
    found = {part: part_digest(part) for part in parts}
    changed = {part: digest for part, digest in found.items() if FIRST_VERSION.get(part) != digest}
    return _digest(changed) if changed else 1


@lru_cache(maxsize=256)
def part_digest(part: str) -> str:
    """A digest of what a format's reader, or a transform, makes of its sentences."""
    if part in FORMATS.names():
        every = [_read(part, options, part) for options in _OPTIONS.get(part, ({},))]
        return _digest([[_plain(sentence) for sentence in sentences] for sentences in every])
    transform = TRANSFORMS[part]
    if transform.stage == "text":
        return _digest(transform.apply(_TEXT))
    form = _SOURCES[transform.stage]
    sentences = filter(None, _read(form, _OPTIONS.get(form, ({},))[0], part))
    return _digest([_plain(_or_none(transform.apply, sentence)) for sentence in sentences])


def _read(form: str, options: dict[str, Any], part: str) -> list[Any]:
    """The sentences for a part, or else for its format; None in place of each that is broken."""
    found: list[Any] = []
    folder = data_dir("treebanks") / "golden"
    own = folder / f"{part}.txt"
    path = own if own.is_file() else folder / f"{form}.txt"
    for sentence in FORMATS.get(form).read(
        path, on_error=lambda error: found.append(None), **options
    ):
        found.append(sentence)
    return found


def _plain(sentence: Any) -> Any:
    """A sentence, whatever its kind, as JSON can hold it; identifiers are no part of it."""
    if sentence is None:
        return None
    if isinstance(sentence, DependencySentence):
        tree = sentence.tree
        return [tree.words, tree.tags, tree.heads.tolist(), tree.relations]
    if isinstance(sentence, Graph):
        rows = [sentence.words, sentence.tags, sentence.token_parents, sentence.token_edges]
        rows += [sentence.labels, sentence.parents, sentence.edges]
        return [*rows, _plain(_or_none(to_tree, sentence))]
    return [sentence.words, sentence.tags, sentence.labels, sentence.spans.tolist()]


def _or_none(function: Callable[[Any], Any], sentence: Any) -> Any:
    """The result, or None where there is something that the function cannot do."""
    try:
        return function(sentence)
    except TreeError:
        return None


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
