"""Word embeddings that start from published vectors, and are trained on.

The embeddings of the input ``word`` are random before training. Dyer et al. 2015, Dozat & Manning
2017 and Zhang et al. 2017 begin with vectors that were trained on much more text, and change them
with everything else. So what is saved is a parser as any other, which needs the file no more; the
input ``vectors`` (:mod:`spmrl_bench.nn.vectors`) keeps the vectors as they are and knows the words
of the file, this knows those of the training sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.pretrained.vector_files import read_word_vectors


@torch.no_grad()
def start_from_vectors(embedding: nn.Embedding, words: Mapping[str, int], path: Path) -> int:
    """Put the vectors of a file into the rows of the words that it has, in place.

    A word without a vector of its own has that of its lower-cased form; one without either keeps
    its random row, as UNK and the marks of a sentence's ends do.

    Args:
        embedding: as wide as the vectors.
        words: row by word.
        path: of a file of word2vec or GloVe.

    Returns:
        How many words have a vector now.

    Raises:
        PretrainedError: the file cannot be read, its vectors have another width, or it has none
            of the words.
    """
    vectors = read_word_vectors(path)
    if vectors.matrix.shape[1] != embedding.embedding_dim:
        raise PretrainedError(
            f"{path}: the vectors have {vectors.matrix.shape[1]} numbers, but the embeddings of "
            f"words have {embedding.embedding_dim}; where inputs stand side by side "
            "(model.join = 'concatenated'), model.d_word is their width"
        )
    place = {word: row for row, word in enumerate(vectors.words)}
    found = {
        row: place[known]
        for word, row in words.items()
        if (known := word if word in place else word.lower()) in place
    }
    if not found:
        raise PretrainedError(
            f"{path}: none of the {len(words)} words of the training sentences has a vector; is "
            "it of this language?"
        )
    chosen = torch.from_numpy(vectors.matrix[list(found.values())])
    embedding.weight[torch.tensor(list(found))] = chosen.to(embedding.weight)
    return len(found)
