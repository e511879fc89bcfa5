"""Which published figures stand beside a variant and beside a track."""

from __future__ import annotations

from spmrl_bench.leaderboard.beside import beside_track, beside_variant

from spmrl_bench.leaderboard.multilingual import score_track
from spmrl_bench.leaderboard.published import read_published
from tests.leaderboard.test_track import both

PUBLISHED = read_published()


def test_beside_a_variant_stand_the_headlines_of_the_same_variant() -> None:
    (found,) = beside_variant(PUBLISHED, "english", "charlstm")
    assert [(one.system, one.split, one.figure) for one in found] == [
        ("K&K18", "dev", "f1"), ("K&K18", "test", "f1"),
    ]  # fmt: skip
    again = [one.model_copy(update={"setting": "tagged"}) for one in found]
    assert beside_variant([*found, *again], "english", "charlstm") == [found, again]
    assert beside_variant(PUBLISHED, "english", "tag") == []
    assert beside_variant(PUBLISHED, "dutch", "charlstm") == []


def test_beside_a_track_stand_all_figures_of_its_languages() -> None:
    records = both("german", track="spmrl") + both("french", track="spmrl", bank="french-sequoia")
    found = beside_track(PUBLISHED, score_track(records, "spmrl"))
    figures = [figure for figure, _ in found]
    assert {figure.language for figure in figures} == {"german", "french"}
    assert len(figures) == sum(one.language in ("german", "french") for one in PUBLISHED)
    assert all(comparable == (one.treebank == "german-spmrl") for one, comparable in found)
    reference = [bool(figure.variant) for figure in figures]
    assert reference == sorted(reference)  # those of other systems come first
