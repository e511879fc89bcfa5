"""The command line: help, one message for each mistake, results on standard output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer

from spmrl_bench import __version__
from spmrl_bench.cli import app
from spmrl_bench.leaderboard.record import write_record
from tests.builders import MAIN, cli, cli_process, make_record, make_treebank, refused, works

GOLD = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n"


COMMANDS = sorted(typer.main.get_command(app).commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(command: str) -> None:
    assert f" {command} " in works("--help").stdout
    assert f"spmrl-bench {command}" in works(command, "--help").stdout.partition("Example")[2]


LIGHT = """
import sys
from spmrl_bench.cli import app
for line in sys.stdin.read().splitlines():
    app(line.split(), standalone_mode=False)
sys.exit(bool({"torch", "pandas"} & set(sys.modules)))
"""


def test_scoring_and_listing_load_neither_torch_nor_pandas(tmp_path: Path) -> None:
    (tmp_path / "gold.mrg").write_text(GOLD, encoding="utf-8")
    (tmp_path / "gold.conllu").write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n", encoding="utf-8")
    commands = ["score gold.mrg gold.mrg", "score-dependencies gold.conllu gold.conllu",
                "runs"]  # fmt: skip
    (tmp_path / "runs").mkdir()
    done = cli_process(code=LIGHT, cwd=tmp_path, input="\n".join(commands))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("scorer:") >= 2


def test_version() -> None:
    result = cli("--version")
    assert (result.exit_code, result.stdout) == (0, f"spmrl-bench {__version__}\n")


def table_folder(tmp_path: Path) -> Path:
    write_record(make_record(), tmp_path / "results" / "runs")
    return tmp_path / "results"


def test_table_prints_and_writes_both_forms(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    markdown = cli("table", "--results", str(results))
    csv = cli("table", "--results", str(results), "--format", "csv")
    assert markdown.stdout.startswith("## german-mini (mini track, generated sentences)\n")
    assert csv.stdout.startswith("track,treebank,group,variant,size,seed,dev_f1,")
    assert (results / "table.md").read_text(encoding="utf-8") == markdown.stdout
    assert (results / "table.csv").read_text(encoding="utf-8") == csv.stdout


def test_table_of_one_treebank(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    bank = make_treebank().model_copy(update={"name": "other-mini"})
    write_record(make_record(treebank=bank), results / "runs")
    whole = cli("table", "--results", str(results)).stdout
    shown = cli("table", "--results", str(results), "--treebank", "other-mini").stdout
    assert "german-mini (" not in shown
    assert shown.startswith("## other-mini (mini track, generated sentences)")
    assert shown in whole
    assert (results / "table.md").read_text(encoding="utf-8") == whole
    wrong = cli("table", "--results", str(results), "--treebank", "other-mimi")
    assert (
        "among the records: unknown treebank 'other-mimi'. Did you mean other-mini?" in wrong.stderr
    )


def test_shipped_records_are_shown_as_such_and_left_as_they_are(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    shipped = write_record(make_record(seed=2), results / "shipped" / "runs")
    before = sorted((results / "shipped").rglob("*"))
    shown = cli("table", "--results", str(results)).stdout
    rows = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    assert rows == ["variant", "charlstm", "charlstm, shipped", "right-branching"]
    assert sorted((results / "shipped").rglob("*")) == before
    own = next((results / "runs").iterdir())
    compared = cli("compare", own.stem, shipped.stem, "--results", str(results))
    assert compared.exit_code == 0, compared.output


def test_recipes_lists_languages_with_their_treebanks() -> None:
    result = cli("recipes")
    assert result.exit_code == 0
    (german,) = (line for line in result.stdout.splitlines() if line.startswith("german"))
    assert "german-squoia, german-mini" in german
    assert "charlstm, word-charlstm" in german


def test_treebanks_says_what_is_present_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEBANKS", str(tmp_path))
    result = cli("treebanks")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert " present " in lines["german-mini"]
    assert " absent " in lines["german-spmrl"]
    assert str(tmp_path) in lines["german-spmrl"]
    assert "40,472 / 5,000 / 5,000" in lines["german-spmrl"]


def test_mistakes_in_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the commands find themselves; nothing is done by then."""
    monkeypatch.chdir(tmp_path)
    for command, message in {
        "train": "name a language (with make: lang=german). Known: arabic, basque, ",
        "train germam": "unknown language 'germam'. Did you mean german?",
        "train german --set x": "--set x: expected KEY=VALUE",
        "train german --seed 3 --seeds 5": "--seed 3 and --seeds 5: give one of the two",
        "eval german --ensemble": "an ensemble needs two runs of a variant at least",
        "table --format markdwon": "unknown format 'markdwon'. Did you mean markdown?",
        "table": "no records in results/runs: 'spmrl-bench eval LANG' writes them",
        "parse --model nowhere": "nowhere: no trained parser here",
        "parse --model nowhere --input token": "unknown input 'token'. Did you mean tokens?",
        "score a b --prm spmlr": "unknown parameter set 'spmlr'. Did you mean",
        "score-dependencies a b --punctuation unicod": "unknown punctuation rule 'unicod'. Did you",
    }.items():
        assert message in refused(*command.split())
        assert list(tmp_path.iterdir()) == []


