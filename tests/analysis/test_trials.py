"""What a study works on: settings of each row, limits of its attention, and contradictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.analysis.definition import AttentionLimits, load_study, study_names
from spmrl_bench.analysis.trials import StudyPlan, attention_limits, plan_study, study_runs
from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.nn.encoders.attention import AttentionMask
from spmrl_bench.parsers.base import ParserConfig
from tests.analysis.examples import planned, study_of
from tests.builders import config, flat
from tests.laboratory import Laboratory

WIDER = {"model.d_model": "32"}  # CharConcat needs a width of its own


def plan(
    laboratory: Laboratory, name: str, settings: dict[str, str] | None = None, **options: Any
) -> StudyPlan:
    given = (WIDER if name == "lexical" else {}) | (settings or {})
    return plan_study(load_study(name), lang=str(laboratory.recipe), settings=given, **options)


def limits(model: dict[str, Any] | None = None, **limit: Any) -> dict[int, AttentionMask]:
    return attention_limits(AttentionLimits(**limit), config(**({"layers": 4} | (model or {}))))


# Runs -----------------------------------------------------------------------------------


def test_rows_that_differ_in_limits_share_their_runs(laboratory: Laboratory) -> None:
    work = plan(laboratory, "test-time-windows", seeds=3)
    assert len(work.trials) == 13
    runs = study_runs(work, Path("runs"))
    assert [run.config.seed for run in runs] == [1, 2, 3]
    assert {(*run.config.model.inputs,) for run in runs} == {("word", "tag")}


def test_every_row_of_a_study_has_a_run_folder_of_its_own(laboratory: Laboratory) -> None:
    for name in ("encoders", "trained-windows", "paper-and-code", "lexical"):
        work = plan(laboratory, name, seeds=2)
        runs = study_runs(work, Path("runs"))
        assert len({run.folder for run in runs}) == len(runs) == 2 * len(work.trials)


def test_inputs_that_are_a_variants_share_the_folder_of_train(laboratory: Laboratory) -> None:
    folders = {run.folder for run in study_runs(plan(laboratory, "lexical"), Path("runs"))}
    trained = make_runs(str(laboratory.recipe), settings=WIDER)
    assert {run.folder for run in trained} < folders


def test_encoders_are_those_that_the_rows_name(laboratory: Laboratory) -> None:
    settings = {"model.layers": "3", "train.max_epochs": "1"}
    work = plan(laboratory, "encoders", settings=settings)
    models = {trial.row.name: flat(trial.configs[0].model) for trial in work.trials}
    stated = {"encoder": "lstm", "layers": 2, "d_model": 500}
    assert models.pop("LSTM").items() >= stated.items()
    only = models.pop("unfactored, attention to positions only")
    assert only["position_only_layers"] == [0, 1, 2]
    assert not any(model["position_only_layers"] for model in models.values())
    assert len({(model["position"], model["matrices"]) for model in models.values()}) == 4
    assert models["factored, sinusoidal positions"]["position_table"] == "sinusoidal"
    assert models["factored, CharLSTM instead of words and tags"]["lexical"] == ["charlstm"]
    assert {trial.configs[0].train.max_epochs for trial in work.trials} == {1}
    assert work.settings == ("model.layers=3", "train.max_epochs=1")


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
    assert "word vectors + CharLSTM" not in work.left_out
    given = {trial.row.name: flat(trial.configs[0].model).get("vectors") for trial in work.trials}
    assert given.pop("word vectors + CharLSTM") == str(vectors)
    assert set(given.values()) == {None}


@pytest.mark.parametrize("name", study_names())
@pytest.mark.parametrize("size", ["published", "small"])
def test_every_study_fits_the_models_of_the_program(name: str, size: str) -> None:
    # The mini treebanks have both layers, which some studies need.
    study = load_study(name)
    if study.size not in (None, size):
        with pytest.raises(RecipeError, match=f"{name} is of the size {study.size}, not of"):
            plan_study(study, treebank="german-mini", size=size)
        return
    work = plan_study(study, treebank="german-mini", size=size)
    assert {config.size for trial in work.trials for config in trial.configs} == {size}
    assert len(work.trials) + len(work.left_out) == len(work.study.rows)


def test_a_study_of_one_size_has_it_for_every_track() -> None:
    # Of itself, a treebank of the mini track takes the size that its track names.
    study = load_study("attention-layers").model_copy(update={"size": "published"})
    work = plan_study(study, treebank="german-mini")
    assert {config.size for trial in work.trials for config in trial.configs} == {"published"}


# Limits ---------------------------------------------------------------------------------


def test_limits_by_layer() -> None:
    assert limits() == {}
    assert limits(content="last half") == {
        0: AttentionMask(content=False),
        1: AttentionMask(content=False),
    }
    assert limits(position="none") == dict.fromkeys(range(4), AttentionMask(position=False))
    assert limits(window=3, relaxed=True, layers=(1,)) == {1: AttentionMask(window=3, relaxed=True)}
    both = limits(content=(0,), position=(0, 1, 2), window=9, layers="first half")
    assert both == {
        0: AttentionMask(window=9),
        1: AttentionMask(content=False, window=9),
        2: AttentionMask(content=False),
        3: AttentionMask(content=False, position=False),
    }


def test_a_window_of_the_training_stays() -> None:
    trained = {"attention_window": 5, "relaxed_window": True}
    found = limits(trained, window=2, layers=(3,))
    assert found == {
        **dict.fromkeys(range(3), AttentionMask(window=5, relaxed=True)),
        3: AttentionMask(window=2),
    }
    assert limits(trained, content="none")[0] == AttentionMask(
        content=False, window=5, relaxed=True
    )
    assert limits(trained) == {}


def test_limits_that_have_nothing_to_limit() -> None:
    for model, limit, message in (
        ({"encoder": "lstm"}, {"window": 3}, "attention is limited here, but the encoder 'lstm' "),
        ({}, {"content": (0, 4)}, "limit: layer 4: the layers are 0 to 3"),
        ({}, {"window": 3, "layers": (7,)}, "limit: layer 7: the layers are 0 to 3"),
        ({"matrices": "full"}, {"content": "none"}, "the attention to content and to position can"),
    ):
        with pytest.raises(RecipeError, match=f"^{message}"):
            limits(model, **limit)


def test_a_parser_without_an_encoder_has_nothing_to_limit() -> None:
    with pytest.raises(RecipeError, match="attention is limited here, but there is none"):
        attention_limits(AttentionLimits(window=3), ParserConfig())
    assert attention_limits(AttentionLimits(), ParserConfig()) == {}


def test_a_window_needs_no_halves() -> None:
    assert limits({"matrices": "full"}, window=3)[0] == AttentionMask(window=3)


# Contradictions -------------------------------------------------------------------------


def test_settings_that_do_not_fit_a_study(laboratory: Laboratory) -> None:
    decided, limited = "--set {}: the rows of study {} decide it", "'content: all, position: none'"
    for name, key, value, message in (
        ("encoders", "model.matrices", "full", decided),
        ("lexical", "model.lexical", "word", decided),
        ("encoders", "model.position_only_layers", "[0]", decided),
        ("lexical", "model.vectors", "none.vec", "--set {}: no such file: none.vec"),
        ("encoders", "model.d_f", "2", "study {1}, row 'LSTM': recipe elvish (word-tag, smal"),
        (
            "test-time-ablation",
            "model.encoder",
            "lstm",
            f"study {{1}}, row {limited}: attention is",
        ),
    ):
        with pytest.raises(RecipeError) as caught:
            plan(laboratory, name, settings={key: value})
        assert str(caught.value).startswith(message.format(key, name))
        assert "\n" not in str(caught.value)


def test_tags_are_needed_where_a_row_reads_them(laboratory: Laboratory) -> None:
    path = laboratory.manifests / "tiny-open.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('tags = "gold"', 'tags = "none"'), encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        plan(laboratory, "lexical")
    assert str(caught.value) == (
        "study lexical, row 'words + tags': reads tags, but treebank tiny-open has none. Choose a "
        "treebank with tags"
    )
    assert plan(laboratory, "paper-and-code").trials


def test_the_metric_is_one_of_the_parsers(laboratory: Laboratory) -> None:
    with pytest.raises(RecipeError) as caught:
        planned(laboratory, study_of({"some": {}}, metric="brackets + attachment.las"))
    assert str(caught.value) == (
        "study some, row 'some': the study measures brackets.f1 + attachment.las, but variant "
        "charlstm is scored by brackets"
    )


def test_a_treebank_or_a_language_is_needed(laboratory: Laboratory) -> None:
    with pytest.raises(RecipeError, match=r"^name a treebank \(--treebank german-mini\) or a lang"):
        plan_study(load_study("encoders"))
    with pytest.raises(RecipeError, match="of language elvish, which has no recipe: name one with"):
        plan_study(load_study("encoders"), treebank="tiny-mini")
    with pytest.raises(RecipeError, match=r"^0 seeds"):
        plan(laboratory, "encoders", seeds=0)
    work = plan(laboratory, "encoders", treebank="tiny-mini")
    assert work.treebank.name == "tiny-mini"


def test_lambda_is_for_parsers_that_weigh_spans_and_arcs() -> None:
    given: dict[str, Any] = {"treebank": "german-mini", "settings": {"model.span_weight": "0.3"}}
    work = plan_study(load_study("span-weight"), **given)
    assert len(study_runs(work, Path("runs"))) == 1
    # That of the run is no change.
    found = [trial.parsing.get("span_weight") for trial in work.trials]
    assert found == [0.0, 0.1, 0.2, None, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    for changes, message in (
        ({"variant": "charlstm"}, "parsing.span_weight is no setting .* known: none"),
        ({"model": {"structure": "division"}}, "parsing.span_weight is no setting"),
        ({"parsing": {"beam": 2}}, "parsing.beam is no setting .* known: span_weight"),
        ({"parsing": {"span_weight": 2}}, "parsing: span_weight: "),
    ):
        row = {"variant": "joint", "parsing": {"span_weight": 0.2}} | changes
        study = study_of({"a": {"variant": "joint"}, "b": row})
        with pytest.raises(RecipeError, match=f"row 'b': {message}"):
            plan_study(study, treebank="german-mini")
