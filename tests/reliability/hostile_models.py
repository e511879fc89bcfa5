"""What can be wrong with the folder of a saved parser: named changes of real, small ones.

A change is refused, with part of the message that says so, or ``HARMLESS`` with the reason why
whoever loads it is none the worse for it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from spmrl_bench.parsers import legacy
from spmrl_bench.parsers.kinds import kind_named
from tests.builders import chained, config
from tests.damage import (
    DEEP,
    SPECIAL,
    WEIGHTS,
    Damage,
    edited,
    forget_digest,
    nested,
    raw,
    sparse,
    special,
    tensors,
)

#: Saved parsers that are harmed: their kind, and settings beside those of the examples.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "chart": ("chart", {}),
    "tagging": ("chart", {"lexical": ("charlstm",), "predict_tags": True}),
    "labels": ("chart", {"label_attention": True, "label_d_kv": 8, "label_d_proj": 4}),
    "lstm": ("chart", {"encoder": "lstm", "lexical": ("word", "tag")}),
    "sines": ("chart", {"position_table": "sinusoidal", "position": "added", "matrices": "full"}),
    "biaffine": ("biaffine", {}),
    "joint": ("joint", {}),
    "transition": ("transition", {"encoder": "lstm", "beam": 4}),
    "right-branching": ("right-branching", {}),
    "attach-neighbour": ("attach-neighbour", {}),
}
NEURAL = tuple(name for name, (kind, _) in MODELS.items() if kind_named(kind).trained)
DEPENDENCIES = ("biaffine", "joint", "transition")
CONSTITUENTS = tuple(name for name in NEURAL if name not in ("biaffine", "transition"))


def save_models(folder: Path) -> None:
    """Save each of them into a folder of its name."""
    for name, (kind, changes) in MODELS.items():
        torch.manual_seed(3)
        (folder / name).mkdir(parents=True)
        build = kind_named(kind).parser_class.build
        build(config(kind, **changes), chained()).save(folder / name)


@dataclass(frozen=True)
class Harm:
    """One change of a folder."""

    name: str  # says what is done
    model: str  # which it is done to
    do: Damage
    refused: str | None = None  # part of the message; None where it may be accepted
    harmless: str = ""  # why it may be

    def __str__(self) -> str:
        return f"{self.model}: {self.name}"


Content = dict[str, Any]
Edit = Callable[[Any], Any]
OF_PARSING = "a setting of parsing, which may be changed in a trained parser"


def described(edit: Edit, *, earlier: bool = True) -> Damage:
    """Edit ``parser.json``; as of an ``earlier`` release, no digest gives the change away."""

    def do(folder: Path) -> None:
        edited("parser.json", edit)(folder)
        if earlier and (folder / WEIGHTS).is_file():
            forget_digest(folder)

    return do


def setting(**changes: Any) -> Damage:
    """Change settings."""
    return described(changed(changes))


def changed(changes: Mapping[str, Any], *without: str) -> Edit:
    """Change settings by their short names, or leave some out."""

    def edit(content: Content) -> None:
        settings = legacy.short(legacy.leaves(content["config"])) | changes
        content["config"] = legacy.nested(
            {key: settings[key] for key in settings.keys() - {*without}}
        )

    return edit


def vocabulary(part: str, edit: Edit, **how: bool) -> Damage:
    """Replace an inventory by what ``edit`` makes of it."""
    return described(
        lambda content: content["vocabulary"].update({part: edit(content["vocabulary"][part])}),
        **how,
    )


def first(pick: Callable[[str, torch.Tensor], bool], make: Edit) -> Damage:
    """Replace the first tensor that is picked."""

    def edit(found: dict[str, torch.Tensor]) -> None:
        name = next(name for name, tensor in found.items() if pick(name, tensor))
        found[name] = make(found[name])

    return tensors(edit)


def header(edit: Edit) -> Damage:
    """Edit the header of the weights, whose numbers stay where they are."""

    def change(data: bytes) -> bytes:
        (size,) = struct.unpack("<Q", data[:8])
        content = json.loads(data[8 : 8 + size])
        edit(content)
        text = json.dumps(content).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + data[8 + size :]

    return raw(WEIGHTS, change)


def _is_matrix(name: str, tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2


def _is_norm(name: str, tensor: torch.Tensor) -> bool:
    return "norm" in name and tensor.is_floating_point()


def _poisoned(value: float) -> Edit:
    def make(tensor: torch.Tensor) -> torch.Tensor:
        tensor.view(-1)[-1] = value
        return tensor

    return make


def _halved(found: dict[str, torch.Tensor]) -> None:
    found.update({name: w.half() for name, w in found.items() if w.is_floating_point()})


def _swapped(content: Content) -> None:
    """Exchange the places of the numbers of two matrices of one shape."""
    seen: dict[tuple[int, ...], Content] = {}
    for about in content.values():
        shape = tuple(about.get("shape", ()))
        other = seen.setdefault(shape, about) if len(shape) == 2 else about
        if other is not about:
            moved = other["data_offsets"], about["data_offsets"]
            about["data_offsets"], other["data_offsets"] = moved
            return


NO_PARSER = "not a parser description"
UNFIT = "does not fit parser.json"
CHANGED = "has changed since the weights beside it were saved"
SPOILT = "has changed since it was saved: its numbers"
TYPES = ("float16", "bfloat16", "float64", "int32", "int8", "bool", "complex64")
EIGHT = ("float8_e4m3fn", "float8_e5m2")


def each(model: str, refused: str, changes: Mapping[str, Damage]) -> Iterator[Harm]:
    """Changes that are refused in the same words."""
    return (Harm(name, model, do, refused) for name, do in changes.items())


def _numbers() -> Iterator[Harm]:
    """Weights of another type, not finite, or of another shape."""
    for model in ("chart", "biaffine", "joint", "transition"):
        picked = _is_norm if model != "transition" else _is_matrix
        for kind in TYPES + EIGHT:
            dtype = getattr(torch, kind)
            made = first(picked, lambda x, d=dtype: x.to(d))
            yield Harm(f"a tensor of {kind}", model, made, UNFIT if kind != "bfloat16" else SPOILT)
        for value in (float("nan"), float("inf"), float("-inf")):
            yield Harm(f"a weight of {value}", model, first(_is_matrix, _poisoned(value)), "finite")
        yield from each(model, UNFIT, {
            "all as float16": tensors(_halved),
            "a row too few": first(_is_matrix, lambda x: x[1:].clone()),
            "a tensor flat": first(_is_matrix, lambda x: x.flatten()),
            "a tensor turned": first(
                lambda _, x: x.dim() == 2 and x.shape[0] != x.shape[1], lambda x: x.T.contiguous()
            ),
            "a tensor missing": tensors(lambda x: x.pop(max(x))),
            "one more": tensors(lambda x: x.update(more=torch.zeros(1))),
        })  # fmt: skip
        yield Harm("none at all", model, tensors(lambda x: x.clear()), NO_PARSER)
        yield from each(model, SPOILT, {
            "a bit flipped": raw(WEIGHTS, lambda x: x[:-4] + bytes([x[-4] ^ 1]) + x[-3:]),
            "two matrices in each other's place": header(_swapped),
            "a matrix of zeros": first(
                lambda name, x: _is_matrix(name, x) and bool(x.any()), torch.zeros_like
            ),
        })  # fmt: skip
        if model != "joint":
            yield Harm(
                "finite weights beyond all use",
                model,
                tensors(lambda x: [w.fill_(3e38) for w in x.values() if w.dim() == 2]),
                SPOILT,
            )


#: Settings that are too large for the weights: the model, the name, sizes, part of the message.
SIZES: list[tuple[str, str, tuple[int, ...], str]] = [
    *((model, "layers", (10**6, 10**9, 2**62), NO_PARSER) for model in NEURAL),
    ("chart", "d_model", (4 * 10**6, 4 * 10**15), NO_PARSER),
    ("chart", "heads", (10**6, 10**12), "parser.json"),
    ("chart", "d_kv", (2 * 10**7,), "parser.json"),
    ("chart", "d_ff", (10**9, 2**62), "parser.json"),
    ("chart", "d_char", (10**9,), "parser.json"),
    ("chart", "max_positions", (10**7, 10**12), "parser.json"),
    ("chart", "d_label_hidden", (10**9,), "parser.json"),
    ("sines", "max_positions", (2 * 10**6, 10**12), "max_positions"),
    ("labels", "label_heads", (10**6, 10**12), "parser.json"),
    ("biaffine", "d_arc", (10**6, 10**12), "parser.json"),
    *(
        ("transition", key, (10**6, 10**12), "parser.json")
        for key in ("decoder_layers", "attention_layers", "d_decoder", "d_action")
    ),
    ("transition", "beam", (10**6, 10**12), "beam"),
]


def _sizes() -> Iterator[Harm]:
    """Settings and inventories that are larger than the weights."""
    for model, key, sizes, refused in SIZES:
        for size in sizes:
            yield Harm(f"{key} = {size}", model, setting(**{key: size}), refused)
    largest = "the largest table of sines and cosines that settings may ask for"
    yield Harm("10**4 positions", "sines", setting(max_positions=10**4), harmless=largest)
    wide = "a window wider than any sentence is none"
    yield Harm("a window of 2**62", "chart", setting(attention_window=2**62), harmless=wide)
    checked = setting(layers=10**9, position_only_layers=[0])
    yield Harm("layers = 10**9 where they are checked", "sines", checked, "layers")
    million = range(10**6)
    for model, part, more, refused in (
        ("chart", "labels", lambda k: [f"L{k}"], "too large"),
        ("joint", "labels", lambda k: [f"L{k}"], "too large"),
        ("biaffine", "relations", lambda k: [f"r{k}", True, True], "large"),
        ("transition", "relations", lambda k: [f"r{k}", True, True], "large"),
        ("chart", "words", lambda k: [f"w{k}", 1], "parser.json"),
    ):
        longer = vocabulary(part, lambda x, more=more: x + [more(k) for k in million])
        yield Harm(f"a million {part}", model, longer, refused)
    chain = vocabulary("labels", lambda x: [*x[:-1], ["A"] * 10**6])
    yield Harm("a label of a million names", "chart", chain, "a chain of more than")


def _last(value: object) -> Edit:
    """Another last entry."""
    return lambda x: [*x[:-1], value]


def _first(value: object) -> Edit:
    """Another first entry."""
    return lambda x: [value, *x[1:]]


#: Changes of an inventory: the model, which, the change, part of the message.
INVENTORIES: dict[str, tuple[str, str, Edit, str]] = {
    "no empty label": ("chart", "labels", lambda x: x[1:], "empty one"),
    "a second empty label": ("chart", "labels", _last([]), ""),
    "a null in a label": ("chart", "labels", _last([None]), ""),
    "half a character in a label": ("chart", "labels", _last(["\ud800"]), "hex escape"),
    "no labels": ("chart", "labels", lambda x: x[:1], ""),
    "no label at all": ("chart", "labels", lambda x: [], NO_PARSER),
    "a count of -1": ("chart", "words", _first(["new", -1]), "greater than or equal to 0"),
    "a count of 1.5": ("chart", "words", _first(["new", 1.5]), ""),
    "half a character in a word": ("chart", "words", _first(["\udfff", 1]), "hex escape"),
    "one more word": (
        "chart",
        "words",
        lambda x: [*x, ["zebra", 1]],
        "lexical.word.embedding.weight",
    ),
    "two letters": ("chart", "characters", _first("ab"), "at most 1 character"),
    "no tags": ("tagging", "tags", lambda x: [], ""),
    "no relations": ("biaffine", "relations", lambda x: [], ""),
    "no relations to the root": ("transition", "relations", lambda x: [], ""),
    "a relation of texts": ("biaffine", "relations", lambda x: [["a", "b", "c"]], ""),
    "projective: a text": ("biaffine", "projective", lambda x: "no", "proj"),
    "the root: a list": ("chart", "root", lambda x: ["S"], "root"),
    **{
        f"a relation {value!r}": ("biaffine", "relations", _first([value, True, True]), "no file")
        for value in ("", " a", "a\tb", "a\nb")
    },
}


def _inventories() -> Iterator[Harm]:
    """Vocabularies that no training sentences have given."""
    for name, (model, part, edit, refused) in INVENTORIES.items():
        yield Harm(name, model, vocabulary(part, edit), refused)
    for model in NEURAL:
        parts = ["words", "characters"]
        parts += ["labels"] * (model in CONSTITUENTS) + ["relations"] * (model in DEPENDENCIES)
        for part in parts:
            turned = vocabulary(part, lambda x: [x[0], *x[:0:-1]], earlier=False)
            yield Harm(f"{part} in another order", model, turned, CHANGED)
            twice = vocabulary(part, lambda x: [*x[:-1], x[-2]])
            yield Harm(f"{part}: one twice", model, twice, "twice")
    for part in ("words", "characters", "labels", "tags"):
        for value in (None, 7, "abc", {}):
            wrong = vocabulary(part, lambda x, v=value: v)
            yield Harm(f"{part}: {value!r}", "chart", wrong, "parser")
        for value in (None, 7, [[1]], True):
            wrong = vocabulary(part, _last(value))
            yield Harm(f"{part}: {value!r} among them", "chart", wrong, NO_PARSER)
        gone = described(lambda c, part=part: c["vocabulary"].pop(part))
        if part != "tags":
            yield Harm(f"{part}: left out", "chart", gone, NO_PARSER)
    data = "labels are data: what a file cannot hold is written with escapes"
    for value in ("a b", "(", ")", "a\nb", "", "../../etc/passwd"):
        yield Harm(f"a label {value!r}", "chart", vocabulary("labels", _last([value])), None, data)
    yield Harm(
        "the words of an earlier release in another order",
        "chart",
        vocabulary("words", lambda x: x[::-1]),
        harmless="it has no digest, so that nobody can tell; its order is as good as any",
    )


def _vast(folder: Path) -> None:
    path = str(folder / "vectors.txt")
    raw("vectors.txt", b"")(folder)
    sparse("vectors.txt", 4 << 40)(folder)
    setting(lexical=["vectors"], vectors=path)(folder)
    noted = {path: {"sha256": "0" * 64, "bytes": 4 << 40}}
    described(lambda content: content.update(pretrained=noted))(folder)


def _settings() -> Iterator[Harm]:
    """Settings that were not those of the training, or are none."""
    for key, value in {
        "attention_scale": "d_model", "input_norm": False, "heads": 4, "word_dropout": 0.5,
    }.items():  # fmt: skip
        other = described(changed({key: value}), earlier=False)
        yield Harm(f"{key} = {value} with a digest", "chart", other, "parser.json")
    for model, key, value in (("chart", "precision", "bfloat16"), ("transition", "beam", 2)):
        other = described(changed({key: value}), earlier=False)
        yield Harm(f"another {key}", model, other, harmless=OF_PARSING)
    for value in (None, [], 3, "chart", {}, {"layers": None}):
        other = described(lambda c, v=value: c.update(config=v))
        yield Harm(f"config: {value!r}", "chart", other, "")
    for value in (1e400, -1, "many", None, 1.5):
        yield Harm(f"layers = {value}", "chart", setting(layers=value), "parser.json")
    yield from each("chart", NO_PARSER, {
        "no config": described(lambda c: c.pop("config")),
        "no vocabulary": described(lambda c: c.pop("vocabulary")),
        "no heads": described(changed({}, "heads")),
        "colour = 3": setting(colour=3),
        "d_model = 33": setting(d_model=33),
        "a digest of pretrained files that is no text": described(
            lambda c: c.update(pretrained={"/dev/zero": 3})
        ),
    })  # fmt: skip
    yield Harm("word vectors of 4 TB", "chart", _vast, "a sparse file (4,398,046,511,104 bytes")
    pretrained = described(lambda c: c.update(pretrained={"/dev/zero": "00"}))
    yield Harm("a device as pretrained file", "chart", pretrained, "/dev/zero: missing")
    yield from each("chart", "a device", {
        "a device as word vectors": setting(lexical=["vectors"], vectors="/dev/zero"),
        "a device as weights of a language model": setting(
            lexical=["elmo"], elmo_options="/dev/zero", elmo_weights="/dev/zero"
        ),
    })  # fmt: skip
    encoder = setting(lexical=["transformer"], transformer="/etc")
    yield Harm("a folder without an encoder", "chart", encoder, "transformer")


def _says(value: bytes) -> bytes:
    return b'{"kind": "chart", "x": ' + value + b"}"


#: Bytes of ``parser.json``.
DESCRIPTIONS: dict[str, bytes] = {
    "100,000 brackets": DEEP,
    "brackets that do not close": b"[" * 100_000,
    "100,000 objects": nested(b'{"a":', b"}"),
    "500 brackets in a key": _says(nested(b"[", b"]", 500)),
    "33 MB of text": b'"' + b"a" * (33 << 20) + b'"',
    "32 MB of lists": b"[" + b"[]," * (10 << 20) + b"[]]",
    "32 MB of objects": b"[" + b"{}," * (10 << 20) + b"{}]",
    "no UTF-8": b'{"kind": "\xff"}',
    "UTF-16": '{"kind": "chart"}'.encode("utf-16"),
    "NaN": _says(b"NaN"),
    "-Infinity": _says(b"-Infinity"),
    "a whole number of 41 digits": _says(b"1" + b"0" * 40),
    "a whole number of 5000 digits": _says(b"1" + b"0" * 5000),
    "a key twice": b'{"kind": "chart", "kind": "joint"}',
    "half a character": _says(b'"\\ud800"'),
    "zero bytes": b"\0" * 1000,
    "a pickle": b"\x80\x04\x95\x0e\x00\x00\x00\x00\x00\x00\x00\x8c\x02os.",
    "nothing": b"",
    "half an object": b"{",
    "a list": b"[]",
    "a text": b'"chart"',
    "null": b"null",
    "an empty object": b"{}",
}


def _descriptions() -> Iterator[Harm]:
    for model in ("chart", "right-branching"):
        for name, data in DESCRIPTIONS.items():
            yield Harm(name, model, raw("parser.json", data), "parser.json")
        for kind in SPECIAL:
            yield Harm(f"parser.json: {kind}", model, special("parser.json", kind), "parser")
        yield Harm("parser.json of 1 TB", model, sparse("parser.json"), "bytes")
    for value in (None, 3, "a", ["a"], {"whole": "S"}, {"whole": [1], "body": [], "inner": []}):
        counted = described(lambda c, v=value: c.update(counted=v))
        yield Harm(f"counted: {value!r}", "right-branching", counted, "counted")
    for model, fact, value in (
        ("right-branching", "inner", ["A"] * 10**6),
        ("attach-neighbour", "root", "a\nb"),
    ):
        counted = described(lambda c, f=fact, v=value: c["counted"].update({f: v}))
        yield Harm(f"another {fact} of a million or two lines", model, counted, "counted")
    for value in ("../chart", "", 3, "pickle", "shift-reduce", "Chart", None, ["chart"], {}):
        of_kind = described(lambda c, v=value: c.update(kind=v))
        yield Harm(f"kind: {value!r}", "chart", of_kind, "unknown parser kind")
    joint = described(lambda c: c.update(kind="joint"))
    yield Harm("another kind", "chart", joint, "parser.json")


#: What the header of the weights may say of a tensor.
LIES: tuple[Content, ...] = (
    {"shape": [10**6, 10**6]},
    {"shape": [2**62, 2**62]},
    {"shape": [-1]},
    {"data_offsets": [0, 10**11]},
    {"data_offsets": [10, 0]},
    {"data_offsets": [-8, 0]},
    {"data_offsets": [0, 4]},
    {"dtype": "F8_E4M3"},
    {"dtype": "PICKLE"},
)


def _files() -> Iterator[Harm]:
    """Bytes and header of the weights."""
    for model in ("chart", "transition"):
        for kind in SPECIAL:
            yield Harm(f"weights: {kind}", model, special(WEIGHTS, kind), WEIGHTS)
        yield from each(model, UNFIT, {
            **{f"weights: {what}": raw(WEIGHTS, data) for what, data in {
                "nothing": b"",
                "zeros": b"\0" * 1000,
                "a header of 2**63": struct.pack("<Q", 2**63) + b"{}",
                "a header of 100 MB": struct.pack("<Q", 100 << 20) + b"{}",
                "a header of brackets": struct.pack("<Q", 200_000) + DEEP,
                "a header of no UTF-8": struct.pack("<Q", 8) + b'{"\xff": 1',
                "a pickle": b"PK\x03\x04" + b"\0" * 100,
            }.items()},
            **{f"weights cut to {kept}": raw(WEIGHTS, lambda x, k=kept: x[:k])
               for kept in (4, 100, -1, -1000)},
            "a byte behind the weights": raw(WEIGHTS, lambda x: x + b"\0"),
            "weights of 1 TB": sparse(WEIGHTS),
            **{f"a header that says {lie}": header(lambda c, lie=lie: c[max(c)].update(lie))
               for lie in LIES},
            "a name of 10,000 letters": header(lambda c: c.update({"x" * 9999: c.pop(max(c))})),
        })  # fmt: skip
        notes = header(lambda c: c.update(__metadata__={"x": "y"}))
        yield Harm("a header with notes of its own", model, notes, harmless="nobody reads notes")


HARMS = tuple(
    harm
    for group in (_numbers, _sizes, _inventories, _settings, _descriptions, _files)
    for harm in group()
)
