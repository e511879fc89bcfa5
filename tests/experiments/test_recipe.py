"""Recipes: the shipped ones resolve, layers override each other, mistakes are all named.

The reference of settings is complete, and states what the program does.
"""

from __future__ import annotations

import itertools
import re
from typing import Annotated, get_args

import pytest
from pydantic import BaseModel, Field
from pydantic_core import PydanticUndefined

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.plan import learnable
from spmrl_bench.experiments.recipe import Recipe, RunConfig, Size, Track, list_recipes, load_recipe
from spmrl_bench.experiments.reference import entries, run_settings, settings_named
from spmrl_bench.parsers.kinds import KINDS, Kind, kind_named, trained_kinds
from spmrl_bench.parsers.legacy import leaves
from spmrl_bench.registry import Registry
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names
from spmrl_bench.trees.parse import Layer
from tests.builders import cli, flat, refused
from tests.builders import config as tiny_config
from tests.laboratory import MODEL, TRAIN, Laboratory


def resolve(recipe: Recipe, **changes: object) -> RunConfig:
    usual: dict[str, object] = {"treebank": "t", "track": "open", "variant": "charlstm"}
    return recipe.resolve(**usual | {"fingerprints": {"constituents": "f"}} | changes)


def test_languages_are_known_by_their_own_names() -> None:
    spoken = ("deutsch", "Français", "euskara", "한국어", "Español", "עברית")
    names = ["german", "french", "basque", "korean", "spanish", "hebrew"]
    assert [load_recipe(one).name for one in spoken] == names
    with pytest.raises(RecipeError, match=r"'deutsh'\. Did you mean deutsch or dutch"):
        load_recipe("deutsh")


@pytest.mark.parametrize("name", list_recipes())
def test_shipped_recipe_resolves_for_every_track_size_and_variant(name: str) -> None:
    recipe = load_recipe(name)
    treebanks = recipe.language.treebanks
    assert set(treebanks) <= set(manifest_names())
    languages = {load_manifest(treebank).language for treebank in treebanks}
    assert languages == {recipe.language.language} == {name}
    sizes = (None, *get_args(Size))
    for track, size, variant in itertools.product(get_args(Track), sizes, recipe.base.variants):
        own = recipe.base.variants[variant]
        if (size or recipe.base.default_size[track]) in own.sizes:
            named = "transformer" in recipe.inputs_of(variant)
            config = resolve(
                recipe,
                track=track,
                size=size,
                variant=variant,
                fingerprints=BOTH,
                settings={"model.transformer": "somewhere"} if named else {},
            )
            assert config.size == (size or recipe.base.default_size[track])
            assert config.kind == own.kind


def test_layers_override_each_other_in_order(laboratory: Laboratory) -> None:
    def rate(track: str = "open", size: str = "small", **settings: str) -> float:
        recipe = load_recipe(str(laboratory.recipe))
        return resolve(recipe, track=track, size=size, settings=settings).train.learning_rate

    assert rate() == TRAIN["learning_rate"]
    of_track = {"track__open__model": {"layers": 3}, "track__open__train": {"learning_rate": 0.3}}
    laboratory.write_base(**of_track)
    assert (rate(), rate("mini")) == (0.3, TRAIN["learning_rate"])
    laboratory.write_recipe(["tiny-open"], model={"heads": 2})
    # A layer leaves what it does not name.
    config = resolve(load_recipe(str(laboratory.recipe)), seed=4)
    stated = {"lexical": ["charlstm"], **MODEL, "layers": 3, "heads": 2}
    assert config.model == tiny_config(**stated)
    assert (config.recipe, config.seed, config.size) == ("elvish", 4, "small")
    of_size = {"size.published.train": {"learning_rate": 1}}
    laboratory.write_recipe(["tiny-open"], train={"learning_rate": 0.5}, **of_size)
    assert (rate(), rate("mini"), rate("mini", "published")) == (0.5, 0.5, 1)
    assert rate(**{"train.learning_rate": "0.7"}) == 0.7


