"""Trainer, schedule, checkpoints and progress reports."""

#: Folders of a run: the last checkpoint and the best parser so far.
LAST, BEST = "last", "best"
