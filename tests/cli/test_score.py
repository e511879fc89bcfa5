"""The command that scores files: reports, their additions, sentences that cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.builders import cli, refused, works
from tests.scoring.programs import GOLD, LOSING, OUTPUT, TEST, TWO_LEFT_OUT, fake_program, prints

THIRTY = [f"(S (NP (NN dog{n}) (, ,) (NN cat)) (VP (V barks)) (. .))" for n in range(30)]
DEPENDENCIES = """\
1\tHe\t_\t_\tPRP\t_\t2\tnsubj\t_\t_
2\tsleeps\t_\t_\tVBZ\t_\t0\troot\t_\t_
3\t.\t_\t_\t.\t_\t2\tpunct\t_\t_
"""

pytestmark = pytest.mark.usefixtures("_files")


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gold tree and a parse: S matches; NP and VP have other spans."""
    monkeypatch.chdir(tmp_path)
    Path("gold").write_text("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n", encoding="utf-8")
    Path("test").write_text("(S (NP (DT the)) (VP (NN dog) (VBZ barks)))\n", encoding="utf-8")


def score(gold: list[str], test: list[str], *options: str) -> Result:
    """Of files with these lines."""
    for name, lines in (("gold", gold), ("test", test)):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return cli("score", "gold", "test", *options)


def report(*options: str) -> Any:
    return json.loads(cli("score", "gold", "test", "--format", "json", *options).stdout)


def test_the_report_and_its_signature() -> None:
    text = works("score", "gold", "test").stdout
    assert "conventions of EVALB_SPMRL" in text
    assert text.count("33.33") == 6
    assert "scorer:own|match:labelled|prm:spmrl(" in text.splitlines()[-1]
    found = report("--prm", "COLLINS")
    assert found["all"]["recall"] == pytest.approx(100 / 3)
    assert found["signature"]["prm"].startswith("COLLINS(")


def test_what_the_c_program_prints() -> None:
    folder = Path(__file__).parents[1] / "scoring" / "printed"
    options = ("--missing-parse", "count", "--format", "evalb")
    result = cli("score", folder / "gold.mrg", folder / "test.mrg", *options, "--allow-skipped")
    expected = (folder / "spmrl_X.out").read_text(encoding="utf-8")
    assert result.stdout.partition("-- len")[0] == expected.partition("-- len")[0]
    assert "LEFT OUT of every figure: 3 of 8 sentences\n" in result.stderr
    said = refused("score", "gold", "test", "--format", "evalb", "--intervals")
    assert "--by and --intervals" in said


def test_breakdowns_and_intervals() -> None:
    text = works("score", "gold", "test", "--by", "label", "--intervals").stdout
    lines = [line.split() for line in text.splitlines()]
    # Of the three spans without labels only S's match.
    for row in ("NP 1 0 1 1 0.00 0.00 0.00", "unlabelled 1 1 3 3 33.33 33.33 33.33"):
        assert row.split() in lines
    assert "95 % confidence intervals: f1 33.33 to 33.33, recall 33.33" in text
    assert text.splitlines()[-1].startswith("scorer:own|")
    found = report("--by", "span", "--intervals")
    assert [part["name"] for part in found["by_span"]] == ["1", "2", "3", "all", "unlabelled"]
    assert found["intervals"]["recall"] == [pytest.approx(100 / 3), pytest.approx(100 / 3)]
    nothing = score(["(S (NN a))"], ["(S (NN else))"], "--intervals", "--format", "json")
    assert json.loads(nothing.stdout)["intervals"] == {}


