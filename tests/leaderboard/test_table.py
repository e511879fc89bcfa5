"""Tables: what they show and never put side by side; as Markdown and LaTeX nothing breaks them."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from spmrl_bench.leaderboard.board import groups_of
from spmrl_bench.leaderboard.compare import comparable_counts
from spmrl_bench.leaderboard.frame import by_age, records_frame
from spmrl_bench.leaderboard.published import PublishedFigure, load_published
from spmrl_bench.leaderboard.record import SPLITS, Record, SplitResult, System, SystemTraining
from spmrl_bench.leaderboard.tables import (
    boards,
    entries_frame,
    ours_and_others,
    ours_and_others_table,
    results_csv,
    results_markdown,
)
from spmrl_bench.leaderboard.writing import Document, Table, to_csv, to_latex, to_markdown
from spmrl_bench.scoring.counts import Status
from tests.builders import (
    ATTACHED,
    HALF,
    LOOSE,
    PERFECT,
    ROOT,
    SKIPPED,
    joined,
    make_record,
    make_result,
    make_treebank,
    process,
    records_in,
)
from tests.reliability.tally import Tally

PUBLISHED = load_published()[0]
WRONG = (3, Status.VALID, 1, 2, 2, 1, 3, 3)  # of as many words as PERFECT


def text_of(records: list[Record], published: list[PublishedFigure] = PUBLISHED) -> str:
    return results_markdown(records, published)


def frame_of(records: list[Record]) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(results_csv(groups_of(by_age(records)), PUBLISHED)))


def titles(text: str) -> list[str]:
    return [line[3:] for line in text.splitlines() if line.startswith("## ")]


def names(text: str) -> list[str]:
    """The first cells of the rows of all tables, without the headings."""
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    return [name for name in rows if name != "variant"]


def test_one_run_with_its_baseline_and_the_published_figure() -> None:
    unselected = {"selected": False, "test": None, "baselines": {}}
    loser = make_record(variant="word-charlstm", dev=make_result(HALF, HALF), **unselected)
    text = text_of([loser, make_record()])
    assert titles(text) == ["german-mini (mini track, generated sentences)"]
    assert [cells(text, name) for name in ("charlstm", "word-charlstm", "right-branching")] == [
        ["charlstm", "small", "1", "75.00", "83.33", "83.33", "83.33", "66.67", "3", "1234", "[1]",
         "dev 91.26"],
        ["word-charlstm", "small", "1", "50.00", "", "", "", "", "", "1234", "[2]",
         "dev 91.39, test 87.69"],
        ["right-branching", "", "", "", "50.00", "50.00", "50.00", "0.00", "3", "", "[3]", ""],
    ]  # fmt: skip
    assert "\n- [1] `prm:spmrl` 2020-05-01\n" in text
    assert text.endswith(
        "\nK&K18: Kitaev & Klein 2018 (ACL, P18-1249), Table 7; which variant: "
        "Kitaev, Cao & Klein 2019 (ACL, P19-1340), note to Table 4.\n"
    )


def test_treebanks_and_tracks_never_share_a_table() -> None:
    about = {
        "german-mini (mini track, generated sentences)": ("german", "mini"),
        "dutch-alpino (open track)": ("dutch", "open"),
        "german-squoia (open track)": ("german", "open"),
        "german-spmrl (spmrl track)": ("german", "spmrl"),
    }
    records = [
        make_record(treebank=make_treebank(title.split()[0], track, language=language))
        for title, (language, track) in about.items()
    ]
    text = text_of(records)
    assert titles(text) == list(about)
    # Published figures say what treebank they are of.
    heads = [line.split("|")[-2].strip() for line in text.splitlines() if "| variant" in line]
    other = "K&K18 F1 (another treebank: german-spmrl)"
    assert heads == [other, "signature", other, "K&K18 F1 (this treebank)"]


def test_signatures_that_do_not_compare_are_split_with_a_note() -> None:
    base = make_record()
    variations = {
        "fingerprint": make_record(treebank=make_treebank(fingerprint="cd" * 32)),
        "prm": make_record(dev=make_result(PERFECT, HALF, prm="COLLINS")),
        "scorer": make_record(dev=make_result(PERFECT, HALF, scorer="evalb")),
        "test skipped": make_record(test=make_result(PERFECT, SKIPPED, split="test")),
    }
    for key, other in variations.items():
        text = text_of([base, other])
        table = "german-mini (mini track, generated sentences, table {})".format
        assert titles(text) == [table(1), table(2)], key
        assert f"Does not compare with table 1 of german-mini: {key} is" in text


def test_parsers_with_an_encoder_have_a_table_of_their_own_but_compare() -> None:
    alone, with_it = make_record(), make_record(dev=make_result(PERFECT, HALF, encoder="e5-small"))
    text = text_of([alone, with_it])
    table = "german-mini (mini track, generated sentences, table {})".format
    assert titles(text) == [table(1), table("2, with e5-small")]
    assert "Does not compare with table 1 of german-mini: encoder is e5-small" in text
    comparable_counts(alone, with_it, "dev", "brackets")
    # Nor does a parser join its table that has no metric in common with it.
    assert titles(text_of([with_it, attached(1, 3)])) == [table("1, with e5-small"), table(2)]


def test_entries_that_cannot_be_told_apart_share_their_ranks() -> None:
    """Of 8 sentences 8, 1 and 0 are right: p is 0.008, 0.016 and 1 for the three pairs."""
    records = []
    for name, right in {"charlstm": 8, "bilstm": 1, "word-charlstm": 0}.items():
        rows = [PERFECT] * right + [WRONG] * (8 - right)
        splits = {split: make_result(*rows, split=split, variant=name) for split in SPLITS}
        records.append(make_record(variant=name, **splits))
    text = text_of(records)
    ranks = [cells(text, record.variant)[1] for record in records]
    assert ranks == ["1", "2-3", "2-3"]
    assert "Holm" in text
    assert "Holm" not in text_of(records[:1])


def test_newest_record_of_a_run_is_shown_and_older_ones_are_counted() -> None:
    new = make_record(finished=datetime(2021, 1, 1, tzinfo=UTC), dev=make_result(PERFECT, PERFECT))
    old = make_record(finished=datetime(2019, 1, 1, tzinfo=UTC))
    for order in ([new, old], [old, new]):
        text = text_of(order)
        assert cells(text, "charlstm")[3] == "100.00"
        assert "Newest record of each run; 1 older record is not shown." in text


def run_of(seed: int, dev: int, test: int | None = None, **changes: Any) -> Record:
    """A run with so many of 8 sentences right on dev, and on test if it was selected."""
    variant = changes.get("variant", "charlstm")

    def scored(right: int, split: str) -> SplitResult:
        rows = [PERFECT] * right + [WRONG] * (8 - right)
        return make_result(*rows, split=split, variant=variant, seed=str(seed))

    fields: dict[str, Any] = {
        "seed": seed,
        "selected": test is not None,
        "dev": scored(dev, "dev"),
        "test": None if test is None else scored(test, "test"),
    }
    baselines = {"right-branching": make_result(*[HALF] * 8, split="test")}
    fields["baselines"] = {} if test is None else baselines
    return make_record(**(fields | changes))


def cells(text: str, row: str) -> list[str]:
    """The cells of the row of a Markdown table whose first cell is this."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    (found,) = (one for one in rows if one[0] == row)
    return found


