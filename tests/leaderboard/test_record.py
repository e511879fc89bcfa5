"""Records: what may stand in one, files of them, which compare, and how they are named."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from spmrl_bench import __version__
from spmrl_bench.errors import CheckpointError, RecordError, ScoreError
from spmrl_bench.leaderboard.compare import (
    common_metric,
    comparable_counts,
    find_record,
    record_differences,
)
from spmrl_bench.leaderboard.documents import document_name, read_document, write_document
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions
from spmrl_bench.leaderboard.record import Output, Record, SplitResult, System
from spmrl_bench.leaderboard.searches import SearchTrial
from tests.builders import (
    HALF,
    LOOSE,
    PERFECT,
    ROOT,
    SKIPPED,
    joined,
    make_record,
    make_result,
    make_treebank,
    records_in,
)


def test_written_record_reads_back_equal(tmp_path: Path) -> None:
    record = make_record()
    path = write_document(record, tmp_path / "results" / "runs")
    assert read_document(Record, path) == record
    assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert write_document(record, path.parent) == path
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_result_outlives_the_figures_and_columns_of_its_metric() -> None:
    stored = make_result(PERFECT, HALF).model_dump()
    scored = stored["metrics"]["brackets"]
    del scored["figures"]["tagging_accuracy"], scored["counts"]["matched_tags"]
    scored["figures"]["forgotten"] = 1.0
    result = SplitResult.model_validate(stored)
    assert result.figure("brackets", "forgotten") == 1.0
    with pytest.raises(ScoreError, match="missing: matched_tags"):
        result.counts("brackets")


def test_all_problems_of_a_record_are_listed(tmp_path: Path) -> None:
    content = make_record().model_dump(mode="json") | {"seed": "one", "novelty": 1}
    del content["training"]["epochs"]
    data = json.dumps(content).encode()
    path = tmp_path / document_name(data)
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        read_document(Record, path)
    for place in ("seed:", "novelty:", "training.epochs:"):
        assert place in str(caught.value)


def test_a_record_names_no_folder_of_the_machine() -> None:
    said = "/home/a/bin/python x.py --train=/my/train.conllu, '/tmp/a/log.txt': https://a.org/b/c"
    trial = SearchTrial(number=1, settings={}, state="failed", problem=said)
    kept = "python x.py --train=train.conllu, 'log.txt': https://a.org/b/c"
    assert trial.problem == kept
    for path in (ROOT / "results" / "shipped" / "runs").glob("*.json"):
        assert not re.search(r"/(tmp|home|root|work|Users)/", path.read_text(encoding="utf-8")), (
            path
        )


def test_folder_reads_oldest_first(tmp_path: Path) -> None:
    assert records_in(tmp_path / "absent") == []
    old, new = make_record(), make_record(finished="2021-01-01T00:00:00Z")
    for record in (new, old):
        write_document(record, tmp_path)
    (tmp_path / ".record-half.tmp").write_bytes(b"{")
    assert records_in(tmp_path) == [old, new]


def test_versions_and_hardware_are_those_in_use() -> None:
    expected = {"torch": torch.__version__, "numpy": np.__version__, "spmrl_bench": __version__}
    assert find_versions().items() >= expected.items()
    hardware = find_hardware(torch.device("cpu"))
    assert (hardware.device, hardware.threads) == ("cpu", torch.get_num_threads())


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_commit_says_whether_files_changed(tmp_path: Path) -> None:
    assert find_commit(tmp_path) is None
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("a", encoding="utf-8")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "tag", "-am", "release", "v1")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    assert find_commit(tmp_path) == commit
    (tmp_path / "file").write_text("b", encoding="utf-8")
    assert find_commit(tmp_path) == f"{commit}-dirty"


def test_what_the_run_was_is_what_one_compares() -> None:
    run = {"variant": "word-charlstm", "seed": "2", "settings": "matrices=full", "ensemble": "5"}
    one, other = make_record(), make_record(dev=make_result(PERFECT, HALF, version="0.2.0", **run))
    assert list(map(len, comparable_counts(one, other, "dev", "brackets"))) == [2, 2]
    assert ("dev.settings", "absent", "matrices=full") in record_differences(one, other)


NO_TEST = {"test": None, "baselines": {}}
UNSELECTED = {"selected": False, **NO_TEST}


def refusal(other: Record, split: str) -> list[str]:
    with pytest.raises(ScoreError) as caught:
        comparable_counts(make_record(), other, split, "brackets")
    return [line.strip() for line in str(caught.value).splitlines()]


def test_what_does_not_compare_is_refused_with_every_key() -> None:
    dev = make_result(PERFECT, HALF, prm="COLLINS", punctuation="by-gold")
    other = make_record(treebank=make_treebank(fingerprint="cd" * 32), dev=dev)
    assert refusal(other, "dev") == [
        "the scores on dev do not compare:",
        "prm: spmrl in the first, COLLINS in the second",
        f"fingerprint: {'ab' * 32} in the first, {'cd' * 32} in the second",
        "punctuation: absent in the first, by-gold in the second",
    ]
    for changes, split, message in (
        (UNSELECTED, "test", "the second record has no scores on test: test is scored for the var"),
        ({"dev": make_result(PERFECT, PERFECT)}, "dev", "the scores on dev are not of the same se"),
    ):
        assert refusal(make_record(**changes), split)[0].startswith(message)


def test_other_sentences_left_out_are_refused_though_equally_many() -> None:
    left_out = [(row[0], *SKIPPED[1:]) for row in (PERFECT, HALF)]
    one = make_record(dev=make_result(left_out[0], HALF, HALF))
    other = make_record(dev=make_result(PERFECT, left_out[1], HALF))
    with pytest.raises(ScoreError, match="on dev leave out different sentences"):
        comparable_counts(one, other, "dev", "brackets")


def test_differences_are_of_ingredients_and_not_of_results() -> None:
    one = make_record()
    other = make_record(
        dev=make_result(PERFECT, PERFECT, prm="COLLINS"),
        weights="ef" * 32,
        recipe={"variant": "charlstm", "learning_rate": 0.002, "model": {"layers": 8}},
        versions={"spmrl_bench": "0.1.0", "torch": "2.4"},
    )
    assert record_differences(one, one) == []
    assert record_differences(one, make_record(**UNSELECTED)) == [("test", "scored", "absent")]
    assert record_differences(one, other) == [
        ("dev.prm", "spmrl", "COLLINS"),
        ("recipe.learning_rate", "0.0008", "0.002"),
        ("recipe.model.layers", "absent", "8"),
        ("versions.torch", "absent", "2.4"),
    ]


def test_metrics_compare_one_by_one() -> None:
    brackets, attached = make_result(PERFECT, HALF), make_result(LOOSE, LOOSE, metric="attachment")
    chart = make_record(dev=brackets)
    whole = make_record(dev=joined(attached, brackets), **NO_TEST)
    links = make_record(dev=attached, **NO_TEST)
    assert common_metric(chart, whole) == "brackets"
    assert common_metric(links, whole) == "attachment"
    assert len(comparable_counts(links, whole, "dev", "attachment")[0]) == 2
    with pytest.raises(ScoreError, match=r"no metric in common: .* by brackets, .* by attachment"):
        common_metric(chart, links)
    with pytest.raises(ScoreError, match="the first record has no scores by attachment; it has br"):
        comparable_counts(chart, whole, "dev", "attachment")
    # The layers that a metric compares are those whose fingerprints count.
    bank = make_treebank().model_copy(
        update={"fingerprints": {"constituents": "ab" * 32, "dependencies": "ef" * 32}}
    )
    other = make_record(treebank=bank, dev=joined(attached, brackets), **NO_TEST)
    comparable_counts(whole, other, "dev", "brackets")
    with pytest.raises(ScoreError, match=r"fingerprint: (ba)+ in .*, (ef)+ in"):
        comparable_counts(whole, other, "dev", "attachment")
    assert ("dev.attachment.match", "absent", "attachment") in record_differences(chart, other)


WEIGHTS = b"weights"
RECORD = make_record(weights=hashlib.sha256(WEIGHTS).hexdigest())


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results, with the records of another run in it."""
    monkeypatch.chdir(tmp_path)
    for seed in (2, 3):
        keep(make_record(seed=seed))
    return Path("results")


