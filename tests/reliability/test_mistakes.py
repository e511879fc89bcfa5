"""Mistakes in recipes and manifests: one message for each, with file, key and value, and no work.

The mistakes come from the schemas (:mod:`tests.reliability.mistakes`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from spmrl_bench.errors import RecipeError, SpmrlError, TreebankError
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.recipe import BaseRecipe, LanguageRecipe, load_recipe
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.systems.description import SystemDescription
from spmrl_bench.treebanks.catalogue import read_manifest
from spmrl_bench.treebanks.manifest import Manifest, Track
from tests import laboratory
from tests.laboratory import table
from tests.reliability.mistakes import Mistake, fields_of, mistakes, with_tables
from tests.reliability.tally import Tally

DIGEST = "0" * 64
#: Documents that have, together, a value or a table for every key of the schemas.
MANIFEST: dict[str, Any] = {
    **laboratory.MANIFEST,
    "name": "tiny",
    "path": "tiny_data",
    "fetch": [{"url": "http://a/b", "sha256": DIGEST, "members": {"a": "b"}}],
    "splits": {
        name: {"files": ["a"], "sentences": 3, "rows": {"table": "a", "column": "b", "equals": "c"}}
        for name in ("train", "dev", "test")
    },
    "dependencies": {"format": "conll", "train": ["a"], "dev": ["b"], "test": ["c"]},
    "attachment": {},
    "sha256": {"a": DIGEST},
}
LANGUAGE: dict[str, Any] = {
    "base": "base",
    "language": "german",
    "treebanks": ["german-mini"],
    "variants": {"own": {"inputs": ["charlstm"]}},
}
BASE: dict[str, Any] = {
    "variants": {"own": {"inputs": ["charlstm"]}},
    "default_size": dict.fromkeys(get_args(Track), "small"),
    "size": {"published": {}, "small": {}},
}

SYSTEM: dict[str, Any] = {
    "title": "Flat",
    "layer": "constituents",
    "requirements": ["flat==1"],
    "settings": {"how": "well"},
    "sizes": {"small": {"how": "badly"}},
    "train": {"command": ["{how}"], "format": "brackets", "product": "model"},
    "parse": {"command": ["x"], "input": "words"},
}

SCHEMAS: dict[str, tuple[type[BaseModel], Mapping[str, Any], str, type[SpmrlError]]] = {
    "manifest": (Manifest, MANIFEST, "tiny.toml", TreebankError),
    "system": (SystemDescription, SYSTEM, "tiny.toml", RecipeError),
    "recipe": (LanguageRecipe, LANGUAGE, "german.toml", RecipeError),
    "base recipe": (BaseRecipe, BASE, "base.toml", RecipeError),
}


def read(name: str, document: Mapping[str, Any], folder: Path) -> Path:
    """Write the document and read it as users do; the file."""
    path = folder / SCHEMAS[name][2]
    path.write_text(table(document))
    if "recipe" in name:
        other = LANGUAGE if name == "base recipe" else BASE
        beside = folder / ("german.toml" if name == "base recipe" else "base.toml")
        beside.write_text(table(other))
        load_recipe(str(folder / "german.toml"))
    elif name == "system":
        SystemDescription.read(path)
    else:
        read_manifest(path)
    return path


def untouched(*_: object) -> str:
    """In place of what a mistake must not reach."""
    raise AssertionError("work was begun")


@pytest.mark.parametrize("name", SCHEMAS)
def test_without_mistake_it_is_read(name: str, tmp_path: Path) -> None:
    model, document, _, _ = SCHEMAS[name]
    read(name, document, tmp_path)
    lacking = [path for path, _ in fields_of(model) if with_tables(document, path) is None]
    assert lacking == [], "no document has a place for these"


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("name", SCHEMAS)
def test_every_mistake_of_every_field(name: str, few: bool, tmp_path: Path, tally: Tally) -> None:
    model, document, file, error = SCHEMAS[name]
    held = tally("R22", f"mistakes in a {name}")
    counts: Counter[str] = Counter()
    wrong = []
    for mistake in mistakes(model, document, few=few):
        if few and name == "base recipe" and mistake.key.count(".") > 2:
            continue  # a layer, as in the other recipe
        counts[mistake.kind] += 1
        held.add()
        try:
            read(name, mistake.document, tmp_path)
        except error as caught:
            if (fault := _fault(str(caught), mistake, str(tmp_path / file))) is not None:
                wrong.append((mistake.kind, mistake.key, fault, str(caught)))
        else:
            wrong.append((mistake.kind, mistake.key, "accepted", str(mistake.document)[:2000]))
    assert wrong == []
    fields = sum(1 for _ in fields_of(model))
    if not few:
        assert counts["misspelt"] == fields
    assert counts["wrong type"] >= counts["misspelt"] > 10
    assert min(counts.values()) >= 3


def _fault(message: str, mistake: Mistake, file: str) -> str | None:
    """What is wrong with a message; None if nothing is."""
    lines = message.splitlines()
    if len(lines) != 1:
        return f"{len(lines)} messages"
    if not message.startswith(f"{file}: {mistake.key}"):
        return "not of this key"
    said = message.removeprefix(f"{file}: {mistake.key}")
    if mistake.kind == "missing":
        return None if "missing" in said else "does not say that it is missing"
    if mistake.kind == "misspelt":
        return None if "unknown key" in said and "Known:" in said else "no unknown key"
    return None if "; found" in said or "found" in said else "does not say what was found"


def test_no_work_is_begun_before_a_recipe_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spmrl_bench.experiments.plan.open_treebank", untouched)
    path = tmp_path / "german.toml"
    for text in ("language = 1\n", 'language = "nope"\n', "trian = 1\n"):
        path.write_text(f'base = "base"\ntreebanks = ["german-mini"]\n{text}')
        with pytest.raises(RecipeError):
            make_runs(str(path))
    monkeypatch.undo()
    # Settings that do not fit are told before any file is read.
    monkeypatch.setattr("spmrl_bench.treebanks.treebank.Treebank.fingerprint_of", untouched)
    with pytest.raises(RecipeError, match="attention_window"):
        make_runs("german", settings={"model.attention_window": "-1"})


def spoilt(data: bytes, draw: random.Random) -> bytes:
    """A text with one thing that editors, networks and strangers do to it."""
    lines = data.splitlines(keepends=True)
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    place = draw.randrange(len(data))
    key, _, value = lines[one].partition(b"=")
    odd = (b"-1", b"1e999", b"nan", b'"../x"', b"[[[1]]]", b'"\x1b[31m"', b"9" * 50, b"{}", b"''")
    how = draw.choice(("cut", "gone", "twice", "exchanged", "flipped", "put in", "odd", "renamed"))
    if how in ("cut", "flipped", "put in"):
        new = {"cut": b"", "flipped": bytes([data[place] ^ 1 << draw.randrange(8)])}
        strange = draw.choice((b"\0", b"\xff", b"\x1b", b'"', b"]", b"\r", "\u202e".encode()))
        return data[:place] + new.get(how, strange) + (data[place + 1 :] if how != "cut" else b"")
    if how == "exchanged":
        lines[one], lines[other] = lines[other], lines[one]
    elif how in ("gone", "twice"):
        lines[one] *= 2 * (how == "twice")
    elif how == "odd" and value:
        lines[one] = key + b"= " + draw.choice(odd) + b"\n"
    else:
        lines[one] = b"x" + lines[one]
    return b"".join(lines)


@pytest.mark.parametrize("what", ["recipes", "treebanks", "systems"])
def test_spoilt_files_are_refused_in_a_line_or_are_sound(
    what: str, tmp_path: Path, tally: Tally
) -> None:
    held = tally("R22", "spoilt recipes, manifests and descriptions of systems")
    draw, files = random.Random(what), sorted(data_dir(what).glob("*.toml"))
    (tmp_path / "base.toml").write_bytes((data_dir("recipes") / "base.toml").read_bytes())
    reads = {"recipes": load_recipe, "treebanks": read_manifest, "systems": SystemDescription.read}
    messages = []
    for _ in range(150):
        path = tmp_path / (source := draw.choice(files)).name
        path.write_bytes(spoilt(source.read_bytes(), draw))
        held.add()
        try:
            reads[what](str(path) if what == "recipes" else path)  # type: ignore[operator]
        except SpmrlError as error:
            messages.append(str(error))
        if path.name == "base.toml":
            path.write_bytes(source.read_bytes())
    assert len(messages) > 50
    lines = [line for message in messages for line in message.splitlines()]  # one for each mistake
    assert [line for line in lines if not line.startswith(f"{tmp_path}") or len(line) > 3000] == []
