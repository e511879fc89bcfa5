"""Lexical inputs: what the content half of a token vector starts from.

A lexical model is a sum of inputs (Kitaev & Klein 2018, section 5), or has them side by side,
each with a width of its own (Zhang et al. 2017, section 4; an option of the code of Zhou & Zhao
2019). Inputs that depend on the form of a word alone, such as the CharLSTM, are computed once
per distinct form of a batch and then handed out to the tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.choices import Join
from spmrl_bench.nn.fused_recurrent import Steps, last_states
from spmrl_bench.nn.inputs import CodedInput, Tokens
from spmrl_bench.nn.precision import FLOAT32, Precision, product_dtype, products
from spmrl_bench.nn.ragged import SentenceDropout


class CharLSTM(nn.Module):
    """The last state of a bidirectional LSTM over the characters of a form.

    The input dropout is drawn per form and character, so all tokens of one form in a batch
    share its mask; the dropout on the result is drawn per sentence.

    Attributes:
        width: of a form's vector.
    """

    def __init__(
        self,
        characters: int,
        d_char: int,
        d_output: int,
        *,
        unknown: int,
        dropout: float,
        d_states: int | None = None,
        precision: Precision = FLOAT32,
    ) -> None:
        """A CharLSTM.

        Args:
            characters: number of them.
            d_char: width of their embeddings.
            d_output: width of a form's vector.
            unknown: number of the character that stands for all that were not seen.
            dropout: on the embeddings.
            d_states: width of the last states of both directions together, which are mapped to
                ``d_output`` then; without it they are the vector.
            precision: of the products.
        """
        super().__init__()
        self.precision = precision
        self.width = d_output
        self.embedding = nn.Embedding(characters, d_char)
        with torch.no_grad():
            # Never seen in training: no direction is better than a random one.
            self.embedding.weight[unknown].zero_()
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(d_char, (d_states or d_output) // 2, bidirectional=True)
        self.map = nn.Identity() if d_states is None else nn.Linear(d_states, d_output, bias=False)

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Vectors of distinct forms, ``[forms, d_output]``.

        Args:
            characters: int64 ``[longest form, forms]``, each column a form with its
                start and end marks; what lies beyond its length is not read.
            lengths: int64 ``[forms]`` on the CPU, marks included.
        """
        if kernels.usable(self.embedding.weight):
            steps = Steps(lengths)
            if characters.dim() != 2 or characters.shape[1] != len(lengths):
                raise ArrayError(
                    f"characters has the shape {list(characters.shape)}; it must have two "
                    f"dimensions, with a column for each of {len(lengths)} lengths."
                )
            embedded = self.embedding(characters[steps.step, steps.sequence])
            if self.training and self.dropout.p:
                embedded = embedded * kernels.dropout_factors(embedded.shape, self.dropout.p)
            dtype = product_dtype(self.precision)
            vectors: Tensor = self.map(last_states(self.lstm, embedded, steps, dtype))
            return vectors
        embedded = self.dropout(self.embedding(characters))
        packed = pack_padded_sequence(embedded, lengths, enforce_sorted=False)
        with products(self.precision, embedded.device):
            _, (last, _) = self.lstm(packed)
        vectors = self.map(torch.cat((last[0], last[1]), dim=1).to(embedded.dtype))
        return vectors


class LexicalModel(nn.Module):
    """The chosen inputs, each with its own dropout, added up or side by side.

    Side by side they stand in this order: CharLSTM, words, tags, then those with codes of their
    own, as given.
    """

    def __init__(
        self,
        d_content: int,
        *,
        words: int | None,
        word_dropout: float,
        char_lstm: CharLSTM | None,
        form_dropout: float,
        tags: int | None = None,
        tag_dropout: float = 0.0,
        coded: Mapping[str, CodedInput] | None = None,
        join: Join = "sum",
        d_word: int | None = None,
        d_tag: int | None = None,
    ) -> None:
        """Random weights.

        Args:
            d_content: width of the content.
            words: number of words; None for no embeddings of words.
            word_dropout: on them, with a mask for each sentence, as all these dropouts.
            char_lstm: as wide as it shall be; None for none.
            form_dropout: on its output.
            tags: number of tags; None for no embeddings of tags.
            tag_dropout: on them.
            coded: inputs with codes of their own, by name.
            join: how the inputs make the content.
            d_word, d_tag: widths of the embeddings, if not that of the content.
        """
        super().__init__()
        self.join = join
        self.words = nn.Embedding(words, d_word or d_content) if words is not None else None
        self.word_dropout = SentenceDropout(word_dropout)
        self.char_lstm = char_lstm
        self.form_dropout = SentenceDropout(form_dropout)
        self.tags = nn.Embedding(tags, d_tag or d_content) if tags is not None else None
        self.tag_dropout = SentenceDropout(tag_dropout)
        self.coded = nn.ModuleDict(coded)

    def forward(self, tokens: Tokens, forms: Tensor) -> Tensor:
        """Content vectors ``[tokens, d_content]``.

        Args:
            tokens: of the batch.
            forms: ``[forms, width]``, output of the CharLSTM (without rows if unused).
        """
        layout = tokens.layout
        parts = []
        if self.char_lstm is not None:
            parts.append(self.form_dropout(forms.index_select(0, tokens.form_rows), layout))
        if self.words is not None:
            parts.append(self.word_dropout(self.words(tokens.words), layout))
        if self.tags is not None:
            parts.append(self.tag_dropout(self.tags(tokens.tags), layout))
        for name, module in self.coded.items():
            parts.append(module(tokens.codes[name], layout))
        if self.join == "concatenated":
            return torch.cat(parts, dim=1)
        return torch.stack(parts).sum(dim=0)