def keep(record: Record) -> Path:
    return write_document(record, Path("results/runs"))


def make_run(weights: bytes = WEIGHTS) -> Path:
    best = Path("runs/german-mini/small-charlstm-seed1/best")
    best.mkdir(parents=True)
    (best / "weights.safetensors").write_bytes(weights)
    return best.parent


def test_a_record_is_found_by_file_and_name_and_the_newest_by_its_folder(results: Path) -> None:
    newer = RECORD.model_copy(update={"finished": datetime(2020, 5, 2, tzinfo=UTC)})
    keep(newer)
    path = keep(RECORD)
    for wanted in (path, path.name, path.stem, path.stem[:6]):
        assert find_record(str(wanted), results) == RECORD
    assert find_record(str(make_run()), results) == newer


def test_what_names_no_record_is_refused(results: Path) -> None:
    for wanted, error, message in (
        (make_run(b"other"), RecordError, "seed1: no record of its best parser in results.runs"),
        ("results", CheckpointError, "results/best: no weights"),
        *(
            (name, RecordError, f"^{name}: no record; expected the file of a record")
            for name in (".json", "zzz", "runs/0", "gone/0123456789abcdef.json")
        ),
    ):
        with pytest.raises(error, match=message):
            find_record(str(wanted), results)


def test_an_ambiguous_beginning_is_refused(results: Path) -> None:
    for seed in range(4, 24):  # more records than hexadecimal digits
        keep(make_record(seed=seed))
    names = sorted(path.stem for path in (results / "runs").glob("*.json"))
    digit = next(one[0] for one, other in pairwise(names) if one[0] == other[0])
    with pytest.raises(RecordError, match=f"^{digit}: begins the names of several records in"):
        find_record(digit, results)


def test_the_folder_of_a_system_stands_for_the_record_of_its_parses(results: Path) -> None:
    run = Path("runs/german-mini/udpipe-small-seed1")
    run.mkdir(parents=True)
    outputs = {}
    for split in ("dev", "test"):
        (run / f"{split}.parses").write_text(split)
        digest = hashlib.sha256(split.encode()).hexdigest()
        outputs[split] = Output(sha256={"constituents": digest}, policy="missing")
    settings = {"system": "udpipe", "treebank": "german-mini", "size": "small", "seed": 1}
    (run / "run.json").write_text(json.dumps(settings))
    with pytest.raises(RecordError, match="no record of its parses in results/runs"):
        find_record(str(run), results)
    system = System(name="UDPipe", outputs=outputs)
    records = [make_record(seed=seed, system=system, baselines={}) for seed in (1, 2)]
    for record in records:
        keep(record)
    assert find_record(str(run), results) == records[0]
