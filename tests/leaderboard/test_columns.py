"""Columns of figures: which there are, in which order, and that no two have one name."""

from __future__ import annotations

from spmrl_bench.leaderboard.board import Column, brief_columns, named_columns, selecting_column
from spmrl_bench.scoring.metric import SelectionMetric


def test_brief_columns_end_with_the_headline() -> None:
    columns = brief_columns(["brackets", "attachment"])
    assert [column.title for column in columns] == [
        "dev F1", "dev LAS", "test recall", "test precision", "test F1", "test UAS", "test LAS",
    ]  # fmt: skip
    headlines = [column.key for column in columns if column.is_headline]
    assert headlines == [
        ("dev", "brackets", "f1"), ("dev", "attachment", "las"),
        ("test", "brackets", "f1"), ("test", "attachment", "las"),
    ]  # fmt: skip


def test_what_selects_may_be_a_sum() -> None:
    one = selecting_column(SelectionMetric.parse("brackets.f1"))
    assert one == Column("dev F1", "dev", "brackets", "f1")
    several = selecting_column(SelectionMetric.parse("brackets.f1 + attachment.las"))
    assert several.title == "dev F1 + LAS"
    assert several.key == ("dev", "brackets + attachment", "f1 + las")


def test_names_and_titles_of_a_table_are_its_own() -> None:
    assert list(named_columns(["brackets"])) == [
        "dev_f1", "test_recall", "test_precision", "test_f1", "test_complete_match", "dev_tags",
        "test_tags",
    ]  # fmt: skip
    columns = named_columns(["brackets", "attachment"])
    titles = [column.title for column in columns.values()]
    assert len(set(titles)) == len(titles)
    assert len({column.key for column in columns.values()}) == len(columns)
    assert not columns["dev_tags"].is_headline
