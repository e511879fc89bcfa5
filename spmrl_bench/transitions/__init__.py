"""Transition-based dependency parsing: the actions that make a tree, and the beam that finds them.

Words count from 1, and 0 is the root. Nothing here knows the words, the names of relations or a
network: scores of actions are asked for.
"""
