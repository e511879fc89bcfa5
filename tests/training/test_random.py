"""Random streams are functions of seed, stream and place."""

from __future__ import annotations

import itertools

import torch

from spmrl_bench.training.random import Stream, generator, seed_torch


def test_streams_repeat_and_differ_in_every_argument() -> None:
    places = list(itertools.product((1, 2), Stream, ((0,), (1,), (0, 0), (0, 1), (1, 0))))
    draws = [tuple(generator(seed, s, *place).integers(2**62, size=2)) for seed, s, place in places]
    again = [tuple(generator(seed, s, *place).integers(2**62, size=2)) for seed, s, place in places]
    assert draws == again
    # SeedSequence pads with zeros, so only places of the same depth need to differ.
    by_depth = {
        depth: [d for d, (*_, place) in zip(draws, places, strict=True) if len(place) == depth]
        for depth in (1, 2)
    }
    for found in by_depth.values():
        assert len(set(found)) == len(found)


def test_torch_draws_what_the_place_says() -> None:
    def draw(*place: int) -> list[float]:
        seed_torch(3, Stream.DROPOUT, *place)
        return torch.rand(4).tolist()

    assert draw(2, 5) == draw(2, 5)
    assert draw(2, 5) != draw(5, 2)
