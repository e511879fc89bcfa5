"""The values that the page on Kitaev & Klein 2018 states are those of the program."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spmrl_bench.experiments.recipe import RunConfig, load_recipe
from spmrl_bench.experiments.reference import settings_named
from spmrl_bench.nn.encoders.self_attention import UNIFORM_DEVIATION
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.config import parts
from spmrl_bench.parsers.legacy import chosen, dotted, in_tables, short
from spmrl_bench.training.schedule import Progress, learning_rate
from spmrl_bench.training.train_config import TrainConfig
from spmrl_bench.treebanks.catalogue import read_manifest
from spmrl_bench.treebanks.manifest import Manifest
from tests.builders import flat

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "kk18.md").read_text(encoding="utf-8")
SECTIONS = ("model", "train")
SETTING = re.compile(r"`(model|train)\.([a-z_]+)( = [^`]+)?`")


def flattened(model: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a layer by their short names."""
    return short(dotted(model))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables() -> list[list[dict[str, str]]]:
    """Each table of the page as rows by column."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        header, rule, *lines = block.strip().splitlines()
        assert set(rule) <= set("|-"), rule
        rows = [cells(line) for line in lines]
        assert all(len(row) == len(cells(header)) for row in rows), header
        found.append([dict(zip(cells(header), row, strict=True)) for row in rows])
    return found


def rows_with(*columns: str) -> list[dict[str, str]]:
    """Rows of the tables that have these columns."""
    found = [row for table in tables() for row in table if set(columns) <= set(row)]
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


def resolved(language: str) -> RunConfig:
    """The settings of a run of the published size."""
    return load_recipe(language).resolve(
        treebank="any",
        track="spmrl",
        fingerprints={"constituents": ""},
        variant="charlstm",
        size="published",
    )


def test_values_of_both_sizes_are_those_of_the_recipe() -> None:
    stated = {}
    for row in rows_with("setting", "published", "small"):
        section, name = key_of(row)
        for size in ("published", "small"):
            stated[size, section, name] = value_of(row[size])
    expected = {}
    for size, sections in load_recipe("english").base.size.items():
        # What other kinds add is not of this paper.
        model = {k: v for k, v in sections.model.items() if k not in ("dependencies", "decoder")}
        expected |= {(size, "model", k): v for k, v in flattened(model).items()}
        train = sections.train.model_dump(exclude_unset=True)
        expected |= {
            (size, "train", k): list(v) if isinstance(v, tuple) else v for k, v in train.items()
        }
    assert stated == expected


def test_other_settings_have_the_defaults_that_are_stated() -> None:
    for row in rows_with("setting", "default"):
        section, name = key_of(row)
        entry = settings_named([f"{section}.{name}"])[0].entry
        assert value_of(row["default"]) == entry.default, name


def test_values_that_are_recommended_are_allowed() -> None:
    """Such as `model.matrices = "full"`, somewhere in the text; those of a line stand together."""
    given = resolved("english")
    found, tables = 0, parts(ChartParser.Config)
    for line in PAGE.splitlines():
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
    code = re.findall(r"`(model|train)\.([a-z_]+) = ([^`]+)`(?: is|,) (?:the code's|that of)", PAGE)
    assert {name for _, name, _ in code} >= {
        "attention_start", "decay_patience", "forward_features", "warmup_counts"
    }  # fmt: skip
    english = resolved("english")
    own = {"model": flat(english.model), "train": english.train.model_dump()}
    for section, name, value in code:
        assert own[section][name] != value_of(value), name


def test_every_place_is_there() -> None:
    rows = [row for table in tables() for row in table if "place" in row]
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
    config = resolved("english").train.model_copy(update={"batch_size": size, **settings})
    progress = Progress()
    while learning_rate(config, progress) < config.learning_rate:
        progress.sentences += min(size, corpus - progress.sentences % corpus)
        progress.steps += 1
    return progress.steps + 1


def test_lengths_of_the_warmup() -> None:
    stated = re.findall(r"(\d+) steps for ([\d,]+) sentences in batches of (\d+)", PAGE)
    assert len(stated) == 3
    for steps, corpus, size in stated:
        numbers = int(corpus.replace(",", "")), int(size)
        assert steps_of_warmup(*numbers, warmup_counts="sentences") == int(steps)
        assert steps_of_warmup(*numbers) == resolved("english").train.warmup_batches == 160


def test_deviations_of_the_weights_at_the_start() -> None:
    model = resolved("english").model
    model = model.encoder["attention"]
    (row,) = (row for row in rows_with("point", "code") if row["point"].startswith("attention w"))
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
    (sentence,) = re.findall(r"At the published size `train.learning_rate` is [^|]*?arabic\.", PAGE)
    rates, positions = sentence.split(";")
    for path in (ROOT / "treebanks").glob("*-spmrl.toml"):
        language = path.stem.removesuffix("-spmrl")
        config = resolved(language)
        stated = re.search(rf"([\d.]+) for [a-z ]*{language}", rates)
        assert float(stated[1] if stated else 0.0008) == config.train.learning_rate, language
        rows = flat(config.model)["max_positions"]
        assert rows == (1000 if language in positions else 300), language
