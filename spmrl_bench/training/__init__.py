"""Trainer, schedule, checkpoints and progress reports."""
