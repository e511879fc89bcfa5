"""Pretrained encoders as an input, beside the library's own models fed by hand."""

from __future__ import annotations

import copy
import functools
import json
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, pretrained
from spmrl_bench.nn.inputs.transformer import Transformer
from spmrl_bench.nn.settings import Precision
from tests import damage
from tests.builders import cli_process
from tests.damage import Damage, edited, raw
from tests.nn.built import apply
from tests.nn.tiny_transformers import KINDS, SENTENCES, make, make_other

transformers: Any = pytest.importorskip("transformers")

WIDTH = 10
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("encoders")
    return {kind: make(kind, root / kind) for kind in KINDS}


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Path:
    found: Path = folders[request.param]
    return found


@pytest.fixture
def own(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A folder of a BERT that a test may spoil."""
    return Path(shutil.copytree(folders["bert"], tmp_path / "bert"))


def read(
    folder: Path | str,
    *,
    assets: Path | None = None,
    precision: Precision = "float32",
    **settings: Any,
) -> Transformer:
    torch.manual_seed(3)
    config = Transformer.Config(name=str(folder), dropout=0.2, **settings)
    return Transformer(config, None, WIDTH, precision=precision, assets=assets).eval()


def words_of(words: Sequence[str]) -> list[str]:
    """Without those that the library takes for its special tokens."""
    return [word for word in words if word not in ("[SEP]", "<s>")]


@functools.cache
def of_the_library(folder: Path) -> tuple[Any, Any]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    return tokenizer, transformers.AutoModel.from_pretrained(folder).eval()


def by_hand(folder: Path, words: Sequence[str], pooling: str) -> Tensor:
    """Vectors ``[words + 2, hidden]`` of one sentence: nothing filled up, split by the library."""
    tokenizer, encoder = of_the_library(folder)
    inputs = tokenizer(list(words), is_split_into_words=True, return_tensors="pt")
    inputs.pop("token_type_ids", None)  # all 0, which models suppose
    n = inputs["input_ids"].shape[1]
    start, stop = 0, n - 1
    if folder.name == "xlnet":  # ... <sep> <cls>, and the last is a segment of its own
        start, stop = n - 1, n - 2
        inputs["token_type_ids"] = torch.tensor([[0] * (n - 1) + [2]])
    with torch.no_grad():
        states = encoder(**inputs).last_hidden_state[0]
    owner = inputs.word_ids()
    rows = [states[start]]
    for word in range(len(words)):
        own = states[[k for k, each in enumerate(owner) if each == word]]
        rows.append({"first": own[0], "last": own[-1], "mean": own.mean(dim=0)}[pooling])
    return torch.stack([*rows, states[stop]])


def test_vectors_are_those_of_the_library_one_sentence_at_a_time(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """Whatever the kind of the encoder, alone and beside other sentences."""
    sentences = [words_of(words) for words in SENTENCES]
    others = sorted({*pretrained.KINDS} - {*KINDS})
    made = {kind: make_other(kind, tmp_path / kind, folders["bert"]) for kind in others}
    wrong = []
    for kind, folder in (folders | made).items():
        for pooling in ("first", "last", "mean") if kind == "bert" else ("mean",):
            module = read(folder, pooling=pooling)
            assert sum(len(module.codes(word)) > 1 for words in sentences for word in words) > 5
            wanted = torch.cat([by_hand(folder, words, pooling) for words in sentences])
            wanted = wanted @ module.projection.weight.detach().T
            with torch.no_grad():
                found = apply(module, sentences)
                alone = torch.cat([apply(module, [words]) for words in sentences])
            near = [torch.allclose(each, wanted, atol=1e-5, rtol=1e-5) for each in (found, alone)]
            # Weights are random, but not so small that all is alike.
            if not all(near) or found.std() <= 0.1:
                wrong.append((kind, pooling, near, found.std()))
    assert wrong == []


def test_words_that_are_no_usual_ones(folder: Path) -> None:
    """Boundaries are the tokens around a text, and no word is one; quotes are plain ones."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    module = read(folder)
    ids = {form: module.codes(form).tolist() for form in ("``", "''", '"', "`", "'", "[SEP]")}
    assert ids["``"] == ids["''"] == ids['"']
    assert ids["`"] == ids["'"]
    assert len(ids["[SEP]"]) > 1  # split like any other word

    ends = {"bert": "[CLS] [SEP]", "xlnet": "<cls> <sep>"}.get(folder.name, "<s> </s>")
    for boundary, token in zip(Boundary, ends.split(), strict=True):
        assert module.codes(boundary).tolist() == [tokenizer.convert_tokens_to_ids(token)]
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    for form in tokenizer.all_special_tokens:
        assert not special & set(module.codes(form).tolist())

    empty = {"bert": ["", " ", "\u200b", "\u00ad"], "roberta": []}.get(folder.name, ["", " "])
    for form in empty:
        assert module.codes(form).tolist() == [tokenizer.unk_token_id]
        assert module.codes(form).dtype == np.int64
    assert len(module.codes("")) == 1  # of a RoBERTa the space before a word


def test_trained_weights_get_a_gradient(folder: Path) -> None:
    module = read(folder).train()
    module.dropout.p = 0.0  # that of the encoder itself is left
    assert not torch.allclose(apply(module, SENTENCES), apply(module, SENTENCES))
    apply(module, SENTENCES).square().sum().backward()
    named = dict(module.named_parameters())
    without = {name for name, weight in named.items() if weight.grad is None}
    assert without <= {"encoder.mask_emb"}  # XLNet's, which only its pre-training reads
    known = {id(weight) for weight in module.pretrained()}
    assert len(known) > 20
    assert {name for name in named if id(named[name]) not in known} == {"projection.weight"}


def test_frozen_weights_are_neither_trained_nor_saved(folder: Path) -> None:
    module = read(folder, frozen=True)
    with torch.no_grad():
        before = apply(module, SENTENCES)
    module.train()
    dropped = apply(module, SENTENCES[:1]) == 0
    assert dropped.any()
    assert (dropped == dropped[0]).all()  # of a whole sentence
    module.dropout.p = 0.0
    found = apply(module, SENTENCES)
    found.square().sum().backward()
    assert list(module.state_dict()) == ["projection.weight"]
    assert [name for name, _ in module.named_parameters()] == ["projection.weight"]
    assert module.pretrained() == []
    assert module.projection.weight.grad is not None
    # In training, too, the encoder is without dropout.
    torch.testing.assert_close(found, before)
    assert all(weight.is_meta for weight in module.to("meta").encoder.held.parameters())


def test_what_is_made_up_takes_no_random_numbers_of_the_parser(own: Path) -> None:
    """Neither the pooler, which is left out, nor weights that will be replaced."""
    torch.manual_seed(3)
    first = torch.nn.Linear(16, WIDTH, bias=False).weight
    tensors(lambda found: [found.pop(name) for name in list(found) if "pooler" in name])(own)
    module = read(own)
    assert torch.equal(module.projection.weight, first)
    module.save_assets(own)
    again = read("gone", assets=own)
    assert torch.equal(again.projection.weight, first)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_saved_one_is_read_into_a_parser_without_memory(
    folder: Path, tmp_path: Path, frozen: bool
) -> None:
    module = read(folder, frozen=frozen)
    module.save_assets(tmp_path)
    with torch.device("meta"):
        again = read(folder if frozen else "gone", frozen=frozen, assets=tmp_path)
    again.load_state_dict(module.state_dict(), assign=True)
    with torch.no_grad():
        torch.testing.assert_close(apply(again, SENTENCES), apply(module, SENTENCES))


def test_copies_and_other_processes_see_the_same(folder: Path) -> None:
    module = read(folder)
    with torch.no_grad():
        wanted = apply(module, SENTENCES)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            torch.testing.assert_close(apply(other, SENTENCES), wanted)
            for form in ("[SEP]", "<s>", "<sep>"):
                assert other.codes(form).tolist() == module.codes(form).tolist()


def test_half_precision_weights_become_float32(own: Path) -> None:
    tensors(lambda found: found.update({key: found[key].bfloat16() for key in found}))(own)
    settings(dtype="bfloat16", torch_dtype="bfloat16")(own)
    module = read(own)
    assert {weight.dtype for weight in module.parameters()} == {torch.float32}


def test_products_may_be_bfloat16(folder: Path) -> None:
    exact, rough = read(folder), read(folder, precision="bf16")
    with torch.no_grad():
        wanted, found = apply(exact, SENTENCES), apply(rough, SENTENCES)
    assert found.dtype == torch.float32
    assert 0 < (found - wanted).abs().max() < 0.5


def test_sentences_of_any_length_are_read(folders: dict[str, Path], tmp_path: Path) -> None:
    """In windows of as many sub-words as there are positions, and no more."""
    for kind, limit in {"bert": 12, "roberta": 10, "xlm-roberta": 10}.items():
        folder = make(kind, tmp_path / kind, positions=12)
        module = read(folder)
        assert module.limit == limit
        words = ["the"] * (limit - 2)
        whole = by_hand(folder, words, "last") @ module.projection.weight.detach().T
        torch.testing.assert_close(apply(module, [words]), whole, atol=1e-5, rtol=1e-5)
        found = apply(module, [[*words, "cats", *words]])
        assert torch.isfinite(found).all()
        assert len(found) == 2 * limit - 1
        module.limit = 100  # the limit is no less than what would work
        with pytest.raises((IndexError, RuntimeError)):
            apply(module, [[*words, "the"]])
    assert read(folders["xlnet"]).limit is None
    assert torch.isfinite(apply(read(folders["xlnet"]), [["cats"] * 300])).all()


SILENT = """
import sys, warnings, logging
from pathlib import Path
from spmrl_bench.nn.inputs.transformer import Transformer
from tests.nn.built import apply
import spmrl_bench.nn.inputs.elmo
assert not {'transformers', 'tokenizers', 'h5py'} & set(sys.modules)
import transformers
bars = transformers.utils.logging.is_progress_bar_enabled
before = bars(), logging.getLogger('transformers').level
warnings.simplefilter('always')
config = Transformer.Config(name=sys.argv[1], dropout=0.2)
module = Transformer(config, None, 8)
apply(module, [['the']]).sum().backward()
module.save_assets(Path(sys.argv[1]))
Transformer(config, None, 8, assets=Path(sys.argv[1]))
assert before == (bars(), logging.getLogger('transformers').level)
"""


def test_nothing_is_printed_and_the_library_is_left_as_it_was(own: Path) -> None:
    """Not even of weights that are left out (a head) or made up (the pooler)."""
    done = cli_process(own, code=SILENT)
    assert (done.stdout, done.stderr) == ("", "")


def test_without_the_library(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "transformers.initialization", None)
    with pytest.raises(PretrainedError, match=r"pip install 'spmrl-bench\[pretrained\]'"):
        read(own)


def tensors(change: Callable[[dict[str, Tensor]], object]) -> Damage:
    return damage.tensors(change, "model.safetensors", format="pt")


def settings(**content: Any) -> Damage:
    return edited("config.json", lambda old: old.update(content))


def only_pickled(folder: Path) -> None:
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def absent(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


LAYER = "bert.encoder.layer.1.output.dense.bias"


def sharded(folder: Path) -> None:
    """Two files, of which the index names a third."""
    names = list(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    places = dict.fromkeys(names, "model-00001-of-00002.safetensors")
    places[LAYER] = "model-00002-of-00002.safetensors"
    content = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content), encoding="utf-8")


BROKEN: list[tuple[Damage, str]] = [
    (absent("config.json"), r"config\.json: cannot be read: No such file"),
    (raw("config.json", b"{"), r"config\.json.*not valid JSON"),
    (raw("config.json", b"[1]"), r"config\.json: model_type is None"),
    (settings(hidden_size="wide"), r"config\.json: cannot be read \(.*str"),
    (settings(model_type="gpt2"), r"config\.json: model_type is 'gpt2', expected one of .*bert"),
    (settings(is_decoder=True), r"config\.json: is_decoder"),
    (settings(pad_token_id=400), r"\(Padding_idx must be within"),
    (only_pickled, r"weights cannot be read \(.* no file named model\.safetensors"),
    (raw("model.safetensors", lambda data: data[:999]), r"its weights cannot be read \(.*header"),
    (sharded, r"cannot be read \(.*model-00002-of-00002\.safetensors"),
    (tensors(lambda x: x.pop(LAYER)), r": 1 weights .* encoder\.layer\.1\.\S+ \(missing\)"),
    (tensors(dict.clear), r": \d+ weights .* embeddings\.\S+ \(missing\)"),
    (
        tensors(lambda x: x.update({LAYER: torch.zeros(3)})),
        r"encoder\.layer\.1\.output\.dense\.bias \(of another shape\)",
    ),
    (
        tensors(lambda x: x.update({LAYER.replace("1", "2"): torch.zeros(16)})),
        r"encoder\.layer\.2\.output\.dense\.bias \(without a place\)",
    ),
    (absent("vocab.txt"), r"tokenizer .*BertTokenizer finds no vocabulary"),
    (raw("vocab.txt", b""), r"tokenizer .*BertTokenizer finds no vocabulary"),
    (raw("tokenizer_config.json", b"{"), r"its tokenizer cannot be used .*line 1 column 2"),
    (raw("tokenizer.json", b"{"), r"its tokenizer cannot be used .*line 1 column 2"),
    (raw("vocab.txt", lambda data: data + b"surplus\n"), r"ids up to 86, .* has 86 embeddings"),
    (raw("tokenizer_config.json", b'{"do_lower_case": true}'), r"do_lower_case to false"),
    (raw("tokenizer_config.json", b"{}"), r"do_lower_case to false"),
]


def test_what_is_wrong_with_a_folder(folders: dict[str, Path], tmp_path: Path) -> None:
    wrong = []
    for number, (spoil, message) in enumerate(BROKEN):
        own = Path(shutil.copytree(folders["bert"], tmp_path / str(number)))
        spoil(own)
        with pytest.raises(PretrainedError) as caught:
            read(own)
        found = str(caught.value)
        if str(own) not in found or "\n" in found or not re.search(message, found):
            wrong.append((message, found))
    assert wrong == []


def test_what_encoders_of_the_hub_have_beside_their_weights_does_no_harm(own: Path) -> None:
    """Heads, positions as a tensor, names of old layer norms, and no pooler."""
    before = apply(read(own), SENTENCES)

    def change(found: dict[str, Tensor]) -> None:
        for name in list(found):
            if "LayerNorm.weight" in name and name.startswith("bert."):
                found[name.replace("LayerNorm.weight", "LayerNorm.gamma")] = found.pop(name)
        found["bert.embeddings.position_ids"] = torch.arange(64)[None]
        found["bert.embeddings.token_type_ids"] = torch.zeros(1, 64)
        found["bert.pooler.dense.bias"] = torch.zeros(16)
        found["cls.seq_relationship.bias"] = torch.zeros(2)

    tensors(change)(own)
    assert torch.equal(apply(read(own), SENTENCES), before)


def test_tokenizers_that_are_of_no_use(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["xlnet"], tmp_path / "xlnet"))
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"no model")
    with pytest.raises(PretrainedError, match=r"its tokenizer cannot be used .*tokenizer\.json"):
        read(folder)
    folder = Path(shutil.copytree(folders["xlm-roberta"], tmp_path / "xlm"))
    edited("tokenizer.json", lambda old: old.update(post_processor=None))(folder)
    general = {"tokenizer_class": "PreTrainedTokenizerFast"}
    edited("tokenizer_config.json", lambda old: old.update(general))(folder)
    with pytest.raises(PretrainedError, match=r"special tokens around it"):
        read(folder)


