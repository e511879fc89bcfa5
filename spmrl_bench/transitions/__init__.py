"""Transition-based dependency parsing, apart from any network: trees, actions and the beam.

:class:`TransitionSystem` derives the actions of gold trees and the states before each of them,
for training, and :func:`beam_search` asks for the scores of actions and finds the best tree. Words
count from 1, and 0 is the root. Nothing here knows the words, the names of relations or a model.
"""

from __future__ import annotations

from spmrl_bench.transitions.beam import BeamStep, Hypothesis, beam_search
from spmrl_bench.transitions.system import NONE, TRANSITIONS, Derivation, History, TransitionSystem

__all__ = [
    "NONE",
    "TRANSITIONS",
    "BeamStep",
    "Derivation",
    "History",
    "Hypothesis",
    "TransitionSystem",
    "beam_search",
]
