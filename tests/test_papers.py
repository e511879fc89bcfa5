"""The values that the pages on papers state are those of the program."""

from __future__ import annotations

import math
import re
import tomllib
from functools import cache
from typing import Any

import pytest

from spmrl_bench.experiments.recipe import RunConfig, load_recipe
from spmrl_bench.experiments.reference import Entry, run_settings
from spmrl_bench.nn.encoders.self_attention import UNIFORM_DEVIATION
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.config import parts
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.legacy import FLAT, chosen, dotted, in_tables, short
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.training.schedule import Progress, TrainConfig, learning_rate
from spmrl_bench.treebanks.catalogue import read_manifest
from spmrl_bench.treebanks.manifest import Manifest
from tests.builders import ROOT, flat

KK18, LAL, STACK = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("kk18", "lal", "stack-attention")
)
SETTING = re.compile(r"`(model|train)\.([a-z_]+)( = [^`]+)?`")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_with(page: str, *columns: str) -> list[dict[str, str]]:
    """Rows of the tables of a page that have these columns."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        header, rule, *lines = block.strip().splitlines()
        assert set(rule) <= set("|-:"), rule
        rows = [dict(zip(cells(header), cells(line), strict=True)) for line in lines]
        found += rows if set(columns) <= set(cells(header)) else []
    assert found, columns
    return found


def key_of(row: dict[str, str]) -> tuple[str, str]:
    match = SETTING.fullmatch(row["setting"])
    assert match, row
    return match[1], match[2]


def value_of(text: str) -> Any:
    """A value of a cell, in TOML except for what TOML lacks."""
    special: dict[str, Any] = {"none": None, "()": ()}
    return special[text] if text in special else tomllib.loads(f"value = {text}")["value"]


def resolved(
    variant: str = "charlstm",
    size: str = "published",
    language: str = "english",
    layers: tuple[str, ...] = ("constituents", "dependencies"),
    **settings: str,
) -> RunConfig:
    return load_recipe(language).resolve(
        treebank="any",
        track="spmrl",
        fingerprints=dict.fromkeys(layers, ""),
        variant=variant,
        size=size,
        settings={f"model.{key}": value for key, value in settings.items()},
    )


@cache
def known_settings() -> dict[str, Entry]:
    """By key and by short name."""
    settings = run_settings()
    return {key: one.entry for one in settings for key in (one.key, *one.short)}


@pytest.mark.parametrize("page", [KK18, LAL], ids=["kk18", "lal"])
def test_settings_have_the_defaults_that_are_stated(page: str) -> None:
    for row in rows_with(page, "setting", "default"):
        key = row["setting"].strip("`")
        assert value_of(row["default"]) == known_settings()[key].default, key


# Kitaev & Klein 2018 -----------------------------------------------------------------------


def test_values_of_both_sizes_are_those_of_the_recipe() -> None:
    stated = {}
    for row in rows_with(KK18, "setting", "published", "small"):
        section, name = key_of(row)
        for size in ("published", "small"):
            stated[size, section, name] = value_of(row[size])
    expected = {}
    for size, sections in load_recipe("english").base.size.items():
        others = ("dependencies", "decoder", "hidden_states")  # not of this paper
        model = {k: v for k, v in sections.model.items() if k not in others}
        expected |= {(size, "model", k): v for k, v in short(dotted(model)).items()}
        train = sections.train.model_dump(exclude_unset=True)
        expected |= {
            (size, "train", k): list(v) if isinstance(v, tuple) else v for k, v in train.items()
        }
    assert stated == expected


def test_values_that_are_recommended_are_allowed() -> None:
    """Such as `model.matrices = "full"`, somewhere in the text; those of a line stand together."""
    given = resolved()
    found, tables = 0, parts(ChartParser.Config)
    for line in KK18.splitlines():
        settings = [match for match in SETTING.findall(line) if match[2]]
        for number, (section, name, value) in enumerate(settings):
            others = {
                other: value_of(text.removeprefix(" = "))
                for part, other, text in settings[:number]
                if part == section
            }
            changed = {**others, name: value_of(value.removeprefix(" = "))}
            if section == "train":
                TrainConfig.model_validate({**given.train.model_dump(), **changed})
            else:
                model = flat(given.model) | {"precision": "float32"} | changed
                ChartParser.Config.model_validate(chosen(in_tables(model, tables)))
        found += len(settings)
    assert found >= 10


def test_what_is_said_to_be_the_codes_is_no_default() -> None:
    """`model.x = "y"` is the code's."""
    code = re.findall(r"`(model|train)\.([a-z_]+) = ([^`]+)`(?: is|,) (?:the code's|that of)", KK18)
    assert {name for _, name, _ in code} >= {
        "attention_start", "decay_patience", "forward_features", "warmup_counts"
    }  # fmt: skip
    english = resolved()
    own = {"model": flat(english.model), "train": english.train.model_dump()}
    for section, name, value in code:
        assert own[section][name] != value_of(value), name


