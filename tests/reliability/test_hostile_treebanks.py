"""Manifests, recipes and archives that are meant to do harm: refused in time, and harmless.

Nothing is written outside of the directory of treebanks, whatever the case, and nothing at all by
what is refused. ``make attack`` goes through the command line.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.treebanks.catalogue import load_manifest, treebank_statuses
from spmrl_bench.treebanks.download import fetch_treebank
from spmrl_bench.treebanks.treebank import open_treebank
from tests.reliability.hostile import CASES, Case, Stage, set_stage
from tests.reliability.tally import Tally
from tests.treebanks.serving import Server, serving

SECONDS = 4.0  # of the processor, which others may use too
MEMORY = 500 << 20  # bytes


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def listing(folder: Path) -> dict[str, str]:
    """What lies under a folder, with the content of files and the targets of links.

    Without what may come and go: stored sentences of treebanks, and empty folders of downloads.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "home/cache" in name or name.endswith("home/downloads"):
            continue
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.is_file() and path.stat().st_size > MEMORY:
            found[name] = f"{path.stat().st_size} bytes"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "folder"
    return found


def check_unchanged(case: Case, before: dict[str, str], after: dict[str, str]) -> None:
    assert {name: after.get(name) for name in before} == before, "something was changed"
    new = sorted(after.keys() - before.keys())
    if case.harmless:
        assert all(name.startswith("surrounding/treebanks/") for name in new), new
    else:
        assert new == []


@pytest.fixture
def stage(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = set_stage(tmp_path / "around" / "surrounding", server)
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(stage.folder / "home"))
    monkeypatch.setenv("TREEBANKS", str(stage.root))
    monkeypatch.chdir(stage.folder)
    return stage


def use(case: Case) -> None:
    if case.use == "fetch":
        fetch_treebank(load_manifest("tiny"), tell=lambda _: None)
    elif case.use == "open":
        bank = open_treebank("tiny")
        for split in ("train", "dev", "test"):
            bank.examples(split)
    elif case.use == "treebanks":
        for error in treebank_statuses()[1]:
            raise error
    else:
        make_runs("elvish")


def test_the_list_is_long_and_its_names_differ() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(bool(case.says) != bool(case.harmless) for case in CASES)


@pytest.mark.parametrize("use_of", ["open", "fetch", "treebanks", "train"])
def test_without_harm_all_is_well(stage: Stage, use_of: str) -> None:
    if use_of == "fetch":
        from tests.reliability.hostile_archives import zip_of

        stage.archive(zip_of([("release/data/new.mrg", b"(S (N new))")]))
    use(Case("", use_of, lambda _: None))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_harm(case: Case, stage: Stage, tmp_path: Path, tally: Tally) -> None:
    held = tally("R17", "hostile manifests, recipes and archives")
    case.make(stage)
    before = listing(tmp_path / "around")
    begun = time.process_time()
    held.add()
    with contextlib.nullcontext() if case.harmless else pytest.raises(SpmrlError) as caught:
        use(case)
    assert time.process_time() - begun < SECONDS
    check_unchanged(case, before, listing(tmp_path / "around"))
    assert not list((stage.folder / "home").glob("downloads/*"))
    if caught is not None:
        message = str(caught.value)
        assert case.says in message
        message.encode()  # it can be printed
