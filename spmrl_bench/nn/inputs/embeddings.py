"""Tables of the vocabulary's words and tags: a vector for each, and for all that it lacks UNK's.

Dyer et al. 2015, Dozat & Manning 2017 and Zhang et al. 2017 begin with vectors of words that were
trained on much more text, and change them with everything else, so that a saved parser needs the
file no more. The input ``vectors`` (:mod:`spmrl_bench.nn.inputs.vectors`) keeps the vectors as they
are and knows the words of the file; these know those of the training sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Codes, LexicalInput, Tokens
from spmrl_bench.nn.inputs.vectors import read_word_vectors
from spmrl_bench.nn.ragged import SentenceDropout
from spmrl_bench.nn.settings import InputSettings, Positive, Rate
from spmrl_bench.nn.vocabulary import FIRST_TAG, FIRST_WORD, Vocabulary


class WordEmbedding(LexicalInput):
    """A vector for each word of the vocabulary."""

    class Config(InputSettings):
        """Settings of the input ``word``."""

        dropout: Rate
        """Dropout of word embeddings."""
        max_words: Positive | None = None
        """Known words, the most frequent of the training trees; without it all of them."""
        vectors: str | None = None
        """File of word vectors (word2vec or GloVe), as wide, that the embeddings start from."""

        def files(self) -> dict[str, str]:
            return {} if self.vectors is None else {"vectors": self.vectors}

        def outside(self) -> dict[str, str]:
            return {}  # training changes what it begins with

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, **options)
        self._rows = vocabulary.word_ids
        self.embedding = nn.Embedding(FIRST_WORD + len(vocabulary.words), width)
        self.dropout = SentenceDropout(config.dropout)

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        return self.dropout(self.embedding(tokens.words), tokens.layout)

    @torch.no_grad()
    def start(self) -> None:
        """Put the vectors of a file into the rows of its words.

        A word without one has that of its lower-cased form, or keeps its random row.
        """
        if (path := self.config.vectors) is None:
            return
        words, matrix = read_word_vectors(path)
        given, width = matrix.shape[1], self.embedding.embedding_dim
        if given != width:
            raise PretrainedError(
                f"{path}: the vectors have {given} numbers, but the embeddings of words have "
                f"{width}; where inputs stand side by side (model.join = 'concatenated'), "
                "model.d_word is their width"
            )
        place = {word: row for row, word in enumerate(words)}
        found = {
            row: place[known]
            for word, row in self._rows.items()
            if (known := word if word in place else word.lower()) in place
        }
        if not found:
            raise PretrainedError(
                f"{path}: none of the {len(self._rows)} words of the training sentences has a "
                "vector; is it of this language?"
            )
        chosen = torch.from_numpy(matrix[list(found.values())])
        self.embedding.weight[torch.tensor(list(found))] = chosen.to(self.embedding.weight)

    @torch.no_grad()
    def reorder(self, rows: Sequence[int]) -> None:
        """Give the words, without UNK and the ends of a sentence, the rows of now in this order."""
        order = torch.tensor([*range(FIRST_WORD), *rows])
        self.embedding.weight = nn.Parameter(self.embedding.weight[order])


class TagEmbedding(LexicalInput):
    """A vector for each tag of the vocabulary."""

    class Config(InputSettings):
        """Settings of the input ``tag``."""

        dropout: Rate = 0.2
        """Dropout of tag embeddings."""

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, **options)
        self.embedding = nn.Embedding(FIRST_TAG + len(vocabulary.tags), width)
        self.dropout = SentenceDropout(config.dropout)

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        return self.dropout(self.embedding(tokens.tags), tokens.layout)
