"""A folder in which the commands and the Python of the documents find what they speak of."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.escapes import write_brackets
from tests.builders import cli, tiny
from tests.documents.blocks import ROOT
from tests.laboratory import SIZES, make_trees

RUN = "runs/german-mini/small-charlstm-seed{}"
CONLLU = """\
1\tthe\t_\tD\tD\t_\t2\tdet\t_\t_
2\tdog\t_\tN\tN\t_\t3\tnsubj\t_\t_
3\tbarks\t_\tV\tV\t_\t0\troot\t_\t_

"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained parsers where runs would be, records, and files of trees."""
    folder = tmp_path_factory.mktemp("documents")
    runs = (*map(RUN.format, (1, 2, 3)), "runs/german-mini/small-bilstm-seed1")
    for seed, run in enumerate(runs, start=1):
        path = folder / run
        path.mkdir(parents=True)
        tiny(seed=seed, layers=2).save(path)
    # As many layers and heads as the documents draw, and few blocks of each: pictures take long.
    path = folder / "runs" / "NAME"
    path.mkdir(parents=True)
    tiny(layers=4, heads=3, matrices="full").save(path)
    for records in ("results/runs", "results/shipped/runs"):
        (folder / records).mkdir(parents=True)
        for record in (ROOT / "results" / "shipped" / "runs").glob("*.json"):
            text = record.read_text(encoding="utf-8")
            if '"german-mini"' in text or '"basque-mini"' in text:  # two make a table, and are read
                (folder / records / record.name).write_text(text, encoding="utf-8")
    trees = make_trees(20, seed=1)
    choose = random.Random(1)
    for name in ("gold", "parses", "one", "other"):
        text = "".join(f"{write_brackets(tree)}\n" for tree in trees)
        if name != "gold":  # some noun phrases are lost
            lines = text.splitlines(keepends=True)
            text = "".join(
                line.replace("(NP", "(X", 1) if choose.random() < 0.3 else line for line in lines
            )
        (folder / f"{name}.mrg").write_text(text, encoding="utf-8")
    for name in ("gold", "parses"):
        (folder / f"{name}.conllu").write_text(CONLLU, encoding="utf-8")
    mine = folder / "treebanks" / "my_treebank"
    mine.mkdir(parents=True)
    for seed, (split, size) in enumerate(SIZES.items(), start=2):
        text = "".join(f"{write_brackets(tree)}\n" for tree in make_trees(size, seed))
        (mine / f"{split}.mrg").write_text(text, encoding="utf-8")
    (folder / "text.txt").write_text("the dog barks\n\ndogs sleep\n", encoding="utf-8")
    parse = ["parse", "--model", str(folder / RUN.format(1)), "--output", "json"]
    parsed = cli(*parse, str(folder / "text.txt"))
    assert parsed.exit_code == 0, parsed.output
    (folder / "parses.jsonl").write_text(parsed.stdout, encoding="utf-8")
    (folder / "outside").mkdir()
    answers = (write_brackets(tree) for tree in open_treebank("german-mini").split("dev"))
    (folder / "outside" / "parses.mrg").write_text("\n".join(answers) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def world(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as working directory and home folder."""
    monkeypatch.chdir(prepared)
    monkeypatch.setenv("HOME", str(prepared))
    monkeypatch.setenv("TREEBANKS", str(prepared / "treebanks"))
    return prepared
