"""Runs: which treebank, which variant, what is scored when, and what a record says."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import (
    CheckpointError,
    ReadError,
    RecipeError,
    SentenceTooLongError,
    TreebankError,
)
from spmrl_bench.experiments import run
from spmrl_bench.experiments.evaluation import Evaluated, baseline_counts, evaluate_parser
from spmrl_bench.experiments.find_record import find_record
from spmrl_bench.experiments.plan import Plan, make_plan
from spmrl_bench.leaderboard.record import Record, read_records
from spmrl_bench.leaderboard.table import group_records
from spmrl_bench.parsers.decoding import decode_blocks
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.registry import load_parser
from spmrl_bench.treebanks.treebank import open_treebank
from tests.laboratory import MODEL, QUICK, SIZES, TRAIN, Laboratory, build_laboratory

RUNS, RESULTS = Path("runs"), Path("results")
FOLDERS = [RUNS / "tiny-open" / f"small-{name}-seed1" for name in ("charlstm", "word-charlstm")]
FIRST = FOLDERS[0]


def train(
    laboratory: Laboratory,
    *,
    runs_dir: Path = RUNS,
    device: str = "auto",
    fresh: bool = False,
    **options: Any,
) -> list[Path]:
    work = plan(laboratory, **options)
    return run.train(work, runs_dir=runs_dir, device=device, fresh=fresh)


def evaluate(
    laboratory: Laboratory, *, device: str = "auto", ensemble: bool = False, **options: Any
) -> list[Record]:
    work = plan(laboratory, **options)
    return run.evaluate(work, runs_dir=RUNS, results_dir=RESULTS, device=device, ensemble=ensemble)


def plan(laboratory: Laboratory, **options: Any) -> Plan:
    return make_plan(str(laboratory.recipe), **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of both variants, for copying."""
    folder = tmp_path_factory.mktemp("finished")
    built = build_laboratory(folder / "laboratory")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda _: [built.manifests])
        patch.setenv("TREEBANKS", str(built.treebanks))
        train(built, runs_dir=folder / "runs")
    return folder / "runs"


@pytest.fixture
def trained(laboratory: Laboratory, finished: Path) -> Laboratory:
    """A laboratory where both variants are trained; their folders are in FOLDERS."""
    shutil.copytree(finished, RUNS)
    return laboratory


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The treebank ---------------------------------------------------------------------------


def test_first_present_treebank_is_used_and_the_choice_explained(laboratory: Laboratory) -> None:
    chosen = plan(laboratory)
    assert chosen.treebank.name == "tiny-open"
    assert chosen.note == "using tiny-open, track open (tiny-licensed not present)"
    assert [config.variant for config in chosen.configs] == ["charlstm", "word-charlstm"]
    assert {config.fingerprint for config in chosen.configs} == {chosen.treebank.fingerprint}


def test_licensed_treebank_is_preferred_once_it_is_there(laboratory: Laboratory) -> None:
    laboratory.write_treebank("tiny-licensed", "spmrl")
    assert plan(laboratory).note == "using tiny-licensed, track spmrl"


def test_track_and_name_choose(laboratory: Laboratory) -> None:
    assert plan(laboratory, track="mini").note == "using tiny-mini, track mini"
    assert plan(laboratory, treebank="tiny-mini").note == "using tiny-mini, as asked"


@pytest.mark.parametrize("options", [{"track": "spmrl"}, {"treebank": "tiny-licensed"}])
def test_absent_licensed_treebank_says_where_and_how(
    laboratory: Laboratory, options: dict[str, str]
) -> None:
    with pytest.raises(TreebankError) as caught:
        plan(laboratory, **options)
    message = str(caught.value)
    assert message.startswith("treebank tiny-licensed is not present\n")
    assert f"looked in: {laboratory.treebanks}/tiny-licensed" in message
    assert "how to get it: Ask the elves." in message
    assert "present for elvish: tiny-mini, tiny-open" in message


def test_no_treebank_at_all_lists_every_place(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TREEBANKS")
    with pytest.raises(TreebankError) as caught:
        plan(laboratory)
    lines = str(caught.value).splitlines()
    assert lines[0] == "no treebank of recipe elvish is present"
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "tiny-licensed", "tiny-open", "tiny-mini"
    ]  # fmt: skip
    assert all("TREEBANKS is not set" in line for line in lines[1:])