def test_unknown_option_is_a_usage_error() -> None:
    result = cli("train", "german", "--sizes", "small")
    assert result.exit_code == 2
    assert "--size" in result.stderr


def test_unwritable_results_are_an_error_not_a_traceback(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    (results / "table.md").mkdir()
    result = cli("table", "--results", str(results))
    assert result.exit_code == 1
    assert "cannot write the table" in result.stderr


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_interrupt_has_its_own_status_and_says_how_to_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spmrl_bench.experiments.train.train_all", interrupt)
    result = cli("train", "german")
    assert result.exit_code == 130
    assert result.stderr.strip() == (
        "spmrl-bench: interrupted; give the same command again (without --fresh) to continue"
    )


@pytest.mark.parametrize(
    ("options", "seeds"),
    [((), [1]), (("--seed", "0"), [0]), (("--seeds", "1"), [1]), (("--seeds", "3"), [1, 2, 3])],
)
def test_seeds_and_jobs_reach_training(
    options: tuple[str, ...], seeds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(
        "spmrl_bench.experiments.train.train_all",
        lambda runs, **rest: calls.append((runs, rest["jobs"])),
    )
    result = cli("train", "german", "--track", "mini", *options, "--jobs", "4")
    assert (result.exit_code, result.stderr) == (0, "")
    ((runs, jobs),) = calls
    assert jobs == 4
    assert [run.config.seed for run in runs if run.variant == "charlstm"] == seeds


@pytest.mark.parametrize(
    "options", [("--seeds", "0"), ("--seed", "-1"), ("--jobs", "0"), ("--jobs", "two")]
)
def test_numbers_out_of_range_are_usage_errors(options: tuple[str, str]) -> None:
    result = cli("train", "german", *options)
    assert result.exit_code == 2
    assert options[0] in result.stderr


def test_interrupt_of_a_short_command_just_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spmrl_bench.scoring.load_prm", interrupt)
    result = cli("score", "a", "b")
    assert (result.exit_code, result.stderr.strip()) == (130, "spmrl-bench: interrupted")


def test_streams_whatever_they_are(tmp_path: Path) -> None:
    """A reader that goes away causes no traceback; text is UTF-8 whatever the locale says."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed:
        result = cli_process("table", "--results", table_folder(tmp_path), stdout=closed)
    assert (result.returncode, result.stderr) == (1, "")
    code = f"import sys; sys.stderr.reconfigure(encoding='ascii'); {MAIN}"
    result = cli_process("score", "Straße", "b", cwd=tmp_path, code=code)
    assert result.returncode == 1
    assert result.stderr.startswith("spmrl-bench: Straße: cannot be read")
