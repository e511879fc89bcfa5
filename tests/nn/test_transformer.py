"""Pre-trained encoders as an input, beside the library's own models fed by hand."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.choices import SubwordPooling
from spmrl_bench.nn.inputs import Boundary, Codes
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.transformer import Transformer
from tests import damage
from tests.damage import Damage, edited, raw
from tests.nn.tiny_transformers import KINDS, SENTENCES, make, make_other

pytest.importorskip("transformers", reason="the package transformers is not installed")

WIDTH = 10
COMMIT = "0123456789abcdef0123456789abcdef01234567"
POOLINGS: tuple[SubwordPooling, ...] = ("first", "last", "mean")


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
    pooling: SubwordPooling = "last",
    *,
    frozen: bool = False,
    revision: str | None = None,
    assets: Path | None = None,
) -> Transformer:
    torch.manual_seed(3)
    return Transformer.read(str(folder), revision, WIDTH, pooling, frozen, 0.2, assets).eval()


def batch(module: Transformer, sentences: Sequence[Sequence[str]]) -> tuple[Codes, Ragged]:
    forms: list[str | Boundary] = [Boundary.START, Boundary.STOP]
    forms += sorted({word for words in sentences for word in words})
    found = [module.codes(form) for form in forms]
    lengths = np.array([len(codes) for codes in found])
    values = np.zeros((len(found), lengths.max()), dtype=np.int64)
    for row, codes in zip(values, found, strict=True):
        row[: len(codes)] = codes
    rows = [row for words in sentences for row in (0, *map(forms.index, words), 1)]
    tensors = (torch.from_numpy(array) for array in (values, lengths, np.array(rows)))
    layout = Ragged.of(np.array([len(words) + 2 for words in sentences]), torch.device("cpu"))
    return Codes(*tensors), layout


def apply(module: Transformer, sentences: Sequence[Sequence[str]]) -> Tensor:
    return module(*batch(module, sentences))


def pooled(states: Tensor, places: list[int], pooling: str) -> Tensor:
    if pooling == "mean":
        return states[places].mean(dim=0)
    return states[places[0] if pooling == "first" else places[-1]]


def words_of(words: Sequence[str]) -> list[str]:
    """Without those that the library takes for its special tokens."""
    return [word for word in words if word not in ("[SEP]", "<s>")]


def by_hand(folder: Path, words: Sequence[str], pooling: str) -> Tensor:
    """Vectors of START, the words and STOP: one sentence, nothing filled up, split by the library.

    Returns:
        ``[words + 2, hidden]``.
    """
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    encoder = transformers.AutoModel.from_pretrained(folder).eval()
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
    places = [[k for k, word in enumerate(owner) if word == w] for w in range(len(words))]
    rows = [states[start], *(pooled(states, found, pooling) for found in places), states[stop]]
    return torch.stack(rows)


def check_vectors(folder: Path, pooling: SubwordPooling) -> None:
    """The vectors of a batch are those of the sentences, one at a time and by hand."""
    sentences = [words_of(words) for words in SENTENCES]
    module = read(folder, pooling)
    with torch.no_grad():
        found = apply(module, sentences)
    wanted = torch.cat([by_hand(folder, words, pooling) for words in sentences])
    assert module.projection.bias is None
    torch.testing.assert_close(
        found, wanted @ module.projection.weight.detach().T, atol=1e-5, rtol=1e-5
    )
    assert found.std() > 0.1  # random weights, but not so small that all is alike


@pytest.mark.parametrize("pooling", POOLINGS)
def test_vectors_are_those_of_the_library_one_sentence_at_a_time(
    folder: Path, pooling: SubwordPooling
) -> None:
    check_vectors(folder, pooling)


@pytest.mark.parametrize("kind", ["electra", "distilbert", "albert", "deberta-v2"])
def test_their_kin_can_be_read_too(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    check_vectors(make_other(kind, tmp_path / kind, folders["bert"]), "mean")


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        # The Fourier transform of FNet, and the shortened sequences of Funnel, know no padding.
        ("fnet", "(depends on the sentences beside it|'attention_mask')"),
        ("funnel", "depends on the sentences beside it"),
        ("perceiver", "no attribute"),
        ("layoutlm", "not callable"),
    ],
)
def test_other_models_are_refused(
    kind: str, problem: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = make_other(kind, tmp_path / kind, folders["bert"])
    with pytest.raises(PretrainedError, match=rf"no encoder that gives each .*{problem}"):
        read(folder)


def test_codes_are_those_of_the_library_within_a_sentence(folder: Path) -> None:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    module = read(folder)
    several = 0
    for sentence in SENTENCES:
        words = words_of(sentence)
        ids = [code for word in words for code in module.codes(word).tolist()]
        wanted = tokenizer(words, is_split_into_words=True, add_special_tokens=False)["input_ids"]
        assert ids == wanted
        several += sum(len(module.codes(word)) > 1 for word in words)
    assert several > 5


def test_boundaries_are_the_tokens_around_a_text(folders: dict[str, Path]) -> None:
    import transformers

    for kind, (start, stop) in {
        "bert": ("[CLS]", "[SEP]"),
        "roberta": ("<s>", "</s>"),
        "xlm-roberta": ("<s>", "</s>"),
        "xlnet": ("<cls>", "<sep>"),
    }.items():
        module = read(folders[kind])
        tokenizer = transformers.AutoTokenizer.from_pretrained(folders[kind])
        assert module.codes(Boundary.START).tolist() == [tokenizer.convert_tokens_to_ids(start)]
        assert module.codes(Boundary.STOP).tolist() == [tokenizer.convert_tokens_to_ids(stop)]


def test_a_form_without_pieces_is_the_unknown_token(folders: dict[str, Path]) -> None:
    import transformers

    empty = {"bert": ["", " ", "\u200b", "\u00ad"], "xlm-roberta": ["", " "], "xlnet": ["", " "]}
    for kind, forms in empty.items():
        unknown = transformers.AutoTokenizer.from_pretrained(folders[kind]).unk_token_id
        module = read(folders[kind])
        for form in forms:
            assert module.codes(form).tolist() == [unknown]
            assert module.codes(form).dtype == np.int64
    assert len(read(folders["roberta"]).codes("")) == 1  # the space before a word


def test_no_word_is_a_special_token(folder: Path) -> None:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    module = read(folder)
    for form in tokenizer.all_special_tokens:
        assert not special & set(module.codes(form).tolist())
    ids = module.codes("[SEP]").tolist()
    assert len(ids) > 1  # split like any other word


def test_transcribed_quotes_are_plain_quotes(folder: Path) -> None:
    module = read(folder)
    for form in ("``", "''"):
        assert module.codes(form).tolist() == module.codes('"').tolist()
    assert module.codes("`").tolist() == module.codes("'").tolist()


def test_the_company_of_a_sentence_changes_nothing(folder: Path) -> None:
    module = read(folder, "mean")
    with torch.no_grad():
        together = apply(module, SENTENCES)
        backwards = apply(module, SENTENCES[::-1])
        alone = [apply(module, [words]) for words in SENTENCES]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(backwards, torch.cat(alone[::-1]), atol=1e-5, rtol=1e-5)


def test_dropout_is_that_of_the_sentence(folders: dict[str, Path]) -> None:
    module = read(folders["bert"], frozen=True).train()
    dropped = apply(module, SENTENCES[:1]) == 0
    assert dropped.any()
    assert (dropped == dropped[0]).all()


def test_trained_weights_get_a_gradient(folder: Path) -> None:
    module = read(folder).train()
    apply(module, SENTENCES).square().sum().backward()
    without = {name for name, weight in module.named_parameters() if weight.grad is None}
    assert without <= {"encoder.mask_emb"}  # XLNet's, which only its pre-training reads
    assert len(module.pretrained()) > 20
    assert {id(weight) for weight in module.pretrained()} == {
        id(weight) for name, weight in module.named_parameters() if name.startswith("encoder.")
    }
    assert any(
        weight.grad.abs().sum() > 0 for weight in module.pretrained() if weight.grad is not None
    )


def test_frozen_weights_are_neither_trained_nor_saved(folder: Path) -> None:
    module = read(folder, frozen=True)
    with torch.no_grad():
        before = apply(module, SENTENCES)
    module.train()
    module.dropout.p = 0.0
    found = apply(module, SENTENCES)
    found.square().sum().backward()
    assert list(module.state_dict()) == ["projection.weight"]
    assert [name for name, _ in module.named_parameters()] == ["projection.weight"]
    assert module.pretrained() == []
    assert module.projection.weight.grad is not None
    # In training, too, the encoder is without dropout.
    torch.testing.assert_close(found, before)


def test_training_has_the_dropout_of_the_encoder(folders: dict[str, Path]) -> None:
    module = read(folders["bert"]).train()
    module.dropout.p = 0.0
    assert not torch.allclose(apply(module, SENTENCES), apply(module, SENTENCES))


def test_reading_an_encoder_draws_no_random_numbers_of_the_parser(own: Path) -> None:
    weights = {
        name: weight
        for name, weight in load_file(own / "model.safetensors").items()
        if "pooler" not in name
    }
    save_file(weights, own / "model.safetensors", metadata={"format": "pt"})
    torch.manual_seed(5)
    first = torch.nn.Linear(16, WIDTH, bias=False).weight
    torch.manual_seed(5)
    module = Transformer.read(str(own), None, WIDTH, "last", False, 0.2)
    assert torch.equal(module.projection.weight, first)


# Saving ---------------------------------------------------------------------------------


def test_no_numbers_are_drawn_for_weights_that_will_be_replaced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = 0

    def normal(weight: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        nonlocal drawn
        drawn += weight.numel()
        return weight

    read(folder).save_assets(tmp_path)
    monkeypatch.setattr(torch.Tensor, "normal_", normal)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    Transformer.read("gone", None, WIDTH, "last", False, 0.2, tmp_path)
    assert drawn == 0
    torch.nn.Linear(16, WIDTH, bias=False)  # the only one that is drawn, the linear map
    after = torch.get_rng_state()
    torch.set_rng_state(before)
    for _ in range(2):
        torch.nn.Linear(16, WIDTH, bias=False)
    assert torch.equal(torch.get_rng_state(), after)


def test_weights_not_filled_yet_do_no_harm(folder: Path, tmp_path: Path) -> None:
    from spmrl_bench.tensor_budget import TensorBudget

    module = read(folder)
    module.save_assets(tmp_path)
    with TensorBudget(1000, 1_000_000):
        again = Transformer.read("gone", None, WIDTH, "last", False, 0.2, tmp_path).eval()
        frozen = Transformer.read(str(folder), None, WIDTH, "last", True, 0.2, tmp_path).eval()
    for one in (again, frozen):
        one.load_state_dict(
            {
                name: weight
                for name, weight in module.state_dict().items()
                if name in one.state_dict()
            },
            assign=True,
        )
        with torch.no_grad():
            torch.testing.assert_close(apply(one, SENTENCES), apply(module, SENTENCES))


def test_copies_and_other_processes_see_the_same(folder: Path) -> None:
    module = read(folder)
    with torch.no_grad():
        wanted = apply(module, SENTENCES)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            torch.testing.assert_close(apply(other, SENTENCES), wanted)
            for form in ("[SEP]", "<s>", "<sep>"):
                assert other.codes(form).tolist() == module.codes(form).tolist()


def test_half_precision_weights_become_float32(own: Path) -> None:
    weights = load_file(own / "model.safetensors")
    halved = {name: weight.to(torch.bfloat16) for name, weight in weights.items()}
    save_file(halved, own / "model.safetensors", metadata={"format": "pt"})
    settings(dtype="bfloat16", torch_dtype="bfloat16")(own)
    module = read(own)
    assert {weight.dtype for weight in module.parameters()} == {torch.float32}


def test_products_may_be_bfloat16(folder: Path) -> None:
    exact = read(folder, "mean")
    torch.manual_seed(3)
    rough = Transformer.read(str(folder), None, WIDTH, "mean", False, 0.2, precision="bf16").eval()
    with torch.no_grad():
        wanted, found = apply(exact, SENTENCES), apply(rough, SENTENCES)
    assert found.dtype == torch.float32
    assert 0 < (found - wanted).abs().max() < 0.5


# Lengths --------------------------------------------------------------------------------


def test_a_sentence_of_the_greatest_length_is_read(tmp_path: Path) -> None:
    for kind, limit in {"bert": 12, "roberta": 10, "xlm-roberta": 10}.items():
        module = read(make(kind, tmp_path / kind, positions=12))
        words = ["cats"] * (limit // 2 - 1)  # two sub-words each
        lengths = np.array([1, *[2] * len(words), 1])
        assert module.check(lengths) == ""
        assert torch.isfinite(apply(module, [words])).all()
        message = module.check(np.array([1, *[2] * len(words), 1, 1]))
        assert f"{len(words) + 1} words" in message
        assert f"{limit + 1} sub-words" in message
        assert f"at most {limit}." in message
        assert "Split" in message
        with pytest.raises((IndexError, RuntimeError)):  # the limit is no less than what would work
            apply(module, [[*words, "the"]])


def test_xlnet_reads_any_length(folders: dict[str, Path]) -> None:
    module = read(folders["xlnet"])
    assert module.check(np.full(5000, 2)) == ""
    assert torch.isfinite(apply(module, [["cats"] * 300])).all()


# Silence and errors ---------------------------------------------------------------------


def test_nothing_is_printed(own: Path) -> None:
    """Not even of weights that are left out (a head) or made up (the pooler)."""
    program = (
        "import sys, numpy, torch, warnings\n"
        "from pathlib import Path\n"
        "from spmrl_bench.nn.inputs import Boundary, Codes\n"
        "from spmrl_bench.nn.ragged import Ragged\n"
        "from spmrl_bench.nn.transformer import Transformer\n"
        "warnings.simplefilter('always')\n"
        "module = Transformer.read(sys.argv[1], None, 8, 'mean', False, 0.2)\n"
        "codes = [module.codes(form) for form in (Boundary.START, Boundary.STOP, 'the')]\n"
        "values = torch.from_numpy(numpy.stack(codes))\n"
        "codes = Codes(values, torch.ones(3, dtype=torch.int64), torch.tensor([0, 2, 1]))\n"
        "layout = Ragged.of(numpy.array([3]), torch.device('cpu'))\n"
        "module(codes, layout).sum().backward()\n"
        "module.save_assets(Path(sys.argv[1]))\n"
        "Transformer.read('gone', None, 8, 'mean', False, 0.2, Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(own)], check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_the_library_is_left_as_it_was(own: Path) -> None:
    import logging

    import transformers

    bars = transformers.utils.logging.is_progress_bar_enabled()
    level = logging.getLogger("transformers").level
    read(own)
    (own / "vocab.txt").unlink()
    with pytest.raises(PretrainedError):
        read(own)
    assert transformers.utils.logging.is_progress_bar_enabled() == bars
    assert logging.getLogger("transformers").level == level


def test_the_library_is_loaded_only_for_a_file() -> None:
    program = (
        "import sys, spmrl_bench.nn.transformer\n"
        "assert not {'transformers', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_the_library(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
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


def text(name: str, content: str) -> Damage:
    return raw(name, content.encode())


LAYER = "bert.encoder.layer.1.output.dense.bias"


def another_tokenizer(folder: Path) -> None:
    """The vocabulary of a RoBERTa beside the configuration of a BERT."""
    (folder / "vocab.txt").unlink()
    (folder / "vocab.json").write_text('{"a": 0}', encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")


def sharded(folder: Path) -> None:
    """Two files, of which the index names a third."""
    names = list(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    places = dict.fromkeys(names, "model-00001-of-00002.safetensors")
    places[LAYER] = "model-00002-of-00002.safetensors"
    content = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (absent("config.json"), r"config\.json: missing"),
        (text("config.json", "{"), r"config\.json: cannot be read"),
        (text("config.json", "[1]"), r"config\.json: cannot be read .*model_type"),
        (text("config.json", "{}"), r"config\.json: cannot be read .*model_type"),
        (settings(hidden_size="wide"), r"cannot be read \(.*str"),
        (
            settings(model_type="no-such-kind"),
            r"config\.json: model_type 'no-such-kind' is no encoder",
        ),
        (settings(model_type="gpt2"), r"config\.json: model_type 'gpt2' is no encoder"),
        (settings(model_type="t5"), r"config\.json: model_type 't5' is no encoder"),
        (settings(model_type="bart", is_encoder_decoder=True), r"an encoder with a decoder"),
        (settings(is_decoder=True), r"config\.json: a decoder"),
        (absent("model.safetensors"), r"no weights \(model\.safetensors\)"),
        (only_pickled, r"pytorch_model\.bin: .* pickled file can run any code\. Convert"),
        (
            raw("model.safetensors", lambda data: data[: len(data) // 2]),
            r"model\.safetensors: cannot be read",
        ),
        (
            sharded,
            r"model-00002-of-00002\.safetensors: missing, but \S+\.index\.json names it",
        ),
        (
            tensors(lambda found: found.pop(LAYER)),
            r"model\.safetensors: no weights for encoder\.layer\.1\.output\.dense\.bias, which",
        ),
        (
            tensors(dict.clear),
            r"model\.safetensors: no weights for embeddings\.\S+ \(and \d+ more\)",
        ),
        (
            tensors(lambda found: found.update({LAYER: torch.zeros(3)})),
            r"model\.safetensors: the shape of encoder\.layer\.1\.output\.dense\.bias is \[3\], "
            r"but config\.json asks for \[16\]",
        ),
        (
            tensors(lambda found: found.update({LAYER.replace("1", "2"): torch.zeros(16)})),
            r"model\.safetensors: (bert\.)?encoder\.layer\.2\.output\.dense\.bias has no place",
        ),
        (absent("vocab.txt"), r"no tokenizer\. It needs tokenizer\.json, or vocab\.txt"),
        (text("vocab.txt", ""), r"its tokenizer \(BertTokenizer\w*\) finds no vocabulary"),
        (
            another_tokenizer,
            r"its tokenizer (\(BertTokenizer\) finds no vocabulary|cannot be read)",
        ),
        (text("tokenizer_config.json", "{"), r"its tokenizer cannot be read .*line 1 column 2"),
        (text("tokenizer.json", "{"), r"its tokenizer cannot be read .*line 1 column 2"),
        (
            raw("vocab.txt", lambda data: data + b"surplus\n"),
            r"has ids up to 86, but the encoder has 86 embeddings",
        ),
        (text("tokenizer_config.json", '{"do_lower_case": true}'), r"do_lower_case to false"),
        (text("tokenizer_config.json", "{}"), r"do_lower_case to false"),
        (settings(pad_token_id=400), r"cannot be read \(Padding_idx must be within"),
    ],
)
def test_what_is_wrong_with_a_folder(own: Path, spoil: Damage, message: str) -> None:
    spoil(own)
    with pytest.raises(PretrainedError, match=message) as caught:
        read(own)
    assert str(own) in str(caught.value)
    assert "\n" not in str(caught.value)


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


def test_a_sentencepiece_model_alone_cannot_be_read(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(folders["xlnet"], tmp_path / "xlnet"))
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"no model")
    with pytest.raises(PretrainedError, match=r"its tokenizer cannot be read .*tokenizer\.json"):
        read(folder)


def test_tokenizer_without_boundaries(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["xlm-roberta"], tmp_path / "xlm"))
    edited("tokenizer.json", lambda old: old.update(post_processor=None))(folder)
    edited(
        "tokenizer_config.json", lambda old: old.update(tokenizer_class="PreTrainedTokenizerFast")
    )(folder)
    with pytest.raises(PretrainedError, match=r"special tokens around a sentence|unknown token"):
        read(folder)


def test_padding_and_cutting_of_a_tokenizer_file_are_switched_off(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(folders["xlm-roberta"], tmp_path / "xlm"))
    before = [read(folder).codes(word).tolist() for word in SENTENCES[2]]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding(length=9)
    tokenizer.enable_truncation(max_length=3)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert [read(folder).codes(word).tolist() for word in SENTENCES[2]] == before


@pytest.mark.parametrize(
    ("name", "revision", "message"),
    [
        ("no/such/folder", None, "no such folder. The setting transformer names a folder"),
        ("/no-such-folder", COMMIT, "no such folder"),
        ("someone/something", None, "transformer_revision is not set"),
        ("someone/something", "main", "transformer_revision is 'main'. Set it to the 40"),
    ],
)
def test_names_that_stand_for_nothing(name: str, revision: str | None, message: str) -> None:
    with pytest.raises(PretrainedError, match=message):
        read(name, revision=revision)


def test_a_folder_has_no_revision_and_a_file_is_none(own: Path) -> None:
    with pytest.raises(PretrainedError, match="Leave the revision out"):
        read(own, revision=COMMIT)
    with pytest.raises(PretrainedError, match="a file"):
        read(own / "config.json")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a hub that is not reached: where the files of one revision would lie."""
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "models--someone--something" / "snapshots" / COMMIT


def test_the_hub_is_not_reached(hub: Path) -> None:
    with pytest.raises(PretrainedError, match=r"someone/something: revision .* cannot be fetched"):
        read("someone/something", revision=COMMIT)


def test_what_was_fetched_once_needs_no_hub(hub: Path, folders: dict[str, Path]) -> None:
    hub.parent.mkdir(parents=True)
    shutil.copytree(folders["bert"], hub)
    found = apply(read("someone/something", revision=COMMIT), SENTENCES)
    assert torch.equal(found, apply(read(folders["bert"]), SENTENCES))


def test_what_was_fetched_in_part_is_not_enough(hub: Path, folders: dict[str, Path]) -> None:
    hub.parent.mkdir(parents=True)
    shutil.copytree(folders["bert"], hub)
    os.remove(hub / "vocab.txt")
    with pytest.raises(PretrainedError, match="no tokenizer"):  # nor is the hub reached
        read("someone/something", revision=COMMIT)
