"""Studies: what their files say, what a row is trained and limited with, and contradictions."""

from __future__ import annotations

import csv
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.analysis.study import (
    LAYERS,
    AttentionLimits,
    Study,
    StudyRow,
    layer_numbers,
    load_study,
    study_names,
)
from spmrl_bench.analysis.study_run import StudyPlan, attention_limits, plan_study
from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.nn.encoders.self_attention import AttentionMask
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.legacy import dotted, short
from tests.analysis.test_studies import planned, study_of
from tests.builders import config, flat
from tests.conftest import shared_data
from tests.laboratory import Laboratory

SMALL = """\
title = "Two parsers"
source = "nowhere"
measured = "nothing"
metric = "brackets.f1"
reference = "one"

[[rows]]
name = "one"

[[rows]]
name = "two"
"""


def study(text: str, tmp_path: Path) -> Study:
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    return load_study(str(path))


def mistakes(text: str, tmp_path: Path) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        study(text, tmp_path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{tmp_path / 'own.toml'}: ") for line in lines)
    return [line.split(": ", 1)[1] for line in lines]


def published(
    pattern: str, source: str = "Kitaev & Klein 2018", split: str = "dev"
) -> dict[tuple[str, ...], float]:
    """F1 of a paper by the groups of a pattern of its setting."""
    path = shared_data("published/constituency.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["source"].startswith(source)]
    rows = [row for row in rows if (row["split"], row["metric"]) == (split, "F1")]
    matches = [(re.fullmatch(pattern, row["setting"]), row) for row in rows]
    return {
        (row["system"], *match.groups("")): float(row["value"]) for match, row in matches if match
    }


def test_every_published_figure_has_a_source() -> None:
    for name in study_names():
        found = load_study(name)
        named = re.search("P18-1249|Mrini et al. 2020|D17-1175", found.source)
        assert named or not any(row.published for row in found.rows), name


def test_label_attention_has_the_figures_of_tables_1_and_2() -> None:
    forms = {"yes": {}, "no": {"label_feed_forward": "none"}}
    drops = {"yes": {"label_residual_dropout": 0.2}, "no": {}}
    asked = {"yes": {}, "no": {"label_queries": "matrices"}}
    joined = {"yes": {}, "no": {"label_outputs": "projected"}}
    expected = {}
    for pattern, first, second in (
        (r".*feed-forward=(\w+); residual dropout in LAL=(\w+).*", forms, drops),
        (r".*query vectors=(\w+); concatenation of heads=(\w+).*", asked, joined),
    ):
        for (_, one, other), value in published(pattern, "Mrini et al. 2020", "test").items():
            expected[json.dumps({**first[one], **second[other]}, sort_keys=True)] = value
    study = load_study("label-attention")
    stated = {
        json.dumps(short(dotted(row.model)), sort_keys=True): row.published
        for row in study.rows
        if row.published
    }
    assert len(expected) == 7
    assert stated == expected
    assert [row.name for row in study.rows if not row.published] == ["no label attention"]


def test_ablation_has_the_figures_of_table_1() -> None:
    layers = {"all": "all 8", "none": "none"}
    layers |= {"first half": "first 4 only", "last half": "last 4 only"}
    layers |= {"first 3/4": "first 6 only", "last 3/4": "last 6 only"}
    ours = {}
    for row in load_study("test-time-ablation").rows:
        shares = (row.limit.content, row.limit.position)
        assert row.name == f"content: {shares[0]}, position: {shares[1]}"
        ours["K&K18 factored", *(layers[str(share)] for share in shares)] = row.published
    pattern = (
        "test-time ablation: content attention in layers=(.*); position attention in layers=(.*)"
    )
    assert ours == published(pattern)


def test_windows_have_the_figures_of_tables_2_and_3() -> None:
    for name, setting in (
        ("test-time-windows", "test-time window"),
        ("trained-windows", "window at training and test time"),
    ):
        found, ours = load_study(name), {}
        for row in found.rows:
            settings = found.settings(row)
            window = row.limit.window or settings.get("model.attention.window")
            relaxed = row.limit.relaxed or settings.get("model.attention.relaxed_window", False)
            kind = ("relaxed" if relaxed else "strict") if window else ""
            ours["K&K18 factored", str(window or "infinite"), kind] = row.published
            assert row.name == (f"window {window}, {kind}" if window else "no window")
        assert ours == published(setting + r", distance (\w+)(?:, (strict|relaxed).*)?")


def test_inputs_have_the_figures_of_table_4() -> None:
    names = {"none": (), "predicted tags": ("tag",)}
    names |= {"CharLSTM": ("charlstm",), "CharConcat": ("charconcat",)}
    rows = published("lexical model: morphology=(.*); learned word embeddings=(yes|no)")
    theirs = {
        (("word",) if words == "yes" else ()) + names[morphology]: value
        for (_, morphology, words), value in rows.items()
    }
    found = load_study("lexical")
    ours = {found.inputs(row): row.published for row in found.rows if row.published}
    assert {inputs: f1 for inputs, f1 in ours.items() if inputs != ("elmo",)} == theirs


def test_encoders_have_the_figures_of_table_5_and_section_3() -> None:
    table = published("encoder comparison") | published(".*(?:derived|matrices|parameter count).*")
    names = {
        "LSTM": "LSTM encoder (Gaddy et al. 2018)",
        "unfactored": "K&K18 base (unfactored)",
        "factored": "K&K18 factored",
        "factored, CharLSTM instead of words and tags": "K&K18 factored + CharLSTM",
        "unfactored, attention to positions only": "K&K18 position-only attention",
        "position concatenated, full matrices": "K&K18 concatenated inputs, unfactored weights",
        "position added, block-sparse matrices": "K&K18 block-sparse weights, additive inputs",
    }
    rows = [*load_study("encoders").rows, *load_study("positions").rows]
    stated = {row.name: row.published for row in rows if row.published}
    assert stated == {name: table[(system,)] for name, system in names.items()}


def test_mistakes_are_reported_at_once_each_with_its_key(tmp_path: Path) -> None:
    for changes, messages in (
        (
            {"brackets.f1": "brackets.f2", "[[rows]]": "[[rows]]\nmodle = 1\npublished = 101"},
            (
                "metric: 'brackets.f2': metric brackets has no figure 'f2'; it has ",
                "rows.0.published: input should be less than or equal to 100; found 101",
                "rows.0.modle: unknown key. Did you mean model? Known: ",
            ),
        ),
        ({'name = "two"': 'name = "one"'}, ("(the whole file): several rows are called 'one'",)),
        (
            {'reference = "one"': 'reference = "onne"'},
            ("(the whole file): reference: unknown row 'onne'. Did you mean one?",),
        ),
    ):
        text = SMALL
        for old, new in changes.items():
            text = text.replace(old, new, 1)
        found = mistakes(text, tmp_path)
        assert all(one.startswith(m) for one, m in zip(found, messages, strict=True)), found
    for line, message in (
        ('limit = { content = "first third" }', "limit.content: layers are 'all', 'none', "),
        ("limit = { content = [-1] }", "limit.content: layers are 'all', 'none', "),
        ("limit = { relaxed = true }", "limit: relaxed and layers say something of a window"),
        ("limit = { windo = 3 }", "limit.windo: unknown key. Did you mean window? Known: "),
        ("lexical = []", "lexical: "),
        ('lexical = ["words"]', "lexical: unknown lexical input 'words'. Did you mean"),
        ('lexical = ["word"]\nvariant = "joint"', "lexical and variant stand together"),
        ("model = { layer = 3 }", "model.layer: unknown key. Did you mean layers"),
        ("train = { max_epochs = 0 }", "train.max_epochs: input should be greater than or"),
    ):
        (one,) = mistakes(f"{SMALL}{line}\n", tmp_path)
        assert message in one
    with pytest.raises(RecipeError, match=r"unknown study 'encodrs'. Did you mean encoders.*Known"):
        load_study("encodrs")
    with pytest.raises(RecipeError, match=r"^none\.toml: "):
        load_study("none.toml")


def test_a_row_wins_over_what_all_share(tmp_path: Path) -> None:
    shared = '[shared]\nlexical = ["word"]\nmodel = { layers = 2, heads = 3 }\n\n[[rows]]'
    text = SMALL.replace("[[rows]]", shared, 1) + 'lexical = ["tag"]\nmodel = { layers = 5 }\n'
    found = study(text.replace("brackets.f1", "brackets.f1 + attachment.las"), tmp_path)
    assert found.measure == "dev F1 + LAS"
    assert [found.inputs(row) for row in found.rows] == [("word",), ("tag",)]
    assert found.settings(found.rows[0]) == {"model.layers": 2, "model.heads": 3}
    assert found.settings(found.rows[1]) == {"model.layers": 5, "model.heads": 3}
    labels = load_study("label-attention")
    assert {labels.variant(row) for row in labels.rows} == {"label-attention", "joint"}
    assert labels.variant(StudyRow(name="x", lexical=("word", "tag"))) == "word-tag"


def test_a_users_study_is_found_by_name_and_cannot_replace_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    folder = tmp_path / "recipes" / "studies"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(SMALL, encoding="utf-8")
    (folder / "encoders.toml").write_text(SMALL, encoding="utf-8")
    assert load_study("mine").title == "Two parsers"
    assert load_study("encoders").title != "Two parsers"


def test_shares_of_layers_are_those_of_the_paper_and_round_up() -> None:
    for name, numbers in (
        ("all", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("none", ()),
        ("first half", (0, 1, 2, 3)),
        ("last half", (4, 5, 6, 7)),
        ("first 3/4", (0, 1, 2, 3, 4, 5)),
        ("last 3/4", (2, 3, 4, 5, 6, 7)),
        ((6, 1, 6), (1, 6)),
    ):
        assert layer_numbers("limit", name, 8) == numbers
    for name, count in product(LAYERS, range(10)):
        numbers = layer_numbers("limit", name, count)
        assert set(numbers) <= set(range(count))
        mirrored = name.replace("first", "?").replace("last", "first").replace("?", "last")
        other = layer_numbers("limit", mirrored, count)
        assert other == tuple(count - 1 - n for n in reversed(numbers))
    assert layer_numbers("limit", "first half", 5) == (0, 1, 2)


WIDER = {"model.d_model": "32"}  # CharConcat needs a width of its own


def plan(
    laboratory: Laboratory, name: str, settings: dict[str, str] | None = None, **options: Any
) -> StudyPlan:
    given = (WIDER if name == "lexical" else {}) | (settings or {})
    return plan_study(load_study(name), lang=str(laboratory.recipe), settings=given, **options)


def limits(model: dict[str, Any] | None = None, **limit: Any) -> dict[int, AttentionMask]:
    return attention_limits(AttentionLimits(**limit), config(**({"layers": 4} | (model or {}))))


def test_rows_that_differ_in_limits_share_their_runs_and_others_do_not(
    laboratory: Laboratory,
) -> None:
    work = plan(laboratory, "test-time-windows", seeds=3)
    assert len(work.runs) == 13
    assert [run.config.seed for run in work.distinct(Path("runs"))] == [1, 2, 3]
    for name in ("encoders", "trained-windows", "paper-and-code", "lexical"):
        work = plan(laboratory, name, seeds=2)
        folders = {run.folder for run in work.distinct(Path("runs"))}
        assert len(folders) == len(work.distinct(Path("runs"))) == 2 * len(work.runs)
    # Inputs that are a variant's have the folder of `train`.
    assert {run.folder for run in make_runs(str(laboratory.recipe), settings=WIDER)} < folders


def test_encoders_are_those_that_the_rows_name(laboratory: Laboratory) -> None:
    given = {"model.layers": "3", "train.max_epochs": "1"}
    plans = [plan(laboratory, it, settings=given).runs for it in ("encoders", "positions")]
    models = {each.row.name: flat(each.configs[0].model) for each in sum(plans, ())}
    assert models.pop("LSTM").items() >= {"encoder": "lstm", "layers": 2, "d_model": 500}.items()
    only = models.pop("unfactored, attention to positions only")
    assert only["position_only_layers"] == [0, 1, 2]
    assert not any(model["position_only_layers"] for model in models.values())
    assert len({(model["position"], model["matrices"]) for model in models.values()}) == 4
    assert models["factored, sinusoidal positions"]["position_table"] == "sinusoidal"
    assert models["factored, CharLSTM instead of words and tags"]["lexical"] == ["charlstm"]
    assert {each.configs[0].train.max_epochs for each in sum(plans, ())} == {1}


def test_rows_that_need_files_are_left_out_without_them(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    work = plan(laboratory, "lexical")
    assert work.left_out == {
        "word vectors + CharLSTM": "needs --set model.vectors=...",
        "ELMo, 4 layers": "needs --set model.elmo_weights=... and --set model.elmo_options=...",
        "transformer, 2 layers": "needs --set model.transformer=...",
    }
    vectors = tmp_path / "some.vec"
    vectors.touch()
    work = plan(laboratory, "lexical", settings={"model.vectors": str(vectors)})
    given = {each.row.name: flat(each.configs[0].model).get("vectors") for each in work.runs}
    assert given.pop("word vectors + CharLSTM") == str(vectors)
    assert set(given.values()) == {None}


def test_every_study_fits_the_models_of_the_program() -> None:
    for name, size in product(study_names(), ("published", "small")):
        # The mini treebanks have both layers, which some studies need.
        study = load_study(name)
        if study.size not in (None, size):
            with pytest.raises(RecipeError, match=f"{name} is of the size {study.size}, not of"):
                plan_study(study, treebank="german-mini", size=size)
            continue
        work = plan_study(study, treebank="german-mini", size=size)
        assert {config.size for each in work.runs for config in each.configs} == {size}
        assert len(work.runs) + len(work.left_out) == len(work.study.rows)


def test_limits_by_layer() -> None:
    blind, unplaced = AttentionMask(content=False), AttentionMask(position=False)
    assert limits() == {}
    assert limits(content="last half") == {0: blind, 1: blind}
    assert limits(position="none") == dict.fromkeys(range(4), unplaced)
    assert limits(window=3, relaxed=True, layers=(1,)) == {1: AttentionMask(window=3, relaxed=True)}
    assert limits(content=(0,), position=(0, 1, 2), window=9, layers="first half") == {
        0: AttentionMask(window=9),
        1: AttentionMask(content=False, window=9),
        2: blind,
        3: AttentionMask(content=False, position=False),
    }
    # A window of the training stays where there is no other.
    trained = {"attention_window": 5, "relaxed_window": True}
    own = AttentionMask(window=5, relaxed=True)
    found = limits(trained, window=2, layers=(3,))
    assert found == {0: own, 1: own, 2: own, 3: AttentionMask(window=2)}
    assert limits(trained, content="none")[0] == AttentionMask(False, True, 5, True)
    assert limits(trained) == {}


def test_limits_that_have_nothing_to_limit() -> None:
    for model, limit, message in (
        ({"encoder": "lstm"}, {"window": 3}, "attention is limited here, but the encoder 'lstm' "),
        ({}, {"content": (0, 4)}, "limit: layer 4: the layers are 0 to 3"),
        ({"layers": 0}, {"window": 3, "layers": (7,)}, "limit: layer 7: there are no layers"),
        ({"matrices": "full"}, {"content": "none"}, "the attention to content and to position can"),
    ):
        with pytest.raises(RecipeError, match=f"^{message}"):
            limits(model, **limit)
    with pytest.raises(RecipeError, match="attention is limited here, but there is none"):
        attention_limits(AttentionLimits(window=3), ParserConfig())
    assert attention_limits(AttentionLimits(), ParserConfig()) == {}
    assert limits({"matrices": "full"}, window=3)[0] == AttentionMask(window=3)


def test_what_does_not_fit_a_study(laboratory: Laboratory) -> None:
    decided = "--set {}: the rows of study {} decide it"
    limited = "study {1}, row 'content: all, position: none': attention is limited"
    for name, key, value, message in (
        ("encoders", "model.matrices", "full", decided),
        ("lexical", "model.lexical", "word", decided),
        ("positions", "model.position_only_layers", "[0]", decided),
        ("lexical", "model.vectors", "none.vec", "--set {}: no such file: none.vec"),
        ("encoders", "model.d_f", "2", "study {1}, row 'LSTM': recipe elvish (word-tag, smal"),
        ("test-time-ablation", "model.encoder", "lstm", limited),
    ):
        with pytest.raises(RecipeError) as caught:
            plan(laboratory, name, settings={key: value})
        assert str(caught.value).startswith(message.format(key, name))
    with pytest.raises(RecipeError, match=r"the study measures .* is scored by brackets"):
        planned(laboratory, study_of({"some": {}}, metric="brackets + attachment.las"))
    with pytest.raises(RecipeError, match=r"^name a treebank \(--treebank german-mini\) or a lang"):
        plan_study(load_study("encoders"))
    assert plan(laboratory, "encoders", treebank="tiny-mini").treebank.name == "tiny-mini"
    path = laboratory.manifests / "tiny-open.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('tags = "gold"', 'tags = "none"'), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"tags': reads tags, but treebank tiny-open"):
        plan(laboratory, "lexical")


def test_lambda_is_for_parsers_that_weigh_spans_and_arcs() -> None:
    given: dict[str, Any] = {"treebank": "german-mini", "settings": {"model.span_weight": "0.3"}}
    work = plan_study(load_study("span-weight"), **given)
    assert len(work.distinct(Path("runs"))) == 1
    # That of the run is no change.
    found = [each.parsing.get("span_weight") for each in work.runs]
    assert found == [0.0, 0.1, 0.2, None, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    for changes, message in (
        ({"variant": "charlstm"}, "parsing.span_weight is no setting .* known: threshold"),
        ({"parsing": {"beam": 2}}, "parsing.beam is no setting .* known: span_weight"),
        ({"parsing": {"span_weight": 2}}, "parsing: span_weight: "),
    ):
        row = {"variant": "joint", "parsing": {"span_weight": 0.2}} | changes
        study = study_of({"a": {"variant": "joint"}, "b": row})
        with pytest.raises(RecipeError, match=f"row 'b': {message}"):
            plan_study(study, treebank="german-mini")
