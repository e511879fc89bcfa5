"""Recipes: the shipped ones resolve, layers override each other, mistakes are all named."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import get_args

import pytest

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.plan import learnable
from spmrl_bench.experiments.recipe import Recipe, RunConfig, Size, Track, list_recipes, load_recipe
from spmrl_bench.parsers.registry import KINDS, Kind, kind_named
from spmrl_bench.registry import Registry
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names
from spmrl_bench.trees.parse import Layer
from tests.builders import config as tiny_config
from tests.builders import flat
from tests.laboratory import MODEL, TRAIN, Laboratory

FINGERPRINTS = {"constituents": "f"}


def resolve(recipe: Recipe, **changes: object) -> RunConfig:
    arguments = {
        "treebank": "t",
        "track": "open",
        "fingerprints": FINGERPRINTS,
        "variant": "charlstm",
    }
    return recipe.resolve(**arguments | changes)


@pytest.mark.parametrize("name", list_recipes())
def test_shipped_recipe_resolves_for_every_track_size_and_variant(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.language.language == name
    sizes = (None, *get_args(Size))
    for track, size, variant in itertools.product(get_args(Track), sizes, recipe.base.variants):
        if size not in recipe.base.variants[variant].sizes:
            continue
        needed = ["transformer"] if "transformer" in recipe.inputs_of(variant) else []
        config = resolve(
            recipe,
            track=track,
            size=size,
            variant=variant,
            fingerprints=BOTH,
            settings={f"model.{key}": "somewhere" for key in needed},
        )
        assert config.size == (size or recipe.base.default_size[track])
        assert config.kind == recipe.base.variants[variant].kind


@pytest.mark.parametrize("name", list_recipes())
def test_treebanks_of_a_shipped_recipe_exist_and_are_of_its_language(name: str) -> None:
    treebanks = load_recipe(name).language.treebanks
    assert set(treebanks) <= set(manifest_names())
    assert {load_manifest(treebank).language for treebank in treebanks} == {name}


def test_published_size_is_that_of_kitaev_and_klein_2018() -> None:
    config = resolve(load_recipe("english"), track="ptb", variant="charlstm")
    model, train = flat(config.model), config.train
    stated = {"d_model": 1024, "layers": 8, "heads": 8, "d_kv": 64, "d_ff": 2048, "d_char": 64}
    assert model.items() >= (stated | {"d_label_hidden": 250}).items()
    assert (train.learning_rate, train.batch_size, train.warmup_batches) == (0.0008, 250, 160)
    assert (train.adam_betas, train.adam_epsilon) == ((0.9, 0.98), 1e-9)
    assert (train.evaluations_per_epoch, train.decay_patience, train.decay_factor) == (4, 5, 0.5)


def test_layers_override_each_other_in_order(laboratory: Laboratory) -> None:
    def rate(track: str = "open", **settings: str) -> float:
        recipe = load_recipe(str(laboratory.recipe))
        return resolve(recipe, track=track, settings=settings).train.learning_rate

    assert rate() == TRAIN["learning_rate"]
    laboratory.write_base(track__open__train={"learning_rate": 0.3})
    assert rate() == 0.3
    assert rate(track="mini") == TRAIN["learning_rate"]
    laboratory.write_recipe(["tiny-open"], train={"learning_rate": 0.5})
    assert rate() == rate(track="mini") == 0.5
    assert rate(**{"train.learning_rate": "0.7"}) == 0.7


def test_a_language_may_set_what_holds_for_one_size_only(laboratory: Laboratory) -> None:
    laboratory.write_recipe(
        ["tiny-open"],
        train={"learning_rate": 0.5},
        **{"size.published.train": {"learning_rate": 1}},
    )
    recipe = load_recipe(str(laboratory.recipe))
    assert resolve(recipe, size="published").train.learning_rate == 1
    assert resolve(recipe, size="small").train.learning_rate == 0.5


def test_rates_of_the_published_models_are_those_of_the_paper() -> None:
    """Kitaev & Klein 2018, appendix: 0.002 Hebrew and Swedish, 0.0015 Polish, 0.0008 the others."""
    expected = {"hebrew": 0.002, "swedish": 0.002, "polish": 0.0015, "german": 0.0008}
    for name, rate in expected.items():
        recipe = load_recipe(name)
        published = resolve(recipe, track="spmrl", size="published")
        assert published.train.learning_rate == rate
        small = resolve(recipe, track="mini", size="small")
        assert small.train.learning_rate == recipe.base.size["small"].train.learning_rate


def test_a_layer_leaves_what_it_does_not_name(laboratory: Laboratory) -> None:
    laboratory.write_base(track__open__model={"layers": 3}, track__open__train={"max_epochs": 7})
    laboratory.write_recipe(["tiny-open"], model={"heads": 2})
    config = resolve(load_recipe(str(laboratory.recipe)), seed=4)
    stated = {"lexical": ["charlstm"], **MODEL, "layers": 3, "heads": 2}
    assert config.model == tiny_config(**stated)
    assert config.train.max_epochs == 7
    assert (config.recipe, config.seed, config.size) == ("elvish", 4, "small")


def test_a_users_recipe_may_stand_on_the_shipped_base(tmp_path: Path) -> None:
    path = tmp_path / "elvish.toml"
    path.write_text(
        'base = "base"\nlanguage = "german"\ntreebanks = ["german-mini"]\n', encoding="utf-8"
    )
    recipe = load_recipe(str(path))
    assert recipe.base == load_recipe("german").base
    assert (recipe.name, recipe.path) == ("elvish", path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "charlst"}, "unknown variant 'charlst'. Did you mean charlstm or word-charl"),
        ({"size": "smal"}, "unknown size 'smal'. Did you mean small? Known: published, small."),
        ({"settings": {"max_epochs": "3"}}, "setting 'max_epochs': expected model.KEY=VALUE or"),
        ({"settings": {"trian.max_epochs": "3"}}, "setting 'trian.max_epochs': expected model"),
        ({"settings": {"model.lexical": '["word"]'}}, "the variant decides it; choose a --var"),
        ({"settings": {"model.d_arc": "4"}}, "model.d_arc: unknown key. Known: d_model, "),
        (
            {"settings": {"model.charlstm.d_chr": "4"}},
            "model.charlstm.d_chr: unknown key. Did you mean d_char? Known: char_dropout, d_char",
        ),
        ({"settings": {"model.d_char": "0"}}, "model.d_char: input should be greater than or"),
        ({"settings": {"model.d_modle": "64"}}, "model.d_modle: unknown key. Did you mean d_model"),
        ({"settings": {"model.encoder": "lstn"}}, "unknown encoder 'lstn'. Did you mean lstm?"),
        ({"settings": {"model.attention.heads": "x"}}, "model.attention.heads: input should be"),
        (
            {"settings": {"train.max_epoch": "3"}},
            "recipe elvish (charlstm, small): train.max_epoch: unknown key. "
            "Did you mean max_epochs? Known: adam_betas, ",
        ),
        (
            {"settings": {"train.max_epochs": "0"}},
            "train.max_epochs: input should be greater than or equal to 1; found 0",
        ),
        (
            {"settings": {"train.max_epochs": "many"}},
            "unable to parse string as an integer; found 'many'",
        ),
        ({"settings": {"train.max_epochs": ""}}, "found ''"),
        (
            {"settings": {"model.d_model": "18"}},
            "model.d_model: input should be a multiple of 4; found 18",
        ),
        ({"seed": -1}, "seed: input should be greater than or equal to 0; found -1"),
    ],
)
def test_mistakes_in_what_is_asked_for(
    laboratory: Laboratory, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(str(laboratory.recipe)), **changes)
    assert message in str(caught.value)


def test_all_wrong_settings_are_reported_at_once(laboratory: Laboratory) -> None:
    settings = {"train.max_epochs": "0", "model.laiers": "2", "model.heads": "x"}
    with pytest.raises(RecipeError) as caught:
        resolve(load_recipe(str(laboratory.recipe)), settings=settings)
    assert len(str(caught.value).splitlines()) == 3


def test_a_key_that_no_layer_sets_is_missing(laboratory: Laboratory) -> None:
    without = {key: value for key, value in MODEL.items() if key != "heads"}
    laboratory.write_base(size__small__model=without)
    with pytest.raises(RecipeError, match=r"recipe elvish \(.*\): model.attention.heads: missing"):
        resolve(load_recipe(str(laboratory.recipe)))


def test_unknown_languages(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"unknown language 'grman'. Did you mean german"):
        load_recipe("grman")
    with pytest.raises(RecipeError, match=r"unknown language 'base'"):
        load_recipe("base")
    gone = str(tmp_path / "gone.toml")
    with pytest.raises(RecipeError, match=f"{gone}: no such recipe file"):
        load_recipe(gone)


def lines_of_error(laboratory: Laboratory, path: Path) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(laboratory.recipe))
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_all_mistakes_of_a_language_file(laboratory: Laboratory) -> None:
    text = 'base = "basis"\ntreebanks = []\n[model]\nd_modle = 4\nlexical = ["word"]\n'
    laboratory.recipe.write_text(text + "[train]\ndecay_factor = 2.0\n", encoding="utf-8")
    lines = lines_of_error(laboratory, laboratory.recipe)
    assert [line.split(":")[0] for line in lines] == [
        "model.d_modle", "model.lexical", "train.decay_factor", "base", "language", "treebanks"
    ]  # fmt: skip
    assert lines[0].startswith("model.d_modle: unknown key. Did you mean d_model")
    assert "lexical" not in lines[1].partition("Known: ")[2]
    assert lines[2] == "train.decay_factor: input should be less than 1; found 2.0"
    assert lines[3] == "base: input should be 'base'; found 'basis'"
    assert lines[4] == "language: missing"
    assert "at least 1 item" in lines[5]


def test_broken_toml(laboratory: Laboratory) -> None:
    laboratory.recipe.write_text("base = \n", encoding="utf-8")
    (line,) = lines_of_error(laboratory, laboratory.recipe)
    assert line.startswith("not valid TOML: Invalid value (at line 1")


def settings_of(laboratory: Laboratory, **settings: str) -> dict[str, object]:
    """``settings`` with ``__`` for the dot, as the configuration keeps them."""
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return resolve(load_recipe(str(laboratory.recipe)), settings=given).settings


def test_only_what_changes_the_recipe_is_a_setting(laboratory: Laboratory) -> None:
    assert settings_of(laboratory) == {}
    own = str(TRAIN["learning_rate"])
    assert settings_of(laboratory, train__learning_rate=own, model__d_ff=str(MODEL["d_ff"])) == {}
    assert settings_of(laboratory, train__learning_rate=f"{own}00") == {}
    assert settings_of(laboratory, train__adam_betas="[0.90, 0.980]") == {}
    # Options of the model that no recipe states have its default.
    assert settings_of(laboratory, model__matrices="factored", model__input_norm="true") == {}
    assert settings_of(laboratory, train__max_minutes="3") == {"train.max_minutes": 3.0}
    # What does not change the weights makes no other run.
    assert settings_of(laboratory, train__checkpoint_minutes="1") == {}
    laboratory.write_recipe(["tiny-open"], train={"learning_rate": 0.5})
    assert settings_of(laboratory, train__learning_rate="5e-1") == {}
    assert settings_of(laboratory, train__learning_rate=own) == {"train.learning_rate": 0.01}


def test_settings_do_not_depend_on_their_order_or_spelling(laboratory: Laboratory) -> None:
    recipe = load_recipe(str(laboratory.recipe))
    one = resolve(recipe, settings={"model.matrices": "full", "model.layers": "2"})
    other = resolve(recipe, settings={"model.layers": "+2", "model.matrices": '"full"'})
    assert one == other
    assert list(one.settings) == list(other.settings) == ["model.layers", "model.matrices"]
    assert one.name == "charlstm (layers=2, matrices=full)"
    stored = json.loads(one.model_dump_json())
    assert RunConfig.model_validate(stored) == one


def test_settings_that_json_cannot_keep_are_refused(laboratory: Laboratory) -> None:
    with pytest.raises(RecipeError, match=r"setting 'train.max_minutes': inf is no finite number"):
        settings_of(laboratory, train__max_minutes="inf")


def test_a_setting_has_its_short_name_where_that_says_the_same(laboratory: Laboratory) -> None:
    """However it is spelt, in the command or in a recipe: so a stopped run is found again."""
    own = {"lstm": {"dropout": 0.1}, "label_attention": {"d_ff": 16, "attention_dropout": 0.0}}
    own["label_attention"] |= {"residual_dropout": 0.1, "relu_dropout": 0.0}
    tables = {f"size__small__model__{table}": each for table, each in own.items()}
    laboratory.write_base(size__small__model=MODEL, **tables)
    both = {"model.label_attention": "true", "model.label_heads": "4"}
    labels = {"model.label_attention": True, "model.label_heads": 4}
    for given, expected in (
        ({"model.d_ff": "64"}, {"model.d_ff": 64}),
        ({"model.attention.d_ff": "64"}, {"model.d_ff": 64}),
        ({"model.attention": "{ d_ff = 64 }"}, {"model.d_ff": 64}),
        ({**both, "model.d_ff": "64"}, {**labels, "model.d_ff": 64}),
        ({**both, "model.attention.d_ff": "64"}, {**labels, "model.attention.d_ff": 64}),
        (
            {**both, "model.attention.d_ff": "64", "model.label_attention.d_ff": "64"},
            {**labels, "model.d_ff": 64},
        ),
        ({**both, "model.d_ff": "64", "model.label_attention.d_ff": "16"},
         {**labels, "model.attention.d_ff": 64}),
        ({"model.tagger": "true"}, {"model.predict_tags": True}),
        ({"model.tagger.use": "true", "model.tagger.d_hidden": "8"},
         {"model.predict_tags": True, "model.d_tag_hidden": 8}),
        ({"model.label_attention.d_ff": "64"}, {}),  # which the parser does not have
        ({"model.word.dropout": "0.3", "model.vectors.dropout": "0.3"},
         {"model.word_dropout": 0.3}),
        ({"model.encoder": "lstm", "model.residual_dropout": "0.2"},
         {"model.encoder": "lstm", "model.residual_dropout": 0.2}),
        ({"model.encoder": "lstm", "model.d_ff": "64"},
         {"model.encoder": "lstm", "model.d_ff": 64}),
    ):  # fmt: skip
        settings = {key.replace(".", "__"): value for key, value in given.items()}
        assert settings_of(laboratory, **settings) == dict(sorted(expected.items())), given


def test_layers_are_put_together_table_by_table(laboratory: Laboratory) -> None:
    recipe = recipe_with(
        laboratory,
        "[model]",
        "layers = 5",
        "attention = { heads = 1 }",
        "[variants.a]",
        'inputs = ["word", "charlstm"]',
        'model = { attention = { layers = 3, d_kv = 4 }, encoder = "attention", tagger = true }',
        "[variants.b]",
        'like = "a"',
        'model = { encoder = "gru", gru = { dropout = 0.3 }, tagger = { use = false } }',
    )
    settings = resolve(recipe, variant="a").model
    assert list(settings.inputs) == ["charlstm", "word"]  # as they are summed
    attention = settings.encoder["attention"]
    assert (attention.layers, attention.heads, attention.d_kv) == (3, 1, 4)
    assert attention.d_ff == MODEL["d_ff"]
    assert settings.tagger.d_hidden == 250
    other = resolve(recipe, variant="b").model
    assert other.encoder["gru"].model_dump() == {"layers": 5, "dropout": 0.3, "masks": "sentence"}
    assert other.tagger is None


def test_files_of_a_recipe_lie_in_the_working_directory(laboratory: Laboratory) -> None:
    recipe = recipe_with(
        laboratory, "[model]", 'vectors = "/etc/passwd"', "[variants]", 'v = ["vectors"]'
    )
    with pytest.raises(RecipeError, match=r"model\.vectors.*--set model\.vectors.*=PATH"):
        resolve(recipe, variant="v")
    config = resolve(recipe, variant="v", settings={"model.vectors": str(laboratory.recipe)})
    assert [*config.files] == ["vectors"]
    assert config.settings == {"model.vectors": str(laboratory.recipe)}


def test_lexical_inputs_joined_are_a_variant() -> None:
    recipe = load_recipe("english")
    config = resolve(recipe, track="mini", variant="word-tag")
    assert {*config.model.inputs} == {"word", "tag"}
    assert config.variant == "word-tag"
    with pytest.raises(RecipeError, match="joined by '-', such as word-tag, are variants too"):
        resolve(recipe, track="mini", variant="word-tga")
    with pytest.raises(RecipeError, match="the input 'word' is named twice"):
        resolve(recipe, track="mini", variant="word-word")
    with pytest.raises(RecipeError, match=r"model\.vectors\.file: missing"):
        resolve(recipe, track="mini", variant="vectors")


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
    monkeypatch.setattr("spmrl_bench.parsers.registry.KINDS", kinds)


def recipe_with(laboratory: Laboratory, *lines: str, base: str = "") -> Recipe:
    """The recipe with these lines under its keys, over a base with others on top."""
    with laboratory.recipe.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    path = laboratory.recipe.with_name("base.toml")
    path.write_text(f"{base}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    return load_recipe(str(laboratory.recipe))


def test_a_variant_has_a_kind_and_settings_of_its_own(
    laboratory: Laboratory, more_kinds: None
) -> None:
    recipe = recipe_with(
        laboratory,
        "[model]",
        "heads = 2",
        "layers = 5",
        "[variants.joint]",
        'kind = "joined"',
        'inputs = ["word", "tag"]',
        "model = { layers = 3, tag_dropout = 0.1 }",
        "train = { learning_rate = 0.5 }",
        "[variants]",
        'plain = ["charlstm"]',
    )
    assert list(recipe.variants) == ["joint", "plain"]  # in place of those of the base
    config = resolve(recipe, variant="joint", fingerprints=BOTH)
    assert (config.kind, config.variant, config.fingerprint) == ("joined", "joint", "f+d")
    model = flat(config.model)
    assert model["lexical"] == ["word", "tag"]
    assert (model["heads"], model["layers"], model["tag_dropout"]) == (2, 3, 0.1)
    assert config.train.learning_rate == 0.5
    assert config.settings == {}  # all that is the recipe's own
    plain = resolve(recipe, variant="plain", fingerprints=BOTH)
    assert (plain.kind, plain.fingerprint, flat(plain.model)["layers"]) == ("chart", "f", 5)
    assert plain.train.learning_rate == TRAIN["learning_rate"]

    given = {"model.layers": "4", "train.learning_rate": "0.50"}
    changed = resolve(recipe, variant="joint", fingerprints=BOTH, settings=given)
    assert changed.settings == {"model.layers": 4}
    stored = json.loads(changed.model_dump_json())
    assert RunConfig.model_validate(stored) == changed


def test_the_headlines_of_a_kind_select_unless_the_recipe_says_otherwise(
    laboratory: Laboratory, more_kinds: None
) -> None:
    variants = ("[variants]", 'joint = { kind = "joined", inputs = ["word"] }', 'w = ["word"]')
    recipe = recipe_with(
        laboratory, *variants, 'a = { kind = "arcs", inputs = ["word"] }', base="# nothing"
    )

    def selects(recipe: Recipe, variant: str) -> str:
        return resolve(recipe, variant=variant, fingerprints=BOTH).select

    assert [selects(recipe, name) for name in ("joint", "w", "a")] == [
        "brackets.f1 + attachment.las", "brackets.f1", "attachment.las"
    ]  # fmt: skip
    laboratory.write_recipe(["tiny-open"])
    base = recipe_with(laboratory, *variants, base='select = "brackets.recall"')
    assert selects(base, "joint") == "brackets.recall"
    laboratory.write_recipe(["tiny-open"])
    own = recipe_with(laboratory, 'select = "attachment+brackets"', *variants)
    config = resolve(own, variant="joint", fingerprints=BOTH)
    assert config.select == "attachment.las + brackets.f1"
    assert config.criterion.title == "LAS + F1"
    message = (
        r"elvish\.toml: select: 'attachment\.las \+ brackets\.f1' needs the metric attachment, but "
        r"variant w \(kind chart\) is scored by brackets"
    )
    with pytest.raises(RecipeError, match=message):
        selects(own, "w")


def test_a_kind_whose_layers_the_treebank_lacks(laboratory: Laboratory, more_kinds: None) -> None:
    recipe = recipe_with(
        laboratory,
        "[variants]",
        'joint = { kind = "joined", inputs = ["word"] }',
        'arcs = { kind = "arcs", inputs = ["word"] }',
    )
    message = r"joint learns from constituents and dependencies, but treebank t has no dependencies"
    with pytest.raises(RecipeError, match=message):
        resolve(recipe, variant="joint")
    with pytest.raises(RecipeError, match=r"arcs learns from dependencies, but .* no dependencies"):
        resolve(recipe, variant="arcs")
    assert resolve(recipe, variant="arcs", fingerprints={"dependencies": "d"}).fingerprint == "d"
    assert learnable(recipe, ["dependencies"]) == ["arcs"]
    assert learnable(recipe, ["constituents", "dependencies"]) == ["joint", "arcs"]
    assert learnable(recipe, ["constituents"]) == []


def test_a_variant_may_be_for_one_size_only(laboratory: Laboratory) -> None:
    recipe = recipe_with(
        laboratory,
        "[variants]",
        'all = ["word"]',
        'few = { inputs = ["word"], sizes = ["small"] }',
    )
    assert learnable(recipe, ["constituents"], "small") == ["all", "few"]
    assert learnable(recipe, ["constituents"], "published") == ["all"]
    assert learnable(recipe, ["constituents"]) == ["all", "few"]
    assert resolve(recipe, variant="few", size="small").size == "small"
    with pytest.raises(RecipeError, match="variant few is for the size small, not for 'published'"):
        resolve(recipe, variant="few", size="published")


def test_a_variant_may_be_like_another_and_differ_by_size(laboratory: Laboratory) -> None:
    recipe = recipe_with(
        laboratory,
        "[variants.first]",
        'inputs = ["word", "tag"]',
        "model = { layers = 3, heads = 2 }",
        "[variants.first.size.small.model]",
        "heads = 5",
        "[variants.second]",
        'like = "first"',
        "model = { layers = 4 }",
        "[variants.second.size.published.train]",
        "learning_rate = 0.5",
        "[variants.third]",
        'like = "second"',
        'inputs = ["charlstm"]',
        "[variants.lost]",
        'like = "thrid"',
        "[variants.circle]",
        'like = "circle"',
        "[variants.third.track.mini.model]",
        "layers = 1",
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
    with pytest.raises(
        RecipeError, match=r"variant lost: like: unknown variant 'thrid'. Did you mean third"
    ):
        settings("lost", "small")
    with pytest.raises(RecipeError, match="variant circle: it is like circle, which is like it"):
        settings("circle", "small")


def test_optional_variants_are_trained_where_they_are_named_or_nothing_else_learns(
    laboratory: Laboratory, more_kinds: None
) -> None:
    recipe = recipe_with(
        laboratory,
        "[variants]",
        'plain = ["word"]',
        'arcs = { kind = "arcs", inputs = ["word"], optional = true }',
    )
    assert learnable(recipe, ["constituents", "dependencies"]) == ["plain"]
    assert learnable(recipe, ["dependencies"]) == ["arcs"]


def test_all_mistakes_of_variants(laboratory: Laboratory) -> None:
    laboratory.write_recipe(["tiny-open"])
    with laboratory.recipe.open("a", encoding="utf-8") as file:
        file.write(
            'select = "brackets.las"\n[variants]\n'
            'a = { kind = "chrat" }\n'
            'b = { kind = "right-branching" }\n'
            'c = { inputs = ["word"], model = { laiers = 2, lexical = ["tag"] } }\n'
            'd = { inputs = "word" }\n'
            "e = { train = { max_epochs = 0 }, knid = 1 }\n"
            "f = 3\n"
        )
    lines = lines_of_error(laboratory, laboratory.recipe)
    assert [line.split(": ")[0] for line in lines] == [
        "variants.a.kind", "variants.b.kind", "variants.c.model.laiers", "variants.c.model.lexical",
        "variants.d.inputs", "variants.e.train.max_epochs", "variants.e.knid", "variants.f",
        "select",
    ]  # fmt: skip
    assert "unknown parser kind 'chrat'. Did you mean chart?" in lines[0]
    assert "a baseline, which is scored with every test but not trained" in lines[1]
    assert "unknown key. Did you mean layers?" in lines[2]
    assert "unknown key. Did you mean kind?" in lines[6]
    assert "metric brackets has no figure 'las'; it has sentences, " in lines[8]