def test_leaving_sentences_out_can_be_refused() -> None:
    assert works("score", "gold", "test", "--strict")
    Path("test").write_text("(())\n", encoding="utf-8")
    result = cli("score", "gold", "test", "--strict", "--format", "json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "1 of 1 sentences cannot be scored: sentence 1: no parse" in result.stderr
    assert works("score", "gold", "test", "--strict", "--missing-parse", "count")


def untagged(line: str) -> str:
    for tag in ("NN", ",", "V", "."):
        line = line.replace(f"({tag} ", "(XX ")
    return line


def test_whose_tags_decide_on_punctuation() -> None:
    pair, collins = ["(S (NP (NN a)) (. .))"], ("--prm", "COLLINS")
    score(pair, ["(S (NP (NN a)) (NN .))"])
    assert report(*collins)["all"]["skipped"] == 1
    lost = score(THIRTY, [THIRTY[0].replace("(, ,)", "(CC ,)"), *THIRTY[1:]], *collins)
    assert (lost.exit_code, lost.stdout.count("1 of 30")) == (1, 1)
    assert "1 (sentence 1): the tags tell other punctuation" in lost.stderr
    score(pair, ["(S (NP (NN a)) (NN .))"])
    found = report(*collins, "--punctuation", "by-gold")
    assert (found["all"]["skipped"], found["signature"]["punctuation"]) == (0, "by-gold")
    bare = list(map(untagged, THIRTY))
    result = score(THIRTY, bare, *collins)
    assert result.exit_code == 0, result.output
    assert "the file of parses has no tags (XX): punctuation is removed where gold" in result.stderr
    assert "|punctuation:by-gold|" in result.stdout
    assert ["F1", "100.00", "100.00"] in [line.split() for line in result.stdout.splitlines()]
    result = score(THIRTY, bare, *collins, "--punctuation", "by-tag")
    assert result.exit_code == 1
    assert "30 of 30 sentences are in no figure, more than a twentieth" in result.stderr


def test_the_same_words_in_another_writing_meet_by_the_option_that_is_named() -> None:
    around = [f"( {line} )" for line in THIRTY]
    for gold, test, who in (
        (around, THIRTY, "only gold has"),
        (THIRTY, around, "only the parses have"),
        (around, around, "gold and parses have"),
    ):
        found = score(gold, test, "--prm", "COLLINS")
        assert f"{who} an outer bracket without label" in found.stderr
        dropped = report("--prm", "COLLINS", "--outer", "drop")
        assert (dropped["all"]["f1"], dropped["signature"]["outer"]) == (100, "drop")
    # Trees of SPMRL may have it: its parameters leave it out.
    found = score(around, THIRTY, "--prm", "spmrl")
    assert "outer bracket" not in found.stderr
    assert found.stdout.count("100.00") > 1
    slash, space = (THIRTY[0].replace("cat", word) for word in ("c/t", "c\\x20t"))
    found = score([slash, space, *THIRTY], [slash.replace("/", "\\/"), *THIRTY[:1], *THIRTY])
    assert "1 (sentence 1): words are escaped otherwise: --escapes ptb" in found.stderr
    found = score([slash, *THIRTY], [slash.replace("/", "\\/"), *THIRTY], "--escapes", "ptb")
    assert (found.exit_code, found.stdout.count("escapes:ptb")) == (0, 1)
    found = score([space, *THIRTY], [THIRTY[0].replace("cat", "c_t"), *THIRTY])
    assert "1 (sentence 1): '_' stands for white space" in found.stderr
    assert "the C programs know neither" in refused("score", "gold", "test", "--outer", "drop",
                                               "--format", "evalb")  # fmt: skip


def test_a_score_without_a_twentieth_is_none() -> None:
    bad = [line.replace("cat", "c\\/t") for line in THIRTY]
    assert score(THIRTY, bad[:1] + THIRTY[1:]).exit_code == 0
    found = score(THIRTY, bad[:2] + THIRTY[2:])
    assert found.exit_code == 1
    assert "sentence 1: word 3 is 'cat' in gold, 'c\\/t' in the parse" in found.stderr
    allowed = score(THIRTY, bad[:2] + THIRTY[2:], "--allow-skipped")
    assert allowed.exit_code == 0
    assert "LEFT OUT of every figure: 2 of 30 sentences" in allowed.stdout


def official(test: str, output: str, *options: str) -> Result:
    program = str(fake_program(Path("evalb").absolute(), prints(output)))
    arguments = [option.format(program) for option in options]
    return score([GOLD.rstrip("\n")], [test.rstrip("\n")], *arguments, "--prm", "COLLINS")


def test_a_program_confirms() -> None:
    result = official(TEST, OUTPUT, "--official", "{}", "--format", "json")
    found = json.loads(result.stdout)
    assert found["all"]["f1"] == 62.5
    assert found["signature"]["scorer"].startswith("evalb(")
    assert found["signature"]["skipped"] == "0"
    assert "and our own scorer agree in every count of 3 sentences" in result.stderr
    assert official(TEST, OUTPUT, "--official", "{}", "--format", "evalb").stdout == OUTPUT


def test_a_program_contradicts_or_leaves_sentences_out() -> None:
    for output, option, said in (
        (TWO_LEFT_OUT, "--strict", "first in line 5 of its output (sentence 2)"),
        (OUTPUT, "--missing-parse=count", "are for our own scorer"),
    ):
        result = official(TEST, output, "--official", "{}", option)
        assert (result.exit_code, result.stdout) == (1, "")
        assert said in result.stderr
    result = official(LOSING, TWO_LEFT_OUT, "--official", "{}", "--allow-skipped")
    assert result.exit_code == 0
    assert "|skipped:2|" in result.stdout.splitlines()[-1]


def test_dependencies() -> None:
    Path("gold").write_text(DEPENDENCIES, encoding="utf-8")
    Path("test").write_text(DEPENDENCIES.replace("2\tpunct", "1\tpunct"), encoding="utf-8")
    arguments = ("score", "gold", "test", "--punctuation", "ptb-ctb")
    text = works(*arguments).stdout.splitlines()
    assert text[5].split() == ["UAS", "100.00", "66.67"]
    assert text[-1].startswith("scorer:own|match:attachment|punctuation:ptb-ctb(xpos)|")
    found = json.loads(works(*arguments, "--relations", "none", "--format", "json").stdout)
    assert found["all_words"]["uas"] == pytest.approx(200 / 3)
    assert found["signature"]["relations"] == "none"
    Path("test").write_text(DEPENDENCIES.replace("0\troot", "3\troot"), encoding="utf-8")
    assert refused(*arguments).startswith("test:2: sentence 1: the heads form a cycle")
    for option in ("--by label", "--official evalb", "--format evalb", "--punctuation by-tag"):
        said = refused("score", "gold", "test", *option.split())
        assert said.startswith("--")
        assert said.endswith(": for brackets, but gold holds dependency trees")


def test_what_a_file_holds_is_seen_in_it() -> None:
    for beginning in ("\ufeff", "\n\n", "# sent_id = 1\n"):
        Path("gold").write_text(beginning + DEPENDENCIES, encoding="utf-8")
        assert "UAS" in works("score", "gold", "gold").stdout
    Path("gold").write_text("\ufeff (S (NN a))\n", encoding="utf-8")
    assert "F1" in works("score", "gold", "gold").stdout
    said = refused("score", "gold", "gold", "--punctuation", "unicode")
    assert said == "--punctuation unicode: for CoNLL, but gold holds brackets"
