"""Study files: what those of the program say, and what a file may not say."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from spmrl_bench.analysis.definition import Study, StudyRow, load_study, study_names
from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.recipe import SettingsLayer, load_recipe
from spmrl_bench.parsers.legacy import dotted, short
from spmrl_bench.reference.settings import changed_by
from tests.conftest import shared_data

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


# The studies of the program -------------------------------------------------------------


def test_every_published_figure_has_a_source() -> None:
    for name in study_names():
        found = load_study(name)
        named = re.search("P18-1249|Mrini et al. 2020|D17-1175", found.source)
        assert named or not any(row.published for row in found.rows), name
        assert (found.figure == "windows") == name.endswith("windows")


def test_the_small_size_is_studied_with_the_settings_of_its_variants() -> None:
    found, variants = load_study("small-size"), load_recipe("german").variants
    named = {}
    for row in found.rows:
        if match := re.search(r"\((.*)\)", row.name):
            named[match[1]] = (found.inputs(row), found.settings(row))
    assert named.keys() == {"word-charlstm", "bilstm"}
    for name, (inputs, settings) in named.items():
        assert inputs == variants[name].inputs
        like = variants[name].like
        own = {}
        for variant in ([variants[like]] if like else []) + [variants[name]]:
            for layer in (variant, variant.size.get("small", SettingsLayer())):
                own |= changed_by(layer)
        model = {key[6:]: value for key, value in settings.items() if key.startswith("model.")}
        train = {key: value for key, value in settings.items() if key.startswith("train.")}
        assert own == changed_by(SettingsLayer(model=model)) | train


def published(pattern: str) -> dict[tuple[str, ...], float]:
    """Dev F1 of the paper by the groups of a pattern of its setting, as collected elsewhere."""
    found = {}
    path = shared_data("published/constituency.csv")
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            match = re.fullmatch(pattern, row["setting"])
            of_paper = row["source"].startswith("Kitaev & Klein 2018")
            if match and of_paper and (row["split"], row["metric"]) == ("dev", "F1"):
                found[(row["system"], *match.groups(""))] = float(row["value"])
    return found


def test_label_attention_has_the_figures_of_tables_1_and_2() -> None:
    forms = {"yes": {}, "no": {"label_feed_forward": "none"}}
    drops = {"yes": {"label_residual_dropout": 0.2}, "no": {}}
    asked = {"yes": {}, "no": {"label_queries": "matrices"}}
    joined = {"yes": {}, "no": {"label_outputs": "projected"}}
    expected = {}
    with shared_data("published/constituency.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            setting, value = row["setting"], float(row["value"])
            if row["system"] != "LAL-Parser" or row["metric"] != "F1":
                continue
            if one := re.search(r"feed-forward=(\w+); residual dropout in LAL=(\w+)", setting):
                expected[json.dumps({**drops[one[2]], **forms[one[1]]}, sort_keys=True)] = value
            if two := re.search(r"query vectors=(\w+); concatenation of heads=(\w+)", setting):
                expected[json.dumps({**asked[two[1]], **joined[two[2]]}, sort_keys=True)] = value
    study = load_study("label-attention")
    stated = {
        json.dumps(short(dotted(row.model)), sort_keys=True): row.published
        for row in study.rows
        if row.published
    }
    assert len(expected) == 7
    assert stated == expected
    assert [row.name for row in study.rows if not row.published] == ["no label attention"]


def test_a_row_names_inputs_or_a_variant(tmp_path: Path) -> None:
    study = load_study("label-attention")
    assert {study.variant(row) for row in study.rows} == {"label-attention", "joint"}
    assert study.variant(StudyRow(name="x", lexical=("word", "tag"))) == "word-tag"
    with pytest.raises(ValueError, match="lexical and variant stand together"):
        Study.model_validate(
            {
                **dict.fromkeys(("name", "title", "source", "measured"), "text"),
                "metric": "brackets.f1",
                "reference": "x",
                "rows": [{"name": "x", "variant": "joint", "lexical": ["word"]}],
            }
        )


def test_ablation_has_the_figures_of_table_1() -> None:
    layers = {"all": "all 8", "none": "none"}
    layers |= {"first half": "first 4 only", "last half": "last 4 only"}
    layers |= {"first 3/4": "first 6 only", "last 3/4": "last 6 only"}
    theirs = published(
        "test-time ablation: content attention in layers=(.*); position attention in layers=(.*)"
    )
    ours = {}
    for row in load_study("test-time-ablation").rows:
        shares = (row.limit.content, row.limit.position)
        assert row.name == f"content: {shares[0]}, position: {shares[1]}"
        key = [layers[share] for share in shares if isinstance(share, str)]
        ours["K&K18 factored", *key] = row.published
    assert ours == theirs


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("test-time-windows", "test-time window"),
        ("trained-windows", "window at training and test time"),
    ],
)
def test_windows_have_the_figures_of_tables_2_and_3(name: str, setting: str) -> None:
    theirs = published(setting + r", distance (\w+)(?:, (strict|relaxed).*)?")
    found = load_study(name)
    ours = {}
    for row in found.rows:
        settings = found.settings(row)
        window = row.limit.window or settings.get("model.attention.window")
        relaxed = row.limit.relaxed or settings.get("model.attention.relaxed_window", False)
        kind = "relaxed" if relaxed else "strict"
        ours["K&K18 factored", str(window or "infinite"), kind if window else ""] = row.published
        assert row.name == (f"window {window}, {kind}" if window else "no window")
    assert ours == theirs


def test_inputs_have_the_figures_of_table_4() -> None:
    names = {"none": (), "predicted tags": ("tag",)}
    names |= {"CharLSTM": ("charlstm",), "CharConcat": ("charconcat",)}
    rows = published("lexical model: morphology=(.*); learned word embeddings=(yes|no)")
    theirs = {
        (("word",) if words == "yes" else ()) + names[morphology]: value
        for (_, morphology, words), value in rows.items()
    }
    found = load_study("lexical")
    as_given = [row for row in found.rows if "model.predict_tags" not in found.settings(row)]
    ours = {found.inputs(row): row.published for row in as_given}
    assert {inputs: ours[inputs] for inputs in theirs} == theirs
    rest = {inputs for inputs, value in ours.items() if value is not None and inputs not in theirs}
    assert rest == {("elmo",)}


def test_encoders_have_the_figures_of_table_5_and_section_3() -> None:
    table = published("encoder comparison")
    section = published(".*(?:derived|matrices|parameter count).*")
    assert {row.name: row.published for row in load_study("encoders").rows} == {
        "LSTM": table[("LSTM encoder (Gaddy et al. 2018)",)],
        "unfactored": table[("K&K18 base (unfactored)",)],
        "factored": table[("K&K18 factored",)],
        "factored, CharLSTM instead of words and tags": table[("K&K18 factored + CharLSTM",)],
        "unfactored, attention to positions only": section[("K&K18 position-only attention",)],
        "position concatenated, full matrices": section[
            ("K&K18 concatenated inputs, unfactored weights",)
        ],
        "position added, block-sparse matrices": section[
            ("K&K18 block-sparse weights, additive inputs",)
        ],
        "factored, sinusoidal positions": None,
    }


# Mistakes -------------------------------------------------------------------------------


def test_unknown_study_lists_near_names() -> None:
    with pytest.raises(
        RecipeError, match=r"unknown study 'encodrs'. Did you mean encoders.*\? Known"
    ):
        load_study("encodrs")
    with pytest.raises(RecipeError, match=r"^none\.toml: no such study file$"):
        load_study("none.toml")


def test_all_mistakes_are_reported_at_once_with_their_keys(tmp_path: Path) -> None:
    text = (
        SMALL.replace("brackets.f1", "brackets.f2")
        + "limit = { windo = 3 }\nmodle = 1\npublished = 101\n"
    )
    found = mistakes(text, tmp_path)
    assert found[0].startswith("metric: 'brackets.f2': metric brackets has no figure 'f2'; it has ")
    assert found[1].startswith("rows.1.limit.windo: unknown key. Did you mean window? Known: ")
    assert found[3].startswith("rows.1.modle: unknown key. Did you mean model? Known: ")
    assert found[2] == "rows.1.published: input should be less than or equal to 100; found 101"


def test_a_mistake_in_a_row_is_one_line(tmp_path: Path) -> None:
    for line, message in (
        ('limit = { content = "first third" }', "rows.1.limit.content: layers are 'all', 'none', "),
        ("limit = { content = [-1] }", "rows.1.limit.content: layers are 'all', 'none', "),
        ("limit = { relaxed = true }", "rows.1.limit: relaxed and layers say something of a win"),
        ("lexical = []", "rows.1.lexical: name one input or more"),
        ('lexical = ["words"]', "rows.1.lexical: unknown lexical input 'words'. Did you mean"),
        ("model = { layer = 3 }", "rows.1.model.layer: unknown key. Did you mean layers"),
        ("train = { max_epochs = 0 }", "rows.1.train.max_epochs: input should be greater than or"),
    ):
        (found,) = mistakes(f"{SMALL}{line}\n", tmp_path)
        assert found.startswith(message)


def test_rows_have_names_of_their_own_and_the_reference_is_one_of_them(tmp_path: Path) -> None:
    twice = SMALL.replace('name = "two"', 'name = "one"')
    assert mistakes(twice, tmp_path)[0].startswith(
        "(the whole file): several rows are called 'one'"
    )
    none = SMALL.replace('reference = "one"', 'reference = "onne"')
    (message,) = mistakes(none, tmp_path)
    assert "unknown row 'onne'. Did you mean one?" in message


def test_a_study_measures_by_any_figure(tmp_path: Path) -> None:
    for metric, measure in (
        ("brackets", "dev F1"),
        ("brackets.recall", "dev recall"),
        ("attachment.uas", "dev UAS"),
        ("brackets.f1 + attachment.las", "dev F1 + LAS"),
        ("dev F1", "dev F1"),  # as studies were written when there was nothing else to measure
    ):
        assert study(SMALL.replace("brackets.f1", metric), tmp_path).measure == measure


def test_a_row_wins_over_what_all_share(tmp_path: Path) -> None:
    shared = '[shared]\nlexical = ["word"]\nmodel = { layers = 2, heads = 3 }\n\n[[rows]]'
    text = SMALL.replace("[[rows]]", shared, 1) + 'lexical = ["tag"]\nmodel = { layers = 5 }\n'
    found = study(text, tmp_path)
    assert [found.inputs(row) for row in found.rows] == [("word",), ("tag",)]
    assert found.settings(found.rows[0]) == {"model.layers": 2, "model.heads": 3}
    assert found.settings(found.rows[1]) == {"model.layers": 5, "model.heads": 3}


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


def test_the_example_of_the_documentation_is_a_study(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "experiments.md"
    (text,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    found = study(text, tmp_path)
    assert found.settings(found.rows[1]) == {"model.heads": 1, "model.d_kv": 256}
    assert found.rows[2].limit.layers == "last half"
