"""Parsers of others: what they are given, and what they answered, scored as ours are."""