def test_every_place_is_there() -> None:
    rows = rows_with(KK18, "place")
    assert len(rows) > 35
    for row in rows:
        path, _, name = row["place"].strip("`").partition(": ")
        file = ROOT / "spmrl_bench" / path
        file = file if file.exists() else ROOT / path
        assert file.exists(), row
        text = file.read_text(encoding="utf-8")
        for part in filter(None, name.split(".")):
            assert re.search(rf"^ *(?:def|class) {part}\b|^{part}\b.* = ", text, re.MULTILINE), row


def steps_of_warmup(corpus: int, size: int, **settings: Any) -> int:
    """The first step at the full rate."""
    config = resolved().train.model_copy(update={"batch_size": size, **settings})
    progress = Progress()
    while learning_rate(config, progress) < config.learning_rate:
        progress.sentences += min(size, corpus - progress.sentences % corpus)
        progress.steps += 1
    return progress.steps + 1


def test_lengths_of_the_warmup() -> None:
    stated = re.findall(r"(\d+) steps for ([\d,]+) sentences in batches of (\d+)", KK18)
    assert len(stated) == 3
    for steps, corpus, size in stated:
        numbers = int(corpus.replace(",", "")), int(size)
        assert steps_of_warmup(*numbers, warmup_counts="sentences") == int(steps)
        assert steps_of_warmup(*numbers) == resolved().train.warmup_batches == 160


def test_deviations_of_the_weights_at_the_start() -> None:
    model = resolved().model.encoder["attention"]
    (row,) = (
        row for row in rows_with(KK18, "point", "code") if row["point"].startswith("attention w")
    )
    stated = [
        float(number)
        for number in re.findall(r"\b0\.\d+\b", f"{row['code']} {row['here, and why']}")
    ]
    width, d_kv = 1024 // 2, model.d_kv // 2
    fans = ((d_kv, width), (width, d_kv))  # as of tensors [heads, inputs, outputs]
    into, back = (math.sqrt(2 / (a * b + model.heads * a)) for a, b in fans)
    uniform = 1 / math.sqrt(3 * model.heads * model.d_kv / 2)
    expected = [uniform, 0.2, UNIFORM_DEVIATION, into, back, 0.2, 0.2]  # 0.2: the version
    assert [round(number, 3) for number in expected] == stated


def test_the_editions_with_words_as_they_stand() -> None:
    paths = [ROOT / "treebanks" / "english-ptb.toml", *(ROOT / "treebanks").glob("*-spmrl.toml")]
    assert len(paths) == 10
    for path in paths:
        edition = read_manifest(path, "kk18")
        assert isinstance(edition, Manifest)
        assert edition.options["escapes"] == "none"
        functions = {"strip-functions", "strip-tag-functions"} & set(edition.transforms)
        assert not functions or path.stem == "english-ptb"  # whose files have none


def test_rates_and_positions_of_the_languages() -> None:
    (sentence,) = re.findall(r"At the published size `train.learning_rate` is [^|]*?arabic\.", KK18)
    rates, positions = sentence.split(";")
    for path in (ROOT / "treebanks").glob("*-spmrl.toml"):
        language = path.stem.removesuffix("-spmrl")
        config = resolved(language=language)
        stated = re.search(rf"([\d.]+) for [a-z ]*{language}", rates)
        assert float(stated[1] if stated else 0.0008) == config.train.learning_rate, language
        rows = flat(config.model)["max_positions"]
        assert rows == (1000 if language in positions else 300), language


