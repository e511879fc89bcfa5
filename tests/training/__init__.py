"""Tests of the trainer, its schedule, checkpoints and reports."""
