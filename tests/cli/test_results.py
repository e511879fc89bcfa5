"""The tables of all records: what is printed, what is written, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.leaderboard.record import write_record
from tests.builders import make_record, make_treebank, refused, works

RESULTS = Path("results")
TABLE = ("results", "table")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(
    language: str = "german", track: str = "mini", folder: str = "runs", seed: int = 1
) -> str:
    """The name of a record that is written."""
    bank = make_treebank(f"{language}-{track}", track, language=language)
    record = make_record(treebank=bank, lang=language, seed=seed)
    return write_record(record, RESULTS / folder).stem


def tables(track: str) -> set[str]:
    return {path.suffix for path in RESULTS.glob(f"multilingual-{track}.*")}


def test_both_forms_are_printed_and_written() -> None:
    write()
    markdown, csv = works(*TABLE).stdout, works(*TABLE, "--format", "csv").stdout
    assert markdown.startswith("## german-mini (mini track, generated sentences)\n")
    assert csv.startswith("track,treebank,group,variant,size,seed,dev_f1,")
    assert (RESULTS / "table.md").read_text(encoding="utf-8") == markdown
    assert (RESULTS / "table.csv").read_text(encoding="utf-8") == csv


def test_one_treebank_or_track_is_printed_and_all_are_written() -> None:
    write("german")
    write("french", "open")
    whole = works(*TABLE).stdout
    shown = works(*TABLE, "--treebank", "french-open").stdout
    assert "german-mini (" not in shown
    assert shown.startswith("## french-open (open track")
    assert shown in whole
    assert (RESULTS / "table.md").read_text(encoding="utf-8") == whole
    assert "| german " in works(*TABLE, "--track", "mini").stdout
    for option, wrong, near in (
        ("treebank", "french-opne", "french-open"), ("track", "mimi", "mini"),
    ):  # fmt: skip
        said = refused(*TABLE, f"--{option}", wrong)
        assert f"among the records: unknown {option} '{wrong}'. Did you mean {near}?" in said


def test_tables_of_tracks_with_two_languages_are_written() -> None:
    for language, track in (("german", "mini"), ("french", "mini"), ("german", "open")):
        write(language, track)
    result = works(*TABLE)
    assert (tables("mini"), tables("open")) == ({".md", ".csv", ".tex"}, set())
    assert result.stderr == "wrote results/multilingual-mini.{md,csv,tex}\n"
    assert "| french " in (RESULTS / "multilingual-mini.md").read_text(encoding="utf-8")


def test_shipped_records_are_shown_as_such() -> None:
    own, shipped = write(), write(folder="shipped/runs", seed=2)
    shown = works(*TABLE).stdout
    assert "| charlstm, shipped " in shown
    works("compare", own, shipped)


def test_a_table_that_cannot_be_written_is_named() -> None:
    write()
    (RESULTS / "table.md").mkdir()
    assert "results/table.md: cannot write the table: " in refused(*TABLE)
