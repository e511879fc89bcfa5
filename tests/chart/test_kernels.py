"""What holds of every kernel of decoding: the bits of its twin, of any batch, with any threads.

Threads change nothing but the time: not results, not errors, not whether a process ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.chart import kernels
from spmrl_bench.chart.arrays import arc_offsets, cell_offsets, node_offsets, starts
from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.chart.joint_trees import decode_joint
from spmrl_bench.chart.kernels import MOST_THREADS, WORTH_A_TEAM, for_batch
from spmrl_bench.chart.span_trees import SpanTrees
from tests.builders import environment, process
from tests.chart import batches
from tests.chart.batches import of_sentence, part
from tests.twins import (
    THREADS,
    assert_same_bits,
    built,
    check_fallback,
    needs,
    running_on,
    with_threads,
)

Scores = tuple[Any, ...]


class Decoder(NamedTuple):
    """One way to decode."""

    kernel: str  # of :data:`tests.twins.TWINS`
    # Random ones of sentences of these lengths; full of ties, or with all different.
    scores: Callable[[np.random.Generator, Sequence[int], bool], Scores]
    decode: Callable[..., Any]  # takes scores and lengths
    # How many scores of each array a batch has by its lengths, added up.
    sizes: tuple[Callable[[Sequence[int]], Any], ...]
    parts: Callable[[Any, int, Sequence[int]], Any]  # of a result, what sentence ``b`` has


def _labels(gold: bool, columns: int) -> Decoder:
    def scores(rng: np.random.Generator, lengths: Sequence[int], ties: bool) -> Scores:
        batch = batches.random_batch(rng, lengths, columns, gold=gold, ties=ties)
        return (batch.scores, batch.gold) if gold else (batch.scores,)

    def parts(found: Any, b: int, lengths: Sequence[int]) -> Any:
        cells = part(found.cells, node_offsets, lengths, b) - cell_offsets(lengths)[b]
        labels = part(found.labels, node_offsets, lengths, b)
        return SpanTrees(cells, labels, found.scores[b : b + 1])

    sizes = (cell_offsets,) * (1 + gold)
    return Decoder(
        "labels", scores, lambda own, n: batches.decode(own[0], n, *own[1:]), sizes, parts
    )


def _arcs(projective: bool) -> Decoder:
    def scores(rng: np.random.Generator, lengths: Sequence[int], ties: bool) -> Scores:
        return (batches.packed_arcs(rng, lengths, "integers" if ties else "nested"),)

    def parts(found: Any, b: int, lengths: Sequence[int]) -> Any:
        return part(found, starts, lengths, b)

    decode = partial(decode_dependencies, projective=projective)
    return Decoder("dependencies", scores, lambda own, n: decode(*own, n), (arc_offsets,), parts)


def _joint() -> Decoder:
    def scores(rng: np.random.Generator, lengths: Sequence[int], ties: bool) -> Scores:
        return batches.random_joint(rng, lengths, ties=ties)[:2]

    def parts(found: Any, b: int, lengths: Sequence[int]) -> Any:
        return of_sentence(found, lengths, b)

    return Decoder(
        "joint", scores, lambda own, n: decode_joint(*own, n), (cell_offsets, arc_offsets), parts
    )


DECODERS = {
    **{
        f"{columns} labels{', augmented' * gold}": _labels(gold, columns)
        for columns in (1, 7, 8, 9, 20, 110)
        for gold in (False, True)
    },
    "any dependencies": _arcs(False),
    "projective dependencies": _arcs(True),
    "both layers": _joint(),
}
#: One for each search.
SEARCHES = ("8 labels", "8 labels, augmented", *list(DECODERS)[-3:])
#: Blocks, panels and vectors end at 2, 4, 8 and 16 words; lengths around them are there.
MIXED = [1, 2, 9, 10, 11, 17, 33, 2, 1, 5, 8, 15, 16, 36, 3, 4, 7]
#: Adding 1 makes tiny scores equal, huge ones swallow it, and zeros come with two signs.
ODD = np.array([0.0, -0.0, -1e-30, 1e-30, 1e-9, -1.0, 1 - 2**-24, 1.0, 1e17])

every_search = pytest.mark.parametrize("name", SEARCHES)


def agree(decoder: Decoder, scores: Scores, lengths: Any, threads: Sequence[int | None]) -> None:
    """The kernel gives the bits of its twin."""
    with running_on("python"):
        expected = decoder.decode(scores, lengths)
    for team in threads:
        with with_threads(team):
            assert_same_bits(decoder.decode(scores, lengths), expected)


LENGTHS = [[1], [1, 1, 1], [30], [150], [2, 60, 1, 1, 17], [1 + (7 * b) % 13 for b in range(200)]]


def test_kernels_agree_bit_for_bit() -> None:
    for name, decoder in DECODERS.items():
        if not built(decoder.kernel):
            continue
        rng = np.random.default_rng(4)
        for ties in (False, True):
            scores = decoder.scores(rng, MIXED, ties)
            agree(decoder, scores, MIXED, THREADS if name in SEARCHES else (None,))
        for choice in (ODD[:2], ODD[:4], ODD[:-1], ODD):
            lengths = [1, 1, 1, 3, 5, 12]
            drawn, *rest = decoder.scores(rng, lengths, False)
            own = [rng.choice(choice, drawn.shape).astype(drawn.dtype), *rest]
            if decoder.kernel == "joint":
                own[1] = rng.choice(choice, rest[0].shape)
            agree(decoder, tuple(own), lengths, (None,))


def test_any_number_of_threads_gives_the_bits_of_the_twin() -> None:
    for name, lengths in product(SEARCHES, LENGTHS):
        decoder = DECODERS[name]
        if built(decoder.kernel):
            longest = 50 if decoder.kernel == "joint" else 150
            cut = [min(n, longest) for n in lengths]
            scores = decoder.scores(np.random.default_rng(1), cut, True)
            agree(decoder, scores, cut, (1, 2, 7, 1000))


@every_search
def test_many_teams_at_once_do_not_disturb_each_other(name: str) -> None:
    decoder, lengths = DECODERS[name], [5, 31, 12, 1]
    rng = np.random.default_rng(9)
    batches = [decoder.scores(rng, lengths, True) for _ in range(6)]
    with ThreadPoolExecutor(3) as pool, with_threads(2):
        found = list(pool.map(lambda own: decoder.decode(own, lengths), batches * 5))
    for scores, decoded in zip(batches * 5, found, strict=True):
        with with_threads(1):
            assert_same_bits(decoded, decoder.decode(scores, lengths))


@every_search
@given(lengths=st.lists(st.integers(1, 9), max_size=4), seed=st.integers(0, 2**32 - 1))
def test_a_batch_decodes_like_its_sentences(name: str, lengths: list[int], seed: int) -> None:
    decoder = DECODERS[name]
    scores = decoder.scores(np.random.default_rng(seed), lengths, True)
    whole = decoder.decode(scores, lengths)
    for b in range(len(lengths)):
        columns = zip(scores, decoder.sizes, strict=True)
        own = tuple(part(array, size, lengths, b) for array, size in columns)
        with running_on("python"):
            alone = decoder.decode(own, lengths[b : b + 1])
        assert_same_bits(decoder.parts(whole, b, lengths), alone)


def test_types_and_layout_do_not_matter_and_input_stays() -> None:
    for name in SEARCHES:
        decoder, lengths = DECODERS[name], [3, 6]
        scores = decoder.scores(np.random.default_rng(8), lengths, True)
        expected = decoder.decode(scores, lengths)
        others = [np.repeat(array, 2, axis=0)[::2] for array in scores]
        before = list(map(np.copy, others))
        for array in others:
            array.base.setflags(write=False)
            array.setflags(write=False)
        assert_same_bits(decoder.decode(tuple(others), np.array(lengths, np.uint8)), expected)
        assert list(map(np.ndarray.tobytes, others)) == list(map(np.ndarray.tobytes, before))


def test_what_a_word_scores_as_its_own_head_is_not_looked_at() -> None:
    for name in SEARCHES[2:]:
        for value in [np.nan, np.inf, -np.inf, 1e308]:
            decoder, lengths = DECODERS[name], [3, 20]
            scores = decoder.scores(np.random.default_rng(2), lengths, True)
            expected = decoder.decode(scores, lengths)
            for b, n in enumerate(lengths):
                table = part(scores[-1], arc_offsets, lengths, b).reshape(n, n + 1)
                table[np.arange(n), np.arange(1, n + 1)] = value
            for way in ("python", "cython"):
                with running_on(way):
                    assert_same_bits(decoder.decode(scores, lengths), expected)


def test_no_score_is_a_negative_zero() -> None:
    for name in ["1 labels", "both layers"]:
        decoder = DECODERS[name]
        drawn = decoder.scores(np.random.default_rng(1), [1], False)
        zeros = tuple(np.zeros_like(array) * -1.0 for array in drawn)
        for way in ("python", "cython"):
            with running_on(way):
                assert not np.signbit(decoder.decode(zeros, [1]).scores[0])


@every_search
def test_without_a_kernel_its_twin_is_used_with_one_warning(name: str) -> None:
    decoder = DECODERS[name]
    scores = decoder.scores(np.random.default_rng(8), [5, 3], True)
    with running_on("python"):
        expected = decoder.decode(scores, [5, 3])
    check_fallback(decoder.kernel, lambda: decoder.decode(scores, [5, 3]), expected)


def test_who_gets_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenMP's number, but one for little work, without OpenMP and in a forked process."""
    five, many = np.arange(1, 6, dtype=np.int32), np.ones(2 * MOST_THREADS, np.int32)

    def team(openmp: int | None, lengths: Any = five, work: int = WORTH_A_TEAM) -> int:
        kernel = None if openmp is None else SimpleNamespace(openmp_threads=lambda: openmp)
        monkeypatch.setattr(kernels, "load", lambda name: kernel)
        found, order, threads = for_batch("_spans", lengths, work)
        assert found is kernel
        assert (np.diff(lengths[order]) <= 0).all()
        return threads

    assert team(4) == 4
    assert team(8) == 5
    assert team(2**30, many) == MOST_THREADS
    assert team(4, work=WORTH_A_TEAM - 1) == 1
    assert team(4, five[:1]) == team(None) == team(0) == 1
    monkeypatch.setattr(kernels, "_forked", True)
    assert team(4) == 1


