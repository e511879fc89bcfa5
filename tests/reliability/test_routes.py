"""Every route from words to a score gives the figure of ``eval``, or says why it does not and which
option does."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.parsing.json_lines import read_parse_lines, to_parse
from spmrl_bench.readers.conll import conll_lines
from spmrl_bench.scoring import load_prm, score_trees
from spmrl_bench.scoring.bracket_metric import BRACKETS
from spmrl_bench.systems.enter import read_predictions
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from tests.builders import chained, cli, works
from tests.laboratory import MANIFEST, SIZES, Laboratory, make_trees, table

Sentence = tuple[Tree, DependencyTree]


class Kind(NamedTuple):
    """A treebank of some kind: its words and labels, how a sentence is written, its manifest."""

    words: dict[str, str]
    labels: dict[str, str]
    write: Callable[[Sentence], str]
    keys: dict[str, Any]


def brackets(escapes: str, around: str = "{}") -> Callable[[Sentence], str]:
    return lambda sentence: around.format(write_brackets(sentence[0], escapes)) + "\n"


def rows(sentence: Sentence) -> str:
    tree = sentence[1]
    heads = map(str, tree.heads.tolist())
    return conll_lines(tree.words, tree.tags, heads, tree.relations)


MARKS = {"dog": "1/2", "elf": "(", "ring": "*", "tower": "[x]", "river": "a\\b", "the": "`"}
PLAIN = {"escapes": "brackets", "transforms": ["strip-functions", "strip-root"]}
TREEBANKS = {
    "penn": Kind(MARKS, {"NP": "NP-SBJ"}, brackets("ptb", "( {} )"), PLAIN | {"escapes": "ptb"}),
    "spmrl": Kind(MARKS, {"NP": "NP-SBJ"}, brackets("brackets", "(TOP {})"), PLAIN),
    "spaces": Kind(
        {"dog": "hot dog", "elf": "high elf", "ring": "10\u00a0000"},
        {},
        lambda sentence: brackets("none")(sentence).replace("\\x20", " "),
        {"escapes": "none", "leaf": "{tag} {word...}", "transforms": []},
    ),
    "categorial": Kind(
        {}, {"VP": "S\\NP", "PP": "(NP\\NP)", "VBZ": "(S\\NP)/NP", "IN": "\\x"},
        brackets("brackets"), {"escapes": "brackets", "transforms": []},
    ),
    "dependencies": Kind(
        {"dog": "hot dog", "ring": "10\u00a0000"}, {}, rows, {"format": "conll"}
    ),
}  # fmt: skip


def changed(kind: Kind, sentence: Sentence, punctuation: bool) -> Sentence:
    tree, arcs = sentence
    words = [kind.words.get(word, word) for word in tree.words]
    tags = [kind.labels.get(tag, tag) for tag in tree.tags]
    rows = [(*span, kind.labels.get(label, label)) for *span, label in tree.constituents()]
    heads, relations = arcs.heads.tolist(), list(arcs.relations)
    if punctuation:  # at the end of the sentence
        words, tags = [*words, "."], [*tags, "."]
        rows = [
            (start, end + (not start and end == len(tree)), label) for start, end, label in rows
        ]
        heads, relations = [*heads, 1], [*relations, "punct"]
    return (Tree.build(words, tags, rows), DependencyTree.build(words, tags, heads, relations))


@pytest.fixture(scope="module", params=TREEBANKS)
def scored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Treebank, Path, Record]]:
    """A treebank, a run that was trained on it, and its record."""
    name, kind = request.param, TREEBANKS[request.param]
    folder = tmp_path_factory.mktemp(name)
    laboratory = Laboratory(folder / "laboratory")
    laboratory.manifests.mkdir(parents=True)
    laboratory.recipe.parent.mkdir()
    for seed, (split, size) in enumerate(SIZES.items()):
        choose = random.Random(seed)
        sentences = [
            changed(kind, (one.tree, one.dependencies), choose.random() < 0.5)
            for one in chained(make_trees(size, 70 + seed))
        ]
        path = laboratory.treebanks / name / f"{split}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(map(kind.write, sentences)), encoding="utf-8")
    keys = MANIFEST | {"name": name, "path": name} | kind.keys
    keys["splits"] = {split: {"files": [f"{split}.txt"]} for split in SIZES}
    if of_arcs := name == "dependencies":
        del keys["prm"], keys["escapes"]
    (laboratory.manifests / f"{name}.toml").write_text(table(keys), encoding="utf-8")
    arcs = {"d_arc": 16, "d_relation": 8, "biaffine_dropout": 0.1}
    laboratory.write_base(
        variants={},
        variants__parser={"kind": "biaffine" if of_arcs else "chart", "inputs": ["charlstm"]},
        variants__parser__model=arcs if of_arcs else {},
    )
    laboratory.write_recipe([name])
    with pytest.MonkeyPatch.context() as patch:
        laboratory.in_use(patch)
        patch.chdir(folder)
        runs = make_runs(str(laboratory.recipe))
        train_all(runs)
        (record,), errors = evaluate_all(runs, KnownRecords(Path("results")), save_parses=True)
        assert not errors
        yield open_treebank(name), runs[0].folder, record


def figure(*arguments: object) -> tuple[float | None, str]:
    """The figure that ``score`` gives, None if it refuses, and what it says beside."""
    found = cli("score", *arguments, "--format", "json")
    if found.exit_code:
        return None, found.stderr
    report = json.loads(found.stdout)
    of_all = report.get("all") or report["all_words"]
    return of_all["f1" if "f1" in of_all else "las"], found.stderr


def check(gold: Path, parses: Path, expected: float) -> None:
    """See to it that ``score`` gives a figure, perhaps with the options that it names itself."""
    options: list[str] = []
    for _ in range(4):
        found, said = figure(gold, parses, *options)
        named = re.findall(r"(--outer|--escapes|--punctuation) ([\w-]+)", said)
        if found is not None and not named:
            assert found == expected, (options, said)
            return
        assert named, said
        options += [part for pair in named for part in pair]
    pytest.fail(f"no end of options: {options}")


def gold_of(bank: Treebank) -> Path:
    """The treebank's file, or, where ``score`` cannot read that, the one that ``eval`` kept."""
    if bank.name == "spaces":
        return Path("results/parses/spaces/gold.dev.mrg")
    return bank.places("dev")[0].path


