"""Transition-based dependency parsing, without words, names of relations or a network."""
