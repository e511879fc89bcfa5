"""Files that are spoilt: their bytes, their JSON, their tensors, or that they are files at all.

Each function returns what harms a folder in which the file lies.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

Damage = Callable[[Path], object]
WEIGHTS = "weights.safetensors"


def forget_digest(folder: Path) -> None:
    """Make a saved parser one of an earlier release, without digests of its two files."""
    tensors(lambda _: None)(folder)
    edited("parser.json", lambda content: content.pop("weights", None))(folder)


def raw(name: str, data: bytes | Callable[[bytes], bytes]) -> Damage:
    """Replace the bytes of a file."""

    def do(folder: Path) -> None:
        path = folder / name
        path.write_bytes(data if isinstance(data, bytes) else data(path.read_bytes()))

    return do


def edited(name: str, edit: Callable[[Any], Any]) -> Damage:
    """Edit the JSON of a file."""

    def change(data: bytes) -> bytes:
        content = json.loads(data)
        edit(content)
        return json.dumps(content).encode()

    return raw(name, change)


def tensors(edit: Callable[[dict[str, Any]], Any], name: str = WEIGHTS, **notes: str) -> Damage:
    """Edit the tensors of a file, whose notes are lost."""

    def do(folder: Path) -> None:
        found = {key: tensor.clone() for key, tensor in load_file(folder / name).items()}
        edit(found)
        save_file(found, folder / name, notes or None)

    return do


def special(name: str, kind: str) -> Damage:
    """Put what is no file in the place of a file."""

    def do(folder: Path) -> None:
        path = folder / name
        path.unlink(missing_ok=True)
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


SPECIAL = ("pipe", "device", "socket", "folder", "dangling", "loop")


def sparse(name: str, size: int = 1 << 40) -> Damage:
    """Make a file as large as this, with a hole at its end."""
    return lambda folder: os.truncate(folder / name, size)


def nested(opening: bytes, closing: bytes, depth: int = 100_000) -> bytes:
    """Brackets inside each other."""
    return opening * depth + closing * depth


DEEP = nested(b"[", b"]")
