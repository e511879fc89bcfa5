"""The program as a whole: its help, its answers to mistakes, its exit statuses and streams."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import spmrl_bench
from spmrl_bench.cli import app
from tests.builders import ROOT, cli, cli_process, refused, works

GOLD = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n"


def leaves(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The commands that do something, in the order of help."""
    if not hasattr(command, "commands"):
        yield path
        return
    for name in command.list_commands(None):
        yield from leaves(command.commands[name], *path, name)


LEAVES = list(leaves(typer.main.get_command(app)))


def test_help_fits_a_terminal_and_lists_what_there_is() -> None:
    lines = works("--help").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines[lines.index("Commands:") + 1 :]]
    assert listed == list(dict.fromkeys(path[0] for path in LEAVES))
    assert [" ".join(path) for path in LEAVES] == [
        *("train", "eval", "parse", "score", "compare"),
        *("treebanks list", "treebanks fetch", "treebanks check", "treebanks add"),
        *("treebanks suspects", "runs list", "runs log", "runs clean"),
        *("results table", "results site"),
        *("systems list", "systems install", "systems task", "systems enter"),
        *("study run", "study search", "model fetch", "model package", "model calibrate"),
        *("model attention", "model heads"),
        *("recipes list", "recipes show"),
    ]


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_of_each_command_has_an_example(path: tuple[str, ...]) -> None:
    shown = works(*path, "--help").stdout
    assert f"spmrl-bench {' '.join(path)}" in shown.partition("Example")[2]
    assert "`" not in shown.replace("`` ''", "")  # but the quotation marks of the Penn Treebank
    (line,) = (line for line in works(*path[:-1], "--help").stdout.splitlines()
               if line.startswith(f"  {path[-1]} "))  # fmt: skip
    assert not line.endswith("...")


def test_version() -> None:
    assert works("--version").stdout == f"spmrl-bench {spmrl_bench.__version__}\n"


def test_what_is_not_understood_is_one_line_and_status_2() -> None:
    for command, message in {
        "trian german": "spmrl-bench: No such command 'trian'. Did you mean 'train'?",
        "runs clear": "spmrl-bench runs: No such command 'clear'. Did you mean 'clean'?",
        "score gold": "spmrl-bench score: Missing argument 'test'.",
        "parse": "spmrl-bench parse: Missing option '--model'.",
        "train german --sizes small": "spmrl-bench train: No such option: --sizes (Possible opt",
        "train german --seeds 0": "spmrl-bench train: Invalid value for '--seeds': ",
        "train german --seeds 1000000": "spmrl-bench train: Invalid value for '--seeds': ",
        "train german --minutes 0": "spmrl-bench train: Invalid value for '--minutes': ",
        "parse --workers 1000000": "spmrl-bench parse: Invalid value for '--workers': ",
        "compare a b --trials 1000000000": "spmrl-bench compare: Invalid value for '--trials': ",
        "train german --jobs two": "spmrl-bench train: Invalid value for '--jobs': ",
        "score a b --tags upso": "spmrl-bench score: Invalid value for '--tags': 'upso' is not ",
    }.items():
        result = cli(*command.split())
        assert (result.exit_code, result.stdout) == (2, "")
        (line,) = result.stderr.splitlines()
        assert line.startswith(message)


def test_a_command_that_stands_in_a_group_is_answered_with_its_place() -> None:
    for old, place in (("enter", "systems enter"), ("search", "study search")):
        said = cli(old, "--some", "options")
        assert (said.exit_code, said.stdout) == (2, "")
        assert said.stderr == f"spmrl-bench: '{old}' is now 'spmrl-bench {place}'\n"


def test_a_group_alone_prints_its_help() -> None:
    result = cli("runs")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: spmrl-bench runs ")


