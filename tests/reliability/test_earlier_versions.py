"""Files of every layout that was ever written are read, with what stood in them then.

A new layout adds a file here, and none is ever taken away or changed.
"""

from __future__ import annotations

import json
from pathlib import Path

from spmrl_bench.analysis.study_run import StudyScore, readable_scores
from spmrl_bench.leaderboard.documents import document_name
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.searches import searched_text
from spmrl_bench.nn.encoders.self_attention import AttentionMask
from tests.builders import records_in
from tests.reliability.tally import Tally

OLD_RECORDS = Path(__file__).parents[1] / "leaderboard" / "golden"
GOLDEN = Path(__file__).parent / "golden"


def versions(*folders: Path) -> set[int]:
    """Of the documents of folders."""
    files = [path for folder in folders for path in folder.glob("*.json")]
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    return {one.get("schema_version", one.get("version")) for one in found}


def test_there_is_a_file_of_every_layout() -> None:
    # Version 1 of records was never released; scores of studies have records' versions from 3 on.
    assert versions(OLD_RECORDS, GOLDEN / "records") == set(range(2, Record.version + 1))
    assert versions(GOLDEN / "scores" / "scores") == set(range(3, StudyScore.version + 1))


def test_no_file_was_changed() -> None:
    for folder in (OLD_RECORDS, GOLDEN / "records", GOLDEN / "scores" / "scores"):
        for path in folder.glob("*.json"):
            assert path.name == document_name(path.read_bytes())


def test_a_record_of_version_3(tally: Tally) -> None:
    tally("R20", "records and scores of earlier layouts").add()
    record, *_ = records_in(GOLDEN / "records")
    assert (record.lang, record.kind, record.variant) == ("german", "chart", "charlstm")
    assert (record.seed, record.selected, record.select) == (
        3,
        True,
        "brackets.f1 + attachment.las",
    )
    assert record.metrics == ["brackets", "attachment"]
    assert record.dev.figure("brackets", "f1") == 75.0
    assert record.dev.figure("attachment", "uas") == 75.0
    assert record.test.counts("brackets").rows.tolist()[2] == [4, 0, 1, 2, 2, 1, 4, 4]
    assert list(record.baselines) == ["right-branching"]
    assert record.settings == {"model.layers": 2}
    assert record.finished.isoformat() == "2020-05-01T12:00:00+00:00"
    assert record.treebank.fingerprint(["dependencies"]) == 32 * "ba"


def test_a_record_of_version_4_is_of_a_system(tally: Tally) -> None:
    tally("R20", "records and scores of earlier layouts").add()
    _, record, _ = records_in(GOLDEN / "records")
    assert (record.system.title, record.system.notes) == ("Branch 1.0", "right-branching")
    assert record.system.outputs["dev"].policy == "missing"
    assert record.system.outputs["dev"].handled == {"no parse": 1}
    assert (record.test, record.training, record.hardware) == (None, None, None)
    assert record.dev.figure("brackets", "f1") == 33.64485981308412


def test_a_record_of_version_5_says_what_was_searched(tally: Tally) -> None:
    tally("R20", "records and scores of earlier layouts").add()
    *_, record = records_in(GOLDEN / "records")
    (search,) = record.searches
    assert search.space["train.learning_rate"] == "log:0.0001:0.005"
    assert [trial.state for trial in search.trials] == ["complete", "complete", "pruned", "failed"]
    assert (search.found, search.minutes) == (2, 12.5)
    assert search.best == search.trials[1]
    assert search.trials[3].problem == "training diverged"
    assert searched_text(record.searches) == "found by a search of 4 trials, 12 min"


def test_scores_of_studies(tally: Tally) -> None:
    scores, errors = readable_scores(GOLDEN / "scores")
    assert not errors
    tally("R20", "records and scores of earlier layouts").add(len(scores))
    (new,) = scores
    assert new.limits == ((1, AttentionMask(window=5)),)
    assert new.parsing == (("span_weight", 0.5),)
    assert scores[new].figure("brackets", "f1") == 75.0
