"""What a parser of somebody else is given to parse: words, tags if it is to have them, no more.

The words are those that our own parsers read, after the treebank's transforms, so that answers can
be set beside the gold trees word by word. Nothing of the gold structure is written: CoNLL-U has no
head, and of tags only those that the treebank lets parsers read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.storage.files import write_text
from spmrl_bench.systems.material import words_text
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import Parse

#: Of the splits of a treebank, those that systems are compared on.
SPLITS = ("dev", "test")


def write_task(bank: Treebank, split: str, folder: Path, *, tags: bool = False) -> list[Path]:
    """Write the sentences of a split for an outside system and return the files.

    ``TREEBANK.SPLIT.txt`` has a sentence a line, its words separated by spaces; it is left out
    where a word has white space in it. ``TREEBANK.SPLIT.conllu`` has the same words one a line.
    ``TREEBANK.SPLIT.json`` says what they are, with a hash of each.

    Args:
        tags: whether CoNLL-U has the treebank's tags (column XPOS).

    Raises:
        ScoreError: the treebank has no tags.
        SpmrlError: the split cannot be read, or a file cannot be written.
    """
    if tags and bank.manifest.tags == "none":
        raise ScoreError(f"treebank {bank.name} has no tags to give")
    sentences = bank.examples(split, bank.layers[:1])
    texts = {"conllu": words_text(sentences, "conllu", tags=tags)}
    if not any(len(word.split()) != 1 for parse in sentences for word in parse.words):
        texts["txt"] = words_text(sentences, "words", tags=False)
    stem = f"{bank.name}.{split}"
    texts["json"] = (
        json.dumps(_description(bank, split, sentences, tags, stem, texts), indent=2) + "\n"
    )
    written = [folder / f"{stem}.{ending}" for ending in texts]
    for path, text in zip(written, texts.values(), strict=True):
        write_text(path, text)
    return written


def _description(
    bank: Treebank,
    split: str,
    sentences: Sequence[Parse],
    tags: bool,
    stem: str,
    texts: dict[str, str],
) -> dict[str, Any]:
    return {
        "treebank": bank.name,
        "split": split,
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "tags": bank.manifest.tags if tags else "none",
        "transforms": list(bank.manifest.transforms),
        "fingerprints": {layer: bank.fingerprint_of(layer) for layer in bank.layers},
        "files": {
            f"{stem}.{ending}": hashlib.sha256(text.encode()).hexdigest()
            for ending, text in texts.items()
        },
        "spmrl_bench": __version__,
    }
