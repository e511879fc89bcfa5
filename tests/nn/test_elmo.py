"""ELMo against plain loops over the same files, and what of it is learned."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import elmo
from spmrl_bench.nn.elmo import BiLM, CharCNN, Elmo, character_ids
from spmrl_bench.nn.inputs import Boundary, Codes
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.pretrained.elmo_files import read_elmo
from tests.nn import plain_elmo
from tests.nn.plain import layout_of

SENTENCES = [
    ["der", "Hund", "schläft", "."],
    ["Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen"],
    ["a", "der", "中文字", "x" * 47, "y" * 48, "z" * 49, "ä" * 30, "der"],
    ["Hund", "."],
    [],
    ["<S>", "</S>", "\U0001f600"],
]


def changed(**values: Any) -> dict[str, Any]:
    """Options of a model with other values, by their own names."""
    options = copy.deepcopy(plain_elmo.OPTIONS)
    for name, value in values.items():
        part = next(part for part in options.values() if name in part)
        part[name] = value
    return options


MODELS = {
    "as published": plain_elmo.OPTIONS,
    "tanh": changed(activation="tanh"),
    "no skip connections": changed(use_skip_connections=False),
    "no clipping": changed(cell_clip=None, proj_clip=None),
    "three layers, no highway": changed(n_layers=3, n_highway=0),
    "short words, wide filters": changed(
        max_characters_per_token=9, filters=[[9, 2], [8, 3], [3, 2]]
    ),
}


def batch(model: Elmo | BiLM, sentences: Sequence[Sequence[str]]) -> tuple[Codes, Ragged]:
    """Sentences as the parser hands them over."""
    longest = model.longest if isinstance(model, Elmo) else model.characters.longest
    rows: dict[str | Boundary, int] = {}
    tokens = [
        rows.setdefault(token, len(rows))
        for words in sentences
        for token in (Boundary.START, *words, Boundary.STOP)
    ]
    codes = [character_ids(form, longest) for form in rows]
    lengths = np.array([len(code) for code in codes])
    values = np.zeros((len(codes), lengths.max()), dtype=np.int64)
    for row, code in zip(values, codes, strict=True):
        row[: len(code)] = code
    layout = layout_of([len(words) + 2 for words in sentences])
    return Codes(torch.from_numpy(values), torch.from_numpy(lengths), torch.tensor(tokens)), layout


def layers(model: BiLM, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
    """``[layers, tokens, width]`` of each sentence."""
    with torch.no_grad():
        found: Tensor = model(*batch(model, sentences))
    return list(found.split([len(words) + 2 for words in sentences], dim=1))


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    return plain_elmo.write_model(tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_layers_are_those_of_the_plain_model(tmp_path: Path, name: str) -> None:
    paths = plain_elmo.write_model(tmp_path, MODELS[name], seed=3)
    model = BiLM(read_elmo(*paths))
    for words, found in zip(SENTENCES, layers(model, SENTENCES), strict=True):
        expected = plain_elmo.layers(paths, words)
        assert found.shape == expected.shape
        for number, layer in enumerate(expected):
            np.testing.assert_allclose(found[number].numpy(), layer, rtol=0, atol=2e-6)


def test_clipping_takes_part(paths: tuple[Path, Path]) -> None:
    """The models that are compared above are such that both clippings matter."""
    weights = read_elmo(*paths)
    (clipped,) = layers(BiLM(weights), SENTENCES[:1])
    for name in ("cell_clip", "proj_clip"):
        lstm = weights.options.lstm.model_copy(update={name: None})
        options = weights.options.model_copy(update={"lstm": lstm})
        (free,) = layers(BiLM(replaced(weights, options)), SENTENCES[:1])
        assert torch.equal(free[0], clipped[0])
        assert not torch.allclose(free[1], clipped[1])


def replaced(weights: Any, options: Any) -> Any:
    found = copy.copy(weights)
    object.__setattr__(found, "options", options)
    return found


def test_a_sentence_does_not_depend_on_its_batch(
    paths: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = BiLM(read_elmo(*paths))
    together = layers(model, SENTENCES)
    backwards = layers(model, SENTENCES[::-1])[::-1]
    alone = [layers(model, [words])[0] for words in SENTENCES]
    monkeypatch.setattr(elmo, "FILTERED", 100)
    monkeypatch.setattr(elmo, "GATES", 3)
    in_parts = layers(model, SENTENCES)
    for number, expected in enumerate(together):
        for found in (backwards, alone, in_parts):
            torch.testing.assert_close(found[number], expected, rtol=1e-6, atol=1e-6)


def test_each_form_goes_through_the_filters_once(
    paths: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = BiLM(read_elmo(*paths))
    seen = []
    filtered = CharCNN._filtered

    def counted(self: CharCNN, ids: Tensor) -> Tensor:
        seen.append(len(ids))
        return filtered(self, ids)

    monkeypatch.setattr(CharCNN, "_filtered", counted)
    layers(model, [["so", "so", "la", "la"], ["la", "so"]])
    assert sum(seen) == 4  # two words, START and STOP


def test_characters_of_forms() -> None:
    assert character_ids("aé", 50).tolist() == [258, 97, 0xC3, 0xA9, 259]
    assert character_ids("", 50).tolist() == [258, 259]
    assert character_ids("\ud800a", 50).tolist() == [258, 97, 259]
    assert character_ids("x" * 48, 50).tolist() == [258, *[120] * 48, 259]
    assert character_ids("x" * 49, 50).tolist() == [258, *[120] * 48, 259]
    assert character_ids(Boundary.START, 50).tolist() == [258, 256, 259]
    assert character_ids(Boundary.STOP, 50).tolist() == [258, 257, 259]
    assert character_ids("<S>", 50).tolist() == [258, *b"<S>", 259]


def test_the_result_is_a_map_of_a_mix(paths: tuple[Path, Path]) -> None:
    module = Elmo(*paths, 6, 0.5, 0.2).eval()
    with torch.no_grad():
        module.mix.copy_(torch.tensor([0.3, -1.0, 2.0]))
    shares = np.exp([0.3, -1.0, 2.0]) / np.exp([0.3, -1.0, 2.0]).sum()
    found = module(*batch(module, SENTENCES)).split([len(words) + 2 for words in SENTENCES])
    matrix = module.linear.weight.detach().numpy().astype(np.float64)
    for words, rows in zip(SENTENCES, found, strict=True):
        mixed = np.tensordot(shares, plain_elmo.layers(paths, words), axes=1)
        np.testing.assert_allclose(rows.detach().numpy(), mixed @ matrix.T, rtol=0, atol=1e-5)


def test_the_mix_begins_as_the_mean(paths: tuple[Path, Path]) -> None:
    module = Elmo(*paths, 6, 0.5, 0.2)
    assert torch.equal(module.mix.softmax(0), torch.full((3,), 1 / 3))


def test_only_mix_and_map_are_learned_and_saved(paths: tuple[Path, Path]) -> None:
    module = Elmo(*paths, 6, 0.5, 0.2).train()
    assert sorted(name for name, _ in module.named_parameters()) == ["linear.weight", "mix"]
    assert sorted(module.state_dict()) == ["linear.weight", "mix"]
    module(*batch(module, SENTENCES)).square().sum().backward()
    assert module.mix.grad is not None
    assert module.linear.weight.grad is not None
    assert bool((module.mix.grad != 0).all())
    assert bool((module.linear.weight.grad != 0).any())
    held = list(module.model.held.parameters())
    assert held
    assert not any(parameter.requires_grad for parameter in held)
    assert all(parameter.grad is None for parameter in held)


def test_frozen_weights_follow_the_module(paths: tuple[Path, Path]) -> None:
    module = Elmo(*paths, 6, 0.5, 0.2).eval()
    expected = module(*batch(module, SENTENCES))
    module.double()
    assert {parameter.dtype for parameter in module.model.held.parameters()} == {torch.float64}
    found = module(*batch(module, SENTENCES))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=1e-5)
    module.to("meta")
    assert {parameter.device.type for parameter in module.model.held.parameters()} == {"meta"}


def test_dropout_of_the_mix_and_of_the_form(paths: tuple[Path, Path]) -> None:
    torch.manual_seed(0)
    one = batch(Elmo(*paths, 4, 0.0, 0.0), [["so", "la"]] * 2)
    steady = Elmo(*paths, 4, 0.0, 0.0).train()
    assert torch.equal(steady(*one), steady(*one))
    mixed = Elmo(*paths, 4, 0.5, 0.0).train()
    assert not torch.equal(mixed(*one), mixed(*one))
    assert torch.equal(mixed.eval()(*one), mixed(*one))
    whole = Elmo(*paths, 400, 0.0, 0.2).train()(*one)
    absent = whole == 0
    for sentence in absent.split(4):  # a feature is absent from all tokens of a sentence
        assert torch.equal(sentence, sentence[:1].expand_as(sentence))
    assert 0.1 < absent.float().mean().item() < 0.3
    assert not torch.equal(absent[:4], absent[4:])
