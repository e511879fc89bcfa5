"""What can be wrong with the folder of a saved parser: named changes of real, small ones.

A change is refused, with part of the message that says so, or ``HARMLESS`` with the reason why
whoever loads it is none the worse for it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from spmrl_bench.parsers.registry import kind_named
from tests.damage import forget_digest
from tests.parsers.test_kinds import both_layers, settings_of

#: Saved parsers that are harmed: their kind, and settings beside those of the examples.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "chart": ("chart", {}),
    "tagging": ("chart", {"lexical": ("charlstm",), "predict_tags": True}),
    "labels": ("chart", {"label_attention": True, "label_d_kv": 8, "label_d_proj": 4}),
    "lstm": ("chart", {"encoder": "lstm", "lexical": ("word", "tag")}),
    "sines": (
        "chart",
        {"position_table": "sinusoidal", "position": "added", "matrices": "full"},
    ),
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
        config_class = kind_named(kind).config_class
        settings = settings_of(config_class, **changes) if name in NEURAL else config_class()
        kind_named(kind).parser_class.build(settings, both_layers()).save(folder / name)


@dataclass(frozen=True)
class Harm:
    """One change of a folder.

    Attributes:
        name: says what is done.
        model: which it is done to.
        do: does it.
        refused: part of the message that refuses it; None where it may be accepted.
        harmless: why it may be.
    """

    name: str
    model: str
    do: Callable[[Path], None]
    refused: str | None = None
    harmless: str = ""

    def __str__(self) -> str:
        return f"{self.model}: {self.name}"


Content = dict[str, Any]


def described(edit: Callable[[Content], Any], *, earlier: bool = True) -> Callable[[Path], None]:
    """Edit ``parser.json``; as of an ``earlier`` release, no digest gives the change away."""

    def do(folder: Path) -> None:
        path = folder / "parser.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        edit(content)
        path.write_text(json.dumps(content), encoding="utf-8")
        if earlier and (folder / "weights.safetensors").is_file():
            forget_digest(folder)

    return do


def setting(**changes: Any) -> Callable[[Path], None]:
    """Change settings."""
    return described(lambda content: content["config"].update(changes))


def vocabulary(part: str, edit: Callable[[Any], Any], **how: bool) -> Callable[[Path], None]:
    """Replace an inventory by what ``edit`` makes of it."""

    def change(content: Content) -> None:
        content["vocabulary"][part] = edit(content["vocabulary"][part])

    return described(change, **how)


def raw(name: str, data: bytes | Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Replace the bytes of a file."""

    def do(folder: Path) -> None:
        path = folder / name
        path.write_bytes(data if isinstance(data, bytes) else data(path.read_bytes()))

    return do


def tensors(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    """Edit the tensors."""

    def do(folder: Path) -> None:
        path = folder / "weights.safetensors"
        found = {name: tensor.clone() for name, tensor in load_file(path).items()}
        edit(found)
        save_file(found, path)

    return do


def first(pick: Callable[[str, torch.Tensor], bool], make: Callable[[torch.Tensor], torch.Tensor]):  # type: ignore[no-untyped-def]
    """Replace the first tensor that is picked."""

    def edit(found: dict[str, torch.Tensor]) -> None:
        name = next(name for name, tensor in found.items() if pick(name, tensor))
        found[name] = make(found[name])

    return tensors(edit)


def header(edit: Callable[[Content], Any]) -> Callable[[Path], None]:
    """Edit the header of the weights, whose numbers stay where they are."""

    def do(folder: Path) -> None:
        path = folder / "weights.safetensors"
        data = path.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        content = json.loads(data[8 : 8 + size])
        edit(content)
        text = json.dumps(content).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])

    return do


def special(name: str, kind: str) -> Callable[[Path], None]:
    """Put what is no file in the place of a file."""

    def do(folder: Path) -> None:
        path = folder / name
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as made:
                here = os.getcwd()
                os.chdir(folder)  # names of sockets are short
                made.bind(name)
                os.chdir(here)
        else:
            path.symlink_to({"device": "/dev/zero", "dangling": "gone", "loop": name}[kind])

    return do


