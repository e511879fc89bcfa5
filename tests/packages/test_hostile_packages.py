"""Packages of strangers are refused in one message, within bounds, and leave nothing behind."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import PackageError
from spmrl_bench.parsing.models import PACKAGE, load_parser
from tests.damage import SPECIAL, WEIGHTS, Damage, edited, raw, sparse, special
from tests.reliability.tally import Tally

SECONDS, MEGABYTES = 3.0, 500
STORED = {"sha256": "0" * 64, "size": 1}


def described(edit: Callable[[dict[str, Any]], Any]) -> Damage:
    """Edit the description."""
    return edited(PACKAGE, edit)


def listing(name: str, stored: object = STORED) -> Damage:
    """List one file more."""
    return described(lambda content: content["files"].update({name: stored}))


def with_folder(folder: Path) -> None:
    """A file beside a listed one in a folder, from which an encoder would be read."""
    (folder / "transformer").mkdir()
    for name in ("config.json", "added_tokens.json"):
        (folder / "transformer" / name).write_text("{}")
    digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    listing("transformer/config.json", {"sha256": digest, "size": 2})(folder)


FOLDERS: dict[str, tuple[Damage, str]] = {
    "no JSON": (raw(PACKAGE, b"{"), "not valid JSON"),
    "a list": (raw(PACKAGE, b"[]"), "found a list, expected an object"),
    "2 MB": (raw(PACKAGE, b'"' + b"a" * (2 << 20) + b'"'), "more than 1048576 bytes"),
    "1 TB": (sparse(PACKAGE), "more than 1048576 bytes"),
    "format 2": (described(lambda c: c.update(format=2)), "reads formats up to 1: install a newer"),
    "format true": (described(lambda c: c.update(format=True)), "format: "),
    "no format": (described(lambda c: c.pop("format")), "format: missing"),
    "no files": (described(lambda c: c.pop("files")), "files: missing"),
    "no parser": (described(lambda c: c["files"].pop("parser.json")), "lists no parser.json"),
    "101 files": (
        described(lambda c: c["files"].update({f"{k}.txt": STORED for k in range(101)})),
        "at most 100",
    ),
    "above": (listing("../x.json"), "has the part '..'"),
    "too deep": (listing("a/b/c.json"), "expected a file of a parser"),
    "a pickle listed": (listing("weights.pkl"), "expected a file of a parser"),
    "itself": (listing(PACKAGE), "expected a file of a parser"),
    "a negative size": (listing("a.txt", STORED | {"size": -1}), "files.a.txt.size"),
    "sizes of 8 GB": (
        described(
            lambda c: c["files"].update({f"{k}.txt": STORED | {"size": 1 << 31} for k in range(4)})
        ),
        "lists more than",
    ),
    "a short hash": (listing("a.txt", STORED | {"sha256": "00"}), "files.a.txt.sha256"),
    "transforms: a text": (described(lambda c: c["treebank"].update(transforms="x")), "transforms"),
    "a file missing": (listing("a.txt"), "a.txt: missing"),
    "weights cut": (raw(WEIGHTS, lambda x: x[:-1]), f"where {PACKAGE} lists"),
    "a bit of the weights": (
        raw(WEIGHTS, lambda x: x[:-1] + bytes([x[-1] ^ 1])),
        "SHA-256 is not the one",
    ),
    "a letter of the parser": (
        raw("parser.json", lambda x: x.replace(b"the", b"teh")),
        "SHA-256 is not the one",
    ),
    "weights of 1 TB": (sparse(WEIGHTS), "where package.json lists"),
    "other weights beside": (raw("more.safetensors", b""), "more.safetensors: not listed"),
    "weights not listed": (described(lambda c: c["files"].pop(WEIGHTS)), f"{WEIGHTS}: not listed"),
    "a file beside an encoder's": (with_folder, "added_tokens.json: not listed"),
    **{f"{PACKAGE}: {kind}": (special(PACKAGE, kind), PACKAGE) for kind in SPECIAL},
    **{f"{WEIGHTS}: {kind}": (special(WEIGHTS, kind), WEIGHTS) for kind in SPECIAL},
}


def peak_megabytes() -> int:
    """The largest memory of the process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.parametrize("harm", FOLDERS)
def test_harmed_packages_are_refused(harm: str, package: Path, tally: Tally) -> None:
    """In one message, which comes soon and without much memory."""
    held = tally("R17", "harmed packages")
    do, message = FOLDERS[harm]
    do(package)
    held.add()
    before, begun = peak_megabytes(), time.process_time()
    with pytest.raises(PackageError) as error:
        load_parser(package, "cpu")
    assert time.process_time() - begun < SECONDS
    assert peak_megabytes() - before < MEGABYTES
    assert message in str(error.value)
    assert len(str(error.value)) < 3000