def test_seeds_of_a_variant_are_one_row_with_mean_and_sample_standard_deviation() -> None:
    # Complete match of 2, 4 and 6 in 8 sentences: 25, 50 and 75; mean 50, s = 25 (n - 1).
    runs = [run_of(3, 6, 2), run_of(1, 2, 4), run_of(2, 4, 6)]
    runs.append(run_of(1, 3, variant="word-charlstm"))
    text = text_of(runs)
    row = cells(text, "charlstm")
    assert row[:3] == ["charlstm", "small", "mean of 3"]
    assert row[7] == "50.00 ± 25.00"
    assert "±" not in "".join(cells(text, "word-charlstm"))
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 1 + 3
    f1 = {right: run_of(1, right).dev.figure("brackets", "f1") for right in (2, 3, 4, 6)}
    assert (
        "Means over seeds, ± their sample standard deviation. F1 of each run:\n\n"
        f"- charlstm: seed 1 dev {f1[2]:.2f}, test {f1[4]:.2f}; "
        f"seed 2 dev {f1[4]:.2f}, test {f1[6]:.2f}; seed 3 dev {f1[6]:.2f}, test {f1[2]:.2f}\n"
    ) in text
    assert "Means over seeds" not in text_of(runs[:1])
    # One that was not tested with every seed has no mean on test.
    row = cells(text_of([run_of(1, 2, 4), run_of(2, 4)]), "charlstm")
    assert "±" in row[3]
    assert row[4:9] == [""] * 5


