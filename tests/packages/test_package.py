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

from spmrl_bench import load_parser
from spmrl_bench.errors import CheckpointError, PackageError, RecordError
from spmrl_bench.experiments.packaging import (
    LANGUAGES,
    licence_identifier,
    package_run,
    write_card,
    write_parser,
)
from spmrl_bench.leaderboard.compare import find_record
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.registry import trained_kinds
from spmrl_bench.parsing.models import trained_transforms
from spmrl_bench.parsing.packages import CARD, PACKAGE, Package, read_package
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names
from spmrl_bench.trees import Parse
from tests.builders import cli, config
from tests.laboratory import Laboratory, make_trees
from tests.nn.tiny_transformers import make
from tests.packages.conftest import NAME, in_use, run_of

SENTENCES = [list(tree.words) for tree in make_trees(20, 77)] + [["unseen", "words"]]


@pytest.fixture(autouse=True)
def _treebanks(scored: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    in_use(scored, monkeypatch)


def packaged(scored: Laboratory, to: Path, **options: Any) -> Path:
    return package_run(run_of(scored), to, results=scored.folder / "results", **options)[0]


def parses(model: Path) -> list[str]:
    return [str(parse) for parse in load_parser(model, "cpu").parse(SENTENCES)]


def test_the_parser_is_the_same_wherever_models_are_taken(
    scored: Laboratory, packages: Path
) -> None:
    from spmrl_bench.integrations.nltk_parser import NltkParser

    assert parses(packages / NAME) == parses(run_of(scored))
    assert trained_transforms(packages / NAME) == trained_transforms(run_of(scored))
    model, words = str(packages / NAME), SENTENCES[0]
    result = cli("parse", "--device", "cpu", "--model", model, stdin=" ".join(words))
    assert (result.exit_code, result.stdout.strip()) == (0, parses(packages / NAME)[0])
    assert NltkParser(model, device="cpu").parse_one(words).leaves() == words


def test_what_is_not_there(tmp_path: Path) -> None:
    for name in ("nothing", "nothing/here", "spmrl_bench_nothing"):
        with pytest.raises(CheckpointError, match=f"{name}: no trained parser here.*@COMMIT"):
            load_parser(name, "cpu")
    (tmp_path / "model.zip").write_text("text")
    with pytest.raises(CheckpointError, match=r"model\.zip: no trained parser here \(a file"):
        load_parser(tmp_path / "model.zip", "cpu")


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
    package = read_package(packages / NAME)
    assert package.scores["test"]["brackets"].figures["f1"] == record.test.figure("brackets", "f1")
    assert package.scores["dev"]["brackets"].signature.startswith("scorer:own|match:labelled")
    assert package.treebank.sentences == {"train": [40], "dev": [8], "test": [6]}
    assert package.treebank.fingerprints == record.treebank.fingerprints
    day = record.finished.astimezone(UTC)
    assert package.version == f"{day.year}.{day.month}.{day.day}"
    assert package.license == "MIT"
    for name, stored in package.files.items():
        data = (packages / NAME / name).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (stored.sha256, stored.size)
    text = (packages / NAME / PACKAGE).read_text() + (packages / NAME / "parser.json").read_text()
    assert str(scored.folder) not in text


def test_the_card_is_what_the_hub_expects(scored: Laboratory, packages: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    card = hub.ModelCard.load(packages / NAME / CARD)
    data = card.data.to_dict()
    assert data["license"] == "mit"
    assert data["library_name"] == "spmrl_bench"
    assert data["datasets"] == ["tiny-mini"]
    assert "language" not in data  # of elves
    assert {"spmrl_bench", "constituency-parsing"} <= set(data["tags"])
    record = find_record(str(run_of(scored)), scored.folder / "results")
    f1 = record.test.figure("brackets", "f1")
    (result,) = (one for one in card.data.eval_results if one.metric_type == "f1")
    assert result.metric_value == round(f1 or 0, 2)
    assert (result.dataset_type, result.dataset_split) == ("tiny-mini", "test")
    for line in (
        "generated by a small grammar",
        f"| test | {record.test.figure('brackets', 'recall'):.2f} |",
        record.test.metrics["brackets"].signature_long,
        record.treebank.fingerprints["constituents"],
        "train 40, dev 8, test 6",
        "A sentence has 30 words at most",
        "{{spmrl_bench contributors}}",
    ):
        assert line in card.text, line
    assert "licensed" not in card.text


CHANGES: dict[str, dict[str, Any]] = {
    "german": {"language": "german", "licence": "CC BY-NC-SA 3.0", "track": "open"},
    "licensed": {"language": "swedish", "licence": "Not | to be\nhanded on: 'x'", "track": "ptb"},
}


@pytest.mark.parametrize("kind", [*trained_kinds()])
@pytest.mark.parametrize("change", CHANGES)
def test_cards_of_every_kind_can_be_read(packages: Path, kind: str, change: str) -> None:
    hub = pytest.importorskip("huggingface_hub")
    content = json.loads((packages / NAME / PACKAGE).read_text())
    treebank = content["treebank"] | CHANGES[change] | {"sentences": {"train": [], "dev": [1, 2]}}
    treebank["sentences"]["test"] = [3]
    attachment = {"figures": {"uas": 90.0, "las": 85.123}, "signature": "scorer:own|match:x"}
    content |= {"kind": kind, "license": treebank["licence"], "treebank": treebank}
    content["scores"] = {"dev": {"attachment": attachment} | content["scores"]["dev"]}
    for tags in (True, False):
        parser = SimpleNamespace(
            vocabulary=SimpleNamespace(words=dict.fromkeys(range(4321))),
            config=SimpleNamespace(label_attention={}),
            reads_tags=tags,
            predicts_tags=not tags,
            citations=("Lem (2018). Robots.",),
        )
        card = hub.ModelCard(write_card(Package.model_validate(content), parser, 1234567))
        data = card.data.to_dict()
        assert data["language"] == {"german": ["de"], "licensed": ["sv"]}[change]
        assert data["license"] == {"german": "cc-by-nc-sa-3.0", "licensed": "other"}[change]
        assert ("4,321 words that occur in the training" in card.text) == (change == "licensed")
        names = {(one.metric_type, one.metric_name) for one in card.data.eval_results}
        assert {("accuracy", "LAS"), ("f1", "F1")} <= names
        assert "train not stated, dev 1 or 2, test 3" in card.text
        assert ("since the parser reads tags" in card.text) == tags
        assert "test was not scored" in card.text
        assert "| dev | 90.00 | 85.12 |" in card.text or "| dev | 85.12 | 90.00 |" in card.text
        assert all(name in card.text for name in ("1,234,567 weights", "Lem (2018)"))


def test_the_same_run_gives_the_same_bytes(
    scored: Laboratory, packages: Path, tmp_path: Path
) -> None:
    again = packaged(scored, tmp_path)
    files = [path.relative_to(again) for path in again.rglob("*") if path.is_file()]
    assert len(files) == 5
    for path in files:
        assert (packages / NAME / path).read_bytes() == (again / path).read_bytes(), path


def test_nothing_but_a_package_is_replaced(scored: Laboratory, tmp_path: Path) -> None:
    folder = packaged(scored, tmp_path)
    (folder / ".git").mkdir()
    packaged(scored, tmp_path)  # an empty folder holds nothing
    (folder / ".git").mkdir(exist_ok=True)
    (folder / ".git" / "config").write_text("mine")
    with pytest.raises(PackageError, match=r"has \.git/config, which is not of a package"):
        packaged(scored, tmp_path)
    assert (folder / ".git" / "config").read_text() == "mine"
    (tmp_path / "a_file").write_text("")
    with pytest.raises(PackageError, match="is no folder"):
        packaged(scored, tmp_path, name="a_file")


def test_what_fails_leaves_nothing(
    scored: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.experiments.packaging.write_card", broken)
        with pytest.raises(PackageError, match=r"No space left on device\. Make room"):
            packaged(scored, tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == []


def test_names_that_will_not_do(scored: Laboratory, tmp_path: Path) -> None:
    for name in ("../up", "a/b", "a" * 97, ".hidden", "dot.", "two words"):
        with pytest.raises(PackageError, match=r"--name .*: expected up to 96 letters"):
            packaged(scored, tmp_path, name=name)
        assert list(tmp_path.iterdir()) == []


def test_a_run_without_record_is_refused(scored: Laboratory, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="'spmrl-bench eval'"):
        package_run(run_of(scored), tmp_path, results=tmp_path / "none")


def test_licensed_treebanks_need_a_licence_and_warn(
    scored: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = scored.manifests / "tiny-mini.toml"
    text = manifest.read_text()
    try:
        manifest.write_text(
            text.replace('track = "mini"', 'track = "spmrl"').replace('"MIT"', '"Ask the elves."')
        )
        with pytest.raises(PackageError, match=r"'Ask the elves\.'.*--license"):
            packaged(scored, tmp_path)
        monkeypatch.chdir(scored.folder)
        options = ["package", str(run_of(scored)), "--to", str(tmp_path), "--license", "cc-by-4.0"]
        result = cli(*options)
        words = len(load_parser(run_of(scored), "cpu").vocabulary.words)
        assert result.exit_code == 0
        assert result.stdout == f"{tmp_path / NAME}\n"
        assert f"but the {words} words of its training split" in result.stderr
        card = (tmp_path / NAME / CARD).read_text()
        assert "**The treebank is licensed:** Ask the elves." in card
        assert f"has the {words} words that occur in the training" in card
        assert 'license: "cc-by-4.0"\n' in card
    finally:
        manifest.write_text(text)


def test_an_open_licence_is_the_default_where_it_has_a_name() -> None:
    assert licence_identifier("CC BY-NC-SA 3.0") == "cc-by-nc-sa-3.0"
    assert licence_identifier("Apache-2.0") == "apache-2.0"
    assert licence_identifier("MIT, with the program") is None
    assert licence_identifier("unknown: fill in what the release says") is None


def test_every_language_of_the_program_has_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    languages = {load_manifest(name).language for name in manifest_names()}
    assert len(languages) > 15
    assert languages == LANGUAGES.keys()


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
    encoder = make("bert", tmp_path / "elsewhere" / "bert")
    settings = config(lexical=["transformer"], transformer=str(encoder))
    trees = [Parse.of(tree) for tree in make_trees(10, 1)]
    ChartParser.build(settings, trees).save(made(tmp_path / "run"))
    expected = parses(tmp_path / "run")
    files = write_parser(load_parser(tmp_path / "run", "cpu"), made(tmp_path / "package"))
    assert {"parser.json", "weights.safetensors", "transformer/config.json"} <= files.keys()
    for name, stored in files.items():
        data = (tmp_path / "package" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == stored.sha256
        assert str(tmp_path).encode() not in data, name
    shutil.rmtree(tmp_path / "elsewhere")
    assert parses(tmp_path / "package") == expected


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