def sparse(name: str, size: int) -> Callable[[Path], None]:
    """Make a file as large as this, with a hole at its end."""
    return lambda folder: os.truncate(folder / name, size)


def nested(opening: bytes, closing: bytes, depth: int) -> bytes:
    """Brackets inside each other."""
    return opening * depth + closing * depth


def _is_matrix(name: str, tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2


def _is_norm(name: str, tensor: torch.Tensor) -> bool:
    return "norm" in name and tensor.is_floating_point()


def _poisoned(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def make(tensor: torch.Tensor) -> torch.Tensor:
        tensor.view(-1)[-1] = value
        return tensor

    return make


NO_PARSER = "not a parser description"
UNFIT = "does not fit parser.json"
CHANGED = "has changed since the weights beside it were saved"
TYPES = ("float16", "bfloat16", "float64", "int32", "int8", "bool", "complex64")
EIGHT = ("float8_e4m3fn", "float8_e5m2")


def _numbers() -> Iterator[Harm]:
    """Weights of another type, not finite, or of another shape."""
    for model in ("chart", "biaffine", "joint", "transition"):
        picked = _is_norm if model != "transition" else _is_matrix
        for kind in TYPES + EIGHT:
            dtype = getattr(torch, kind)
            yield Harm(
                f"a tensor of {kind}", model, first(picked, lambda x, d=dtype: x.to(d)), UNFIT
            )  # type: ignore[misc]
        for value in (float("nan"), float("inf"), float("-inf")):
            yield Harm(f"a weight of {value}", model, first(_is_matrix, _poisoned(value)), "finite")
        yield Harm("all as float16", model, tensors(_halved), UNFIT)
        yield Harm("a row too few", model, first(_is_matrix, lambda x: x[1:].clone()), UNFIT)
        yield Harm("a tensor flat", model, first(_is_matrix, lambda x: x.flatten()), UNFIT)
        yield Harm("a tensor missing", model, tensors(lambda x: x.pop(max(x))), UNFIT)
        yield Harm("one more", model, tensors(lambda x: x.update(more=torch.zeros(1))), UNFIT)
        yield Harm("none at all", model, tensors(lambda x: x.clear()), NO_PARSER)
    for model in ("chart", "biaffine", "transition"):
        yield Harm(
            "finite weights beyond all use",
            model,
            tensors(lambda x: [w.fill_(3e38) for w in x.values() if w.dim() == 2]),
            harmless="numbers that overflow in a parse give an error there, and no tree",
        )


def _halved(found: dict[str, torch.Tensor]) -> None:
    found.update({name: w.half() for name, w in found.items() if w.is_floating_point()})


def _sizes() -> Iterator[Harm]:
    """Settings and inventories that are larger than the weights."""
    for model in NEURAL:
        for size in (10**6, 10**9, 2**62):
            yield Harm(f"layers = {size}", model, setting(layers=size), NO_PARSER)
    for key, sizes in {
        "d_model": (4 * 10**6, 4 * 10**15),
        "heads": (10**6, 10**12),
        "d_kv": (2 * 10**7,),
        "d_ff": (10**9, 2**62),
        "d_char": (10**9,),
        "max_positions": (10**7, 10**12),
        "d_label_hidden": (10**9,),
    }.items():
        for size in sizes:
            yield Harm(f"{key} = {size}", "chart", setting(**{key: size}), "too large for the")
    yield Harm(
        "max_positions = 10**6",
        "sines",
        setting(max_positions=10**6),
        harmless="the largest table of sines and cosines that settings may ask for",
    )
    for size in (2 * 10**6, 10**12):
        yield Harm(f"max_positions = {size}", "sines", setting(max_positions=size), "max_positions")
    for size in (10**6, 10**12):
        yield Harm(f"label_heads = {size}", "labels", setting(label_heads=size), "too large")
        yield Harm(f"d_arc = {size}", "biaffine", setting(d_arc=size), "too large")
        for key in ("decoder_layers", "attention_layers", "d_decoder", "d_action"):
            yield Harm(f"{key} = {size}", "transition", setting(**{key: size}), "parser.json")
        yield Harm(f"beam = {size}", "transition", setting(beam=size), "beam")
    yield Harm(
        "attention_window = 2**62",
        "chart",
        setting(attention_window=2**62),
        harmless="a window wider than any sentence is none",
    )
    million = [[f"L{k}"] for k in range(10**6)]
    yield Harm(
        "a million labels", "chart", vocabulary("labels", lambda x: x + million), "too large"
    )
    yield Harm(
        "a million labels", "joint", vocabulary("labels", lambda x: x + million), "too large"
    )
    for model in ("biaffine", "transition"):
        yield Harm(
            "a million relations",
            model,
            vocabulary("relations", lambda x: x + [[f"r{k}", True, True] for k in range(10**6)]),
            "large",
        )
    yield Harm(
        "a million words",
        "chart",
        vocabulary("words", lambda x: x + [[f"w{k}", 1] for k in range(10**6)]),
        "parser.json",
    )
    yield Harm(
        "a label of a million names",
        "chart",
        vocabulary("labels", lambda x: [*x[:-1], ["A"] * 10**6]),
        "a chain of more than",
    )
    yield Harm(
        "layers = 10**9 where they are checked",
        "sines",
        setting(layers=10**9, position_only_layers=[0]),
        "too large",
    )


def _inventories() -> Iterator[Harm]:
    """Vocabularies that no training sentences have given."""
    for model in NEURAL:
        relations = model in DEPENDENCIES
        for part in ("words", "characters", "labels", *(("relations",) if relations else ())):
            if part == "labels" and model not in CONSTITUENTS:
                continue
            yield Harm(
                f"{part} in another order",
                model,
                vocabulary(part, lambda x: [x[0], *x[:0:-1]], earlier=False),
                CHANGED if len(part) else "",
            )
            yield Harm(
                f"{part}: one twice", model, vocabulary(part, lambda x: [*x[:-1], x[-2]]), "twice"
            )
    for part in ("words", "characters", "labels", "tags"):
        for name, value in {"null": None, "a number": 7, "a text": "abc", "an object": {}}.items():
            yield Harm(f"{part}: {name}", "chart", vocabulary(part, lambda x, v=value: v), "parser")  # type: ignore[misc]
        for name, value in {"null": None, "a number": 7, "a list": [[1]], "true": True}.items():
            yield Harm(
                f"{part}: {name} among them",
                "chart",
                vocabulary(part, lambda x, v=value: [*x[:-1], v]),  # type: ignore[misc]
                NO_PARSER,
            )
    yield Harm("no empty label", "chart", vocabulary("labels", lambda x: x[1:]), "empty one")
    yield Harm("a second empty label", "chart", vocabulary("labels", lambda x: [*x[:-1], []]), "")
    yield Harm("a null in a label", "chart", vocabulary("labels", lambda x: [*x[:-1], [None]]), "")
    yield Harm(
        "a count of -1", "chart", vocabulary("words", lambda x: [["new", -1], *x[1:]]), "neg"
    )
    yield Harm("a count of 1.5", "chart", vocabulary("words", lambda x: [["new", 1.5], *x[1:]]), "")
    yield Harm("two letters", "chart", vocabulary("characters", lambda x: ["ab", *x[1:]]), "single")
    for value in ("", " a", "a\tb", "a\nb"):
        yield Harm(
            f"a relation {value!r}",
            "biaffine",
            vocabulary("relations", lambda x, v=value: [[v, True, True], *x[1:]]),  # type: ignore[misc]
            "no file can hold",
        )
    yield Harm("no relations", "biaffine", vocabulary("relations", lambda x: []), "")
    yield Harm("no relations", "transition", vocabulary("relations", lambda x: []), "")
    yield Harm("no tags", "tagging", vocabulary("tags", lambda x: []), "")
    yield Harm("no labels", "chart", vocabulary("labels", lambda x: x[:1]), "")
    yield Harm(
        "a relation of texts", "biaffine", vocabulary("relations", lambda x: [["a", "b", "c"]]), ""
    )
    yield Harm("projective: a text", "biaffine", vocabulary("projective", lambda x: "no"), "proj")
    yield Harm("the root: a list", "chart", vocabulary("root", lambda x: ["S"]), "root")
    for value in ("a b", "(", ")", "a\nb", "", "../../etc/passwd"):
        yield Harm(
            f"a label {value!r}",
            "chart",
            vocabulary("labels", lambda x, v=value: [*x[:-1], [v]]),  # type: ignore[misc]
            harmless="labels are data: what a file cannot hold is written with escapes",
        )
    yield Harm(
        "the words of an earlier release in another order",
        "chart",
        vocabulary("words", lambda x: x[::-1]),
        harmless="it has no digest, so that nobody can tell; its order is as good as any",
    )
    for key, value in {
        "attention_scale": "d_model",
        "input_norm": False,
        "heads": 4,
        "word_dropout": 0.5,
    }.items():
        yield Harm(
            f"{key} = {value} with a digest",
            "chart",
            described(lambda c, k=key, v=value: c["config"].update({k: v}), earlier=False),  # type: ignore[misc]
            "parser.json",
        )
    yield Harm(
        "another precision",
        "chart",
        described(lambda c: c["config"].update(precision="bfloat16"), earlier=False),
        harmless="a setting of parsing, which may be changed in a trained parser",
    )
    yield Harm(
        "another beam",
        "transition",
        described(lambda c: c["config"].update(beam=2), earlier=False),
        harmless="a setting of parsing, which may be changed in a trained parser",
    )
    for value in (None, [], 3, "chart", {}, {"layers": None}):
        yield Harm(
            f"config: {value!r}", "chart", described(lambda c, v=value: c.update(config=v)), ""
        )  # type: ignore[misc]
    for value in (1e400, -1, "many", None, 1.5):
        yield Harm(f"layers = {value}", "chart", setting(layers=value), "parser.json")
    yield Harm(
        "a digest of pretrained files that is no text",
        "chart",
        described(lambda c: c.update(pretrained={"/dev/zero": 3})),
        NO_PARSER,
    )
    yield Harm(
        "a device as pretrained file",
        "chart",
        described(lambda c: c.update(pretrained={"/dev/zero": "00"})),
        "/dev/zero: missing",
    )
    yield Harm(
        "a device as word vectors",
        "chart",
        setting(lexical=["vectors"], vectors="/dev/zero"),
        "a device",
    )
    yield Harm(
        "a device as weights of a language model",
        "chart",
        setting(lexical=["elmo"], elmo_options="/dev/zero", elmo_weights="/dev/zero"),
        "a device",
    )
    yield Harm(
        "a folder without an encoder",
        "chart",
        setting(lexical=["transformer"], transformer="/etc"),
        "transformer",
    )


def _descriptions() -> Iterator[Harm]:
    """Bytes of ``parser.json``."""
    long_text = b'"' + b"a" * (33 << 20) + b'"'
    for model in ("chart", "right-branching"):
        for name, data in {
            "100,000 brackets": nested(b"[", b"]", 100_000),
            "brackets that do not close": b"[" * 100_000,
            "100,000 objects": nested(b'{"a":', b"}", 100_000),
            "500 brackets in a key": b'{"kind": "chart", "config": '
            + nested(b"[", b"]", 500)
            + b"}",
            "33 MB of text": long_text,
            "32 MB of lists": b"[" + b"[]," * (10 << 20) + b"[]]",
            "32 MB of objects": b"[" + b"{}," * (10 << 20) + b"{}]",
            "no UTF-8": b'{"kind": "\xff"}',
            "UTF-16": '{"kind": "chart"}'.encode("utf-16"),
            "NaN": b'{"kind": "chart", "x": NaN}',
            "-Infinity": b'{"kind": "chart", "x": -Infinity}',
            "a whole number of 41 digits": b'{"kind": "chart", "x": 1' + b"0" * 40 + b"}",
            "a whole number of 5000 digits": b'{"kind": "chart", "x": 1' + b"0" * 5000 + b"}",
            "a key twice": b'{"kind": "chart", "kind": "joint"}',
            "half a character": b'{"kind": "chart", "x": "\\ud800"}',
            "zero bytes": b"\0" * 1000,
            "a pickle": b"\x80\x04\x95\x0e\x00\x00\x00\x00\x00\x00\x00\x8c\x02os.",
            "nothing": b"",
        }.items():
            yield Harm(name, model, raw("parser.json", data), "parser.json")
        for kind in ("pipe", "device", "socket", "folder", "dangling", "loop"):
            yield Harm(f"parser.json: {kind}", model, special("parser.json", kind), "parser")
        yield Harm("parser.json of 1 TB", model, sparse("parser.json", 1 << 40), "bytes")
    yield Harm(
        "half a character in a label",
        "chart",
        vocabulary("labels", lambda x: [*x[:-1], ["\ud800"]]),
        "half a character",
    )
    yield Harm(
        "half a character in a word",
        "chart",
        vocabulary("words", lambda x: [["\udfff", 1], *x[1:]]),
        "half a character",
    )
    for value in (None, 3, "a", ["a"], {"whole": "S"}, {"whole": [1], "body": [], "inner": []}):
        yield Harm(
            f"counted: {value!r}",
            "right-branching",
            described(lambda c, v=value: c.update(counted=v)),  # type: ignore[misc]
            "counted",
        )
    yield Harm(
        "a million labels inside",
        "right-branching",
        described(lambda c: c["counted"].update(inner=["A"] * 10**6)),
        "counted",
    )
    yield Harm(
        "a relation of two lines",
        "attach-neighbour",
        described(lambda c: c["counted"].update(root="a\nb")),
        "counted",
    )
    for kind in ("../chart", "", 3, "pickle"):
        yield Harm(
            f"kind: {kind!r}",
            "chart",
            described(lambda c, v=kind: c.update(kind=v)),
            "unknown",  # type: ignore[misc]
        )
    yield Harm("another kind", "chart", described(lambda c: c.update(kind="joint")), "parser.json")


def _files() -> Iterator[Harm]:
    """Bytes and header of the weights."""
    name = "weights.safetensors"
    for model in ("chart", "transition"):
        for kind in ("pipe", "device", "socket", "folder", "dangling", "loop"):
            yield Harm(f"weights: {kind}", model, special(name, kind), name)
        for what, data in {
            "nothing": b"",
            "zeros": b"\0" * 1000,
            "a header of 2**63": struct.pack("<Q", 2**63) + b"{}",
            "a header of 100 MB": struct.pack("<Q", 100 << 20) + b"{}",
            "a header of brackets": struct.pack("<Q", 200_000) + nested(b"[", b"]", 100_000),
            "a header of no UTF-8": struct.pack("<Q", 8) + b'{"\xff": 1',
            "a pickle": b"PK\x03\x04" + b"\0" * 100,
        }.items():
            yield Harm(f"weights: {what}", model, raw(name, data), UNFIT)
        yield Harm("weights cut short", model, raw(name, lambda x: x[:-1]), UNFIT)
        yield Harm("a byte behind the weights", model, raw(name, lambda x: x + b"\0"), UNFIT)
        yield Harm("weights of 1 TB", model, sparse(name, 1 << 40), UNFIT)

        def lie(change: Content) -> Callable[[Content], None]:
            return lambda content: content[max(content)].update(change)

        for change in (
            {"shape": [10**6, 10**6]},
            {"shape": [2**62, 2**62]},
            {"shape": [-1]},
            {"data_offsets": [0, 10**11]},
            {"data_offsets": [10, 0]},
            {"data_offsets": [-8, 0]},
            {"data_offsets": [0, 4]},
            {"dtype": "F8_E4M3"},
            {"dtype": "PICKLE"},
        ):
            yield Harm(f"a header that says {change}", model, header(lie(change)), UNFIT)
        yield Harm(
            "a name of 10,000 letters",
            model,
            header(lambda c: c.update({"x" * 9999: c.pop(max(c))})),
            UNFIT,
        )
        yield Harm(
            "a header with notes of its own",
            model,
            header(lambda c: c.update(__metadata__={"x": "y"})),
            harmless="notes that nobody reads",
        )


HARMS = tuple(
    harm for group in (_numbers, _sizes, _inventories, _descriptions, _files) for harm in group()
)
