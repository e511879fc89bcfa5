"""Parsing files and pipes with a saved parser, and what is written of it.

Stands above parsers and training: finds a model wherever it is, reads sentences, has one process
or several parse them, and gives texts in the order of the input. What a parser computes, and what
the commands say, it does not know.
"""
