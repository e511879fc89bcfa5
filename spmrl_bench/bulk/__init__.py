"""Parsing folders of text: many files, shards of bounded size, any number of workers."""