def saved(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


Scored = tuple[Treebank, Path, Record]


def expected_of(record: Record) -> float:
    assert record.dev is not None
    (result,) = record.dev.metrics.values()
    return float(result.figures["f1" if "f1" in result.figures else "las"] or 0)


def test_words(scored: Scored, tmp_path: Path) -> None:
    bank, run, record = scored
    works("systems", "task", bank.name, "--split", "dev", "--to", tmp_path)
    words = tmp_path / f"{bank.name}.dev.txt"
    parses = saved(tmp_path / "out", works("parse", "--model", run, words).stdout)
    found = figure(gold_of(bank), parses)
    if bank.name in ("spaces", "dependencies"):  # words are cut at their spaces
        assert found[0] is None
        assert "_' stands for white space" in found[1] or "is '10_000', in gold" in found[1]
    else:
        check(gold_of(bank), parses, expected_of(record))
    predictions = read_predictions(
        parses, bank.examples("dev"), transforms=bank.manifest.transforms
    )
    assert not predictions.handled


@pytest.mark.parametrize("tags", [(), ("--tags",)])
def test_conllu(scored: Scored, tmp_path: Path, tags: tuple[str, ...]) -> None:
    bank, run, record = scored
    works("systems", "task", bank.name, "--split", "dev", "--to", tmp_path, *tags)
    given = "--input", "conllu", tmp_path / f"{bank.name}.dev.conllu"
    parses = saved(tmp_path / "out", works("parse", "--model", run, *given).stdout)
    check(gold_of(bank), parses, expected_of(record))


def test_its_own_files(scored: Scored, tmp_path: Path) -> None:
    bank, run, record = scored
    gold = bank.places("dev")[0].path
    form = "conllu" if bank.name == "dependencies" else "brackets"
    found = cli("parse", "--model", run, "--input", form, gold)
    if bank.name == "spaces":
        assert found.exit_code == 1
        assert "expected '(TAG word)'" in found.stderr
    else:
        check(gold, saved(tmp_path / "out", found.stdout), expected_of(record))
    if bank.name != "dependencies":
        parses = works("parse", "--model", run, "--input", "brackets", gold_of(bank)).stdout
        check(gold_of(bank), saved(tmp_path / "out", parses), expected_of(record))


def test_saved_parses(scored: Scored) -> None:
    bank, run, record = scored
    ending = "conllu" if bank.name == "dependencies" else "mrg"
    folder = Path("results/parses") / bank.name
    gold, parses = folder / f"gold.dev.{ending}", folder / f"{run.name}.dev.{ending}"
    check(gold, parses, expected_of(record))


def test_json(scored: Scored, tmp_path: Path) -> None:
    bank, run, record = scored
    if bank.name == "dependencies":
        pytest.skip("brackets alone")
    works("systems", "task", bank.name, "--split", "dev", "--to", tmp_path, "--tags")
    given = "--input", "conllu", tmp_path / f"{bank.name}.dev.conllu", "--output", "json"
    path = saved(tmp_path / "out", works("parse", "--model", run, *given).stdout)
    parses = [to_parse(line) for line in read_parse_lines(path)]
    counts = score_trees(bank.split("dev"), [one and one.tree for one in parses], load_prm("spmrl"))
    assert BRACKETS.values(counts)["f1"] == expected_of(record)