def test_unknown_names(laboratory: Laboratory) -> None:
    with pytest.raises(RecipeError, match=r"unknown track 'opne'. Did you mean open\?"):
        plan(laboratory, track="opne")
    with pytest.raises(TreebankError, match=r"tiny-opne.*tiny-open"):
        plan(laboratory, treebank="tiny-opne")
    laboratory.write_recipe(["tiny-opne"])
    with pytest.raises(RecipeError, match=r"elvish.toml: unknown treebank 'tiny-opne'. Did you m"):
        plan(laboratory)


def test_a_variant_named_twice_is_one_run(laboratory: Laboratory) -> None:
    assert len(plan(laboratory, variants=["charlstm", "charlstm"]).configs) == 1


def test_files_with_other_counts_are_refused(laboratory: Laboratory) -> None:
    path = laboratory.treebanks / "tiny-open" / "train.mrg"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]), encoding="utf-8")
    with pytest.raises(TreebankError, match="expected 40 sentences, found 39"):
        train(laboratory)
    assert not RUNS.exists()


# Training -------------------------------------------------------------------------------


def test_every_variant_has_a_folder_that_says_how_it_was_trained(laboratory: Laboratory) -> None:
    folders = train(laboratory, seeds=[3])
    assert folders == [
        RUNS / "tiny-open" / f"small-{variant}-seed3" for variant in ("charlstm", "word-charlstm")
    ]
    for folder, config in zip(folders, plan(laboratory, seeds=[3]).configs, strict=True):
        noted = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert noted == config.model_dump(mode="json")
        start = json.loads((folder / "events.jsonl").read_text(encoding="utf-8").splitlines()[0])
        assert (start["event"], start["settings"]) == ("start", noted)
        (tree,) = load_parser(folder).parse([["the", "dog", "sees"]])
        assert tree.words == ("the", "dog", "sees")


def test_a_finished_run_is_left_alone_and_a_fresh_one_trained_anew(
    trained: Laboratory, capsys: pytest.CaptureFixture[str]
) -> None:
    (FIRST / "mine.txt").write_text("mine", encoding="utf-8")
    before = everything(FIRST)
    capsys.readouterr()
    train(trained, variants=["charlstm"])
    assert everything(FIRST) == before
    assert "tiny-open charlstm seed 1: already trained, best dev F1 " in capsys.readouterr().err

    train(trained, variants=["charlstm"], fresh=True)
    after = everything(FIRST)
    assert before.keys() - after.keys() == {FIRST / "mine.txt"}
    weights = FIRST / "best" / "weights.safetensors"
    assert after[weights] == before[weights]
    assert after[FIRST / "events.jsonl"] != before[FIRST / "events.jsonl"]


def test_other_settings_in_the_folder_are_listed(trained: Laboratory) -> None:
    before = everything(FIRST)
    trained.write_base(
        size__small__model=MODEL | {"d_ff": 8}, size__small__train=TRAIN | QUICK | {"max_epochs": 3}
    )
    for work in (train, evaluate):
        with pytest.raises(CheckpointError) as caught:
            work(trained, variants=["charlstm"])
        assert str(caught.value) == (
            f"{FIRST}: holds a run with other settings: model.d_ff is 16 there, 8 now; "
            "train.max_epochs is 1 there, 3 now. "
            "Start anew with --fresh, choose another --runs folder, or give the earlier settings"
        )
    assert everything(FIRST) == before
    train(trained, variants=["charlstm"], fresh=True)


def test_another_treebank_content_is_another_run(trained: Laboratory) -> None:
    path = trained.treebanks / "tiny-open" / "dev.mrg"
    path.write_text(path.read_text().replace("dog", "cat"), encoding="utf-8")
    with pytest.raises(CheckpointError, match="other settings: fingerprint is"):
        train(trained, variants=["charlstm"])


@pytest.mark.parametrize("text", ["{", "[]", "\0"])
def test_broken_run_settings_are_named(trained: Laboratory, text: str) -> None:
    (FIRST / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"run\.json: not .*Start anew with --fresh"):
        train(trained, variants=["charlstm"])
    train(trained, variants=["charlstm"], fresh=True)