SCRIPT = """\
import multiprocessing, os, sys
import numpy as np
from spmrl_bench.chart import kernels

LENGTHS = [3, 40, 17, 1, 28, 9] * 4
USUAL = kernels.WORTH_A_TEAM

def decode(worth=USUAL):
    from spmrl_bench.chart.span_trees import best_labels, decode_spans
    kernels.WORTH_A_TEAM = worth
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((sum(n * (n + 1) // 2 for n in LENGTHS), 50), dtype=np.float32)
    decoded = decode_spans(*best_labels(scores), LENGTHS)
    return decoded.cells.tobytes() + decoded.labels.tobytes() + decoded.scores.tobytes()

def multiply():
    import torch
    torch.set_num_threads(2)
    square = torch.ones(600, 600)
    assert float((square @ square)[5, 7]) == 600

def follow():
    # The default follows torch where both use one library.
    import torch
    from spmrl_bench.chart import _spans
    libraries = set()
    for line in open("/proc/self/maps") if os.path.exists("/proc/self/maps") else ():
        name = line.rpartition("/")[2].strip()
        if name.startswith(("libgomp", "libomp", "libiomp")):
            libraries.add(line.split(maxsplit=5)[5].strip())
    found = []
    for number in (1, 3):
        torch.set_num_threads(number)
        found.append(_spans.openmp_threads())
    assert len(libraries) != 1 or found in ([1, 3], [0, 0]), found

def children(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        # A child that waits for ever is an error, not a test without an end.
        return pool.map_async(decode, [USUAL, 0]).get(timeout=300)

if __name__ == "__main__":
    found = []
    for step in sys.argv[1:]:
        if step == "decode":
            found += [decode(0), decode()]
        elif step == "multiply":
            multiply()
        elif step == "follow":
            follow()
        else:
            found += children(step)
    assert found and set(found) == {decode(float("inf"))}
    print("done")
"""


@needs("labels")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "steps",
    [
        ("multiply", "fork", "decode", "fork", "multiply", "decode", "spawn"),
        ("decode", "fork", "decode", "multiply", "fork", "decode", "multiply", "follow"),
    ],
    ids=["torch first", "kernel first"],
)
def test_torch_and_the_kernel_share_a_process(steps: tuple[str, ...], tmp_path: Path) -> None:
    """GNU OpenMP hangs in a forked process whose parent had a team. The first children of the
    first case load the kernel after torch's team was forked."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = process(sys.executable, script, *steps, env=environment(OMP_NUM_THREADS="2"))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
