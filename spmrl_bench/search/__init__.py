"""Searches for settings: trials of one variant on one treebank, chosen by their scores on dev."""
