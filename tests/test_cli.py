"""The command line: help, one message for each mistake, results on standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench import __version__
from spmrl_bench.cli import app
from spmrl_bench.leaderboard.record import write_record
from tests.conftest import PATIENCE
from tests.leaderboard.examples import make_record, make_treebank

COMMANDS = (
    "train",
    "eval",
    "multilingual",
    "table",
    "study",
    "attention",
    "heads",
    "trace",
    "parse",
    "score",
    "score-dependencies",
    "task",
    "enter",
    "compare",
    "explain",
    "recipes",
    "settings",
    "treebanks",
    "validate",
    "new-treebank",
    "disagreements",
    "variation",
    "runs",
    "bench",
)
GOLD = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n"
TEST = "(S (NP (DT the)) (VP (NN dog) (VBZ barks)))\n"


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def run_process(
    *arguments: str, cwd: Path, code: str = "from spmrl_bench.cli import main; main()"
) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[1]
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def scored(tmp_path: Path) -> tuple[str, str]:
    """Paths of a gold file and of a file of parses."""
    paths = tmp_path / "gold.mrg", tmp_path / "test.mrg"
    for path, text in zip(paths, (GOLD, TEST), strict=True):
        path.write_text(text, encoding="utf-8")
    return str(paths[0]), str(paths[1])


def test_help_names_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f" {command} " in result.stdout


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"spmrl-bench {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"spmrl-bench {command}" in result.stdout.partition("Example")[2]


def test_help_and_scores_load_neither_torch_nor_pandas(tmp_path: Path) -> None:
    (tmp_path / "gold.mrg").write_text(GOLD, encoding="utf-8")
    code = """
