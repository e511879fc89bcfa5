"""The page on architecture says how to add an encoder; its code does it as it stands there."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError, create_model

from spmrl_bench.errors import ArrayError, SpmrlError
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.nn import encoder_kinds
from spmrl_bench.nn.encoder_kinds import ENCODERS, EncoderKind, encoder_named, whole_width
from spmrl_bench.nn.precision import Precision
from spmrl_bench.parsers import load_parser
from spmrl_bench.parsers.arithmetic import forward_products
from spmrl_bench.parsers.kind_configs import ChartParserConfig
from spmrl_bench.parsers.neural_config import NeuralParserConfig
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.registry import Registry
from tests.builders import TREES, chained, config, of_layers
from tests.nn.plain import layout_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("### A new encoder") :]
BLOCKS = re.findall(r"^```([a-z]+)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
(CLASS, ENTRY), (PACKAGE,) = (
    [text for language, text in BLOCKS if language == wanted] for wanted in ("python", "toml")
)


def module_of(name: str, text: str) -> ModuleType:
    """A module of this text, which can be imported."""
    module = ModuleType(name)
    exec(compile(text, name, "exec"), vars(module))
    return module


def adopt(monkeypatch: pytest.MonkeyPatch, *kinds: EncoderKind) -> None:
    """Make these encoders known beside those that are, as entries of the program's own table."""
    known = {name: encoder_named(name) for name in ENCODERS.names()}
    own: dict[str, str | EncoderKind] = {**known, **{kind.name: kind for kind in kinds}}
    registry = Registry[EncoderKind]("encoder", "spmrl_bench.encoders", own)
    monkeypatch.setattr(encoder_kinds, "ENCODERS", registry)


def in_the_tree(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The class in a file of the program, the entry in its table."""
    named = re.search(r"`spmrl_bench/(nn/\w+)\.py`", SECTION)
    name = f"spmrl_bench.{named[1].replace('/', '.')}"
    monkeypatch.setitem(sys.modules, name, module_of(name, CLASS))
    adopt(monkeypatch, eval(ENTRY, dict(vars(encoder_kinds))))


def in_a_package(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Both in a module of an installed package, which names the entry."""
    ((group, points),) = tomllib.loads(PACKAGE)["project"]["entry-points"].items()
    ((name, place),) = points.items()
    module, attribute = place.split(":")
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {place}\n")
    path = folder.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir()
    (path.parent / "__init__.py").touch()
    entry = re.sub(r'"spmrl_bench\.nn\.\w+:(\w+)"', rf'"{module}:\1"', ENTRY)
    imports = "\nfrom spmrl_bench.nn.encoder_kinds import EncoderKind, whole_width\n"
    path.write_text(f"{CLASS}{imports}\n{attribute} = {entry}")
    monkeypatch.syspath_prepend(folder)
    own: dict[str, str | EncoderKind] = {name: encoder_named(name) for name in ENCODERS.names()}
    registry = Registry[EncoderKind]("encoder", "spmrl_bench.encoders", own)
    monkeypatch.setattr(encoder_kinds, "ENCODERS", registry)


@pytest.fixture(params=[in_the_tree, in_a_package])
def added(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[str]:
    """The name of the page's encoder, which is known now."""
    name: str = ast.literal_eval(ENTRY[ENTRY.index("(") + 1 : ENTRY.index(",")].strip())
    assert name not in ENCODERS.names()
    add: Callable[..., None] = request.param
    add(monkeypatch, tmp_path)
    yield name
    for module in [module for module in sys.modules if module.startswith("my_package")]:
        del sys.modules[module]


def taught(kind: str, settings: NeuralParserConfig) -> Any:
    """A parser of a kind after a few steps."""
    torch.manual_seed(0)
    examples = of_layers(chained(), kind_named(kind).layers)
    parser = kind_named(kind).parser_class.build(settings, examples)
    sentences = list(parser.index(examples))
    losses = []
    for _ in range(5):
        parser.zero_grad()
        losses.append(parser.train().gradients(sentences, np.random.default_rng(0), 40))
        with torch.no_grad():
            for weight in parser.parameters():
                weight -= 0.01 * weight.grad
    assert losses[-1] < losses[0]
    assert all(weight.grad is not None for weight in parser.encoder.parameters())
    return parser.eval()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"join": "concatenated", "d_word": 20, "d_form": 6},
        {"label_attention": True, "label_d_kv": 8, "label_d_proj": 6},
        {"precision": "bf16", "residual_dropout": 0.3},
    ],
    ids=str,
)
def test_it_learns_and_is_loaded_again(changes: dict[str, Any], added: str, tmp_path: Path) -> None:
    parser = taught("chart", config(encoder=added, **changes))
    assert type(parser.encoder).__name__ == "Convolutions"
    folder = tmp_path / "saved"
    folder.mkdir()
    parser.save(folder)
    again = load_parser(folder, "cpu")
    words = [tree.words for tree in TREES]
    assert list(again.parse(words)) == list(parser.parse(words))


