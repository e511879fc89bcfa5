"""Tags predicted from the encoded tokens, learned together with the trees.

Kitaev, Cao & Klein 2019 let the parser predict tags of its own, so that it needs none at test
time: one hidden layer over the encoder's output, and a cross-entropy beside the parser's loss.
"""

from __future__ import annotations

from torch import Tensor, nn

from spmrl_bench.nn.kernels import with_product_rows


class Tagger(nn.Module):
    """Scores of all tags of each token; ``d_model`` is the width of an encoded token."""

    def __init__(self, d_model: int, d_hidden: int, tags: int) -> None:
        super().__init__()
        self.first = nn.Linear(d_model, d_hidden)
        self.norm = nn.LayerNorm(d_hidden)
        self.second = nn.Linear(d_hidden, tags)

    def forward(self, encoded: Tensor) -> Tensor:
        """Encoded tokens ``[tokens, d_model]`` to scores ``[tokens, tags]``."""
        rows = with_product_rows(encoded)
        scores: Tensor = self.second(self.norm(self.first(rows)).relu())
        return scores[: len(encoded)]