def test_mistakes_in_what_is_asked_for(laboratory: Laboratory) -> None:
    without = {key: value for key, value in MODEL.items() if key != "heads"}
    laboratory.write_base(size__published__model=without)
    recipe = load_recipe(str(laboratory.recipe))
    three = {"train.max_epochs": "0", "model.laiers": "2", "model.heads": "x"}  # all wrong
    names = "unknown key. Did you mean max_epochs? Known: adam_betas, "
    for changes, message in (
        ({"settings": three}, "model.heads: "),
        ({"settings": three}, "model.laiers: "),
        ({"settings": three}, "train.max_epochs: "),
        ({"variant": "charlst"}, "unknown variant 'charlst'. Did you mean charlstm or word-charl"),
        ({"size": "smal"}, "unknown size 'smal'. Did you mean small? Known: published, small."),
        ({"seed": -1}, "seed: input should be greater than or equal to 0; found -1"),
        ({"size": "published"}, "recipe elvish (charlstm, published): model.attention.heads: miss"),
        *(
            ({"settings": {key: value}}, message)
            for key, value, message in (
                ("max_epochs", "3", "setting 'max_epochs': expected model.KEY=VALUE or"),
                ("model.lexical", '["word"]', "the variant decides it; choose a --var"),
                ("model.d_arc", "4", "model.d_arc: unknown key. Known: annotated, d_model, "),
                ("model.charlstm.d_chr", "4", "d_chr: unknown key. Did you mean d_char? Known: c"),
                ("model.encoder", "lstn", "unknown encoder 'lstn'. Did you mean lstm?"),
                ("model.d_model", "18", "model.d_model: input should be a multiple of 4; found 18"),
                ("train.max_epoch", "3", f"elvish (charlstm, small): train.max_epoch: {names}"),
                ("train.max_epochs", "many", "unable to parse string as an integer; found 'many'"),
                ("train.max_minutes", "inf", "train.max_minutes: input should be a finite number"),
            )
        ),
    ):
        with pytest.raises(RecipeError, match=re.escape(message)):
            resolve(recipe, **changes)


def test_recipes_that_are_not_there() -> None:
    for name, message in (("base", "unknown language"), ("gone.toml", "no such recipe file")):
        with pytest.raises(RecipeError, match=message):
            load_recipe(name)


ALL_WRONG = {
    """base = "basis"
treebanks = []
[model]
d_modle = 4
lexical = ["word"]
[train]
decay_factor = 2.0
""": (
        "model.d_modle: unknown key. Did you mean d_model",
        "model.lexical: unknown key",
        "train.decay_factor: input should be less than 1; found 2.0",
        "base: input should be 'base'; found 'basis'",
        "treebanks: list should have at least 1 item",
        "language: missing",
    ),
    """base = "base"
language = "elvish"
treebanks = ["tiny-open"]
select = "brackets.las"
[variants]
a = { kind = "chrat" }
b = { kind = "right-branching" }
c = { inputs = ["word"], model = { laiers = 2, lexical = ["tag"] } }
d = { inputs = "word" }
e = { train = { max_epochs = 0 }, knid = 1 }
f = 3
""": (
        "variants.a.kind: unknown parser kind 'chrat'. Did you mean chart?",
        "variants.b.kind: a baseline, which is scored with every test but not trained",
        "variants.c.model.laiers: unknown key. Did you mean layers?",
        "variants.c.model.lexical: unknown key",
        "variants.d.inputs: ",
        "variants.e.train.max_epochs: ",
        "variants.e.knid: unknown key. Did you mean kind?",
        "variants.f: ",
        "select: 'brackets.las': metric brackets has no figure 'las'; it has sentences, ",
    ),
}


def test_all_mistakes_of_a_file_are_named(laboratory: Laboratory) -> None:
    for text, beginnings in ALL_WRONG.items():
        laboratory.recipe.write_text(text, encoding="utf-8")
        with pytest.raises(RecipeError) as caught:
            load_recipe(str(laboratory.recipe))
        for line, beginning in zip(str(caught.value).splitlines(), beginnings, strict=True):
            assert line.startswith(f"{laboratory.recipe}: {beginning}")
            assert "lexical" not in line.partition("Known: ")[2]


def settings_of(laboratory: Laboratory, given: dict[str, str]) -> dict[str, object]:
    return resolve(load_recipe(str(laboratory.recipe)), settings=given).overrides