def test_runs_folder_that_cannot_be_written(laboratory: Laboratory) -> None:
    RUNS.write_text("a file", encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be written: Not a directory"):
        train(laboratory)


@pytest.mark.parametrize("split", SIZES)
def test_sentence_beyond_the_position_table_is_found_before_training(
    laboratory: Laboratory, split: str
) -> None:
    path = laboratory.treebanks / "tiny-open" / f"{split}.mrg"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[-1] = f"(S (NP {'(DT the) ' * 40}(NN dog)) (VBZ sees))"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(SentenceTooLongError, match=r"of 42 words.*table allows 30.*max_positions"):
        train(laboratory)
    assert not RUNS.exists()


@pytest.mark.parametrize("split", SIZES)
def test_malformed_treebank_loses_nothing_even_with_fresh(trained: Laboratory, split: str) -> None:
    before = everything(FIRST)
    path = trained.treebanks / "tiny-open" / f"{split}.mrg"
    path.write_text("(S (NP (DT the", encoding="utf-8")
    with pytest.raises(ReadError, match=rf"{split}\.mrg:1"):
        train(trained, variants=["charlstm"], fresh=True)
    assert everything(FIRST) == before


# Selection and scoring ------------------------------------------------------------------


@pytest.fixture
def splits_parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of sentences of the splits that ``evaluate`` parses."""
    found: list[int] = []

    def watched(parser: Any, gold: Any, prm: str) -> Evaluated:
        found.append(len(gold))
        return evaluate_parser(parser, gold, prm)

    monkeypatch.setattr(run, "evaluate_parser", watched)
    return found


def pretend_dev_f1(folder: Path, f1: float) -> None:
    """Let a finished run have had another best dev F1."""
    path = folder / "last" / "progress.json"
    progress = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(progress | {"best_dev_f1": f1}), encoding="utf-8")


@pytest.mark.parametrize(
    ("f1", "selected"),
    [((50.0, 60.0), "word-charlstm"), ((60.0, 50.0), "charlstm"), ((50.0, 50.0), "charlstm")],
    ids=["second better", "first better", "tie goes to the first"],
)
def test_dev_selects_and_only_the_selected_variant_sees_test(
    trained: Laboratory,
    splits_parsed: list[int],
    f1: tuple[float, float],
    selected: str,
) -> None:
    for folder, value in zip(FOLDERS, f1, strict=True):
        pretend_dev_f1(folder, value)
    records = evaluate(trained)
    assert [record.variant for record in records] == ["charlstm", "word-charlstm"]
    for record in records:
        assert record.selected == (record.variant == selected)
        assert (record.test is not None) == record.selected
        assert (record.baseline is not None) == record.selected
    assert sorted(splits_parsed) == sorted([SIZES["dev"], SIZES["dev"], SIZES["test"]])

    splits_parsed.clear()
    assert evaluate(trained) == records
    assert splits_parsed == []
    assert read_records(RESULTS / "runs") == records


def test_the_mean_over_the_seeds_selects_and_all_seeds_of_the_selected_variant_see_test(
    laboratory: Laboratory, splits_parsed: list[int]
) -> None:
    train(laboratory, seeds=[1, 2])
    folders = {
        (variant, seed): RUNS / "tiny-open" / f"small-{variant}-seed{seed}"
        for variant in ("charlstm", "word-charlstm")
        for seed in (1, 2)
    }
    # The single best run is of the other variant.
    f1 = {("charlstm", 1): 70, ("charlstm", 2): 40, ("word-charlstm", 1): 55}
    for run_of, value in (f1 | {("word-charlstm", 2): 56}).items():
        pretend_dev_f1(folders[run_of], value)
    records = evaluate(laboratory, seeds=[1, 2])
    assert [(record.variant, record.seed) for record in records] == list(folders)
    for record in records:
        assert record.selected == (record.variant == "word-charlstm")
        assert (record.test is not None) == (record.baseline is not None) == record.selected
    assert len(splits_parsed) == 4 + 2
    # One seed selects otherwise, and the table says so until all seeds are compared again.
    (first, second) = evaluate(laboratory)
    assert (first.selected, second.selected) == (True, False)
    assert len(read_records(RESULTS / "runs")) == 6
    again = evaluate(laboratory, seeds=[1, 2])
    assert [record.selected for record in again] == [record.selected for record in records]
    assert [record.dev.f1 for record in again] == [record.dev.f1 for record in records]
    assert [record in records for record in again] == [False, True, False, True]
    (group,) = group_records(read_records(RESULTS / "runs"))
    assert {record.test is not None for record in group.rows if record.selected} == {True}
    assert evaluate(laboratory, seeds=[1, 2]) == again


def test_settings_name_the_folder_the_signature_and_the_record(laboratory: Laboratory) -> None:
    settings = {"train.max_epochs": "2", "model.d_ff": "8", "model.heads": str(MODEL["heads"])}
    options: dict[str, Any] = {"variants": ["charlstm"], "settings": settings}
    (folder,) = train(laboratory, **options)
    assert folder == RUNS / "tiny-open" / "small-charlstm-d_ff=8,max_epochs=2-seed1"
    (record,) = evaluate(laboratory, **options)
    assert record.settings == {"model.d_ff": 8, "train.max_epochs": 2}
    assert "|variant:charlstm|settings:d_ff=8,max_epochs=2|size:small|" in record.dev.signature_long
    # The same command with the same settings in other words finds the run and its record.
    settings = {"model.d_ff": "+8", "train.max_epochs": "2"}
    assert train(laboratory, variants=["charlstm"], settings=settings) == [folder]
    assert evaluate(laboratory, variants=["charlstm"], settings=settings) == [record]
    assert len(list(folder.parent.iterdir())) == 1


def test_the_signature_says_where_the_tags_came_from_that_the_parser_read(
    laboratory: Laboratory,
) -> None:
    laboratory.write_base(variants={"charlstm": ["charlstm"], "tag": ["tag", "charlstm"]})
    train(laboratory)
    plain, tagged = evaluate(laboratory)
    assert "|tags:none|" in plain.dev.signature_long
    assert "|tags:gold|" in tagged.dev.signature_long


def test_run_folders_of_before_settings_had_names_are_known(trained: Laboratory) -> None:
    path = FIRST / "run.json"
    noted = json.loads(path.read_text(encoding="utf-8"))
    del noted["settings"]
    path.write_text(json.dumps(noted), encoding="utf-8")
    (record,) = evaluate(trained, variants=["charlstm"])
    assert record.settings == {}


def test_no_seed_is_no_plan(laboratory: Laboratory) -> None:
    with pytest.raises(RecipeError, match="no seeds"):
        plan(laboratory, seeds=[])
    assert [config.seed for config in plan(laboratory, seeds=[3, 0, 3]).configs] == [3, 0] * 2


def test_an_ensemble_averages_all_seeds_of_the_selected_variant(
    laboratory: Laboratory, splits_parsed: list[int]
) -> None:
    seeds = [3, 1, 2]
    folders = train(laboratory, seeds=seeds, settings={"train.max_epochs": "4"})
    options: dict[str, Any] = {"seeds": seeds, "settings": {"train.max_epochs": "4"}}
    *singles, record = evaluate(laboratory, ensemble=True, **options)
    members = [single for single in singles if single.selected]
    assert [single.seed for single in members] == seeds
    assert record.ensemble == [single.weights for single in members]
    assert (record.variant, record.seed, record.selected) == (members[0].variant, 3, True)
    assert record.weights not in record.ensemble
    assert record.settings == {"train.max_epochs": 4}
    assert record.training.updates == sum(single.training.updates for single in members)
    assert record.training.parameters == sum(single.training.parameters for single in members)
    assert "|ensemble:3|" in record.dev.signature_long
    assert all("ensemble:" not in single.dev.signature_long for single in singles)

    bank = open_treebank("tiny-open")
    selected = [folder for folder in folders if folder.name.startswith(f"small-{record.variant}-")]
    parser = Ensemble([load_parser(folder) for folder in selected])
    for split, result in (("dev", record.dev), ("test", record.test)):
        assert result is not None
        counts = evaluate_parser(parser, bank.split(split), "spmrl").counts
        assert result.bracket_counts().rows.tolist() == counts.rows.tolist()

    splits_parsed.clear()
    assert evaluate(laboratory, ensemble=True, **options) == [*singles, record]
    assert evaluate(laboratory, **options) == singles
    assert splits_parsed == []
    assert read_records(RESULTS / "runs")[-1] == record
    assert [find_record(str(folder), RESULTS) for folder in selected] == members


def test_an_ensemble_needs_several_runs_all_of_them_trained(trained: Laboratory) -> None:
    with pytest.raises(RecipeError, match=r"an ensemble needs two runs .* --seeds 5"):
        evaluate(trained, ensemble=True)
    with pytest.raises(CheckpointError, match=r"small-charlstm-seed2: not trained yet"):
        evaluate(trained, ensemble=True, seeds=[1, 2])
    assert not RESULTS.exists()


def test_trained_anew_is_scored_anew(trained: Laboratory, splits_parsed: list[int]) -> None:
    options: dict[str, Any] = {"variants": ["charlstm"]}
    evaluate(trained, **options)
    trained.write_base(size__small__train=TRAIN | QUICK | {"max_epochs": 3})
    train(trained, fresh=True, **options)
    evaluate(trained, **options)
    assert splits_parsed == [SIZES["dev"], SIZES["test"]] * 2
    assert len(read_records(RESULTS / "runs")) == 2


def test_record_says_what_was_done(laboratory: Laboratory) -> None:
    (folder,) = train(laboratory, variants=["charlstm"], settings={"train.max_epochs": "8"})
    (record,) = evaluate(laboratory, variants=["charlstm"], settings={"train.max_epochs": "8"})
    bank = open_treebank("tiny-open")
    progress = json.loads((folder / "last" / "progress.json").read_text(encoding="utf-8"))
    weights = (folder / "best" / "weights.safetensors").read_bytes()
    parser = load_parser(folder)

    assert (record.lang, record.variant, record.size, record.seed) == (
        "elvish", "charlstm", "small", 1
    )  # fmt: skip
    assert record.treebank.model_dump() == {
        "name": "tiny-open",
        "track": "open",
        "language": "elvish",
        "fingerprint": bank.fingerprint,
    }
    assert record.weights == hashlib.sha256(weights).hexdigest()
    assert record.recipe == json.loads((folder / "run.json").read_text(encoding="utf-8"))
    # The dev score of training and the final one are the same figure.
    assert record.dev.f1 == progress["best_dev_f1"]
    assert record.test is not None
    assert record.test.sentences == SIZES["test"]
    counts = evaluate_parser(parser, bank.split("test"), "spmrl").counts
    assert record.test.bracket_counts().rows.tolist() == counts.rows.tolist()
    for split, result in (("dev", record.dev), ("test", record.test)):
        for part in ("treebank:tiny-open", f"split:{split}", "variant:charlstm", "prm:spmrl"):
            assert part in result.signature_long
        assert result.tokens_per_second is not None
        assert result.tokens_per_second > 0
    assert record.training.updates == progress["steps"] == 8 * 2
    assert record.training.epochs == 8
    assert record.training.parameters == sum(p.numel() for p in parser.parameters())
    assert record.training.tokens_per_second > 0
    assert record.training.peak_memory_bytes is not None
    assert record.hardware.device == "cpu"


def test_baseline_is_right_branching_with_its_own_signature(trained: Laboratory) -> None:
    (record,) = evaluate(trained, variants=["charlstm"])
    assert record.baseline is not None
    counts = baseline_counts(open_treebank("tiny-open"), "test")
    assert record.baseline.f1 == counts.f1
    assert 0 < (record.baseline.f1 or 0) < 100
    assert record.baseline.tokens_per_second is None
    assert "variant:right-branching" in record.baseline.signature_long
    assert "seed:" not in record.baseline.signature_long


def test_eval_before_training_and_before_its_end(trained: Laboratory) -> None:
    with pytest.raises(CheckpointError, match=r"not trained yet; run 'spmrl-bench train'"):
        evaluate(trained, seeds=[2])
    path = FOLDERS[1] / "last" / "progress.json"
    progress = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(progress | {"stopped_by": None}), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"word-charlstm-seed1: training has not ended"):
        evaluate(trained)
    assert not RESULTS.exists()


def test_records_are_found_by_their_run_folders(trained: Laboratory) -> None:
    records = evaluate(trained)
    assert [find_record(str(folder), RESULTS) for folder in FOLDERS] == records


def test_eval_without_the_best_weights(trained: Laboratory) -> None:
    (FIRST / "best" / "weights.safetensors").unlink()
    with pytest.raises(CheckpointError, match="best: no weights"):
        evaluate(trained, variants=["charlstm"])


def test_decode_is_given_every_sentence_of_dev_once(
    trained: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []

    def watched(blocks: Any, lengths: Any, gold: Any = None) -> Any:
        decoded.append(len(lengths))
        return decode_blocks(blocks, lengths, gold)

    monkeypatch.setattr("spmrl_bench.parsers.chart_parser.decode_blocks", watched)
    evaluate(trained, variants=["charlstm"])
    assert sum(decoded) == SIZES["dev"] + SIZES["test"]
