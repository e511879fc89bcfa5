"""Runs that differ in a setting are told apart, whoever set it; runs that do not are one."""

from __future__ import annotations

from typing import Any

import pytest

from spmrl_bench.leaderboard.frame import differing_settings, digest, resolved_settings
from spmrl_bench.leaderboard.record import Record
from tests.builders import make_treebank
from tests.leaderboard.test_multilingual import scores_of
from tests.leaderboard.test_table import cells, frame_of, names, run_of, text_of


def recipe(settings: dict[str, Any] | None = None, **train: Any) -> dict[str, Any]:
    """What a record has of its recipe."""
    given = settings or {}
    changed = {key.removeprefix("train."): value for key, value in given.items()}
    about = {"variant": "charlstm", "seed": 1, "treebank": "german-mini", "settings": given}
    model = {"lexical": ["word", "charlstm"], "layers": 4}
    return about | {"model": model, "train": {"learning_rate": 0.0008} | train | changed}


def digest_of(recipe: dict[str, Any]) -> str:
    return digest(resolved_settings(recipe))


def test_another_learning_rate_under_the_same_name_and_seed_is_a_row_of_its_own() -> None:
    runs = [run_of(1, 4, 4, recipe=recipe()), run_of(1, 2, 2, recipe=recipe(learning_rate=0.003))]
    rows = ["charlstm (learning_rate=0.0008)", "charlstm (learning_rate=0.003)"]
    assert names(text_of(runs))[:2] == rows
    assert list(frame_of(runs)["settings"][:2]) == ["learning_rate=0.0008", "learning_rate=0.003"]
    assert names(text_of(runs[1:]))[0] == "charlstm"  # by itself it needs no other name


def test_a_setting_is_the_same_from_a_recipe_or_with_the_command() -> None:
    runs = [
        run_of(1, 4, recipe=recipe()),
        run_of(1, 2, recipe=recipe(learning_rate=0.003)),
        run_of(2, 6, recipe=recipe({"train.learning_rate": 0.003})),
    ]
    text = text_of(runs)
    assert sorted(names(text)) == ["charlstm", "charlstm (learning_rate=0.003)"]
    assert cells(text, "charlstm (learning_rate=0.003)")[2] == "mean of 2"


LATER: dict[str, Any] = {
    "train.optimiser": ("adam", "sgd"),
    "train.gradient_norm": (None, 1.0),
    "train.decay_batches": (None, 900),
    "model.max_words": (None, 20000),
    "model.join": ("sum", "concatenated"),
    "model.d_word": (None, 300),
    "model.recurrent_dropout": ("sentence", "token"),
    "model.initialisation": ("usual", "glorot-normal"),
}


@pytest.mark.parametrize("kind", ["chart", "biaffine", "joint"])
def test_records_of_before_are_of_runs_as_they_are_by_default(kind: str) -> None:
    old = recipe() | {"kind": kind}
    old["model"]["encoder"] = "gru"
    new = {**old, "model": {**old["model"]}, "train": {**old["train"]}}
    for key, (usual, other) in LATER.items():
        section, _, name = key.partition(".")
        new[section][name] = usual
        assert digest_of(old) != digest_of({**new, section: {**new[section], name: other}}), key
    assert digest_of(old) == digest_of(new)


def test_what_can_change_the_weights_tells_runs_apart_and_nothing_else() -> None:
    def with_vectors(path: str, content: str) -> dict[str, Any]:
        model = recipe()["model"] | {"vectors": path}
        return recipe() | {"files": {"model.vectors": content}, "model": model}

    usual, vectors = recipe(), with_vectors("a.vec", "ab" * 32)
    for one, other in (
        (usual, recipe(checkpoint_minutes=1.0)),
        (usual, usual | {"seed": 2, "treebank": "german-squoia", "recipe": "my"}),
        (usual, usual | {"select": "brackets.f1", "kind": "chart"}),
        (vectors, with_vectors("/data/b.vec", "ab" * 32)),
    ):
        assert digest_of(one) == digest_of(other)
    for one, other in (
        (usual, recipe(max_minutes=1.0)),
        (usual, usual | {"select": "brackets.recall"}),
        (usual, usual | {"kind": "another"}),
        (vectors, with_vectors("a.vec", "cd" * 32)),
    ):
        assert digest_of(one) != digest_of(other)


def test_over_languages_runs_with_other_settings_are_a_setup_of_their_own() -> None:
    def run(language: str, seed: int, **train: Any) -> Record:
        bank = make_treebank(f"{language}-mini", language=language)
        return run_of(seed, 4, 4, treebank=bank, recipe=recipe(**train))

    usual = [run(language, seed) for language in ("german", "french") for seed in (1, 2)]
    (setup,), left_out = scores_of([*usual, run("german", 1, learning_rate=0.003)])
    assert left_out == [
        "Not shown, records of one language only: small, learning_rate=0.003 (german)."
    ]
    assert setup.rows[1].seeds == [1, 2]
    both = [run(language, 1, learning_rate=0.003) for language in ("german", "french")]
    setups, _ = scores_of([*usual, *both])
    assert [setup.name for setup in setups] == ["small", "small, learning_rate=0.003"]
    assert [row.seeds for setup in setups for row in setup.rows] == [[1, 2], [1, 2], [1], [1]]


def test_settings_under_old_names_and_in_tables_are_the_same() -> None:
    """Of a record of long ago and one of today; also of parts that are not installed."""
    flat = {
        "lexical": ["word", "charlstm"], "encoder": "lstm", "layers": 2, "residual_dropout": 0.5,
        "word_dropout": 0.4, "predict_tags": True, "d_label_hidden": 8, "heads": 4,
        "label_heads": None, "layer_norm": "released",
    }  # fmt: skip
    today = {
        "inputs": {"charlstm": {"width": None}, "word": {"dropout": 0.4}},
        "encoder": {"lstm": {"layers": 2, "dropout": 0.5, "masks": "sentence"}},
        "tagger": {"d_hidden": 250},
        "label_attention": None,
        "scorer": {"d_hidden": 8, "layer_norm": "released"},
    }
    old, new = ({**recipe(), "model": model} for model in (flat, today))
    assert resolved_settings(old) == resolved_settings(new)
    assert resolved_settings(new)["model.word_dropout"] == 0.4
    other = {**today, "encoder": {"lstm": {**today["encoder"]["lstm"], "layers": 3}}}
    settings = [resolved_settings({**recipe(), "model": model}) for model in (today, other)]
    assert differing_settings(settings) == ["model.layers"]
    unknown = {**today, "encoder": {"far": {"layers": 2}}}
    found = resolved_settings({**recipe(), "model": unknown})
    assert (found["model.encoder"], found["model.far.layers"]) == ("far", 2)
    found = resolved_settings({**recipe(), "kind": "far", "model": {"a": 1, "b": {"c": 2}}})
    assert (found["model.a"], found["model.b.c"]) == (1, 2)
