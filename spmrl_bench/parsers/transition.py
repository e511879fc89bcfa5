"""A parser that writes a tree action by action, and looks back at the sentence before each.

The sequence-to-sequence parser of Zhang, Liu, Li, Zhou & Chen 2017 (D17-1175): a sentence is
encoded, and a decoder with attention writes the actions of arc-standard transitions, of which only
the legal ones get a probability. Training trees are made projective by an encoding that the parser
learns with the relations, and what it answers is decoded (:mod:`spmrl_bench.trees.projective`); the
paper says nothing of crossing arcs. The parse is the best sequence of actions that a beam finds. Of
several parsers the probabilities of the actions are averaged at every step, as in the paper.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.kernels.decoder import BeamDecoder
from spmrl_bench.nn.scorers.actions import ActionDecoder, Sources, Stacks, StepwiseDecoder
from spmrl_bench.parsers import biaffine
from spmrl_bench.parsers.base import Prediction, Words
from spmrl_bench.parsers.batches import Batch, Encoded, Group, first_words
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.parsers.views import DerivationTrace
from spmrl_bench.transitions.system import (
    NONE,
    TRANSITIONS,
    BeamStep,
    Derivation,
    History,
    Hypothesis,
    TransitionSystem,
    beam_search,
)
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse, Probabilities
from spmrl_bench.trees.projective import EncodingName, decode_projective, encode_projective


class TransitionParser(NeuralParser):
    """Encoder, decoder with stack attention and transition system."""

    kind = "transition"
    citations = (
        "Zhang, Liu, Li, Zhou & Chen (2017). Stack-based Multi-layer Attention for "
        "Transition-based Dependency Parsing. EMNLP. https://aclanthology.org/D17-1175/",
    )
    config: Config

    class Config(NeuralConfig):
        """A parser of dependencies that writes the actions of a transition system."""

        decoder: ActionDecoder.Config
        """What writes the actions."""
        system: Literal["arc-standard"] = "arc-standard"
        """The transition system, which says what the actions are and when they are legal."""
        beam: Annotated[int, Field(ge=1, le=1000)] = 8
        """Hypotheses that are kept of each sentence in parsing; 1 is greedy search."""
        nonprojective: EncodingName = "head+path"
        """How crossing arcs are learnt: lifted and lost, or encoded (Nivre & Nilsson 2005)."""

        @property
        def free(self) -> frozenset[str]:
            return frozenset({"beam"})

    def add_layers(self) -> None:
        self.names = list(self.vocabulary.relations)
        self.system = TransitionSystem(biaffine.relation_places(self.vocabulary))
        self.decoder = ActionDecoder(self.config.decoder, self.encoder.d_out, self.system.actions)
        self.add_tagger()

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        encoding = config.nonprojective
        encoded = [
            example if tree is None else Parse.of(dependencies=encode_projective(tree, encoding))
            for example in examples
            for tree in (example.dependencies,)
        ]
        return cls.fresh(config, biaffine.dependency_vocabulary(encoded))

    # Training -------------------------------------------------------------------------

    def gold(self, example: Parse) -> Derivation:
        try:
            if example.dependencies is None:
                raise TreeError("no dependencies to learn")
            tree = encode_projective(example.dependencies, self.config.nonprojective)
            relations = biaffine.relation_rows(tree, self.vocabulary.relation_ids)
            return self.system.derive(tree.heads.tolist(), relations)
        except TreeError as error:
            begun = first_words(example.words)
            raise TreeError(f"{error} (the sentence begins: {begun})") from None

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[Derivation]) -> Tensor:
        """Return the sum over actions of their cross-entropy among the legal ones."""
        scores, chosen, _ = self.teacher_forced(tokens, batch, gold)
        return torch.nn.functional.cross_entropy(scores, chosen, reduction="sum")

    def teacher_forced(
        self, tokens: Tensor, batch: Batch, gold: Sequence[Derivation]
    ) -> tuple[Tensor, Tensor, History]:
        """Return what is expected of the next action along gold derivations, the longest first:
        scores ``[steps, actions]``, minus infinity where an action is not legal; int64 ``[steps]``,
        the gold actions, those of all first steps first; and the states."""
        order = _longest_first(batch)
        history = self.system.history([gold[place] for place in order])
        actions = history.actions
        scores = self.decoder(
            self._last(np.insert(actions[:, :-1], 0, NONE, axis=1)),
            torch.from_numpy(2 * batch.lengths[order].astype(np.int64)),
            self.sources(tokens, batch, order),
            self.stacks(history.pushed, history.removed),
            kernels.matmul_dtype(self.config.precision),
        )
        number, row = (actions.T != NONE).nonzero()
        legal = torch.from_numpy(history.legal[row, number]).to(self.device)
        chosen = torch.from_numpy(actions[row, number]).to(self.device)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return scores.masked_fill(~legal, -torch.inf), chosen, history

    def sources(self, tokens: Tensor, batch: Batch, order: NDArray[np.integer]) -> Sources:
        """Return the encoded words of the sentences in an order."""
        rectangle = batch.layout.pad(tokens)[:, 1:-1]
        chosen = torch.from_numpy(order.astype(np.int64)).to(rectangle.device)
        return self.decoder.attention.sources(rectangle.index_select(0, chosen))

    def stacks(self, pushed: NDArray[np.bool_], removed: NDArray[np.bool_]) -> Stacks:
        """Return what attention is told of states, from masks ``[B, K, N + 1]`` with the root.
        Where nothing would be left, behind the last action, nothing is hidden."""
        if not self.config.decoder.removed_words:
            removed = removed & ~pushed  # beyond a sentence words are removed, but not pushed
        hidden = torch.from_numpy(removed[..., 1:]).to(self.device)
        hidden = hidden & ~hidden.all(dim=-1, keepdim=True)
        return Stacks(torch.from_numpy(pushed[..., 1:]).to(self.device).float(), hidden)

    def _last(self, actions: NDArray[np.integer]) -> Tensor:
        """Actions as the decoder reads them; none, -1, is the last, the start."""
        known = actions.astype(np.int64) % (self.system.actions + 1)
        return torch.from_numpy(known).to(self.device)

    # Parsing --------------------------------------------------------------------------

    def predict(self, group: Group) -> Iterator[Prediction]:
        most = self.config.beam if group.scored or group.best > 1 else 1
        for beam in self.hypotheses(group.encoded, group.members, most):
            ranked = list[tuple[float, Prediction]]()
            for each in beam[: len(beam) if group.best > 1 else 1]:
                one = Prediction(None, *self._tree(each))
                if all(one != other for _, other in ranked):  # several derivations of one tree
                    ranked.append((each.score, one))
            known = self._likely(beam, group.temperature) if group.scored else None
            several = ranked[: group.best] if group.best > 1 else ()
            yield ranked[0][1]._replace(probabilities=known, best=several)

    @torch.no_grad()
    def hypotheses(
        self, group: Sequence[Encoded], members: Sequence[Self], most: int = 1
    ) -> list[list[Hypothesis]]:
        """Return so many of what the beam has found for each sentence, the best first, as each of
        the members has encoded it."""
        lengths, order = group[0].batch.lengths, _longest_first(group[0].batch)
        decoders: list[BeamDecoder | StepwiseDecoder] = []
        for member, encoded in zip(members, group, strict=True):
            sources = member.sources(encoded.tokens, encoded.batch, order)
            if kernels.usable(sources.words, "decoder"):
                dtype = kernels.matmul_dtype(member.config.precision)
                decoders.append(BeamDecoder(member.decoder, sources, dtype))
            else:
                decoders.append(StepwiseDecoder(member.decoder, sources))
        # The member's action for each of this parser's, and for none at last.
        columns_of = [torch.from_numpy(_columns(self, member)) for member in members]

        def expected(step: BeamStep) -> NDArray[np.float64]:
            pushed, removed = (
                mask.reshape(-1, step.width, mask.shape[1])
                for mask in (step.states.pushed, step.states.removed)
            )
            legal, parents = torch.from_numpy(step.legal), torch.from_numpy(step.parents)
            means: list[Tensor] = []
            for member, decoder, columns in zip(members, decoders, columns_of, strict=True):
                given = columns[step.last].to(member.device), parents.to(member.device)
                scores = decoder.step(*given, member.stacks(pushed, removed)).double().cpu()
                if member.names != self.names:
                    scores = scores.index_select(1, columns[:-1])
                means.append(scores.masked_fill(~legal, -torch.inf).log_softmax(dim=1))
            return (reduce(torch.logaddexp, means) - np.log(len(members))).numpy()

        return beam_search(self.system, lengths, self.config.beam, expected, most)

    def _likely(self, beam: Sequence[Hypothesis], temperature: float) -> Probabilities:
        """Return probabilities of what the beam has kept, as if there were nothing else."""
        scores = np.array([each.score for each in beam]) / temperature
        shares = np.exp(scores - np.logaddexp.reduce(scores)).tolist()
        arcs, relations = defaultdict[Any, float](float), defaultdict[Any, float](float)
        trees = [self._tree(each) for each in beam]
        for share, tree in zip(shares, trees, strict=True):
            for word, (head, name) in enumerate(zip(*tree, strict=True), 1):
                arcs[word, head] += share
                relations[word, head, name] += share
        of_best = sum(share for share, tree in zip(shares, trees, strict=True) if tree == trees[0])
        return Probabilities(min(0.0, math.log(of_best)), None, dict(arcs), dict(relations))

    def _tree(self, best: Hypothesis) -> tuple[list[int], tuple[str, ...]]:
        """Return the heads and the relations of the words."""
        names = [self.names[relation] for relation in best.relations.tolist()]
        blank = [""] * len(names)
        tree = DependencyTree.build(blank, blank, best.heads.tolist(), names)
        plain = decode_projective(tree, self.config.nonprojective)
        return plain.heads.tolist(), plain.relations

    def flat(self, words: Words, tags: Words) -> Parse:
        relations = (self.names[k] for k in self.system.permitted.argmax(axis=0))
        tree = biaffine.chain(words, tags, *relations)
        return Parse.of(dependencies=decode_projective(tree, self.config.nonprojective))

    # Derivations ----------------------------------------------------------------------

    def derivation(self, words: Words, tags: Words | None = None) -> DerivationTrace:
        if not words:
            raise SpmrlError("a sentence without words has no attention to show")
        groups = self.encoded([words], None if tags is None else [tags])
        encoded = next(groups)
        ((best,),) = self.hypotheses([encoded], [self])
        found = Prediction(None, *self._tree(best), encoded.tags[0])
        return self._trace(encoded, best, found.parse(words, tags))

    @torch.no_grad()
    def _trace(self, encoded: Encoded, best: Hypothesis, parse: Parse) -> DerivationTrace:
        """Let the decoder go once more along the best actions of the one sentence."""
        actions, removed_at = best.derivation
        history = self.system.history([best.derivation])
        sources = self.sources(encoded.tokens, encoded.batch, np.zeros(1, dtype=np.int64))
        stacks = self.stacks(history.pushed, history.removed)
        lasts = self._last(np.insert(actions[:-1], 0, NONE)).view(-1, 1, 1)
        befores = zip(*(part.split(1, dim=1) for part in stacks), strict=True)
        state, scores, weights = self.decoder.start(1, 1), [], []
        for last, before in zip(lasts, befores, strict=True):
            found, state, seen = self.decoder.step(last, state, sources, Stacks(*before))
            scores.append(found[0, 0].double().cpu())
            weights.append(seen[0, 0].float().cpu())
        legal = torch.from_numpy(history.legal[0])
        expected = torch.stack(scores).masked_fill(~legal, -torch.inf).softmax(dim=1).numpy()
        arcs = np.full((len(actions), 2), NONE, dtype=np.int32)
        arcs[removed_at[1:] - 1] = np.stack((best.heads, np.arange(1, len(parse) + 1)), axis=1)
        names = ["SHIFT", *(f"{arc}({name})" for arc in TRANSITIONS[1:] for name in self.names)]
        top, second, front = (word[0] for word in history.tops())
        removed = history.removed[0, :, 1:]
        return DerivationTrace(
            words=parse.words,
            actions=tuple(names[action] for action in actions),
            weights=torch.stack(weights).numpy(),
            on_stack=history.pushed[0, :, 1:] & ~removed,
            removed=removed,
            top=top,
            second=second,
            front=front,
            arcs=arcs,
            probabilities=expected[np.arange(len(actions)), actions],
            score=best.score,
            parse=parse,
        )


def _longest_first(batch: Batch) -> NDArray[np.int64]:
    return np.argsort(-batch.lengths, kind="stable")


def _columns(first: TransitionParser, member: TransitionParser) -> NDArray[np.int64]:
    relations = np.array([member.vocabulary.relation_ids[name] for name in first.names])
    count = len(relations)
    return np.concatenate(([0], 1 + relations, 1 + count + relations, [1 + 2 * count]))
