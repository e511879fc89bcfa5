"""A package holds the parser as it was and a true card: the same bytes again, all or nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spmrl_bench.errors import PackageError, RecordError
from spmrl_bench.experiments.packaging import (
    best_of,
    licence_identifier,
    package_run,
    write_card,
    write_parser,
)
from spmrl_bench.experiments.recipe import LANGUAGES
from spmrl_bench.leaderboard.compare import find_record
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.kinds import trained_kinds
from spmrl_bench.parsing.models import CARD, PACKAGE, load_parser, read_package, trained_on
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names
from spmrl_bench.trees import Parse
from tests.builders import cli, config, refused
from tests.laboratory import Laboratory, make_trees
from tests.nn.tiny_transformers import make
from tests.packages.conftest import NAME, run_of

SENTENCES = [list(tree.words) for tree in make_trees(20, 77)] + [["unseen", "words"]]


@pytest.fixture(autouse=True)
def _treebanks(scored: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    scored.in_use(monkeypatch)


def packaged(scored: Laboratory, to: Path, **options: Any) -> Path:
    return package_run(run_of(scored), to, results=scored.folder / "results", **options)[0]


def parses(model: Path) -> list[str]:
    return [str(parse) for parse in load_parser(model, "cpu").parse(SENTENCES)]


def test_the_parser_is_the_same(scored: Laboratory, packages: Path) -> None:
    assert parses(packages / NAME) == parses(run_of(scored))
    assert trained_on(packages / NAME) == trained_on(run_of(scored))


def test_weights_can_be_rounded_to_half_the_size(
    scored: Laboratory, packages: Path, tmp_path: Path
) -> None:
    models = packages / NAME, packaged(scored, tmp_path, bf16=True)
    whole, rounded = (load_parser(model, "cpu").state_dict() for model in models)
    for name, tensor in whole.items():
        own = tensor.bfloat16() if tensor.is_floating_point() else tensor
        assert torch.equal(rounded[name], own.to(tensor.dtype))
    large, small = ((model / "weights.safetensors").stat().st_size for model in models)
    assert small < 0.7 * large
    texts = [(model / "README.md").read_text() for model in models]
    assert ["rounded to bfloat16" in text for text in texts] == [False, True]


def test_words_are_in_an_order_that_tells_nothing(scored: Laboratory, packages: Path) -> None:
    before, after = load_parser(run_of(scored), "cpu"), load_parser(packages / NAME, "cpu")
    words = list(after.vocabulary.words)
    assert words == sorted(before.vocabulary.words) != list(before.vocabulary.words)
    assert after.vocabulary.words == before.vocabulary.words
    for word, row in after.vocabulary.word_ids.items():
        table = before.lexical["word"].embedding.weight
        expected = table[before.vocabulary.word_ids[word]]
        assert torch.equal(after.lexical["word"].embedding.weight[row], expected)


def test_the_description_is_that_of_the_record(scored: Laboratory, packages: Path) -> None:
    record = find_record(str(run_of(scored)), scored.folder / "results")
    text = (packages / NAME / PACKAGE).read_text(encoding="utf-8")
    package = json.loads(text)
    scores, treebank = package["scores"], package["treebank"]
    assert scores["test"]["brackets"]["figures"]["f1"] == record.test.figure("brackets", "f1")
    assert scores["dev"]["brackets"]["signature"].startswith("scorer:own|match:labelled")
    assert treebank["sentences"] == {"train": [40], "dev": [8], "test": [6]}
    assert treebank["fingerprints"] == record.treebank.fingerprints
    day = record.finished.astimezone(UTC)
    assert package["version"] == f"{day.year}.{day.month}.{day.day}"
    assert package["license"] == "MIT"
    for name, stored in read_package(packages / NAME).files.items():
        data = (packages / NAME / name).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (stored.sha256, stored.size)
    assert str(scored.folder) not in text + (packages / NAME / "parser.json").read_text()


def test_the_card_is_what_the_hub_expects(scored: Laboratory, packages: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard.load(packages / NAME / CARD)
    data = card.data.to_dict()
    assert (data["license"], data["library_name"], data["datasets"]) == (
        "mit", "spmrl_bench", ["tiny-mini"]
    )  # fmt: skip
    assert "language" not in data  # of elves
    test = find_record(str(run_of(scored)), scored.folder / "results").test
    (result,) = (one for one in card.data.eval_results if one.metric_type == "f1")
    assert result.metric_value == round(test.figure("brackets", "f1") or 0, 2)
    assert (result.dataset_type, result.dataset_split) == ("tiny-mini", "test")
    for line in (
        "generated by a small grammar",
        f"| test | {test.figure('brackets', 'recall'):.2f} |",
        test.metrics["brackets"].signature_long,
        "A sentence has 30 words at most",
        "{{spmrl_bench contributors}}",
    ):
        assert line in card.text, line
    assert "licensed" not in card.text


@pytest.mark.parametrize("kind", [*trained_kinds()])
def test_cards_of_every_kind_can_be_read(packages: Path, kind: str) -> None:
    hub = pytest.importorskip("huggingface_hub")
    content = json.loads((packages / NAME / PACKAGE).read_text())
    attachment = {"figures": {"uas": 90.0, "las": 85.123}, "signature": "scorer:own|match:x"}
    scores = {"dev": {"attachment": attachment} | content["scores"]["dev"]}
    parser = SimpleNamespace(
        vocabulary=SimpleNamespace(words=dict.fromkeys(range(4321))),
        config=SimpleNamespace(label_attention={}, files=lambda: {"name": "e5-small"}),
        reads_tags=kind == "joint",
        predicts_tags=False,
        citations=("Lem (2018). Robots.",),
    )
    for language, code, licence, track, identifier in (
        ("german", "de", "CC BY-NC-SA 3.0", "open", "cc-by-nc-sa-3.0"),
        ("swedish", "sv", "Not | to be\nhanded on: 'x'", "ptb", "other"),
    ):
        treebank = content["treebank"] | {"language": language, "licence": licence, "track": track}
        treebank["redistributable"] = track != "ptb"
        treebank["sentences"] = {"train": [], "dev": [1, 2], "test": [3]}
        changes = {"kind": kind, "license": licence, "treebank": treebank, "scores": scores}
        card = hub.ModelCard(write_card(content | changes, parser, 1234567))
        data = card.data.to_dict()
        assert (data["language"], data["license"]) == ([code], identifier)
        names = {(one.metric_type, one.metric_name) for one in card.data.eval_results}
        assert {("accuracy", "LAS"), ("f1", "F1")} <= names
        assert ("4,321 words that occur in the training" in card.text) == (track == "ptb")
        assert "`spmrl-bench model fetch e5-small`" in card.text
        assert ("since the parser reads tags" in card.text) == parser.reads_tags
        assert "| dev | 90.00 | 85.12 |" in card.text or "| dev | 85.12 | 90.00 |" in card.text
        said = ("1,234,567 weights", "Lem (2018)", "test was not scored")
        for line in (*said, "train not stated, dev 1 or 2, test 3"):
            assert line in card.text


def test_the_same_run_gives_the_same_bytes(
    scored: Laboratory, packages: Path, tmp_path: Path
) -> None:
    again = packaged(scored, tmp_path)
    files = [path.relative_to(again) for path in again.rglob("*") if path.is_file()]
    assert len(files) == 6
    for path in files:
        assert (packages / NAME / path).read_bytes() == (again / path).read_bytes(), path


def test_what_fails_leaves_all_as_it_was(
    scored: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("../up", "a/b", "a" * 97, ".hidden", "dot.", "two words"):
        with pytest.raises(PackageError, match=r"--name .*: expected up to 96 letters"):
            packaged(scored, tmp_path, name=name)
    with pytest.raises(RecordError, match="'spmrl-bench eval'"):
        package_run(run_of(scored), tmp_path, results=tmp_path / "none")

    def broken(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spmrl_bench.experiments.packaging.write_card", broken)
    with pytest.raises(PackageError, match=r"No space left on device\. Make room"):
        packaged(scored, tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / NAME).mkdir()
    with pytest.raises(PackageError, match="is there; move it away, or choose another --to or"):
        packaged(scored, tmp_path)
    assert [*(tmp_path / NAME).iterdir()] == []


def test_licensed_treebanks_need_a_licence_and_warn(
    scored: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = scored.manifests / "tiny-mini.toml"
    text = manifest.read_text()
    try:
        manifest.write_text(
            text.replace('track = "mini"', 'track = "spmrl"')
            .replace('"MIT"', '"Ask the elves."')
            .replace("redistributable = true", "redistributable = false")
        )
        with pytest.raises(PackageError, match=r"'Ask the elves\.'.*--license"):
            packaged(scored, tmp_path)
        monkeypatch.chdir(scored.folder)
        licensed = ("--license", "cc-by-4.0")
        result = cli("model", "package", run_of(scored), "--to", tmp_path, *licensed)
        words = len(load_parser(run_of(scored), "cpu").vocabulary.words)
        assert result.exit_code == 0
        assert result.stdout == f"{tmp_path / NAME}\n"
        assert f"but the {words} words of its training split" in result.stderr
        card = (tmp_path / NAME / CARD).read_text()
        assert "**The treebank is licensed:** Ask the elves." in card
        assert f"the {words} words that occur in the training" in card
        assert 'license: "cc-by-4.0"\n' in card
    finally:
        manifest.write_text(text)


def test_of_several_runs_what_cannot_be_packaged_is_named(
    scored: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scored.folder)
    (tmp_path / "no run").mkdir()
    result = cli("model", "package", tmp_path / "no run", run_of(scored), "--to", tmp_path / "to")
    assert result.exit_code == 1
    assert str(tmp_path / "no run") in result.stderr
    assert [path.name for path in (tmp_path / "to").iterdir()] == [NAME]
    assert result.stdout == f"{tmp_path / 'to' / NAME}\n"
    options = ("--to", tmp_path / "to", "--name", "mine")
    assert "--name mine: of one run" in refused("model", "package", "a", "b", *options)


def test_of_several_runs_the_best_on_dev_is_chosen_with_an_encoder_and_without(
    scored: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {"worse": 70.0, "best": 80.0, "middle": 75.0, "read": 60.0, "read less": 50.0}
    for name in scores:
        copy = Path(shutil.copytree(run_of(scored), tmp_path / name))
        if name.startswith("read"):
            settings = json.loads((copy / "run.json").read_text())
            own = {"name": "e5-small", "layers": [3, 12], "dropout": 0.1}
            settings["model"]["inputs"] |= {"hidden_states": own}
            (copy / "run.json").write_text(json.dumps(settings))
    monkeypatch.setattr(
        "spmrl_bench.experiments.packaging.find_record",
        lambda run, _: SimpleNamespace(dev_score=scores[Path(run).name]),
    )
    best, errors = best_of([tmp_path / name for name in scores], tmp_path)
    assert ({path.name for path in best}, errors) == ({"best", "read"}, [])


def test_names_of_licences_and_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert licence_identifier("CC BY-NC-SA 3.0") == "cc-by-nc-sa-3.0"
    assert licence_identifier("CC BY 4.0 or later") == "cc-by-4.0"
    assert licence_identifier("MIT, with the program") is None
    monkeypatch.undo()
    assert {load_manifest(name).language for name in manifest_names()} == LANGUAGES.keys()


def test_weights_that_lie_elsewhere_are_not_packaged(
    scored: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(run_of(scored), tmp_path / "run"))
    settings = json.loads((copy / "run.json").read_text())
    vectors = {"file": "/home/elf/vectors.txt", "dropout": 0.1}
    settings["model"]["inputs"] |= {"vectors": vectors}
    (copy / "run.json").write_text(json.dumps(settings))
    record = find_record(str(run_of(scored)), scored.folder / "results")
    monkeypatch.setattr("spmrl_bench.experiments.packaging.find_record", lambda *_: record)
    with pytest.raises(PackageError, match=r"model\.vectors = /home/elf/vectors\.txt"):
        package_run(copy, tmp_path / "to")


def test_what_an_encoder_brings_along_is_listed_and_names_no_folder(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "run").mkdir()
    (tmp_path / "package").mkdir()
    encoder = make("bert", tmp_path / "elsewhere" / "bert")
    settings = config(lexical=["transformer"], transformer=str(encoder))
    trees = [Parse.of(tree) for tree in make_trees(10, 1)]
    ChartParser.build(settings, trees).save(tmp_path / "run")
    expected = parses(tmp_path / "run")
    files = write_parser(load_parser(tmp_path / "run", "cpu"), tmp_path / "package")
    assert {"parser.json", "weights.safetensors", "transformer/config.json"} <= files.keys()
    for name, stored in files.items():
        data = (tmp_path / "package" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == stored.sha256
        assert str(tmp_path).encode() not in data, name
    shutil.rmtree(tmp_path / "elsewhere")
    assert parses(tmp_path / "package") == expected