def test_only_what_changes_the_recipe_is_a_setting(laboratory: Laboratory) -> None:
    rate = str(TRAIN["learning_rate"])
    for same in (
        {},
        {"train.learning_rate": rate, "model.d_ff": str(MODEL["d_ff"])},
        {"train.learning_rate": f"{rate}00"},
        {"train.adam_betas": "[0.90, 0.980]"},
        # Options of the model that no recipe states have its default.
        {"model.matrices": "factored", "model.input_norm": "true"},
        # What does not change the weights makes no other run.
        {"train.checkpoint_minutes": "1"},
    ):
        assert settings_of(laboratory, same) == {}
    assert settings_of(laboratory, {"train.max_minutes": "3"}) == {"train.max_minutes": 3.0}
    # They do not depend on their order or spelling.
    recipe = load_recipe(str(laboratory.recipe))
    one = resolve(recipe, settings={"model.matrices": "full", "model.layers": "2"})
    other = resolve(recipe, settings={"model.layers": "+2", "model.matrices": '"full"'})
    assert (one, [*one.overrides]) == (other, [*other.overrides])
    assert one.name == "charlstm (layers=2, matrices=full)"
    assert RunConfig.model_validate_json(one.model_dump_json()) == one
    assert one.model_dump()["settings"] == one.overrides
    laboratory.write_recipe(["tiny-open"], train={"learning_rate": 0.5})
    assert settings_of(laboratory, {"train.learning_rate": "5e-1"}) == {}
    assert settings_of(laboratory, {"train.learning_rate": rate}) == {"train.learning_rate": 0.01}


def test_a_setting_has_its_short_name_where_that_says_the_same(laboratory: Laboratory) -> None:
    """However it is spelt, in the command or in a recipe: so a stopped run is found again."""
    own = {"d_ff": 16, "attention_dropout": 0.0, "residual_dropout": 0.1, "relu_dropout": 0.0}
    laboratory.write_base(
        size__small__model=MODEL,
        size__small__model__lstm={"dropout": 0.1},
        size__small__model__label_attention=own,
    )
    both = {"label_attention": "true", "label_heads": "4"}
    labels = {"label_attention": True, "label_heads": 4}
    for given, expected in (
        ({"d_ff": "64"}, {"d_ff": 64}),
        ({"attention.d_ff": "64"}, {"d_ff": 64}),
        ({"attention": "{ d_ff = 64 }"}, {"d_ff": 64}),
        (both | {"d_ff": "64"}, labels | {"d_ff": 64}),
        (both | {"attention.d_ff": "64"}, labels | {"attention.d_ff": 64}),
        (both | {"attention.d_ff": "64", "label_attention.d_ff": "64"}, labels | {"d_ff": 64}),
        (both | {"d_ff": "64", "label_attention.d_ff": "16"}, labels | {"attention.d_ff": 64}),
        ({"tagger": "true"}, {"predict_tags": True}),
        ({"tagger.use": "true", "tagger.d_hidden": "8"}, {"predict_tags": True, "d_tag_hidden": 8}),
        ({"label_attention.d_ff": "64"}, {}),  # which the parser does not have
        ({"word.dropout": "0.3", "vectors.dropout": "0.3"}, {"word_dropout": 0.3}),
        ({"encoder": "lstm", "layers": "2"}, {"encoder": "lstm", "layers": 2}),
        ({"encoder": "lstm", "d_ff": "64"}, {"encoder": "lstm", "d_ff": 64}),
    ):  # fmt: skip
        found = settings_of(laboratory, {f"model.{key}": value for key, value in given.items()})
        assert found == {f"model.{key}": value for key, value in sorted(expected.items())}, given


def test_files_of_a_recipe_lie_in_the_working_directory(laboratory: Laboratory) -> None:
    recipe = recipe_with(
        laboratory, "[model]", 'vectors = "/etc/passwd"', "[variants]", 'v = ["vectors"]'
    )
    with pytest.raises(RecipeError, match=r"model\.vectors.*--set model\.vectors.*=PATH"):
        resolve(recipe, variant="v")
    config = resolve(recipe, variant="v", settings={"model.vectors": str(laboratory.recipe)})
    assert [*config.files] == ["vectors"]
    assert config.overrides == {"model.vectors": str(laboratory.recipe)}


def test_lexical_inputs_joined_are_a_variant() -> None:
    recipe = load_recipe("english")
    config = resolve(recipe, track="mini", variant="word-tag")
    assert ({*config.model.inputs}, config.variant) == ({"word", "tag"}, "word-tag")
    for variant, message in (
        ("word-tga", "joined by '-', such as word-tag, are variants too"),
        ("word-word", "the input 'word' is named twice"),
        ("vectors", r"model\.vectors\.file: missing"),
    ):
        with pytest.raises(RecipeError, match=message):
            resolve(recipe, track="mini", variant=variant)


