"""What a stranger may hand on to do harm: manifests, recipes and archives, each with a name.

A case is made in a folder of its own::

    outside/secret.mrg   a file of the user's, in which trees could be read
    treebanks/           the directory of treebanks, with the files of the treebank "tiny"
    home/                the user's own folder; the manifest and the recipe are there
    .                    the working directory

and is then used in the way that it says. It must be refused, or be harmless for the reason given.
"""

from __future__ import annotations

import bz2
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tests.laboratory import toml
from tests.reliability import hostile_archives as archives
from tests.treebanks.conftest import FILES, MANIFEST
from tests.treebanks.serving import Server

Use = Literal["open", "fetch", "train", "treebanks"]
SECRET = "(S (N secret))\n"
DATA = {name: text.encode() for name, text in FILES.items()}


@dataclass
class Stage:
    """Where a case is made."""

    folder: Path
    server: Server

    @property
    def root(self) -> Path:
        return self.folder / "treebanks"

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file below the folder."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())

    def manifest(self, name: str = "tiny", **changes: str | None) -> None:
        """Write a manifest with keys changed, or left out where they are None."""
        fields = {**MANIFEST, "name": f'"{name}"', **changes}
        lines = [f"{key} = {value}\n" for key, value in fields.items() if value is not None]
        self.write(f"home/treebanks/{name}.toml", "".join(lines))

    def archive(self, data: bytes, members: Mapping[str, str] | None = None, **more: Any) -> None:
        """Serve an archive, with a manifest that asks for it and for nothing else."""
        self.server.files["/release"] = data
        members = {"release/data/": "./"} if members is None else members
        self.fetch(url="/release", sha256=hashlib.sha256(data).hexdigest(), members=members, **more)

    def fetch(self, **entry: Any) -> None:
        """A manifest with an entry of what to download."""
        entry["url"] = self.server.url + entry["url"]
        self.manifest(fetch=f"[{toml(entry)}]")

    def recipe(self, text: str = "", **keys: str | None) -> None:
        """Write a recipe with keys changed, and more at its end."""
        fields = {"base": '"base"', "language": '"elvish"', "treebanks": '["tiny"]'} | keys
        lines = [f"{key} = {value}\n" for key, value in fields.items() if value is not None]
        self.write("home/recipes/elvish.toml", "".join(lines) + text)


def set_stage(folder: Path, server: Server) -> Stage:
    """The folder as it is before a case: all is well."""
    stage = Stage(folder, server)
    stage.write("outside/secret.mrg", SECRET * 3)
    for name, data in DATA.items():
        stage.write(f"treebanks/tiny_data/{name}", data)
    stage.manifest()
    stage.recipe()
    server.files.clear()
    return stage


@dataclass(frozen=True)
class Case:
    """One thing to be refused, unless it says why it is harmless."""

    name: str  # in reports
    use: Use  # what is done with it
    make: Callable[[Stage], None]
    says: str = ""  # a part of the message
    harmless: str = ""  # why it is accepted, if it is


CASES: list[Case] = []


