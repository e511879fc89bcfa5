"""What every format and transform makes of a few sentences stays as it is.

Fingerprints of treebanks have the versions of the reader and the transforms, which begin with 1. A
reader that is corrected may give other trees for the same files, and a score on them must not
stand beside one on the trees of before: whoever changes what is read raises its version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.conll import DependencySentence
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.graph import Graph, to_tree
from spmrl_bench.trees.transforms import TRANSFORMS
from tests.conftest import shared_data
from tests.treebanks.conftest import WriteManifest

#: By format and transform a digest of what it makes of its sentences in ``treebanks/golden/``, or
#: of those of its format. If one of them fails here, raise the version of that one, and put the
#: new digest.
DIGESTS = {
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
    "conll": ({"tag_column": "upos", "roots": "several", "escapes": "ptb"}, {"tag_column": "xpos"}),
}
#: The format whose sentences the transforms of a stage are applied to.
_SOURCES = {"graph": "negra-export", "tree": "brackets"}
_TEXT = "<S ID=7>\n(TOP (NN##lem=a b|g=m## Hund) <b> (V##x##y## bellt))\r\n </S> \n"


def part_digest(part: str, apply: Callable[..., Any] | None = None) -> str:
    """The digest of a format, or of a transform that does ``apply``."""
    if part in FORMATS.names():
        every = [read(part, options, part) for options in _OPTIONS.get(part, ({},))]
        return digest([[plain(sentence) for sentence in sentences] for sentences in every])
    transform = TRANSFORMS[part]
    apply = apply or transform.apply
    if transform.stage == "text":
        return digest(apply(_TEXT))
    form = _SOURCES[transform.stage]
    sentences = filter(None, read(form, _OPTIONS.get(form, ({},))[0], part))
    return digest([plain(or_none(apply, sentence)) for sentence in sentences])


def read(name: str, options: dict[str, Any], part: str) -> list[Any]:
    """The sentences for a part, or else for its format; None in place of each that is broken."""
    found: list[Any] = []
    folder = data_dir("treebanks") / "golden"
    own, form = folder / f"{part}.txt", FORMATS.get(name)
    path = own if own.is_file() else folder / f"{name}.txt"
    for sentence in form.read(path, on_error=lambda error: found.append(None), **options):
        found.append(sentence)
    return found


def plain(sentence: Any) -> Any:
    """A sentence, whatever its kind, as JSON can hold it; identifiers are no part of it."""
    if sentence is None:
        return None
    if isinstance(sentence, DependencySentence):
        tree = sentence.tree
        return [tree.words, tree.tags, tree.heads.tolist(), tree.relations]
    if isinstance(sentence, Graph):
        rows = [sentence.words, sentence.tags, sentence.token_parents, sentence.token_edges]
        rows += [sentence.labels, sentence.parents, sentence.edges]
        return [*rows, plain(or_none(to_tree, sentence))]
    return [sentence.words, sentence.tags, sentence.labels, sentence.spans.tolist()]


def or_none(function: Callable[[Any], Any], sentence: Any) -> Any:
    """The result, or None where there is something that the function cannot do."""
    try:
        return function(sentence)
    except TreeError:
        return None


def digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]


def test_every_format_and_transform_does_what_it_did() -> None:
    assert {part: part_digest(part) for part in (*FORMATS.names(), *TRANSFORMS)} == DIGESTS


def test_the_sentences_tell_changes() -> None:
    for name in FORMATS.names():
        found = read(name, _OPTIONS.get(name, ({},))[0], name)
        assert sum(sentence is not None for sentence in found) >= 2
        assert None in found or name == "alpino-xml"
    for name in TRANSFORMS:
        for apply in (lambda value: value, lambda value: None):
            assert part_digest(name, apply) != DIGESTS[name]


def test_versions_are_in_the_fingerprints_that_they_concern(
    manifests: WriteManifest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()  # with strip-root
    found = {"": open_treebank("tiny", root).fingerprint}
    for name in ("ensure-top", "strip-root"):
        with monkeypatch.context() as patch:
            changed = SimpleNamespace(stage="tree", apply=TRANSFORMS[name].apply, version=2)
            patch.setitem(TRANSFORMS, name, changed)
            found[name] = open_treebank("tiny", root).fingerprint
    assert found["ensure-top"] == found[""] != found["strip-root"]


#: Of the last layer of each treebank that may be had; it stands for the trees below it, too.
FINGERPRINTS = {
    "arabic-mini": "5a47f854d6e2", "basque-mini": "48a7499509ec",
    "basque-ud-bdt": "0d625a0bc571", "chinese-mini": "8b5de61a9591",
    "chinese-sinica": "0d1f0c8280ee", "dutch-alpino": "1cf33ce67c0d",
    "dutch-alpino-sample": "bb4c0e09b2c1", "dutch-alpino-split": "fc60d5626d74",
    "english-gum": "722943ab5fb1", "english-gum-gentle": "c04c060f1707",
    "english-mini": "37536d974124", "english-smultron": "caef43915ab7",
    "english-wsj-sample": "4c5df8ba0213", "english-wsj-sample-stanford": "0a58f596ea5b",
    "french-mini": "035260676067", "french-sequoia": "d5c9372978c0",
    "french-ud-sequoia": "51277b5a1df2", "german-mini": "2824db7b35a2",
    "german-smultron": "0d81a71f8a64", "german-squoia": "ad5b24995b90",
    "hebrew-mini": "6936b5fc2737", "hungarian-mini": "ce8346d9e4da",
    "hungarian-ud-szeged": "9de8e4f6aeb0", "icelandic-icepahc": "f96eb0f90847",
    "indonesian-idn": "0bbfdb5028cb", "japanese-keyaki": "1099987f8edc",
    "korean-mini": "011ff690b68c", "korean-ud-gsd": "e96331b8e457",
    "polish-mini": "3845cd484835", "portuguese-floresta": "8e81a2fc238c",
    "spanish-cess": "10e3246ba3a5", "swedish-mini": "f038544cda49",
    "swedish-smultron": "78f4db7decd3",
}  # fmt: skip


#: Those that are not read in any quick test.
LARGE = ("chinese-sinica", "dutch-alpino", "dutch-alpino-split", "english-gum-gentle",
         "english-smultron", "french-sequoia", "icelandic-icepahc", "portuguese-floresta",
         "spanish-cess", "swedish-smultron", "basque-ud-bdt", "korean-ud-gsd",
         "english-wsj-sample-stanford")  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.campaign] * (name in LARGE)) for name in FINGERPRINTS],
)
def test_fingerprints_stay(name: str) -> None:
    bank = open_treebank(name, None if name.endswith("-mini") else shared_data("treebanks"))
    assert bank.fingerprint_of(bank.layers[-1])[:12] == FINGERPRINTS[name]
