"""Systems of others: what they are given; their parses, damaged or beside those of our runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.experiments.evaluation import score_split
from spmrl_bench.leaderboard.board import groups_of, load_results
from spmrl_bench.leaderboard.compare import comparable_counts
from spmrl_bench.leaderboard.documents import read_document
from spmrl_bench.leaderboard.frame import by_age
from spmrl_bench.leaderboard.multilingual import track_document
from spmrl_bench.leaderboard.record import Record, System
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.scoring import load_prm
from spmrl_bench.scoring.attachment import ATTACHMENT, AttachmentRules
from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.site.pages import site_files
from spmrl_bench.systems.enter import Policy, enter, file_text, read_predictions, write_task
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import Tree
from tests.builders import cli, cli_process, records_in, refused, works
from tests.experiments.conftest import evaluate, train
from tests.laboratory import Laboratory, make_trees

RESULTS = Path("results")


def right_branching() -> Any:
    return RightBranching.build(ParserConfig(), open_treebank("tiny-open").examples("train"))


def branching(split: str) -> Path:
    """A file of right-branching parses."""
    gold = open_treebank("tiny-open").examples(split)
    parses = right_branching().parse([sentence.words for sentence in gold], None)
    path = Path(f"{split}.parses")
    path.write_text("".join(f"{write_brackets(parse.tree)}\n" for parse in parses if parse.tree))
    return path


def entered(*splits: str, version: str = "1", **options: Any) -> Record:
    system = System(name="Branch", version=version, outputs={}, url="https://example.org")
    files = {split: [branching(split)] for split in splits}
    return enter(files, open_treebank("tiny-open"), system, RESULTS, **options)[0]


def test_a_task_has_the_words_and_nothing_else(laboratory: Laboratory) -> None:
    bank = open_treebank("tiny-open")
    paths = write_task(bank, "dev", Path("task"))
    assert [path.name for path in paths] == ["tiny-open.dev.conllu", "tiny-open.dev.txt"]
    conllu, text = (path.read_text("utf-8") for path in paths)
    words = [" ".join(parse.words) for parse in bank.examples("dev")]
    assert text.splitlines() == words
    rows = [line.split("\t") for line in conllu.splitlines() if line]
    assert [row[1] for row in rows] == " ".join(words).split()
    assert {cell for row in rows for cell in row[2:]} == {"_"}
    tagged = write_task(bank, "dev", Path("task"), tags=True)[0].read_text()
    tags = [line.split("\t")[4] for line in tagged.splitlines() if line]
    assert tags == [tag for parse in bank.examples("dev") for tag in parse.tags]


def test_dev_and_test_are_one_record_and_looks_at_test_are_counted(laboratory: Laboratory) -> None:
    both, dev = entered("dev", "test"), entered("dev")
    assert set(both.system.outputs) == {"dev", "test"}
    assert (dev.dev, dev.test) == (both.dev, None)
    ours = score_split(right_branching(), open_treebank("tiny-open"), "dev").metrics["brackets"]
    theirs = dev.dev.metrics["brackets"]
    assert theirs.counts == ours.counts
    assert "|variant:Branch 1|" in theirs.signature_long
    assert "output" not in theirs.signature_long
    assert both.system.tested == 1
    assert entered("test").system.tested == 1  # the same file again
    assert entered("dev", version="2").system.tested == 1
    path = branching("test")
    path.write_text(path.read_text().replace("(S ", "(SBAR ", 1))
    system, bank = System(name="Branch", version="2", outputs={}), open_treebank("tiny-open")
    assert enter({"test": [path]}, bank, system, RESULTS)[0].system.tested == 2
    records = records_in(RESULTS / "runs")
    assert [record.variant for record in records] == ["Branch 1"] * 3 + ["Branch 2"] * 2


def page_beside_the_best(system: str) -> str:
    """The page of the site on which it stands beside the best of its treebank."""
    files = site_files(load_results([RESULTS]))
    return next(
        text for name, text in files if f"/{system}" in name.removeprefix("systems")
    ).decode()


@pytest.mark.campaign
def test_sixteen_processes_enter_the_same_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bank = open_treebank("german-mini")
    files = []
    for number in range(4):  # answers of their own for each system
        for split in ("dev", "test"):
            files.append(tmp_path / f"{number}.{split}")
            words = [tree.words for tree in bank.split(split)]
            flat = [Tree.build(own, ("X",) * len(own), [(0, len(own), "S")]) for own in words]
            text = "".join(f"{write_brackets(one)}\n" for one in flat)
            files[-1].write_text(text.replace("(S", f"(S{number}"))
    commands = [
        ("systems", "enter", "--treebank", bank.name, "--system", f"s{number}",
         "--dev", files[2 * number], "--test", files[2 * number + 1])
        for number in range(4) for _ in range(4)
    ]  # fmt: skip
    with ThreadPoolExecutor(16) as pool:
        ended = list(pool.map(lambda command: cli_process(*command), commands))
    assert [one.stderr for one in ended if one.returncode] == []
    records = records_in(Path("results/runs"))
    assert {one.system.name for one in records} == {"s0", "s1", "s2", "s3"}
    assert {one.system.tested for one in records} == {1}
    assert len({(one.system.name, one.weights) for one in records}) == 4


def test_the_other_split_is_named(laboratory: Laboratory, tmp_path: Path) -> None:
    bank = open_treebank("tiny-open")
    path = tmp_path / "parses.mrg"
    path.write_text("".join(f"{write_brackets(one)}\n" for one in bank.split("test")))
    said = refused(
        "systems", "enter", "--treebank", bank.name, "--system", "x", "--dev", path
    )  # fmt: skip
    assert f"{path}: has the sentences of test, not of dev: --test {path}" in said
    laid_out = path.read_text().replace("(S ", "(S (X y) ").replace(") (", ")\n(")
    path.write_text(path.read_text().replace("(S", "S", 1))  # one that is broken hides it not
    given = ("systems", "enter", "--treebank", bank.name, "--system", "x")
    assert "has the sentences of test" in cli(*given, "--dev", path).stderr
    path.write_text(laid_out)
    said = cli(*given, "--test", path).stderr
    assert said.startswith(f"spmrl-bench: {path}: sentence 1: word 1 is 'y', in gold ")
    for name in ("", " "):
        said = refused("systems", "enter", "--treebank", bank.name, "--system", name, "--dev", path)
        assert "--system: expected the name of the system" in said


def test_a_record_that_somebody_sends_is_checked(laboratory: Laboratory) -> None:
    def sent(*splits: str, results: Path, **about: Any) -> Path:
        system = System(name="Theirs", outputs={}, **about)
        files = {split: [branching(split)] for split in splits}
        bank = open_treebank("tiny-open")
        return enter(files, bank, system, results, save_parses=True)[1]

    about = {"version": "1", "url": "https://example.org", "training_data": "train"}
    whole = sent("dev", "test", results=Path("theirs"), oath=True, **about)
    shown = works("systems", "enter", "--check", whole).stdout
    assert "| Theirs 1 " in shown
    part = sent("dev", results=Path("poor"), version="1")
    said = cli("systems", "enter", "--check", part).stderr
    for text in ("says no training data", "no url or paper", "with --oath", "no scores on test"):
        assert text in said
    assert "nothing to enter" in refused("systems", "enter", "--check", whole, "--dev", "x.mrg")
    known = entered("test")
    assert f"has parses of {RESULTS / 'runs'}" in cli("systems", "enter", "--check", whole).stderr
    assert known.variant == "Branch 1"
    (parses,) = Path("theirs/parses/tiny-open").glob("system*test.mrg")
    lines = parses.read_text().splitlines(keepends=True)
    parses.write_text("".join(["(())\n", *lines[1:]]))
    said = cli("systems", "enter", "--check", whole).stderr
    assert f"{parses.absolute()}: absent, or not the parses that were scored" in said


def test_runs_and_systems_stand_in_one_table_and_compare(laboratory: Laboratory) -> None:
    train(laboratory, variants=["charlstm"])
    (ours,) = evaluate(laboratory, variants=["charlstm"], save_parses=True)
    theirs = entered("test", save_parses=True)
    assert comparable_counts(ours, theirs, "test", "brackets")[0].skipped == 0
    with pytest.raises(ScoreError, match="second record has no scores on dev: its system was ent"):
        comparable_counts(ours, theirs, "dev", "brackets")
    shown = works("results", "table").stdout
    rows = {line.split("|")[1].strip(): line for line in shown.splitlines() if "|" in line}
    assert {"charlstm", "Branch 1", "right-branching"} <= rows.keys()
    cells = [rows[name].split("|")[5:9] for name in ("Branch 1", "right-branching")]
    assert cells[0] == cells[1]  # recall, precision, F1, complete match on test
    assert "Systems of others. Branch 1: 1 output scored on test." in shown
    found = works("compare", *(path.stem for path in sorted((RESULTS / "runs").iterdir())))
    assert "sentences of test" in found.stdout
    # The tables below the board are about what dev selects among our variants.
    (board, *tables), alone = (
        track_document(groups_of(by_age(some)), "open", []).tables
        for some in ([ours, theirs], [ours])
    )
    assert [row[0] for row in board.rows] == ["Branch 1", "charlstm", "right-branching"]
    assert tables == [*alone]
    # Pages show trees of both, those that were scored and no others.
    assert "<details>" in page_beside_the_best("Branch")
    (path,) = RESULTS.glob("parses/tiny-open/system-*.test.mrg")
    path.write_text(path.read_text().replace("(S ", "(Q "))
    assert "<details>" not in page_beside_the_best("Branch")


def test_faults_are_in_the_signature(laboratory: Laboratory) -> None:
    path = branching("dev")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["", lines[1][:-1], *lines[2:]]) + "\n")
    about = ("--treebank", "tiny-open", "--system", "B|x:y")
    command = ("systems", "enter", "--dev", path, *about, "--faults")
    assert "2 of 8 answers cannot be scored" in cli(*command, "refuse").stderr
    assert not (RESULTS / "runs").exists()
    result = works(*command, "repair")
    assert "dev: no parse: 1 answers\ndev: repaired: 1 answers\n" in result.stderr
    assert "|var:B/x/y|out:no parse 1+repaired 1|" in result.stdout
    (written,) = (RESULTS / "runs").iterdir()
    output = read_document(Record, written).system.outputs["dev"]
    assert (output.policy, output.handled) == ("repair", {"no parse": 1, "repaired": 1})


def test_both_layers_come_together_and_are_kept_as_they_were_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bank = open_treebank("german-mini")
    gold = bank.examples("dev")
    brackets, conllu = Path("dev.mrg"), Path("dev.conllu")
    trees = file_text(gold, "brackets", structure=True).splitlines()
    trees[2] = "I cannot"
    brackets.write_text("\n".join(trees), encoding="utf-16")
    blocks = file_text(gold, "conllu", structure=True).split("\n\n")
    blocks[4] = blocks[4].replace("\t0\t", "\t77\t")
    conllu.write_text("\n\n".join(blocks), encoding="utf-16")
    system = System(name="Oracle", outputs={})
    options: dict[str, Any] = {"policy": "missing", "encoding": "utf-16"}
    files = {"dev": [brackets, conllu]}
    record, _ = enter(files, bank, system, RESULTS, save_parses=True, **options)
    output = record.system.outputs["dev"]
    assert set(output.sha256) == {"constituents", "dependencies"}
    assert output.handled == {"malformed": 2}
    saved = SavedParses.of_record(RESULTS, record)
    layers: dict[str, Layer] = {"brackets": "constituents", "attachment": "dependencies"}
    for name, layer in layers.items():
        metric, result = metric_named(name), record.dev.metrics[name]
        assert 98 < result.figures[metric.headline] < 100
        rules = metric.rules(bank.rules.get(name, {}))
        pair = saved.read("dev", layer)
        assert metric.count(*pair, rules).to_columns() == record.dev.counts(name).to_columns()
        assert len(pair[1]) == len(gold)
    assert set(saved.read("dev", "dependencies")[1][4].dependencies.heads.tolist()) == {-1}
    assert not saved.read("dev", "constituents")[1][2].tree.labels
    with pytest.raises(ScoreError, match="two files of dev have the same layer"):
        enter({"dev": [brackets, brackets]}, bank, system, RESULTS, **options)
    conllu.write_text(file_text(gold, "conllu", structure=True))
    perfect = System(name="Perfect", outputs={})
    enter({"dev": [conllu]}, bank, perfect, RESULTS, save_parses=True)
    page = page_beside_the_best("Oracle")
    assert page.count("no answer") == len(gold[4])
    nothing = cli("systems", "enter", "--treebank", "german-mini", "--system", "x")
    assert "nothing to enter" in nothing.stderr
    # What a record of somebody else says leads to no other folder.
    with pytest.raises(ScoreError, match="no parses can be kept"):
        SavedParses.of_record(RESULTS, record.model_copy(update={"weights": "../../secret"}))


# Answers: each damage is refused or counted, and none raises a score ----------------------

GOLD = [Parse.of(tree) for tree in make_trees(12, 5)]
RIGHT = [write_brackets(parse.tree) for parse in GOLD if parse.tree]


def read(
    path: Path, lines: list[str], policy: Policy = "refuse", **options: Any
) -> tuple[float, dict[str, int]]:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = read_predictions(path, GOLD, policy=policy, **options)
    counts = BRACKETS.count(GOLD, found.parses, BracketRules(load_prm("spmrl")))
    assert counts.skipped == 0  # nothing is left out, whatever the answers are
    return float(BRACKETS.values(counts)["f1"] or 0), found.handled


#: Damage to an answer, what refuses it, and as what `missing` and `repair` count it.
DAMAGED: dict[str, tuple[Callable[[str], str], str, str, str]] = {
    "unclosed": (lambda s: s[:-2], "closed before|lacks", "malformed", "repaired"),
    "closed too often": (lambda s: s + ")", "no bracket is open", "malformed", "repaired"),
    "text around a tree": (lambda s: f"Sure! {s} More?", "outside|Sure", "malformed", "repaired"),
    "two trees in a line": (lambda s: f"{s} {s}", "found 2 trees", "malformed", "repaired"),
    "no brackets": (lambda _: "I cannot", "found text outside", "malformed", ""),
    "empty line": (lambda _: "", "no parse", "no parse", ""),
    "empty brackets": (lambda _: "(())", "no parse", "no parse", ""),
    "words cut off": (lambda _: "(S (NP (DT the)))", "in gold", "other words", ""),
    "words split": (lambda s: s.replace("(NN ", "(NN x) (NN ", 1), "in gold", "other words", ""),
    "other order": (lambda s: RIGHT[-1 - RIGHT.index(s)], "word 1 is", "other words", ""),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused_or_counted(tmp_path: Path, name: str) -> None:
    damage, refused, missing, repaired = DAMAGED[name]
    harmed = range(12) if name == "other order" else [3]
    lines = [damage(line) if k in harmed else line for k, line in enumerate(RIGHT)]
    path = tmp_path / "parses.mrg"
    with pytest.raises(ScoreError, match=refused) as caught:
        read(path, lines)
    assert f"{path}:" in str(caught.value)
    assert "--faults missing" in str(caught.value)
    invalid = sum(one != other for one, other in zip(lines, RIGHT, strict=True))
    scores = []
    for policy, kind in (("missing", missing), ("repair", repaired or missing)):
        found, handled = read(path, lines, policy)
        assert handled == {kind: invalid}
        scores.append(found)
    assert scores[0] <= scores[1] <= 100
    if repaired:
        assert scores[0] < scores[1] == 100  # only brackets were wrong


@pytest.mark.parametrize("policy", get_args(Policy))
def test_the_right_parses_are_taken_as_they_are(tmp_path: Path, policy: Policy) -> None:
    assert read(tmp_path / "parses.mrg", RIGHT, policy) == (100, {})
    wrapped = [f"(TOP {line})" for line in RIGHT]
    assert read(tmp_path / "parses.mrg", wrapped, policy, transforms=["strip-root"]) == (100, {})
    # One blank line at the end is the editor's; trees may be laid out over lines.
    assert read(tmp_path / "parses.mrg", [*RIGHT, "", ""], policy) == (100, {})
    laid_out = [line.replace("(VP", "\n  (VP") for line in RIGHT]
    assert read(tmp_path / "parses.mrg", laid_out, policy) == (100, {})
    laid_out[4] = laid_out[4][:-1]
    with pytest.raises(ReadError, match=r"parses\.mrg:9:1: "):  # over lines, they must be whole
        read(tmp_path / "parses.mrg", laid_out, policy)


@pytest.mark.parametrize("policy", get_args(Policy))
def test_another_number_of_answers_is_never_guessed_at(tmp_path: Path, policy: Policy) -> None:
    for lines in (RIGHT[:-1], [*RIGHT, RIGHT[0]], [RIGHT[0], *RIGHT], [""]):
        with pytest.raises(ScoreError, match=r"has \d+ sentences, the split has 12"):
            read(tmp_path / "parses.mrg", lines, policy)


def test_tags_are_those_of_the_treebank(tmp_path: Path) -> None:
    path = tmp_path / "parses.mrg"
    lines = [line.replace("(NN ", "(XX ").replace("(IN ", "(. ") for line in RIGHT]
    assert read(path, lines) == (100, {})
    found = read_predictions(path, GOLD)
    assert [parse.tags for parse in found.parses] == [parse.tags for parse in GOLD]


# Dependencies ---------------------------------------------------------------------------

ARCS = [
    Parse.of(None, DependencyTree.build(("a", "b", "c"), ("X", "Y", "Z"), heads, ("r", "s", "t")))
    for heads in ((2, 0, 2), (0, 1, 2), (3, 3, 0))
]
ROWS = [file_text([parse], "conllu", tags=True, structure=True) for parse in ARCS]


def dependency_score(path: Path, text: str, policy: Policy) -> tuple[float, dict[str, int]]:
    path.write_text(text, encoding="utf-8")
    found = read_predictions(path, ARCS, policy=policy)
    counts = ATTACHMENT.count(ARCS, found.parses, AttachmentRules())
    return float(ATTACHMENT.values(counts)["las"] or 0), found.handled


def test_dependencies_that_are_no_tree_count_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "parses.conllu"
    assert dependency_score(path, "".join(ROWS), "refuse") == (100, {})
    cyclic = ROWS[1].replace("\t0\tr", "\t3\tr")
    with pytest.raises(ScoreError, match=r"parses\.conllu:\d+: sentence 2: .*cycle"):
        dependency_score(path, ROWS[0] + cyclic + ROWS[2], "refuse")
    for wrong, kind in ((cyclic, "malformed"), (ROWS[1].replace("b", "bb"), "other words")):
        found = dependency_score(path, ROWS[0] + wrong + ROWS[2], "missing")
        assert found == (pytest.approx(200 / 3), {kind: 1})
    with pytest.raises(ScoreError, match="has 2 sentences, the split has 3"):
        dependency_score(path, ROWS[0] + ROWS[1], "missing")
    with pytest.raises(ScoreError, match="has dependencies, but the treebank has constituents"):
        read_predictions(path, GOLD)