def test_mistakes_that_commands_find_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command, message in {
        "train": "name a language (with make: lang=german). Known: arabic, basque, ",
        "train germam": "unknown language 'germam'. Did you mean german?",
        "train german --languages french": "german and --languages: give one of the two",
        "train --track mini --treebank x": "unknown treebank 'x'",
        "train --track minni": "unknown track 'minni'. Did you mean mini",
        "train --track mini --languages germam": "unknown language 'germam'. Did you mean german",
        "eval --track mini --variant charlsmt": "unknown variant 'charlsmt'. Did you mean charlstm",
        "train german --system supar --variant bilstm": "--variant: not for external parsers (--s",
        "train german --set x": "--set x: expected KEY=VALUE",
        "train german --seed 3 --seeds 5": "--seed 3 and --seeds 5: give one of the two",
        "eval german --ensemble --system supar": "--ensemble: not for external parsers",
        "results table": "no records in results/runs: 'spmrl-bench eval LANG' writes them",
        "parse --model nowhere": "nowhere: no trained parser here",
        "score a b --prm spmlr": "unknown parameter set 'spmlr'. Did you mean",
    }.items():
        assert message in refused(*command.split())
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")], ids=type
)
def test_no_memory_is_one_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("spmrl_bench.experiments.train.train_all", fail)
    assert refused("train", "german").startswith("out of memory; fewer --jobs")


def test_no_file_steers_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(tmp_path))
    recipe = 'base = "base"\nlanguage = "x"\ntreebanks = ["\\u001b]0;x\\u0007"]\n'
    for folder in ("recipes", "systems", "treebanks"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a\x1b[31m.toml").write_text(recipe)
        os.mkfifo(tmp_path / folder / "pipe.toml")
        (tmp_path / folder / "folder.toml").mkdir()
        result = cli(folder, "list")
        assert result.exit_code == 1
        assert len(result.stdout.splitlines()) > 5  # what is sound is listed
        for name in ("a\\x1b[31m", "pipe", "folder"):
            assert name in result.stderr
        assert "\x1b" not in result.stdout + result.stderr


# A user who installed the scorer alone, without the extra "train".
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, *rest):
        if name in ("torch", "pandas", "safetensors"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
from spmrl_bench.cli import app
for line in sys.stdin.read().splitlines():
    app(line.split(), standalone_mode=False)
"""


def test_commands_that_need_torch_say_so_and_the_others_do_without(tmp_path: Path) -> None:
    (tmp_path / "gold.mrg").write_text(GOLD, encoding="utf-8")
    (tmp_path / "gold.conllu").write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n", encoding="utf-8")
    run = tmp_path / "runs" / "some"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}", encoding="utf-8")
    commands = (
        *("score gold.mrg gold.mrg", "score gold.conllu gold.conllu", "runs list"),
        *("compare gold.mrg gold.mrg --gold gold.mrg", "recipes list", "train german"),
    )
    done = cli_process(code=WITHOUT, cwd=tmp_path, input="\n".join(commands))
    assert done.stdout.count("scorer:own") == 4
    assert "1 run: 1 interrupted" in done.stdout
    assert done.stderr == "spmrl-bench: this needs torch: pip install 'spmrl-bench[train]'\n"


def test_the_package_names_what_users_need() -> None:
    assert spmrl_bench.__all__ == [
        *("DependencyTree", "Parse", "Parser", "SpmrlError", "Tree", "evaluate", "load"),
        *("open_treebank", "read_dependencies", "read_trees", "results_frame"),
        *("score_dependencies", "score_trees", "train"),
    ]
    assert all(callable(getattr(spmrl_bench, name)) for name in spmrl_bench.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        spmrl_bench.lode  # noqa: B018


@pytest.mark.campaign
def test_the_python_of_the_readme_has_the_types_that_it_needs(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    (tmp_path / "example.py").write_text("".join(blocks), encoding="utf-8")
    code = "from mypy.__main__ import console_entry; console_entry()"
    done = cli_process("--strict", "example.py", code=code, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_has_its_own_status_and_says_how_to_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spmrl_bench.experiments.train.train_all", interrupt)
    monkeypatch.setattr("spmrl_bench.scoring.load_prm", interrupt)
    for command, said in {
        "train german": "interrupted; give the same command again (without --fresh) to continue",
        "score a b": "interrupted",
    }.items():
        result = cli(*command.split())
        assert (result.exit_code, result.stderr.strip()) == (130, f"spmrl-bench: {said}")