# Kinds, variants and what selects ----------------------------------------------------------

CHART = "spmrl_bench.parsers.chart:ChartParser"
BOTH = {"constituents": "f", "dependencies": "d"}


@pytest.fixture
def more_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that learns from both layers, and one that learns from dependencies."""
    both: tuple[Layer, ...] = ("constituents", "dependencies")
    own = {
        **{name: kind_named(name) for name in KINDS.names()},
        "joined": Kind(CHART, both, ("brackets", "attachment")),
        "arcs": Kind(CHART, ("dependencies",), ("attachment",)),
    }
    kinds = Registry("parser kind", "spmrl_bench.none", own)
    monkeypatch.setattr("spmrl_bench.parsers.kinds.KINDS", kinds)


def recipe_with(laboratory: Laboratory, *lines: str, base: str = "") -> Recipe:
    """The recipe with these lines under its keys, over a base with others on top."""
    with laboratory.recipe.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    path = laboratory.recipe.with_name("base.toml")
    path.write_text(f"{base}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    return load_recipe(str(laboratory.recipe))


KIND_OF_EACH = (
    "[variants]",
    'joint = { kind = "joined", inputs = ["word"] }',
    'plain = ["word"]',
    'arcs = { kind = "arcs", inputs = ["word"], optional = true }',
)


def test_the_headlines_of_a_kind_select_unless_the_recipe_says_otherwise(
    laboratory: Laboratory, more_kinds: None
) -> None:
    def selects(*names: str, own: str = "", base: str = "") -> list[str]:
        laboratory.write_recipe(["tiny-open"])
        recipe = recipe_with(laboratory, own, *KIND_OF_EACH, base=base)
        return [resolve(recipe, variant=name, fingerprints=BOTH).select for name in names]

    assert selects("joint", "plain", "arcs") == [
        "brackets.f1 + attachment.las", "brackets.f1", "attachment.las"
    ]  # fmt: skip
    assert selects("joint", base='select = "brackets.recall"') == ["brackets.recall"]
    both = 'select = "attachment+brackets"'
    assert selects("joint", own=both) == ["attachment.las + brackets.f1"]
    message = (
        r"elvish\.toml: select: 'attachment\.las \+ brackets\.f1' needs the metric attachment, but "
        r"variant plain \(kind chart\) is scored by brackets"
    )
    with pytest.raises(RecipeError, match=message):
        selects("plain", own=both)


def test_what_learns_from_a_treebank(laboratory: Laboratory, more_kinds: None) -> None:
    recipe = recipe_with(laboratory, *KIND_OF_EACH)
    message = r"joint learns from constituents and dependencies, but treebank t has no dependencies"
    with pytest.raises(RecipeError, match=message):
        resolve(recipe, variant="joint")
    with pytest.raises(RecipeError, match=r"arcs learns from dependencies, but .* no dependencies"):
        resolve(recipe, variant="arcs")
    assert resolve(recipe, variant="arcs", fingerprints={"dependencies": "d"}).fingerprint == "d"
    assert resolve(recipe, variant="joint", fingerprints=BOTH).fingerprint == "f+d"
    # Optional variants are trained where they are named, or where nothing else learns.
    assert learnable(recipe, ["dependencies"]) == ["arcs"]
    assert learnable(recipe, ["constituents", "dependencies"]) == ["joint", "plain"]
    assert learnable(recipe, ["constituents"]) == ["plain"]
    # Some are for one size only.
    laboratory.write_recipe(["tiny-open"])
    few = 'few = { inputs = ["word"], sizes = ["small"] }'
    recipe = recipe_with(laboratory, "[variants]", 'all = ["word"]', few)
    assert learnable(recipe, ["constituents"]) == ["all", "few"]
    assert learnable(recipe, ["constituents"], "published") == ["all"]
    assert resolve(recipe, variant="few", size="small").size == "small"
    with pytest.raises(RecipeError, match="variant few is for the size small, not for 'published'"):
        resolve(recipe, variant="few", size="published")


def test_a_variant_may_be_like_another_and_differ_by_size(laboratory: Laboratory) -> None:
    recipe = recipe_with(
        laboratory,
        "[variants]",
        """first.inputs = ["word", "tag"]
        first.model = { layers = 3, heads = 2 }
        first.size.small.model.heads = 5
        second.like = "first"
        second.model.layers = 4
        second.size.published.train.learning_rate = 0.5
        third.like = "second"
        third.inputs = ["charlstm"]
        third.track.mini.model.layers = 1
        lost.like = "thrid"
        circle.like = "circle" """,
    )

    def settings(variant: str, size: str, track: Track = "open") -> tuple[object, ...]:
        config = resolve(recipe, variant=variant, size=size, track=track)
        model = flat(config.model)
        return tuple(model["lexical"]), model["layers"], model["heads"], config.train.learning_rate

    rate = TRAIN["learning_rate"]
    assert settings("first", "small") == (("word", "tag"), 3, 5, rate)
    assert settings("second", "small") == (("word", "tag"), 4, 5, rate)
    assert settings("second", "published") == (("word", "tag"), 4, 2, 0.5)
    assert settings("third", "published") == (("charlstm",), 4, 2, 0.5)
    assert settings("third", "published", "mini") == (("charlstm",), 1, 2, 0.5)
    message = r"variants\.lost\.like: unknown variant 'thrid'. Did you mean third"
    with pytest.raises(RecipeError, match=message):
        settings("lost", "small")
    with pytest.raises(RecipeError, match="circle is like this one"):
        settings("circle", "small")


# The reference of settings -----------------------------------------------------------------


class Inner(BaseModel):
    names: list[str] = []
    """Some names."""


class Outer(Inner):
    size: Annotated[int, Field(ge=2, le=8, multiple_of=2)]
    """How large it is,
    in ``words`` of :class:`~somewhere.Inner`."""
    rate: float | None = None
    names: list[str] = ["a"]


def test_entries_say_all_of_a_key() -> None:
    assert entries(Outer) == [
        ("names", "list: text", ["a"], "Some names."),  # it is narrowed, and keeps what it says
        (
            *("size", "whole number, at least 2, at most 8, a multiple of 2", PydanticUndefined),
            "How large it is, in `words` of `Inner`.",
        ),
        ("rate", "number", None, ""),
    ]


def test_values_are_those_of_runs() -> None:
    """Without a variant's own settings, what the reference states is what a run gets."""
    settings = {setting.key: setting for setting in run_settings()}
    of_run = {"treebank": "any", "track": "spmrl", "fingerprints": {"constituents": ""}}
    for size in ("published", "small"):
        # Inputs, not a variant with settings of its own.
        config = load_recipe("english").resolve(**of_run, variant="charlstm-tag", size=size)
        model = leaves(config.model.model_dump())
        resolved = {f"model.{key}": value for key, value in model.items() if key != "inputs"}
        resolved |= {f"train.{key}": value for key, value in config.train}
        assert {key: settings[key].values[size] for key in resolved} == resolved
    assert settings["model.scorer.d_hidden"].kinds == ("chart", "joint")
    assert settings["train.batch_size"].kinds == settings["model.d_model"].kinds
    assert settings["model.d_model"].kinds == tuple(trained_kinds())


def test_settings_are_found_by_key_name_and_beginning() -> None:
    def keys(*names: str) -> list[str]:
        return [setting.key for setting in settings_named(names)]

    assert keys("train.averaging", "heads") == ["train.averaging", "model.attention.heads"]
    assert keys("model.d_ff") == ["model.attention.d_ff", "model.label_attention.d_ff"]
    assert keys("model.scorer") == ["model.scorer.d_hidden", "model.scorer.layer_norm"]
    with pytest.raises(RecipeError, match=r"unknown setting 'model.head_s'. Did you mean model.he"):
        keys("model.head_s")


def test_the_command_tells_values_and_meaning() -> None:
    assert (
        cli("recipes", "show", "d_label_hidden").stdout
        == """\
model.scorer.d_hidden
    short: model.d_label_hidden
    allowed: whole number, at least 1, at most 65536
    published: 250; small: 128
    kinds of parsers: chart, joint
    Width of the hidden layer.
"""
    )
    listed = cli("recipes", "show").stdout.splitlines()
    assert len(listed) == len(run_settings()) + 2
    assert any(re.match(r"model\.attention\.heads +8 +4 +chart, ", line) for line in listed)
    assert "unknown setting 'zzz'" in refused("recipes", "show", "zzz")
