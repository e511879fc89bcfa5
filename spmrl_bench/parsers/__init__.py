"""Whole parsers out of layers and chart, and the one registry of parser kinds.

A parser reads words (and tags) and gives parses. It knows no file but its own, no stream of text,
no package and no trainer.
"""
