"""Transition-based dependency parsing: the actions that make a tree, and the beam that finds them.

Words count from 1, and 0 is the root. Nothing here knows the words, the names of relations or a
network: scores of actions are asked for.
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
