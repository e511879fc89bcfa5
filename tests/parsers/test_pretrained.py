"""Whole parsers over what others have trained: trained, saved, resumed and loaded; and word
embeddings that start from the vectors of a file."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse
from tests.builders import TREES, config, learn, tiny
from tests.nn import plain_elmo
from tests.nn.tiny_transformers import make
from tests.parsers.examples import check_learnt_and_loaded, trees_of
from tests.training.trainers import break_off, make_trainer, weights

needs_transformers = pytest.mark.skipif(
    not find_spec("transformers"), reason="the package transformers is not installed"
)

EXAMPLES = [Parse.of(tree) for tree in TREES]
WORDS, TAGS = [tree.words for tree in TREES], [tree.tags for tree in TREES]


def parser_over(folder: Path, **changes: Any) -> ChartParser:
    torch.manual_seed(0)
    own = {"lexical": ("transformer",), "transformer": str(folder), "layers": 1, "d_model": 64}
    return tiny(**own, **changes)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The settings that name files of vectors and of a language model."""
    options, weights = plain_elmo.write_model(tmp_path)
    known = sorted({word for words in WORDS[::2] for word in words})
    lines = [f"{word} {number}.5 0.25 -1\n" for number, word in enumerate(known)]
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(lines), encoding="utf-8")
    return {"vectors": str(vectors), "elmo_options": str(options), "elmo_weights": str(weights)}


def test_a_parser_learns_from_files_and_is_loaded_with_the_same(
    tmp_path: Path, files: dict[str, str]
) -> None:
    parser = tiny(lexical=("vectors", "elmo"), elmo_dropout=0.0, layers=1, **files)
    losses = learn(parser, EXAMPLES, 30)
    assert losses[-1] < 0.8 * losses[0]
    folder = tmp_path / "parser"
    folder.mkdir()
    parser.save(folder)
    assert trees_of(load_parser(folder).parse(WORDS)) == trees_of(parser.parse(WORDS))
    for place in map(Path, files.values()):
        content = place.read_bytes()
        place.write_bytes(content + b"\n")
        with pytest.raises(PretrainedError, match=f"{place}: has changed since the parser"):
            load_parser(folder)
        place.unlink()
        with pytest.raises(PretrainedError, match=f"{place}: missing; the parser"):
            load_parser(folder)
        place.write_bytes(content)


@needs_transformers
@pytest.mark.parametrize(("kind", "frozen"), [("xlnet", False), ("bert", True)])
def test_a_parser_over_an_encoder_learns_and_is_loaded_with_the_same(
    kind: str, frozen: bool, tmp_path: Path
) -> None:
    folder = make(kind, tmp_path / kind, dropout=0.0)
    parser = parser_over(folder, transformer_frozen=frozen)
    module: Any = parser.lexical["transformer"]
    encoder = module.encoder.held if frozen else module.encoder
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    losses = learn(parser, EXAMPLES, 15, 0.003)
    assert losses[-1] < 0.8 * losses[0]
    found = trees_of(parser.parse(WORDS, TAGS))
    assert len(set(map(repr, found))) > 5
    changed = [name for name, each in encoder.state_dict().items() if (each != before[name]).any()]
    assert bool(changed) != frozen

    place = tmp_path / "saved"
    place.mkdir()
    parser.save(place)
    names = load_file(place / "weights.safetensors")
    assert any(".transformer.encoder." in name for name in names) != frozen
    if not frozen:
        shutil.rmtree(folder)
    assert trees_of(load_parser(place).parse(WORDS, TAGS)) == found
    if frozen:
        weight_file = folder / "model.safetensors"
        content = bytearray(weight_file.read_bytes())
        content[-1] ^= 1
        weight_file.write_bytes(content)
        with pytest.raises(PretrainedError, match=r"model\.safetensors: has changed"):
            load_parser(place)
        shutil.rmtree(folder)
        with pytest.raises(PretrainedError, match=r"model\.safetensors: missing"):
            load_parser(place)


@needs_transformers
def test_a_resumed_run_ends_as_if_never_stopped(tmp_path: Path) -> None:
    folder = make("roberta", tmp_path / "roberta")
    model: dict[str, object] = {"lexical": ["transformer"], "transformer": str(folder)}
    make_trainer(tmp_path / "whole", model=model, max_epochs=2).fit()

    break_off(tmp_path / "parts", 3, model=model, max_epochs=2)  # in the second epoch
    make_trainer(tmp_path / "parts", model=model, max_epochs=2).fit()
    for name in ("best", "last"):
        assert weights(tmp_path / "parts" / name) == weights(tmp_path / "whole" / name)
        kept = sorted(path.name for path in (tmp_path / "parts" / name / "transformer").iterdir())
        assert kept == ["config.json", "tokenizer.json", "tokenizer_config.json"]


CASED = parse_brackets("(S (NP (D A) (N House)) (VP (V sees) (NP (D a) (N dog))))")


def fresh(**changes: Any) -> ChartParser:
    torch.manual_seed(1)
    vocabulary = Vocabulary.of([*EXAMPLES, Parse.of(CASED)])
    return ChartParser.fresh(config(lexical=("word",), **changes), vocabulary)


def embeddings(parser: ChartParser) -> Tensor:
    return parser.lexical["word"].embedding.weight.detach()


def started(
    tmp_path: Path, vectors: dict[str, float], width: int = 16, **changes: Any
) -> ChartParser:
    """A parser whose words start from vectors of one number, again and again."""
    lines = [" ".join([word, *[str(number)] * width]) for word, number in vectors.items()]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return fresh(word_vectors=str(path), **changes)


@pytest.mark.parametrize(
    ("vectors", "max_words", "expected"),
    [
        ({"dog": 0.25, "sees": 0.5, "never-seen": 1.0}, None, {"dog": 0.25, "sees": 0.5}),
        ({"dog": 0.25, "house": 0.5, "a": 1.0, "sees": 2.0}, 3, {"dog": 0.25, "a": 1.0}),
        # That of the lower case is taken where there is none of its own.
        ({"house": 0.75}, None, {"house": 0.75, "House": 0.75}),
        ({"a": 0.5, "A": 0.25}, None, {"A": 0.25, "a": 0.5}),
    ],
)
def test_known_words_have_their_vectors_and_others_random_ones(
    vectors: dict[str, float], max_words: int | None, expected: dict[str, float], tmp_path: Path
) -> None:
    wanted = embeddings(fresh(max_words=max_words))
    parser = started(tmp_path, vectors, max_words=max_words)
    for word, number in expected.items():
        wanted[parser.vocabulary.word_ids[word]] = number
    assert torch.equal(embeddings(parser), wanted)


def test_such_words_are_trained_on_and_the_file_is_needed_no_more(tmp_path: Path) -> None:
    parser = started(tmp_path, dict.fromkeys((w for words in WORDS for w in words), 0.25))
    (tmp_path / "vectors.txt").unlink()
    before = embeddings(parser).clone()
    check_learnt_and_loaded(parser, tmp_path)
    assert not torch.equal(embeddings(parser), before)


def test_a_file_of_vectors_that_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(PretrainedError, match=r"vectors\.txt: the vectors have 3 numbers, but"):
        started(tmp_path, {"dog": 1.0}, width=3)
    with pytest.raises(PretrainedError, match=r"vectors\.txt: none of the \d+ words"):
        started(tmp_path, {"never-seen": 1.0})
    with pytest.raises(PretrainedError, match="absent"):
        fresh(word_vectors=str(tmp_path / "absent"))