def case(
    name: str, use: Use, says: str = "", harmless: str = ""
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Adds the function to the list."""

    def add(make: Callable[[Stage], None]) -> Callable[[Stage], None]:
        CASES.append(Case(name, use, make, says, harmless))
        return make

    return add


# ---- Paths: every place where a manifest names one, and every way to leave the folder ----

BAD_PATHS = {
    "to the parent": ("../outside/secret.mrg", "has the part '..'"),
    "down and up": ("a/../../outside/secret.mrg", "has the part '..'"),
    "absolute": ("/etc/passwd", "is absolute"),
    "backslashes": ("..\\outside\\secret.mrg", "has a backslash"),
    "a drive": ("c:secret.mrg", "names a drive"),
    "a device": ("NUL", "is a device"),
    "a NUL": ("a\0.mrg", "has control characters"),
    "too long": ("x" * 300, "has a part of 300 bytes"),
}


def _path_in(key: str, path: str, stage: Stage) -> None:
    text = toml(path)
    entry: dict[str, Any] = {"url": "/release", "sha256": "0" * 64, "members": {"a": "b"}}
    if key in ("splits.train.files", "splits.train.exclude"):
        split = {"files": ["a_*.mrg"], "sentences": 3} | {key.split(".")[-1]: [path]}
        stage.manifest(**{"splits.train": toml(split)})
    elif key == "splits.train.rows.table":
        rows = {"table": path, "column": "a", "equals": "b"}
        stage.manifest(
            **{"splits.train": toml({"files": ["a_1.mrg"], "sentences": 3, "rows": rows})}
        )
    elif key == "dependencies.train":
        layer = {"format": "dp", "train": [path], "dev": ["d"], "test": ["t"]}
        stage.manifest(dependencies=toml(layer))
    elif key == "sha256":
        stage.manifest()
        name = path.replace("\0", "\1")
        stage.write("home/treebanks/checksums/tiny.sha256", f"{'0' * 64}  {name}\n")
    elif key == "fetch.path":
        stage.fetch(**entry | {"path": path})
    elif key == "fetch.members, from":
        stage.fetch(**entry | {"members": {path: "b"}})
    elif key == "fetch.members, to":
        stage.fetch(**entry | {"members": {"a": path}})
    else:
        stage.manifest(**{key: text})


_KEYS = {
    "splits.train.files": "open",
    "splits.train.exclude": "open",
    "splits.train.rows.table": "open",
    "dependencies.train": "open",
    "sha256": "fetch",
    "fetch.path": "fetch",
    "fetch.members, from": "fetch",
    "fetch.members, to": "fetch",
    "path": "open",
}
for _key, _use in _KEYS.items():
    for _way, (_path, _says) in BAD_PATHS.items():
        if (_key, _way) == ("path", "absolute"):
            _says = "outside of"  # allowed if the user has listed it
            _path = "/etc"
        CASES.append(
            Case(f"{_key}: {_way}", _use, partial(_path_in, _key, _path), _says)  # type: ignore[arg-type]
        )


# ---- Links, which only the user can have made ----


@case("a link to a folder outside", "open", "not present")
def _(stage: Stage) -> None:
    (stage.root / "link").symlink_to(stage.folder / "outside")
    stage.manifest(path='"link"')


@case("a link in the middle", "open", harmless="its owner has made the link")
def _(stage: Stage) -> None:
    (stage.root / "tiny_data/more").symlink_to(stage.folder / "outside")
    stage.manifest(**{"splits.train": '{ files = ["more/secret.mrg"], sentences = 3 }'})


@case("a table that is a link outside", "open", "found no column")
def _(stage: Stage) -> None:
    (stage.root / "tiny_data/table").symlink_to(stage.folder / "outside/secret.mrg")
    rows = {"table": "table", "column": "a", "equals": "b"}
    stage.manifest(**{"splits.train": toml({"files": ["a_1.mrg"], "sentences": 3, "rows": rows})})


@case("a link to itself", "open", "not present")
def _(stage: Stage) -> None:
    (stage.root / "loop").symlink_to("loop")
    stage.manifest(path='"loop"')


@case("a link to its own folder and many stars", "open", "has a '*' in more than")
def _(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        (stage.root / "tiny_data" / name).symlink_to(".")
    files = "/".join("*" * 40)
    stage.manifest(**{"splits.train": f'{{ files = ["{files}"], sentences = 3 }}'})


@case("a download into a link to a folder outside", "fetch", "leads to")
def _(stage: Stage) -> None:
    (stage.root / "link").symlink_to(stage.folder / "outside")
    data = archives.zip_of([("release/data/secret.mrg", b"gone")])
    stage.archive(data, path="link")


@case("a download through a link that leads nowhere yet", "fetch", "leads to")
def _(stage: Stage) -> None:
    (stage.root / "tiny_data/new").symlink_to(stage.folder / "outside/new.mrg")
    stage.archive(archives.zip_of([("release/data/new", b"here")]))


@case("a download through a link that the user has listed", "fetch", "leads to")
def _(stage: Stage) -> None:
    (stage.root / "link").symlink_to(stage.folder / "outside")
    stage.write("home/folders.txt", f"{stage.folder / 'outside'}\n")
    stage.archive(archives.zip_of([("release/data/new.mrg", b"here")]), path="link")


def _vast(path: str, stage: Stage) -> None:
    stage.write(path, b"w 1.0\n")
    os.truncate(stage.folder / path, 4 << 40)
    if path == "vectors.txt":
        stage.recipe('[variants.v]\ninputs = ["vectors"]\nmodel.vectors = "vectors.txt"\n')


@case("a list of folders that is none", "open", "expected an absolute folder")
def _(stage: Stage) -> None:
    stage.manifest(path=f'"{stage.folder / "outside"}"')
    stage.write("home/folders.txt", "outside\n")


# ---- Patterns and numbers without end ----

for _name, _pattern, _says in (
    ("a billion files", "a_{0..999999999}.mrg", "stands for 1,000,000,000 files"),
    ("a thousand thousands of files", "{0..999}/{0..999}", "stands for 1,000,000 files"),
    ("numbers of five thousand digits", "{0.." + "9" * 5000 + "}", "9 digits at most"),
    ("all folders below", "**/*", "has '**'"),
    ("numbers that fall", "{9..1}", "in rising order"),
):
    CASES.append(
        Case(
            f"a pattern of {_name}",
            "open",
            partial(_path_in, "splits.train.files", _pattern),
            _says,
        )
    )


@case("a range of five thousand digits", "open", "such as '1..1000'")
def _(stage: Stage) -> None:
    split = {"files": ["a_*.mrg"], "sentences": 3, "range": "1.." + "9" * 5000}
    stage.manifest(**{"splits.train": toml(split)})


@case("a manifest that is a folder", "open", "cannot be read")
def _(stage: Stage) -> None:
    (stage.folder / "home/treebanks/tiny.toml").unlink()
    (stage.folder / "home/treebanks/tiny.toml").mkdir()


@case("a treebank that is a pipe", "open", "not present")
def _(stage: Stage) -> None:
    (stage.root / "tiny_data/t.mrg").unlink()
    os.mkfifo(stage.root / "tiny_data/t.mrg")


@case("an address that is none", "fetch", "no address")
def _(stage: Stage) -> None:
    digest = "0" * 64
    stage.manifest(fetch=f'[{{ url = "http://[", sha256 = "{digest}", members = {{ a = "b" }} }}]')


@case("a download into an absolute folder", "fetch", "goes under the directory of treebanks")
def _(stage: Stage) -> None:
    stage.fetch(url="/release", sha256="0" * 64, members={"a": "b"})
    text = (stage.folder / "home/treebanks/tiny.toml").read_text()
    stage.write(
        "home/treebanks/tiny.toml", text.replace('"tiny_data"', toml(str(stage.folder / "outside")))
    )


@case("a download over a folder", "fetch", "is there, but it is another file")
def _(stage: Stage) -> None:
    (stage.root / "tiny_data/new").mkdir()
    stage.archive(archives.zip_of([("release/data/new", b"here")]))


# ---- Archives ----

_BIG = 900
_IN = "release/data/"
ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a zip file of 900 MB of zeros": (
        lambda: archives.raw_zip([(f"{_IN}a", archives.deflated(_BIG), _BIG << 20)]),
        "more than 100 times as many",
    ),
    "a zip file of six times 400 MB": (
        lambda: archives.raw_zip(
            [(f"{_IN}{k}", archives.deflated(400), 400 << 20) for k in range(6)]
        ),
        "more than 100 times as many",
    ),
    "a zip file that says it is small": (
        lambda: archives.raw_zip([(f"{_IN}a", archives.deflated(_BIG), 0)], says=10), "Bad CRC"),
    "a zip file that says it is large": (
        lambda: archives.raw_zip([(f"{_IN}a", archives.deflated(1), 0)], says=(1 << 32) - 2),
        "more than 100 times as many",
    ),
    "a zip file that says it is a little larger": (
        lambda: archives.raw_zip([(f"{_IN}a", archives.deflated(1), 0)], says=2 << 20),
        "no whole zip",
    ),
    "a zip file of members in one place": (
        lambda: archives.overlapping_zip(20, 100), "more than 100 times as many"),
    "a zip file of small members in one place": (
        lambda: archives.overlapping_zip(2, 1), "no whole zip"),
    "a zip file of 300,000 members": (
        lambda: archives.raw_zip(((f"x/{k:020}", b"", 0) for k in range(300_000)), 0),
        "headers of more than",
    ),
    "a zip file of 60,000 members": (
        lambda: archives.raw_zip(((f"x/{k}", b"", 0) for k in range(60_000)), 0),
        "more than 50,000 members",
    ),
    "a zip file packed by an unknown method": (
        lambda: archives.raw_zip([(f"{_IN}a", b"a", 1)], 99), "packed by method 99"),
    "a zip file packed by LZMA": (
        lambda: archives.raw_zip([(f"{_IN}a", b"\x09\x14\5\0]\xff\xff\xff\xff", 1)], 14),
        "packed by method 14",
    ),
    "a zip file with a password": (
        lambda: archives.raw_zip([(f"{_IN}a", b"a" * 20, 8)], 0, flags=1), "password"),
    "a zip file packed by bzip2": (
        lambda: archives.raw_zip([(f"{_IN}a", bz2.compress(bytes(99)), 99)], 12),
        "packed by method 12",
    ),
    "a zip file with a link": (
        lambda: archives.raw_zip([(f"{_IN}a", b"/etc/passwd", 11)], 0, attributes=0xA1FF << 16),
        "is no plain file",
    ),
    "a zip file with a device": (
        lambda: archives.raw_zip([(f"{_IN}a", b"", 0)], 0, attributes=0x21FF << 16),
        "is no plain file",
    ),
    "a gzip file of 900 MB": (lambda: archives.gzipped(_BIG), "no whole zip"),
    "a tar file": (lambda: archives.tar_of([(f"{_IN}new", b"here")]), "no whole zip"),
    "a tar file, gzip": (lambda: archives.tar_of([(f"{_IN}new", b"here")], "w:gz"), "no whole zip"),
    "a tar file that ends with a zip file": (
        lambda: archives.tar_of([("x", b""), ("y", archives.zip_of([(f"{_IN}new", b"here")]))]),
        "no whole zip",
    ),
    "an archive that is empty": (lambda: b"", "no whole zip"),
    "half an archive": (
        lambda: archives.zip_of([(f"{_IN}a", bytes(range(256)) * 99)])[:-40], "no whole zip"),
    "a page instead of an archive": (lambda: b"<!DOCTYPE html><html>", "no whole zip"),
    "a zip file with a name twice": (
        lambda: archives.zip_of([(f"{_IN}a", b"x"), (f"{_IN}a", b"y")]),
        "would become the same file",
    ),
    "a zip file with a name in capitals, too": (
        lambda: archives.zip_of([(f"{_IN}a", b"x"), (f"{_IN}A", b"y")]),
        "would become the same file",
    ),
    "a zip file with a file in a file": (
        lambda: archives.zip_of([(f"{_IN}a", b"x"), (f"{_IN}a/b", b"y")]), "would lie in the file"),
}  # fmt: skip
for _way, (_path, _says) in BAD_PATHS.items():
    if _way != "a NUL":  # which ends a name
        ARCHIVES[f"a zip file with a name: {_way}"] = (
            partial(archives.zip_of, [(_path, b"x")]),
            "is not safe",
        )
for _name, (_make, _says) in ARCHIVES.items():
    CASES.append(
        Case(_name, "fetch", lambda stage, make=_make: stage.archive(make()), _says)  # type: ignore[misc]
    )


@case("an archive in an archive", "fetch", harmless="what is in an archive stays a file")
def _(stage: Stage) -> None:
    inner = archives.raw_zip([("../../x", archives.deflated(100), 100 << 20)])
    stage.archive(archives.zip_of([(f"{_IN}inner.zip", inner)]))


@case("a bomb that is not wanted", "fetch", harmless="members that nobody asks for stay packed")
def _(stage: Stage) -> None:
    entries = [("bomb", archives.deflated(_BIG), _BIG << 20), (f"{_IN}new", b"\3\0", 0)]
    stage.archive(archives.raw_zip(entries))


# ---- Recipes ----

RECIPES: dict[str, tuple[dict[str, str], str, str]] = {
    "a language that is none": ({"language": '"nope"'}, "", "treebanks is elvish; found 'nope'"),
    "a language of other treebanks": ({"language": '"german"'}, "", "treebanks is elvish"),
    "a treebank that is none": ({"treebanks": '["tiny", "tinny"]'}, "", "Did you mean tiny"),
    "a treebank by its path": ({"treebanks": '["../outside/x"]'}, "", "unknown treebank"),
    "a base by its path": ({"base": '"../outside/secret"'}, "", "input should be 'base'"),
    "a variant called by a path": (
        {}, '[variants."../../outside/x"]\ninputs = ["charlstm"]\n', "expected a name"),
    "an encoder outside": (
        {},
        '[variants.v]\ninputs = ["transformer"]\nmodel.transformer = "../outside"\n',
        "model.transformer.name: has the part '..'",
    ),
    "vectors by an absolute path": (
        {},
        '[variants.v]\ninputs = ["vectors"]\nmodel.vectors = "/etc/passwd"\n',
        "model.vectors.file: is absolute",
    ),
    "a variant's language model outside": (
        {},
        '[variants.v]\ninputs = ["elmo"]\nmodel.elmo_weights = "../x"\nmodel.elmo_options = "o"\n',
        "model.elmo.weights: has the part '..'",
    ),
    "fewer layers than none": (
        {}, "[model]\nlayers = -1\n", "model.layers: input should be greater than or equal to 0"),
    "a variant that is like itself": (
        {}, '[variants.a]\nlike = "b"\n[variants.b]\nlike = "a"\n', "is like this one"),
    "no number": ({}, "[train]\nlearning_rate = nan\n", "the number nan"),
}  # fmt: skip
for _name, (_keys, _text, _says) in RECIPES.items():
    CASES.append(
        Case(
            f"a recipe with {_name}",
            "train",
            lambda stage, keys=_keys, text=_text: stage.recipe(text, **keys),  # type: ignore[misc]
            _says,
        )
    )

# ---- What one step makes: the name, the use, part of the message or why it is harmless ----

CASES += [Case(name, use, make, says, harmless) for name, use, says, harmless, make in [
    ("a link to a file outside", "open", "expected 3 sentences, found 6", "",
     lambda stage: (stage.root / "tiny_data/a_0.mrg").symlink_to("../../outside/secret.mrg")),
    ("a treebank of 4 TB", "open", "a sparse file (4,398,046,511,104 bytes", "",
     partial(_vast, "treebanks/tiny_data/a_1.mrg")),
    ("word vectors of 4 TB", "train", "a sparse file (4,398,046,511,104 bytes", "",
     partial(_vast, "vectors.txt")),
    ("an edition called by a path", "treebanks", "expected a name", "",
     lambda stage: stage.manifest(**{'editions."../../outside/x"': '{ track = "open" }'})),
    ("a mini treebank elsewhere", "open", "outside of", "",
     lambda stage: stage.manifest(track='"mini"', path=f'"{stage.folder / "outside"}"')),
    ("a base by its path", "open", "unknown treebank '../../outside/secret'", "",
     lambda stage: stage.manifest(base='"../../outside/secret"')),
    ("parameters by their path", "open", "unknown parameter set", "",
     lambda stage: stage.manifest(prm='"../outside/secret.prm"')),
    ("an encoding that is no text", "open", "no such text encoding", "",
     lambda stage: stage.manifest(encoding='"zlib"')),
    ("an encoding that takes time with its square", "open", "no such text encoding", "",
     lambda stage: stage.manifest(encoding='"punycode"')),
    ("an encoding with a NUL", "open", "no such text encoding", "",
     lambda stage: stage.manifest(encoding='"utf-8\\u0000"')),
    ("a manifest that is no text", "open", "not valid TOML", "",
     lambda stage: stage.write("home/treebanks/tiny.toml", b"\xff\xfe\0")),
    ("checksums that are no text", "open", "found another line", "",
     lambda stage: stage.write("home/treebanks/checksums/tiny.sha256", b"\xff\xfe\0")),
    ("addresses of another kind", "fetch", "should match pattern", "",
     lambda stage: stage.manifest(fetch='[{ url = "file:///etc/passwd", sha256 = "0" }]')),
    ("a stated size", "fetch", "fetch.0.size: unknown key", "",
     lambda stage: stage.archive(b"", size=1 << 60)),
    ("a folder where a file was", "fetch", "a folder, with a slash at its end", "",
     lambda stage: stage.archive(b"", {"release/": "data"})),
    ("a download over a file of the user's", "fetch", "is there, but it is another file", "",
     lambda stage: stage.archive(archives.zip_of([("release/data/a_1.mrg", b"(S (N other))")]))),
    ("a download below a file", "fetch", "cannot be written", "",
     lambda stage: stage.archive(archives.zip_of([("release/data/a_1.mrg/new", b"here")]))),
    ("a member that is not wanted and not safe", "fetch", "is not safe", "",
     lambda stage: stage.archive(archives.zip_of([(f"{_IN}new", b"here"), ("../x", b"evil")]))),
    ("a recipe that is no text", "train", "not valid TOML", "",
     lambda stage: stage.write("home/recipes/elvish.toml", b"\xff\xfe\0")),
    ("a recipe that would replace one of the program's", "train", "", "its own come first",
     lambda stage: stage.write("home/recipes/german.toml", "x = 1\n")),
    ("a manifest in front of one of the program's", "open", "", "it is the user's own",
     lambda stage: stage.write("home/treebanks/german-mini.toml", "x = 1\n")),
]]  # fmt: skip
