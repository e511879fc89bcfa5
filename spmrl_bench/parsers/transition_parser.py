"""A parser that writes a tree action by action, and looks back at the sentence before each.

The sequence-to-sequence parser of Zhang, Liu, Li, Zhou & Chen 2017 (D17-1175): a sentence is
encoded, and a decoder with attention writes the actions of a transition system, of which only the
legal ones get a probability. Attention knows which words are on the stack and which have left it.
Training trees are made projective by an encoding that the parser learns with the relations, and
what it answers is decoded (:mod:`spmrl_bench.trees.projective`); the paper says nothing of
crossing arcs. Each sentence has one root.

The parse is the best sequence of actions that a beam finds. Of several parsers the probabilities of
the actions are averaged at every step, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.errors import TreeError
from spmrl_bench.nn.action_decoder import ActionDecoder, step_rows
from spmrl_bench.nn.encoder_kinds import encoder_named
from spmrl_bench.nn.precision import product_dtype
from spmrl_bench.nn.stack_attention import Sources, StackAttention, Stacks
from spmrl_bench.parsers.base import Words
from spmrl_bench.parsers.batches import Batch
from spmrl_bench.parsers.dependency_layer import dependency_vocabulary
from spmrl_bench.parsers.kind_configs import TransitionParserConfig
from spmrl_bench.parsers.lengths import ACTIONS, Search, beginning
from spmrl_bench.parsers.neural import Encoded, NeuralParser, predicted_tags
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.transitions import TransitionSystem, oracle_actions, state_history
from spmrl_bench.transitions.beam import Asked, beam_search
from spmrl_bench.transitions.beam import Sequence as ActionSequence
from spmrl_bench.transitions.history import History
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.projective import decode_projective, encode_projective


class ActionGold(NamedTuple):
    """The actions that make the tree of a sentence of ``n`` words, int32 ``[2n]``."""

    actions: NDArray[np.int32]


class Led(NamedTuple):
    """A batch along the gold actions of its sentences."""

    order: NDArray[np.integer]
    """The sentence of the batch that each row of the history is of."""
    history: History
    rows: Tensor
    """int64 ``[steps]``, where in the flattened rectangle of the history each step is."""
    scores: Tensor
    """``[steps, actions]``, minus infinity where an action is not legal."""
    chosen: Tensor
    """int64 ``[steps]``, the gold actions."""


class TransitionParser(NeuralParser):
    """Encoder, decoder with stack attention and transition system."""

    kind = "transition"
    config: TransitionParserConfig

    def __init__(
        self, config: TransitionParserConfig, vocabulary: Vocabulary, assets: Path | None = None
    ) -> None:
        """A parser with random weights; the arguments are those of :class:`NeuralParser`."""
        super().__init__(config, vocabulary, assets)
        self.names = list(vocabulary.relations)
        seen = np.array([*vocabulary.relations.values()], dtype=bool).reshape(-1, 2)
        permitted = np.where(seen.any(axis=0), seen, True)
        self.system = TransitionSystem(config.system, len(self.names), permitted=permitted)
        attention = StackAttention(
            self.encoder.d_out,
            config.d_decoder,
            config.d_attention,
            config.attention_layers,
            pushed=config.pushed_words,
        )
        self.decoder = ActionDecoder(
            attention,
            self.system.actions,
            config.d_action,
            config.d_decoder,
            config.decoder_layers,
            config.decoder_dropout,
        )
        self._add_tagger()

    @property
    def max_positions(self) -> int | None:
        # Without a table of positions there is no need for a limit as low as that of charts.
        has_table = encoder_named(self.config.encoder).reads("max_positions")
        return super().max_positions if has_table else None

    @property
    def search(self) -> Search:
        return ACTIONS

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        encoding = config.nonprojective
        encoded = [
            example if tree is None else Parse.of(dependencies=encode_projective(tree, encoding))
            for example in examples
            for tree in (example.dependencies,)
        ]
        return cls.fresh(config, dependency_vocabulary(encoded))

    # Training -------------------------------------------------------------------------

    def gold(self, example: Parse) -> ActionGold:
        """The actions of its tree.

        Raises:
            TreeError: there are no dependencies, several roots, or a relation that is not in the
                vocabulary, or not where it is.
        """
        if example.dependencies is None:
            begun = beginning(example.words)
            raise TreeError(f"no dependencies to learn (the sentence begins: {begun})")
        tree = encode_projective(example.dependencies, self.config.nonprojective)
        ids = self.vocabulary.relation_ids
        unknown = [name for name in tree.relations if name not in ids]
        if unknown:
            raise TreeError(f"relation {unknown[0]} is not in the parser's vocabulary")
        relations = [ids[name] for name in tree.relations]
        (actions,) = oracle_actions(self.system, tree.heads, relations, [len(tree)])
        return ActionGold(actions)

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[ActionGold]) -> Tensor:
        """Sum over actions of their cross-entropy among the legal ones."""
        led = self.led(tokens, batch, gold)
        return torch.nn.functional.cross_entropy(led.scores, led.chosen, reduction="sum")

    def led(self, tokens: Tensor, batch: Batch, gold: Sequence[ActionGold]) -> Led:
        """The scores of all actions in the states that the gold actions lead through."""
        order = np.argsort(-batch.lengths, kind="stable")  # the longest first
        lengths = batch.lengths[order]
        actions = np.full((len(gold), 2 * int(lengths[0])), -1, dtype=np.int64)
        for row, number in zip(actions, order.tolist(), strict=True):
            row[: len(gold[number].actions)] = gold[number].actions
        history = state_history(self.system, actions, lengths)
        last = np.concatenate((np.full((len(gold), 1), -1), actions[:, :-1]), axis=1)
        steps = torch.from_numpy(2 * lengths.astype(np.int64))
        scores = self.decoder(
            self._last(last),
            steps,
            self.sources(tokens, batch, order),
            self.stacks(history.pushed, history.removed),
            product_dtype(self.config.precision),
        )
        rows, _ = step_rows(steps)
        legal = torch.from_numpy(history.legal_actions()).flatten(0, 1)[rows].to(self.device)
        chosen = torch.from_numpy(actions).flatten()[rows].to(self.device)
        least = torch.promote_types(scores.dtype, torch.float32)
        scores = scores.to(least).masked_fill(~legal, -torch.inf)
        return Led(order, history, rows, scores, chosen)

    def sources(self, tokens: Tensor, batch: Batch, order: NDArray[np.integer]) -> Sources:
        """The encoded words of the sentences in an order, without START and STOP."""
        rectangle = batch.layout.spread(tokens)[:, 1:-1]
        chosen = torch.from_numpy(order.astype(np.int64)).to(rectangle.device)
        return self.decoder.attention.sources(rectangle.index_select(0, chosen))

    def stacks(self, pushed: NDArray[np.uint8], removed: NDArray[np.uint8]) -> Stacks:
        """What attention is told of states, from masks ``[B, K, N + 1]`` with the root.

        Without ``removed_words`` only what lies beyond a sentence is hidden. Where nothing would
        be left, behind the last action, nothing is.
        """
        if not self.config.removed_words:
            # Beyond a sentence words are removed without having been pushed.
            removed = removed & ~pushed.astype(bool)
        hidden = torch.from_numpy(removed[..., 1:]).to(self.device).bool()
        hidden = hidden & ~hidden.all(dim=-1, keepdim=True)
        return Stacks(torch.from_numpy(pushed[..., 1:]).to(self.device).float(), hidden)

    def _last(self, actions: NDArray[np.integer]) -> Tensor:
        """Actions as the decoder reads them; -1, none, is the start."""
        known = np.where(actions < 0, self.system.actions, actions)
        return torch.from_numpy(known.astype(np.int64)).to(self.device)

    # Parsing --------------------------------------------------------------------------

    def found_by(self, group: Sequence[Encoded], members: Sequence[Self]) -> Iterator[Found]:
        sequences = self.sequences(group, members)
        for sequence, tags in zip(sequences, predicted_tags(group), strict=True):
            yield self.found(sequence, tags)

    def sequences(self, group: Sequence[Encoded], members: Sequence[Self]) -> list[ActionSequence]:
        """The best actions for each sentence, as each of the members has encoded it."""
        scorer = _Scorer(group, members)
        return beam_search(self.system, group[0].batch.lengths, self.config.beam, scorer)

    def found(self, sequence: ActionSequence, tags: list[str] | None) -> Found:
        """The tree that actions make, with its crossing arcs; ``tags`` are predicted ones."""
        names = [self.names[relation] for relation in sequence.relations.tolist()]
        blank = [""] * len(names)
        tree = DependencyTree.build(blank, blank, sequence.heads.tolist(), names)
        plain = decode_projective(tree, self.config.nonprojective)
        return Found(heads=plain.heads.tolist(), relations=plain.relations, tags=tags)

    def flat(self, words: Words, tags: Words) -> Parse:
        """Every word hangs from the first, which hangs from the root."""
        permitted = self.system.permitted
        from_root, between = (self.names[column.argmax()] for column in permitted.T)
        heads = [0, *[1] * (len(words) - 1)]
        relations = [from_root, *[between] * (len(words) - 1)]
        tree = DependencyTree.build(words, tags, heads, relations)
        return Parse.of(dependencies=decode_projective(tree, self.config.nonprojective))


class _Scorer:
    """The mean of what several parsers expect of the next action, for the hypotheses of a beam."""

    def __init__(self, group: Sequence[Encoded], members: Sequence[TransitionParser]) -> None:
        self._members = members
        lengths = group[0].batch.lengths
        # In the order of the search, those that are done first last.
        order = np.argsort(-lengths, kind="stable")
        self._searches = [
            member.decoder.search(
                member.sources(each.tokens, each.batch, order),
                product_dtype(member.config.precision),
            )
            for member, each in zip(members, group, strict=True)
        ]
        # Where the relations of the first parser are among those of each.
        self._columns = [_columns(members[0], member) for member in members]

    @torch.no_grad()
    def __call__(self, asked: Asked) -> NDArray[np.float64]:
        states, width = asked.states, asked.width
        sentences = len(states) // width
        masks = [mask.reshape(sentences, width, -1) for mask in states.masks()]
        legal = torch.from_numpy(states.legal_actions())
        parents = torch.from_numpy(asked.parents)
        total: Tensor | None = None
        for number, member in enumerate(self._members):
            columns = self._columns[number]
            last = asked.last if columns is None else _renumbered(asked.last, columns)
            scores = (
                self._searches[number]
                .step(
                    member._last(last),
                    parents.to(member.device),
                    member.stacks(masks[0], masks[1]),
                )
                .double()
            )
            if columns is not None:
                scores = scores[:, torch.from_numpy(columns).to(scores.device)]
            found = scores.cpu().masked_fill(~legal, -torch.inf).log_softmax(dim=1)
            total = found if total is None else torch.logaddexp(total, found)
        assert total is not None
        return (total - np.log(len(self._members))).numpy()


def _columns(first: TransitionParser, member: TransitionParser) -> NDArray[np.int64] | None:
    """The action of a member for each action of the first parser; None where they are alike."""
    if member.names == first.names:
        return None
    ids = member.vocabulary.relation_ids
    relations = np.array([ids[name] for name in first.names])
    return np.concatenate(([0], 1 + relations, 1 + len(relations) + relations))


def _renumbered(actions: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Actions of the first parser as those of a member; -1 stays."""
    return np.where(actions < 0, actions, columns[np.maximum(actions, 0)])