def test_settings_and_ensembles_are_rows_of_their_own() -> None:
    settings = {"model.matrices": "full", "model.position": "added"}
    runs = [
        run_of(1, 4, 4),
        run_of(1, 3, 3, recipe={"settings": settings}),
        run_of(1, 2, 2, recipe={"settings": {"model.precision": "bf16"}}),
        run_of(1, 6, 6, ensemble=["ab" * 32, "cd" * 32]),
    ]
    text = text_of(runs)
    assert "older" not in text
    rows = names(text)
    assert rows == [
        "charlstm, ensemble of 2",
        "charlstm",
        "charlstm (matrices=full, position=added)",
        "charlstm (precision=bf16)",
        "right-branching",
    ]
    # Published figures are not of ensembles and not of other models.
    published = [cells(text, row)[-1] for row in rows]
    assert published == ["", "dev 91.26", "", "dev 91.26", ""]
    frame = frame_of(runs)
    assert list(frame["kind"]) == ["ensemble", "run", "run", "run", "baseline"]
    assert (frame["runs"][0], frame["settings"][2]) == (2, "matrices=full,position=added")


def attached(seed: int, right: int, **changes: Any) -> Record:
    """A dependency parser's run with so many of 4 sentences right on dev and on test."""
    rows = [ATTACHED] * right + [LOOSE] * (4 - right)
    fields: dict[str, Any] = {
        "seed": seed,
        "variant": "links",
        "kind": "graph",
        "select": "attachment.las",
        "dev": make_result(*rows, metric="attachment"),
        "test": make_result(*rows, metric="attachment", split="test"),
        "baselines": {"attach-neighbour": make_result(LOOSE, metric="attachment", split="test")},
    }
    return make_record(**(fields | changes))


def test_columns_are_those_of_the_metric() -> None:
    text = text_of([attached(1, 3), attached(2, 3)], [])
    assert cells(text, "variant")[3:8] == [
        "dev LAS", "test UAS", "test LAS", "label accuracy", "complete match, labelled",
    ]  # fmt: skip
    # Three sentences of 4 words are right; of the last 2 heads, 3 relations and 1 of both.
    assert cells(text, "links")[3:8] == [
        f"{value:.2f} ± 0.00" for value in (81.25, 87.5, 81.25, 93.75, 75.0)
    ]
    assert cells(text, "attach-neighbour")[3:8] == ["", "50.00", "25.00", "75.00", "0.00"]
    assert "LAS of each run:\n\n- links: seed 1 dev 81.25, test 81.25; seed 2" in text
    frame = frame_of([attached(1, 3)])
    assert {"dev_las", "test_uas", "test_las", "test_labelled_match"} <= set(frame.columns)
    assert not [name for name in frame.columns if name.endswith("_f1") and "publ" not in name]


