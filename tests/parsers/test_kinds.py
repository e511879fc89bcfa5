"""Every kind of parser is known without torch, built, saved, loaded and asked in one way."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from spmrl_bench.errors import CheckpointError, RecipeError
from spmrl_bench.parsers.base import EnsembleError, ParserConfig, UnsupportedError
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.kinds import KINDS, baselines_for, kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.registry import Registry
from spmrl_bench.trees.parse import Parse
from tests.builders import chained, cli_process, config, enlarge, learn, of_layers, tiny, words_of
from tests.parsers.test_transition_parser import crossing

SENTENCES = [["the", "dog", "sees", "zebras", "."], [], ["dogs"], ["?", "!"]]
BASELINES = ("right-branching", "attach-neighbour", "random-projective", "random-shortest")


@pytest.mark.parametrize("name", KINDS.names())
def test_a_saved_parser_of_any_kind_is_loaded_by_its_folder(name: str, tmp_path: Path) -> None:
    parser = tiny(name)
    parser.save(tmp_path)
    again = load_parser(tmp_path, "cpu")
    assert type(again) is kind_named(name).parser_class
    assert again.kind == name
    found = list(again.parse(SENTENCES))
    assert found == list(parser.parse(SENTENCES))
    # A session may be asked several times, and a batch may be of any size.
    session = again.session(max_tokens=4)
    assert [*session.parse(SENTENCES[:1]), *session.parse(SENTENCES[1:])] == found
    assert [list(parse.words) for parse in found] == SENTENCES
    given_up = again.flat(["a", "b", "."], ["X", "Y", "Z"])
    assert (given_up.words, given_up.tags) == (("a", "b", "."), ("X", "Y", "Z"))
    parses = [given_up, *filter(len, found)]
    assert all(parse.layers == kind_named(name).layers for parse in parses)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("chart", {"lexical": ("charlstm",), "position": "added", "matrices": "full"}),
        ("chart", {}),
        ("biaffine", {"encoder": "lstm"}),
        ("joint", {"encoder": "lstm"}),
        ("transition", {"encoder": "gru", "d_decoder": 32, "d_attention": 16}),
    ],
)
def test_training_sentences_are_learnt_by_heart(
    kind: str, changes: dict[str, Any], sentences: list[Parse]
) -> None:
    short = [each for each in sentences if len(each) < 10][:4]
    examples = of_layers(short, kind_named(kind).layers)
    if kind == "transition":
        examples += crossing()
    torch.manual_seed(0)
    settings = config(kind, layers=1, d_model=64, d_char=16, **changes)
    parser = kind_named(kind).parser_class.build(settings, examples)
    given = words_of(examples), [each.tags for each in examples]
    assert list(parser.parse(*given)) != examples
    losses = learn(parser, examples, 150)
    assert losses[-1] < losses[0] / 10
    assert list(parser.parse(*given)) == examples


@pytest.mark.parametrize("name", [name for name in KINDS.names() if kind_named(name).trained])
def test_weights_of_any_kind_are_drawn_as_it_is_set(name: str) -> None:
    def weights(rule: str) -> dict[str, Any]:
        torch.manual_seed(1)
        settings = config(name, initialisation=rule)
        return dict(kind_named(name).parser_class.build(settings, chained()).named_parameters())

    usual, drawn, again = weights("usual"), weights("glorot-uniform"), weights("glorot-uniform")
    assert usual.keys() == drawn.keys()
    for key, weight in drawn.items():
        assert torch.equal(weight, again[key]), key
        if weight.dim() >= 2:
            assert not torch.equal(weight, usual[key]), key
        elif key.rpartition(".")[2].startswith("bias"):
            assert not weight.any(), key
        else:
            assert torch.equal(weight, usual[key]), key


@pytest.mark.parametrize("kind", ["biaffine", "joint", "transition"])
def test_one_word_has_a_relation_of_roots(kind: str, sentences: list[Parse]) -> None:
    parser = enlarge(tiny(kind, sentences, max_positions=60))
    trees = [each.dependencies for each in sentences]
    known = {tree.relations[tree.heads.tolist().index(0)] for tree in trees}
    for parse in parser.parse(words_of(sentences)):
        at_root = [relation in known for relation in parse.dependencies.relations]
        assert at_root == (parse.dependencies.heads == 0).tolist()
        assert at_root.count(True) == 1


def test_kinds_and_variants_are_known_without_torch() -> None:
    code = (
        "import sys\n"
        "from spmrl_bench.experiments.recipe import list_recipes, load_recipe\n"
        "from spmrl_bench.parsers.kinds import trained_kinds\n"
        "[load_recipe(name, light=True) for name in list_recipes()]\n"
        "print([*trained_kinds()])\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = cli_process(code=code)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == ["chart", "biaffine", "joint", "transition"]


def test_baselines_are_those_of_the_metrics() -> None:
    def names(*metrics: str) -> list[str]:
        return [*baselines_for(metrics)]

    assert (names("brackets"), names("attachment")) == (list(BASELINES[:1]), list(BASELINES[1:]))
    assert (names("attachment", "brackets"), names("words")) == (list(BASELINES), [])


def test_unknown_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecipeError, match=r"unknown parser kind 'chrat'. Did you mean chart\?"):
        kind_named("chrat")
    odd: Registry[Any] = Registry("parser kind", "none", {"odd": "math:pi"})
    monkeypatch.setattr("spmrl_bench.parsers.kinds.KINDS", odd)
    with pytest.raises(CheckpointError, match=r"odd: its package names 3\.14.*, which is no Kind"):
        kind_named("odd", CheckpointError)


@pytest.mark.parametrize("name", BASELINES)
def test_every_fact_of_a_baseline_is_checked(name: str, tmp_path: Path) -> None:
    parser = tiny(name)
    for fact in parser.counted:
        for change in ({fact: 7}, {fact: None}, None):
            parser.save(tmp_path)
            path = tmp_path / "parser.json"
            content = json.loads(path.read_text())
            del content["counted"][fact]
            content["counted"] |= change or {}
            path.write_text(json.dumps(content))
            with pytest.raises(CheckpointError, match=rf"parser\.json: counted: {fact}: "):
                load_parser(tmp_path)


def test_what_a_kind_cannot_tell_is_refused() -> None:
    chart, baseline = tiny(), tiny("right-branching")
    for other, message in (
        (chart, "^a parser of kind chart has no derivation.*one of kind transition$"),
        (baseline, "^a parser of kind right-branching has no derivation.*one of kind transition$"),
        (Ensemble([tiny("transition")] * 2), "^an ensemble of 2 parsers has no .derivation"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            other.derivation(["a"])


def test_parsers_of_several_kinds_are_no_ensemble() -> None:
    baselines = [kind_named(name).parser_class.build(ParserConfig(), []) for name in BASELINES[:2]]
    found = "found: attach-neighbour, right-branching"
    with pytest.raises(EnsembleError, match=f"parsers of one kind; {found}"):
        Ensemble(baselines)
    with pytest.raises(EnsembleError, match="found: no parser"):
        Ensemble([])
    with pytest.raises(EnsembleError, match="parsers of kind attach-neighbour cannot parse toget"):
        Ensemble(baselines[1:])