def test_padding_and_cutting_of_a_tokenizer_file_are_switched_off(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    from tokenizers import Tokenizer

    folder = Path(shutil.copytree(folders["xlm-roberta"], tmp_path / "xlm"))
    before = [read(folder).codes(word).tolist() for word in SENTENCES[2]]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding(length=9)
    tokenizer.enable_truncation(max_length=3)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert [read(folder).codes(word).tolist() for word in SENTENCES[2]] == before


def test_names_that_stand_for_nothing(own: Path) -> None:
    for name, revision, message in [
        ("no/such/folder", None, "no folder"),
        ("/no-such-folder", COMMIT, "no folder"),
        ("someone/something", None, "is None"),
        ("someone/something", "main", "'main'. Set it to the 40"),
        (str(own), COMMIT, "a folder, but"),
        (str(own / "config.json"), COMMIT, "no folder"),
    ]:
        with pytest.raises(PretrainedError, match=f"{name}: .*{message}"):
            read(name, revision=revision)


def test_the_hub_is_reached_for_what_is_not_there(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which needs none (offline here) once all of a revision was fetched."""
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    fetched = tmp_path / "cache" / "models--someone--something" / "snapshots" / COMMIT
    with pytest.raises(PretrainedError, match=r"something: no folder, .* cannot be fetched"):
        read("someone/something", revision=COMMIT)
    fetched.parent.mkdir(parents=True)
    shutil.copytree(folders["bert"], fetched)
    found = apply(read("someone/something", revision=COMMIT), SENTENCES)
    assert torch.equal(found, apply(read(folders["bert"]), SENTENCES))
    (fetched / "vocab.txt").unlink()
    with pytest.raises(PretrainedError, match="its tokenizer cannot be used"):
        read("someone/something", revision=COMMIT)
