"""The graphics cards of a machine, and how units of work that go on at once share them."""

from __future__ import annotations


def cards() -> int:
    """Return the number of graphics cards that torch sees."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device_of_job(job: int, device: str, cards: int) -> str:
    """Return the device of a job, from 0, among several that go on at once: the cards in turn.

    A ``device`` that names a card, or the CPU, is that of all jobs.
    """
    return f"cuda:{job % cards}" if device in ("auto", "cuda") and cards > 1 else device