def test_parsers_of_one_layer_and_of_both_share_a_table() -> None:
    brackets = make_result(*[PERFECT] * 3, HALF), make_result(*[PERFECT] * 4, split="test")
    links = attached(1, 2)
    whole = make_record(
        variant="both",
        select="brackets.f1 + attachment.las",
        dev=joined(brackets[0], links.dev),
        test=joined(brackets[1], links.test),
        baselines={"right-branching": brackets[1], **links.baselines},
    )
    text = text_of([links, whole, make_record(dev=brackets[0], test=brackets[1])], [])
    assert len(titles(text)) == 1
    heads = cells(text, "variant")
    assert heads[4:8] == ["dev F1", "dev LAS", "test recall", "test precision"]
    assert len(set(heads)) == len(heads)
    shown = {"both": ["87.50", "62.50"], "links": ["", "62.50"], "charlstm": ["87.50", ""]}
    assert {name: cells(text, name)[4:6] for name in shown} == shown
    assert names(text)[3:] == ["attach-neighbour", "right-branching"]
    assert "`prm:spmrl & match:attachment`" in text


def test_scores_by_a_metric_that_is_not_installed_are_left_out() -> None:
    record = make_record()
    strange = record.dev.metrics["brackets"].model_copy(update={"figures": {"wonder": 1.0}})
    dev = record.dev.model_copy(update={"metrics": record.dev.metrics | {"strange": strange}})
    assert text_of([make_record(dev=dev)]) == text_of([record])
    dev = record.dev.model_copy(update={"metrics": {"strange": strange}})
    alone = make_record(dev=dev, test=None, baselines={}, select="strange.wonder")
    assert names(text_of([alone])) == ["charlstm"]


def test_figures_of_several_papers_stand_side_by_side() -> None:
    theirs = [figure for figure in PUBLISHED if figure.language == "german" and figure.variant]
    changes = {"system": "Again", "treebank": "german-mini", "setting": "tagged", "value": 80.0}
    others = [figure.model_copy(update=changes) for figure in theirs]
    text = text_of([make_record()], [*theirs, *others])
    assert cells(text, "variant")[-2:] == [
        "K&K18 F1 (another treebank: german-spmrl)", "Again F1 (this treebank; tagged)",
    ]  # fmt: skip
    assert cells(text, "charlstm")[-2:] == ["dev 91.26", "dev 80.00"]
    rows = entries_frame(groups_of(by_age([make_record()])), [*theirs, *others])
    assert rows["published_system"][0] == "K&K18"
    assert (rows["published_system_2"][0], rows["published_dev_f1_2"][0]) == ("Again", 80.0)


def test_figures_of_a_treebank_stand_below_its_table() -> None:
    figures = [one for one in PUBLISHED if one.treebank == "basque-ud217-bdt"]
    assert [one.figure for one in figures] == ["uas", "las"]
    text = text_of(
        [make_record()], [one.model_copy(update={"treebank": "german-mini"}) for one in figures]
    )
    (line,) = (line for line in text.splitlines() if line.startswith("Published of this"))
    assert re.search(r": UDPipe 2, test UAS 8\d\.\d\d, test LAS 8\d\.\d\d \(gold tokens, ", line)
    assert "Published of this" not in text_of([make_record()])


def trained_by(minutes: float, right: int, system: str = "") -> Record:
    """A run, or a system of somebody else, that was given so many minutes."""
    if not system:
        return run_of(1, right, right, recipe={"train": {"max_minutes": minutes}})
    training = SystemTraining(wall_seconds=1, minutes=minutes, out_of_time=False)
    about = System(name=system, outputs={}, training=training)
    more = {"kind": "system", "variant": system, "system": about, "training": None}
    return run_of(1, right, right, recipe={"kind": "system"}, baselines={}, **more)


def test_a_round_counts_only_who_had_its_time() -> None:
    records = [
        trained_by(1, 3), trained_by(600, 8), trained_by(1, 4, "Fast"), trained_by(60, 7, "Slow"),
    ]  # fmt: skip
    groups = groups_of(by_age(records))
    (row,), left_out = ours_and_others(groups, minutes=1)
    assert (row.ours, row.others) == ("charlstm (max_minutes=1)", "Fast")
    assert left_out == [
        "charlstm (max_minutes=600) small on german-mini", "Slow small of others on german-mini",
    ]  # fmt: skip
    assert "Left out, trained with another limit of time: charl" in "".join(
        ours_and_others_table([row], left_out).notes[-1]
    )
    (row,), left_out = ours_and_others(groups)
    assert (row.ours, row.others, left_out) == ("charlstm (max_minutes=600)", "Slow", [])