def test_a_parser_of_dependencies_and_a_recipe_may_have_it(added: str) -> None:
    recipe = load_recipe("german").resolve(
        treebank="any",
        track="mini",
        fingerprints={"constituents": "", "dependencies": ""},
        variant="dependencies",
        size="small",
        settings={"model.encoder": added, "model.d_model": "32"},
    )
    assert isinstance(recipe.model, NeuralParserConfig)
    taught("biaffine", recipe.model)
    with pytest.raises(ValidationError, match=r"unknown encoder 'convolution'\. Did you mean conv"):
        config(encoder="convolution")


def test_nobody_counted_its_arithmetic(added: str) -> None:
    with pytest.raises(SpmrlError, match="arithmetic is not counted of the encoder 'convolutions'"):
        forward_products(config(encoder=added), 5, [3], 20)


def test_what_a_sentence_gets_does_not_depend_on_the_others(added: str) -> None:
    encoder = encoder_named(added).build(config(encoder=added)).double().eval()
    content = torch.randn(9, 32, dtype=torch.float64)
    both = encoder(content, layout_of([6, 3]))
    each = [encoder(content[:6], layout_of([6])), encoder(content[6:], layout_of([3]))]
    torch.testing.assert_close(both, torch.cat(each))


# ---- What an entry may say ---------------------------------------------------------------


class Narrow(encoder_kinds.imported("spmrl_bench.nn.token_encoder:TokenEncoder")):
    """Not as wide as it says."""

    def __init__(self, d_model: int, wide: int = 0, precision: Precision = "float32") -> None:
        super().__init__(d_model, precision)
        self.wide = wide

    def stack(self, content: torch.Tensor, layout: Any) -> torch.Tensor:
        return content[:, : self.wide]


NARROW = f"{__name__}:Narrow"


def test_tokens_of_another_width_are_told() -> None:
    narrow = EncoderKind("narrow", NARROW, whole_width, {"d_model": "d_model"}, given={"wide": 7})
    encoder = narrow.build(config())
    with pytest.raises(ArrayError, match=r"Narrow.stack gives the shape \[3, 7\]; .* \[3, 32\]"):
        encoder(torch.zeros(3, 32), layout_of([3]))


def test_an_entry_may_name_only_settings_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"d_model": "d_model", "wide": "filter_width"}
    adopt(monkeypatch, EncoderKind("narrow", NARROW, whole_width, settings))
    with pytest.raises(SpmrlError, match="setting 'filter_width', which ChartParserConfig does no"):
        encoder_named("narrow").build(config(encoder="narrow"))
    # With a line for it in the settings it is read, and refused of other encoders.
    wider: Any = create_model("Wider", __base__=ChartParserConfig, filter_width=(int, 3))
    given = config().model_dump() | {"filter_width": 5}
    assert encoder_named("narrow").build(wider(**given | {"encoder": "narrow"})).wide == 5
    with pytest.raises(
        ValidationError, match=r"filter_width is set, but .*'lstm'.* only 'narrow' c"
    ):
        wider(**given | {"encoder": "lstm"})


def test_a_content_of_a_fixed_width_must_be_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = EncoderKind("narrow", NARROW, lambda settings: 24, {"d_model": "d_model"})
    adopt(monkeypatch, kind)
    assert config(encoder="narrow").d_content == 24
    assert config(encoder="narrow").input_widths == {"word": 24, "charlstm": 24}
    joined = {"join": "concatenated", "d_word": 10}
    assert config(encoder="narrow", **joined, d_form=14).d_content == 24
    with pytest.raises(ValidationError, match=r"18 wide .* the encoder 'narrow' .* has one of 24"):
        config(encoder="narrow", **joined, d_form=8)


def test_what_is_no_entry_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: Any = Registry("encoder", "spmrl_bench.encoders", {"odd": 3})
    monkeypatch.setattr(encoder_kinds, "ENCODERS", registry)
    with pytest.raises(SpmrlError, match="encoder odd: its package names 3, which is no EncoderKi"):
        encoder_named("odd")
