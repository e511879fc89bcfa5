"""Weights that others have published: reading their files into NumPy arrays.

A reader here knows the format of a file, and nothing of layers or parsers. What a file holds
becomes a layer in :mod:`spmrl_bench.nn`.
"""
