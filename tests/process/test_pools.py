"""Pools of processes end, whatever the thread that looks after them does."""

from __future__ import annotations

import time
from multiprocessing import active_children

import pytest

from spmrl_bench.process.pools import end_pool, worker_pool


@pytest.mark.parametrize("stumbles", [False, True])
def test_no_process_of_a_pool_is_left(stumbles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = active_children()
    pool = worker_pool(2, 1)
    assert pool.submit(abs, -1).result() == 1
    pool.submit(time.sleep, 600)
    started = set(active_children()) - set(before)
    assert len(started) == 2
    if stumbles:
        monkeypatch.setattr(type(pool), "shutdown", lambda self, **options: None)
    end_pool(pool, before)
    assert not started & set(active_children())
    assert not any(process.is_alive() for process in started)