def test_a_board_has_each_system_once_with_its_score_and_rank_on_each_treebank() -> None:
    ours, longer, theirs = trained_by(1, 8), trained_by(600, 0), trained_by(1, 0, "Fast")
    bank = make_treebank("polish-mini", language="polish")
    elsewhere = theirs.model_copy(update={"treebank": bank, "lang": "polish"})
    (board,) = boards(groups_of(by_age([ours, longer, theirs, elsewhere])))
    assert board.headings == ["system", "size", "origin", "german-mini", "polish-mini"]
    assert board.rows == [
        ["Fast", "small", "of others", "50.00 (2-3)", "50.00"],
        ["charlstm [1]", "small", "own", "100.00 (1)", ""],
        ["charlstm [2]", "small", "own", "50.00 (2-3)", ""],
        ["right-branching", "", "baseline", "50.00", ""],
    ]
    assert board.notes[0] == ["[1] max_minutes=1", "[2] max_minutes=600"]
    assert [*boards(groups_of(by_age([ours])))] == []  # of ours alone there is the other table


# Records of version 2 as they were written once, and the figures of tables then -------------

GOLDEN = records_in(Path(__file__).parent / "golden")
SHIPPED = ROOT / "results" / "shipped"


def test_old_records_are_read_as_they_would_be_written_today_with_their_numbers(
    tally: Tally,
) -> None:
    tally("R20", "records and scores of earlier layouts").add(len(GOLDEN))
    first, _, word = GOLDEN
    assert [(one.variant, one.seed) for one in GOLDEN[1:]] == [
        ("charlstm", 2),
        ("word-charlstm", 1),
    ]
    assert (first.schema_version, first.kind, first.select) == (5, "chart", "brackets.f1")
    assert first.metrics == ["brackets"]
    assert first.treebank.fingerprints["constituents"].startswith("57814608")
    assert list(first.baselines) == ["right-branching"]
    assert (word.test, word.baselines) == (None, {})
    counts = first.dev.counts("brackets")
    assert len(counts) == first.dev.sentences == 300
    # A figure that was not stored then follows from the counts that were.
    assert "average_crossing" not in first.dev.metrics["brackets"].figures
    frame = records_frame(by_age([first]))
    crossing = frame[(frame["figure"] == "average_crossing") & (frame["split"] == "dev")]
    (total,) = crossing["value"] * 300
    assert total == pytest.approx(sum(first.dev.metrics["brackets"].counts["crossing"]))
    # The numbers are those of then.
    rows = entries_frame(groups_of(by_age(GOLDEN)), PUBLISHED)
    mean, first, second, word, baseline = (rows.loc[number] for number in range(5))
    assert (first["dev_f1"], second["dev_f1"]) == (85.29784537389101, 85.732606604681)
    assert (mean["dev_f1"], mean["dev_f1_sd"]) == (85.515225989286, 0.3074226144886101)
    assert (mean["test_f1"], mean["test_f1_sd"]) == (85.5629516742758, 0.3060598859585239)
    assert (first["test_recall"], first["test_precision"]) == (84.21725239616613, 87.40053050397879)
    assert (mean["test_complete_match"], mean["test_sentences"]) == (48.66666666666667, 300)
    assert (word["dev_f1"], word["published_test_f1"]) == (82.61964735516372, 87.69)
    assert (baseline["test_recall"], baseline["test_f1"]) == (
        20.447284345047922,
        13.325005205080158,
    )


