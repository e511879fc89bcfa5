"""Hidden states of an encoder as an input, beside the library's own; kept, and in windows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary
from spmrl_bench.nn.inputs.hidden_states import FrozenLayers, HiddenStates
from spmrl_bench.nn.inputs.transformer import in_windows
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.trees import Parse
from tests.builders import TREES, learn, tiny
from tests.nn.built import apply, batch
from tests.nn.tiny_transformers import SENTENCES, make
from tests.parsers.examples import trees_of

transformers: Any = pytest.importorskip("transformers")

WIDTH = 10
CPU = torch.device("cpu")
EXAMPLES = [Parse.of(tree) for tree in TREES]
WORDS = [tree.words for tree in TREES]

pytestmark = pytest.mark.usefixtures("home")


def read(folder: Path, **settings: Any) -> HiddenStates:
    torch.manual_seed(3)
    own = {"layers": (0, 1, 2), "dropout": 0.2} | settings
    return HiddenStates(HiddenStates.Config(name=str(folder), **own), None, WIDTH).eval()


@functools.cache
def of_the_library(folder: Path) -> Any:
    return transformers.AutoModel.from_pretrained(folder).eval()


def by_hand(module: HiddenStates, folder: Path, words: Sequence[str]) -> Tensor:
    """The mix of one sentence that fits into a window, ``[tokens, hidden]``."""
    start, stop = map(module.codes, Boundary)
    codes = [start, *map(module.codes, words), stop]
    with torch.no_grad():
        ids = torch.tensor(np.concatenate(codes))[None]
        states = of_the_library(folder)(input_ids=ids, output_hidden_states=True).hidden_states
    chosen = [functional.layer_norm(states[layer][0], (16,)) for layer in module.config.layers]
    rows = []
    for part in torch.stack(chosen).mean(0).split([len(each) for each in codes]):
        rows.append(
            {"first": part[0], "last": part[-1], "mean": part.mean(0)}[module.config.pooling]
        )
    return torch.stack(rows)


@pytest.mark.parametrize(("kind", "tuned"), [("bert", 0), ("roberta", 1), ("xlm-roberta", 2)])
def test_states_are_those_of_the_library(kind: str, tuned: int, tmp_path: Path) -> None:
    """Alone and beside other sentences, of all layers and some, of any sub-words of a word."""
    folder = make(kind, tmp_path / kind)
    for layers, pooling in (((0, 1, 2), "last"), ((2,), "first"), ((1, 2), "mean")):
        if pooling == "mean" and tuned:
            continue  # of normalised states without tuning, of others with it
        module = read(folder, layers=layers, pooling=pooling, tuned=tuned)
        wanted = torch.cat([by_hand(module, folder, words) for words in SENTENCES])
        wanted = wanted @ module.projection.weight.detach().T
        with torch.no_grad():
            found = apply(module, SENTENCES)
            alone = torch.cat([apply(module, [words]) for words in SENTENCES])
        assert found.std() > 0.1
        for each in (found, alone):  # eight bits are kept
            assert (each - wanted).abs().max() < 0.05, (layers, pooling)


def test_a_long_sentence_is_read_in_windows() -> None:
    """Each within the limit; every word is whole in the one where it is farthest from an end."""
    random = np.random.default_rng(0)
    for limit, n, longest in product((8, 13, 40), (1, 2, 5, 30, 100), (1, 2)):
        words = [random.integers(10, 90, random.integers(1, longest + 1)) for _ in range(n)]
        codes = [np.array([1]), *words, np.array([2])]
        found = in_windows(codes, limit)
        assert max(found.windows) <= limit
        assert sum(found.windows) == len(found.ids)
        for start, count, own in zip(found.starts, found.counts, codes, strict=True):
            assert found.ids[start : start + count].tolist() == own.tolist()
        ends = np.cumsum(found.windows)
        assert (found.ids[ends - 1] == 2).all()
        assert (found.ids[ends - found.windows] == 1).all()
        if sum(map(len, codes)) <= limit:
            assert len(found.windows) == 1
        window = np.searchsorted(ends, found.starts, side="right")
        left = found.starts - (ends - found.windows)[window]
        right = ends[window] - found.starts - found.counts
        inner = (window > 0) & (window < len(ends) - 1)
        assert np.minimum(left, right)[inner].min(initial=limit) > (limit - 2) // 4 - longest


def test_states_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all parsers and processes; what is damaged is computed again."""
    folder = make("bert", tmp_path / "bert")
    read(folder).keep(WORDS, CPU)
    (kept,) = (tmp_path / "home/cache/states").glob("*/*.safetensors")
    whole = kept.read_bytes()
    wanted = apply(read(folder), WORDS)

    computed: list[int] = []
    compute = FrozenLayers.compute

    def counted(self: FrozenLayers, sentences: Sequence[Any], *rest: Any) -> Any:
        computed.append(len(sentences))
        return compute(self, sentences, *rest)

    monkeypatch.setattr(FrozenLayers, "compute", counted)
    again = read(folder)  # as another process: nobody has the first any more
    again.keep(WORDS, CPU)
    assert torch.equal(apply(again, WORDS), wanted)
    assert sum(computed) == 0

    del again
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    again = read(folder)
    again.keep(WORDS, CPU)
    assert sum(computed) == len({tuple(words) for words in WORDS})
    assert kept.read_bytes() == whole

    del again
    kept.parent.chmod(0o500)
    monkeypatch.setattr("spmrl_bench.nn.inputs.hidden_states.write_file", refuse)
    again = read(folder)
    again.keep([*WORDS, ["the", "mat"]], CPU)
    assert len(apply(again, [["the", "mat"]])) == 4
    kept.parent.chmod(0o700)
    assert list(kept.parent.iterdir()) == [kept]