# Head-driven structures and label attention -------------------------------------------------


def test_every_setting_of_label_attention_is_stated() -> None:
    stated = {key_of(row)[1] for row in rows_with(LAL, "setting", "default")}
    of_labels = {key for key in FLAT if key.startswith("label_")}
    assert of_labels - {"label_matrices"} <= stated


def test_variants_are_of_the_kinds_and_selected_by_the_figures_that_are_stated() -> None:
    for row in rows_with(LAL, "variant", "kind", "selected by"):
        name = row["variant"].strip("`")
        config = resolved(name, "small")
        assert config.kind == row["kind"].strip("`")
        assert SelectionMetric.parse(config.select).title == row["selected by"]
        assert [*config.model.encoder] == ["lstm"]
        learnt = {"constituents": "chart joint", "dependencies": "biaffine joint"}
        for layer, kinds in learnt.items():
            assert (layer in kind_named(config.kind).layers) == (config.kind in kinds.split())


def test_the_published_settings_of_its_variants() -> None:
    names = {"words": "word", "tags": "tag", "CharLSTM": "charlstm"}
    for row in rows_with(LAL, "published size", "lambda"):
        files = {"transformer": "somewhere"} if "transformer" in row["inputs"] else {}
        config = resolved(row["published size"].strip("`"), "published", **files)
        model, train = flat(config.model), config.train
        assert {*model["lexical"]} == {names.get(k, k) for k in row["inputs"].split(", ")}
        assert [model["layers"], model["span_weight"]] == [int(row["layers"]), float(row["lambda"])]
        found = (train.learning_rate, train.batch_size, train.max_epochs)
        assert found == (float(row["rate"]), int(row["batch"]), int(row["epochs at most"]))
        assert model["encoder"] == "attention"
        if files:
            stated = re.search(r"released scripts \(([^)]*)\)", LAL)[1]
            for key, value in re.findall(r"`(\w+) = ([^`]+)`", stated):
                assert model.get(key, value_of(value)) == value_of(value), key
                assert key in model or model["label_attention"] is False


# Stack attention ----------------------------------------------------------------------------


def test_settings_in_the_text_have_the_defaults_that_are_stated() -> None:
    found = re.findall(r"`model\.(\w+) = ([^`]+)`", STACK)
    assert {name for name, _ in found} == {"system", "nonprojective", "attention_layers", "beam"}
    for name, value in found:
        expected = value_of(value)
        assert known_settings()[f"model.{name}"].default == expected


def test_every_setting_of_its_own_is_named() -> None:
    decoder = [key for key, (place, *_) in FLAT.items() if place.startswith("decoder.")]
    for name in (*decoder, "system", "beam", "nonprojective"):
        assert f"`model.{name}" in STACK, name
    assert "arc-standard" in STACK


def test_sizes_are_those_that_are_stated() -> None:
    rows = re.findall(r"^\| `model\.(\w+)` \| ([\d.]+) \| ([\d.]+) \|$", STACK, re.MULTILINE)
    assert len(rows) == 5
    for size, column in (("published", 1), ("small", 2)):
        model = flat(resolved("stack-attention", size).model)
        for row in rows:
            assert model[row[0]] == float(row[column]), (size, row[0])
        assert model["encoder"] == "gru"


def test_the_published_settings_are_those_that_are_stated() -> None:
    config = resolved("stack-attention-published")
    settings = {**flat(config.model), **config.train.model_dump()}
    section = STACK[STACK.index("## Published settings") : STACK.index("## Sizes")]
    stated = dict(re.findall(r"`(\w+) = ([^`]+)`", section))
    assert len(stated) == 7
    for name, value in stated.items():
        assert settings[name] == value_of(value), name
    assert settings["lexical"] == ["word", "tag"]
    assert (settings["d_word"], settings["d_tag"], settings["layers"]) == (300, 32, 3)
    train = config.train
    assert (train.optimiser, train.learning_rate, train.gradient_norm) == ("sgd", 2.0, 1.0)
    assert (train.decay_batches, train.decay_factor) == (900, 0.5)