def test_shipped_tables_are_those_of_the_shipped_records() -> None:
    if not (SHIPPED / "runs").is_dir():
        pytest.skip("no results beside the tests")
    asked = ("git", "status", "--porcelain", "--untracked-files=all", "--", SHIPPED)
    changed = process(*asked, cwd=SHIPPED)
    if changed.returncode or changed.stdout:
        pytest.skip("the results beside the tests are not only those that are shipped")
    records = records_in(SHIPPED / "runs")
    groups = groups_of(by_age(records))
    rows = results_csv(groups, PUBLISHED)
    assert rows == (SHIPPED / "table.csv").read_text(encoding="utf-8")
    assert text_of(records) == (SHIPPED / "table.md").read_text(encoding="utf-8")
    shown = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()
    for board in boards([group for group in groups if group.track == "open"]):
        lines = to_markdown(Document("", (), (board,))).splitlines()
        assert {line for line in lines if line.startswith("|")} <= {*shown}


# As Markdown and LaTeX: the structure of each, and no character that breaks it --------------

NASTY = r"50 % of a_b & {c} \d #1 $2 ~x ^y <i>|</i>"
TABLE = Table(
    title="Scores of <both> & more",
    headings=["system", "dev F1 charlstm", "difference"],
    rows=[
        ["Björkelund", "82.53 ± 0.31", "-1.20"],
        [NASTY, "", "+2.00"],
        ["[average]", "84.00", ""],
    ],
    numeric=frozenset({"dev F1 charlstm", "difference"}),
    breaks=frozenset({2}),
    strong=frozenset({(0, 1), (1, 1)}),
    notes=(
        "`*`: p < 0.05 & not corrected.",
        ("german-mini: `sc:own|m:labelled|tr:a+b_c`",),
        "Second note.",
    ),
)
DOCUMENT = Document("Title & <more>", ("An introduction with ± and `code`.",), (TABLE,))


def test_no_name_is_a_formula() -> None:
    cells = ("=cmd|'/C calc'!A0", "@x", "+x", "-x", "-1.5", "+2", "-", "x")
    text = to_csv(Document("", (), (Table("", ["a"], [[cell] for cell in cells]),)))
    rows = [row[1] for row in csv.reader(text.splitlines())][1:]
    assert rows == [f"'{cell}" if k < 4 else cell for k, cell in enumerate(cells)]


def test_markdown_of_a_table_without_rows() -> None:
    empty = Document("T", (), (Table("Nothing", ["a"], [], notes=("Why.",)),))
    assert to_markdown(empty) == "# T\n\n## Nothing\n\nWhy.\n"
    assert "begin" not in to_latex(empty)


def check_latex(text: str) -> None:
    """Environments and braces are balanced and no special character is left bare."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    environments: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
        if kind == "begin":
            environments.append(name)
        else:
            assert environments.pop() == name
    assert environments == []
    bare = re.sub(r"\\[\\{}&%$#_]", "", body)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[#%]", bare)
    outside = re.sub(r"\$[^$]*\$|\\[\^~_]\{", "", bare)
    assert not re.search(r"[_^]", outside)


def test_latex_is_well_formed() -> None:
    text = to_latex(DOCUMENT)
    check_latex(text)
    rules = {"toprule": 1, "midrule": 2, "bottomrule": 1}
    assert {rule: text.count(rf"\{rule}") for rule in rules} == rules
    assert r"\begin{tabular}{lrr}" in text
    assert r"\caption{Scores of \textless{}both\textgreater{} \& more}" in text
    assert r"Björkelund & \textbf{82.53 $\pm$ 0.31} & $-$1.20 \\" in text
    assert "{}[average] & 84.00 &  \\\\" in text  # else the row end would take [average]
    assert r"\textbf{}" not in text


def test_markdown() -> None:
    text = re.sub("-{2,}", "-", re.sub(" +", " ", to_markdown(DOCUMENT)))
    rows = "|:-|-:|-:|\n| Björkelund | 82.53 ± 0.31 | -1.20 |\n| " + NASTY.replace("|", r"\|")
    assert text.startswith("# Title & <more>\n\nAn introduction with ± and `code`.\n\n## Scores of")
    assert f"\n\n| system | dev F1 charlstm | difference |\n{rows} | | +2.00 |\n" in text
    assert text.endswith("\n\n- german-mini: `sc:own|m:labelled|tr:a+b_c`\n\nSecond note.\n")