def test_words_of_a_made_sentence_keep_the_states_of_where_they_stand(tmp_path: Path) -> None:
    module = read(make("bert", tmp_path / "bert"))
    module.keep(SENTENCES, CPU)
    module.mix_dropout.p = module.dropout.p = 0.0
    whole = [apply(module, [words]) for words in SENTENCES]
    places = [(0, 0), (0, 1), (2, 3), (2, 4), (2, 5), (0, 3), (1, 0), (1, 1)]
    module.train()
    made = [[SENTENCES[number][place] for number, place in places[:6]], SENTENCES[1]]
    tokens, codes = batch(module, made)
    found = module(replace(tokens, places=np.array(places, dtype=np.int32)), codes)
    wanted = [
        whole[0][:1],
        *(whole[n][k + 1 : k + 2] for n, k in places[:6]),
        whole[0][-1:],
        whole[1],
    ]
    assert torch.equal(found, torch.cat(wanted))
    assert not torch.equal(module(tokens, codes), found)


def refuse(*_: Any) -> None:
    raise OSError(28, "No space left on device", "somewhere")


@pytest.mark.parametrize("tuned", [0, 1])
def test_a_parser_learns_and_has_the_tuned_layers_alone(tuned: int, tmp_path: Path) -> None:
    folder = make("bert", tmp_path / "bert", dropout=0.0)
    own = {"layers": (1, 2), "tuned": tuned, "name": str(folder), "dropout": 0.0}
    parser = tiny(lexical=("hidden_states",), hidden_states=own, layers=1, d_model=64)
    parser.keep(WORDS)
    module: Any = parser.lexical["hidden_states"]
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    losses = learn(parser, EXAMPLES, 15, 0.003)
    assert losses[-1] < 0.8 * losses[0]
    changed = {name for name, each in module.state_dict().items() if (each != before[name]).any()}
    assert any(name.startswith("tuned.") for name in changed) == bool(tuned)
    assert {"mix", "projection.weight"} <= changed
    found = trees_of(parser.parse(WORDS))
    place = tmp_path / "saved"
    place.mkdir()
    parser.save(place)
    names = [name for name in load_file(place / "weights.safetensors") if "hidden_states" in name]
    assert len(names) == 2 + 16 * tuned
    assert trees_of(load_parser(place).parse(WORDS)) == found
    (folder / "model.safetensors").unlink()
    with pytest.raises(PretrainedError, match=r"model\.safetensors: missing"):
        load_parser(place)


def test_what_does_not_fit(tmp_path: Path) -> None:
    folder = make("bert", tmp_path / "bert")
    for settings, message in (
        ({"layers": (3,)}, r"has 2 layers, but hidden_states.layers = \[3\]"),
        ({"tuned": 3}, "has 2 layers, but .* and tuned = 3"),
    ):
        with pytest.raises(PretrainedError, match=message):
            read(folder, **settings)
    with pytest.raises(
        PretrainedError, match="of the kind xlnet, but the input hidden_states take"
    ):
        read(make("xlnet", tmp_path / "xlnet"))
    with pytest.raises(PretrainedError, match="'spmrl-bench model fetch e5-small' puts it there"):
        read(Path("e5-small"))


def test_nothing_is_kept_on_disk_where_the_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_CACHE", "0")
    module = read(make("bert", tmp_path / "bert"))
    module.keep(WORDS, CPU)
    assert module.frozen.kept
    assert not (tmp_path / "home" / "cache").exists()