import sys
from spmrl_bench.cli import app
app(standalone_mode=False)
sys.exit(bool({"torch", "pandas"} & set(sys.modules)))
"""
    (tmp_path / "gold.conllu").write_text(DEPENDENCIES, encoding="utf-8")
    for arguments in (
        ("train", "--help"),
        ("score", "gold.mrg", "gold.mrg"),
        ("score-dependencies", "gold.conllu", "gold.conllu"),
    ):
        result = run_process(*arguments, cwd=tmp_path, code=code)
        assert result.returncode == 0, result.stderr
        assert result.stdout


def test_score_prints_the_report_and_its_signature(scored: tuple[str, str]) -> None:
    result = run("score", *scored)
    assert result.exit_code == 0
    assert "conventions of EVALB_SPMRL" in result.stdout
    # S matches; NP and VP have other spans: 1 of 3 brackets on both sides.
    assert result.stdout.count("33.33") == 6
    assert "scorer:own|match:labelled|prm:spmrl(" in result.stdout.splitlines()[-1]


def test_score_prints_json(scored: tuple[str, str]) -> None:
    result = run("score", *scored, "--prm", "COLLINS", "--format", "json")
    report = json.loads(result.stdout)
    assert report["all"]["recall"] == pytest.approx(100 / 3)
    assert report["signature"]["prm"].startswith("COLLINS(")


def test_score_prints_what_the_c_program_prints() -> None:
    folder = Path(__file__).parent / "scoring" / "printed"
    files = (str(folder / "gold.mrg"), str(folder / "test.mrg"))
    options = ("--prm", "spmrl", "--missing-parse", "count", "--format", "evalb")
    result = run("score", *files, *options, "--allow-skipped")
    expected = (folder / "spmrl_X.out").read_text(encoding="utf-8")
    assert result.stdout.partition("-- len")[0] == expected.partition("-- len")[0]
    assert "LEFT OUT of every figure: 3 of 8 sentences\n" in result.stderr
    assert "all gold brackets missed: 1 (sentence 6)\n" in result.stderr
    assert "|missing:count|" in result.stderr.splitlines()[-1]


def test_score_can_refuse_to_leave_sentences_out(scored: tuple[str, str]) -> None:
    assert run("score", *scored, "--strict").exit_code == 0
    Path(scored[1]).write_text("(())\n", encoding="utf-8")
    result = run("score", *scored, "--strict", "--format", "json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "1 of 1 sentences cannot be scored: sentence 1: no parse" in result.stderr
    result = run("score", *scored, "--strict", "--missing-parse", "count")
    assert result.exit_code == 0


def test_score_takes_punctuation_from_gold(tmp_path: Path) -> None:
    gold, test = tmp_path / "gold.mrg", tmp_path / "test.mrg"
    gold.write_text("(S (NP (NN a)) (. .))\n", encoding="utf-8")
    test.write_text("(S (NP (NN a)) (NN .))\n", encoding="utf-8")
    arguments = ("score", str(gold), str(test), "--prm", "COLLINS", "--format", "json")
    assert json.loads(run(*arguments).stdout)["all"]["skipped"] == 1
    report = json.loads(run(*arguments, "--punctuation", "by-gold").stdout)
    assert report["all"]["skipped"] == 0
    assert report["signature"]["punctuation"] == "by-gold"


DEPENDENCIES = """\
1\tHe\t_\t_\tPRP\t_\t2\tnsubj\t_\t_
2\tsleeps\t_\t_\tVBZ\t_\t0\troot\t_\t_
3\t.\t_\t_\t.\t_\t2\tpunct\t_\t_
"""


def test_score_dependencies_prints_the_report_and_its_signature(tmp_path: Path) -> None:
    gold, test = tmp_path / "gold.conllu", tmp_path / "test.conllu"
    gold.write_text(DEPENDENCIES, encoding="utf-8")
    test.write_text(DEPENDENCIES.replace("2\tpunct", "1\tpunct"), encoding="utf-8")
    arguments = ("score-dependencies", str(gold), str(test), "--punctuation", "ptb-ctb")
    text = run(*arguments).stdout.splitlines()
    assert text[5].split() == ["UAS", "100.00", "66.67"]
    assert text[-1].startswith("scorer:own|match:attachment|punctuation:ptb-ctb(xpos)|")
    report = json.loads(run(*arguments, "--relations", "none", "--format", "json").stdout)
    assert report["all_words"]["uas"] == pytest.approx(200 / 3)
    assert report["signature"]["relations"] == "none"


def test_score_dependencies_of_a_malformed_file_prints_no_figure(tmp_path: Path) -> None:
    gold, test = tmp_path / "gold.conllu", tmp_path / "test.conllu"
    gold.write_text(DEPENDENCIES, encoding="utf-8")
    test.write_text(DEPENDENCIES.replace("0\troot", "3\troot"), encoding="utf-8")
    result = run("score-dependencies", str(gold), str(test))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"spmrl-bench: {test}:2: sentence 1: the heads form a cycle: 2 -> 3 -> 2\n"
    )


def test_score_breaks_down_and_adds_intervals(scored: tuple[str, str]) -> None:
    result = run("score", *scored, "--by", "label", "--intervals")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    # S matches; NP and VP have other spans; of the three spans without labels only S's match.
    assert ["S", "1", "1", "1", "1", "100.00", "100.00", "100.00"] in lines
    assert ["NP", "1", "0", "1", "1", "0.00", "0.00", "0.00"] in lines
    assert ["unlabelled", "1", "1", "3", "3", "33.33", "33.33", "33.33"] in lines
    assert "95 % confidence intervals: f1 33.33 to 33.33, recall 33.33" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("scorer:own|")

    result = run("score", *scored, "--by", "span", "--intervals", "--format", "json")
    report = json.loads(result.stdout)
    assert [(part["name"], part["gold"], part["test"]) for part in report["by_span"]] == [
        ("1", 1, 1),
        ("2", 1, 1),
        ("3", 1, 1),
        ("all", 3, 3),
        ("unlabelled", 3, 3),
    ]
    assert report["intervals"]["recall"] == [pytest.approx(100 / 3), pytest.approx(100 / 3)]
    by_length = json.loads(run("score", *scored, "--by", "length", "--format", "json").stdout)
    assert by_length["by_length"][0]["name"] == "up to 10"
    assert "intervals" not in by_length


def test_score_without_anything_scored_has_no_intervals(scored: tuple[str, str]) -> None:
    Path(scored[1]).write_text("(S (NN else))\n", encoding="utf-8")
    result = run("score", *scored, "--intervals", "--format", "json")
    assert json.loads(result.stdout)["intervals"] == {}


def test_score_in_the_form_of_evalb_takes_no_additions(scored: tuple[str, str]) -> None:
    result = run("score", *scored, "--format", "evalb", "--intervals")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--by and --intervals are for the formats table and json" in result.stderr


def table_folder(tmp_path: Path) -> Path:
    write_record(make_record(), tmp_path / "results" / "runs")
    return tmp_path / "results"


def test_table_prints_and_writes_both_forms(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    markdown = run("table", "--results", str(results))
    csv = run("table", "--results", str(results), "--format", "csv")
    assert markdown.stdout.startswith("## german-mini (mini track, generated sentences)\n")
    assert csv.stdout.startswith("track,treebank,group,variant,size,seed,dev_f1,")
    assert (results / "table.md").read_text(encoding="utf-8") == markdown.stdout
    assert (results / "table.csv").read_text(encoding="utf-8") == csv.stdout


def test_table_of_one_treebank(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    bank = make_treebank().model_copy(update={"name": "other-mini"})
    write_record(make_record(treebank=bank), results / "runs")
    whole = run("table", "--results", str(results)).stdout
    shown = run("table", "--results", str(results), "--treebank", "other-mini").stdout
    assert "german-mini (" not in shown
    assert shown.startswith("## other-mini (mini track, generated sentences)")
    assert shown in whole
    assert (results / "table.md").read_text(encoding="utf-8") == whole
    wrong = run("table", "--results", str(results), "--treebank", "other-mimi")
    assert (
        "among the records: unknown treebank 'other-mimi'. Did you mean other-mini?" in wrong.stderr
    )


def test_shipped_records_are_shown_as_such_and_left_as_they_are(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    shipped = write_record(make_record(seed=2), results / "shipped" / "runs")
    before = sorted((results / "shipped").rglob("*"))
    shown = run("table", "--results", str(results)).stdout
    rows = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
    assert rows == ["variant", "charlstm", "charlstm, shipped", "right-branching"]
    assert sorted((results / "shipped").rglob("*")) == before
    own = next((results / "runs").iterdir())
    compared = run("compare", own.stem, shipped.stem, "--results", str(results))
    assert compared.exit_code == 0, compared.output


def test_recipes_lists_languages_with_their_treebanks() -> None:
    result = run("recipes")
    assert result.exit_code == 0
    (german,) = (line for line in result.stdout.splitlines() if line.startswith("german"))
    assert "german-squoia, german-mini" in german
    assert "charlstm, word-charlstm" in german


def test_treebanks_says_what_is_present_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEBANKS", str(tmp_path))
    result = run("treebanks")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert " present " in lines["german-mini"]
    assert " absent " in lines["german-spmrl"]
    assert str(tmp_path) in lines["german-spmrl"]
    assert "40,472 / 5,000 / 5,000" in lines["german-spmrl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train",), "name a language (with make: lang=german). Known: arabic, basque, "),
        (("train", "germam"), "unknown language 'germam'. Did you mean german?"),
        (("eval", "germam"), "unknown language 'germam'. Did you mean german?"),
        (("train", "german", "--size", "smal"), "unknown size 'smal'. Did you mean small?"),
        (
            ("train", "german", "--variant", "charlst"),
            "unknown variant 'charlst'. Did you mean charlstm or word-charlstm?",
        ),
        (("train", "german", "--set", "x"), "--set x: expected KEY=VALUE"),
        (
            ("train", "german", "--seed", "3", "--seeds", "5"),
            "--seed 3 and --seeds 5: give one of the two; --seeds 5 takes the seeds 1 to 5",
        ),
        (
            ("eval", "german", "--seed", "1", "--seeds", "2"),
            "--seed 1 and --seeds 2: give one of the two",
        ),
        (("eval", "german", "--ensemble"), "an ensemble needs two runs of a variant at least"),
        (
            ("eval", "german", "--track", "mini", "--seeds", "2", "--ensemble"),
            "small-charlstm-seed1: not trained yet; run 'spmrl-bench train' with the same options",
        ),
        (("table", "--format", "markdwon"), "unknown format 'markdwon'. Did you mean markdown?"),
        (("table",), "no records in results/runs: 'spmrl-bench eval LANG' writes them"),
        (("parse", "--model", "nowhere"), "nowhere: no trained parser here"),
        (
            ("parse", "--model", "nowhere", "--input", "token"),
            "unknown input 'token'. Did you mean tokens?",
        ),
        (("score", "gold.mrg", "gone.mrg"), "gold.mrg: cannot be read: No such file"),
        (("score", "a", "b", "--prm", "spmlr"), "unknown parameter set 'spmlr'. Did you mean"),
        (
            ("score-dependencies", "a", "b", "--punctuation", "unicod"),
            "unknown punctuation rule 'unicod'. Did you mean unicode?",
        ),
    ],
)
def test_mistakes_give_one_message_and_status_1(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("spmrl-bench: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_unknown_option_is_a_usage_error() -> None:
    result = run("train", "german", "--sizes", "small")
    assert result.exit_code == 2
    assert "--size" in result.stderr


@pytest.mark.parametrize(("strict", "status"), [([], 0), (["--strict"], 1)])
def test_broken_record_is_named(tmp_path: Path, strict: list[str], status: int) -> None:
    results = table_folder(tmp_path)
    (results / "runs" / "00ff.json").write_text("{", encoding="utf-8")
    result = run("table", "--results", str(results), *strict)
    assert result.exit_code == status
    assert "00ff.json: not a record" in result.stderr
    assert (results / "table.md").exists() == (not strict)


def test_unwritable_results_are_an_error_not_a_traceback(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    (results / "table.md").mkdir()
    result = run("table", "--results", str(results))
    assert result.exit_code == 1
    assert "cannot write the table" in result.stderr


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_interrupt_has_its_own_status_and_says_how_to_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spmrl_bench.experiments.campaign.train_all", interrupt)
    result = run("train", "german")
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
        "spmrl_bench.experiments.campaign.train_all",
        lambda plans, **rest: calls.append((*plans, rest["jobs"])),
    )
    result = run("train", "german", "--track", "mini", *options, "--jobs", "4")
    assert (result.exit_code, result.stderr) == (0, "")
    ((work, jobs),) = calls
    assert jobs == 4
    assert [config.seed for config in work.configs if config.variant == "charlstm"] == seeds


@pytest.mark.parametrize(
    "options", [("--seeds", "0"), ("--seed", "-1"), ("--jobs", "0"), ("--jobs", "two")]
)
def test_numbers_out_of_range_are_usage_errors(options: tuple[str, str]) -> None:
    result = run("train", "german", *options)
    assert result.exit_code == 2
    assert options[0] in result.stderr


def test_interrupt_of_a_short_command_just_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spmrl_bench.scoring.load_prm", interrupt)
    result = run("score", "a", "b")
    assert (result.exit_code, result.stderr.strip()) == (130, "spmrl-bench: interrupted")


def test_reader_that_goes_away_causes_no_traceback(tmp_path: Path) -> None:
    results = table_folder(tmp_path)
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-c", "from spmrl_bench.cli import main; main()", "table"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed:
        result = subprocess.run(
            [*command, "--results", str(results)],
            env=os.environ | {"PYTHONPATH": str(root)},
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert (result.returncode, result.stderr) == (1, "")


def test_output_is_utf8_whatever_the_locale_says(tmp_path: Path) -> None:
    code = """
import sys
from spmrl_bench.cli import main
from spmrl_bench.errors import SpmrlError
import spmrl_bench.scoring as scoring
def fail(*_):
    raise SpmrlError("Stra\\u00dfe")
scoring.load_prm = fail
sys.stderr.reconfigure(encoding="ascii")
main()
"""
    result = run_process("score", "a", "b", cwd=tmp_path, code=code)
    assert (result.returncode, result.stderr) == (1, "spmrl-bench: Straße\n")
