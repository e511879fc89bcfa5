"""Downloads from a local server: what arrives is whole and safe, or nothing is written."""

from __future__ import annotations

import errno
import gzip
import hashlib
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.treebanks.catalogue import load_manifest, read_manifest
from spmrl_bench.treebanks.download import fetch_treebank
from spmrl_bench.treebanks.treebank import open_treebank
from tests.conftest import PATIENCE
from tests.reliability import hostile_archives
from tests.reliability.tally import Tally
from tests.treebanks.conftest import FILES, WriteManifest
from tests.treebanks.serving import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def zip_of(members: dict[str, bytes]) -> bytes:
    return hostile_archives.zip_of(members.items())


CONTENT = {name: text.encode() for name, text in FILES.items()}
RELEASE = {f"release/data/{name}": data for name, data in CONTENT.items()}
EXTRA = {"release/README": b"hello", "release/data/more.mrg": b"(S (N more))"}


@pytest.fixture
def archive(manifests: WriteManifest, server: Server) -> ArchiveMaker:
    return ArchiveMaker(manifests, server)


@dataclass
class ArchiveMaker:
    """Serves an archive and writes the manifest that asks for it."""

    manifests: WriteManifest
    server: Server

    def __call__(self, data: bytes, digest: str | None = None, checksums: bool = True) -> str:
        self.server.files["/r.zip"] = data
        url = f"{self.server.url}/r.zip"
        members = '{ "release/data/" = "./" }'
        entry = f'[{{ url = "{url}", sha256 = "{digest or sha256(data)}", members = {members} }}]'
        folder = self.manifests(fetch=entry).parent
        if checksums:
            write_checksums(folder)
        return url


def write_checksums(folder: Path) -> None:
    (folder / "checksums").mkdir(exist_ok=True)
    lines = [f"{sha256(data)}  {name}\n" for name, data in CONTENT.items()]
    (folder / "checksums" / "tiny.sha256").write_text("".join(lines))


def fetch(root: Path) -> list[str]:
    told: list[str] = []
    paths = fetch_treebank(load_manifest("tiny"), root, told.append)
    return sorted(path.name for path in paths)


def files_under(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


WHOLE = {f"tiny_data/{name}": data for name, data in CONTENT.items()}


def test_an_archive(archive: ArchiveMaker, tmp_path: Path) -> None:
    archive(zip_of(RELEASE | EXTRA))
    assert fetch(tmp_path / "new") == sorted(FILES)
    assert files_under(tmp_path / "new") == WHOLE
    assert len(open_treebank("tiny", tmp_path / "new").split("train")) == 3
    assert fetch(tmp_path / "new") == []
    assert archive.server.asked == ["/r.zip"], "what is there is not downloaded again"


def test_single_files(manifests: WriteManifest, server: Server, tmp_path: Path) -> None:
    server.files = {f"/a%20b/{name}": data for name, data in CONTENT.items()}
    write_checksums(manifests(fetch=f'[{{ url = "{server.url}/a%20b/" }}]').parent)
    assert fetch(tmp_path) == sorted(FILES)
    assert files_under(tmp_path / "tiny_data") == CONTENT
    (tmp_path / "tiny_data" / "t.mrg").unlink()
    assert fetch(tmp_path) == ["t.mrg"]


@pytest.mark.parametrize("order", [1, -1])
def test_sources_of_two_kinds_in_any_order(
    manifests: WriteManifest, server: Server, tmp_path: Path, order: int
) -> None:
    data = zip_of({"release/t.mrg": CONTENT["t.mrg"], "release/more": b""})
    server.files = {f"/{name}": text for name, text in CONTENT.items() if name != "t.mrg"}
    server.files["/r.zip"] = data
    zipped = f'url = "{server.url}/r.zip", sha256 = "{sha256(data)}"'
    sources = [f'{{ {zipped}, members = {{ "release/t.mrg" = "t.mrg" }} }}']
    sources += [f'{{ url = "{server.url}/" }}']
    write_checksums(manifests(fetch=f"[{', '.join(sources[::order])}]").parent)
    assert fetch(tmp_path / "new") == sorted(FILES)
    assert files_under(tmp_path / "new") == WHOLE
    assert len(server.asked) == len(FILES)


@pytest.mark.parametrize("known", [True, False])
def test_what_is_there_is_never_replaced(
    archive: ArchiveMaker, tmp_path: Path, known: bool
) -> None:
    """Whether its checksum is known or not."""
    archive(zip_of(RELEASE | EXTRA), checksums=known)
    name = "t.mrg" if known else "more.mrg"
    own = tmp_path / "new" / "tiny_data" / name
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    with pytest.raises(TreebankError, match=rf"{name} is there, but it is another file"):
        fetch(tmp_path / "new")
    assert files_under(tmp_path / "new") == {f"tiny_data/{name}": b"mine"}
    own.write_bytes(RELEASE.get(f"release/data/{name}", EXTRA["release/data/more.mrg"]))
    assert {*fetch(tmp_path / "new"), name} >= FILES.keys()


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a download, and what comes of it."""

    name: str
    prepare: Callable[[ArchiveMaker, pytest.MonkeyPatch], None]
    says: str = ""
    """Of the refusal; without it, all is well in the end."""


def _full(number: int) -> Callable[[ArchiveMaker, pytest.MonkeyPatch], None]:
    """The disk is full when a file is written for the so many-th time."""

    def prepare(archive: ArchiveMaker, monkeypatch: pytest.MonkeyPatch) -> None:
        archive(zip_of(RELEASE))
        left = itertools.count(number, -1)
        real = os.fsync

        def fsync(descriptor: int) -> None:
            if next(left) <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        monkeypatch.setattr("os.fsync", fsync)

    return prepare


def _no_space_for_the_download(archive: ArchiveMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(zip_of(RELEASE))

    def get(url: str, output: Path) -> None:
        output.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(output))

    monkeypatch.setattr("spmrl_bench.treebanks.download._get", get)


def _no_folder(archive: ArchiveMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(zip_of(RELEASE))
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")


def _nothing_there(archive: ArchiveMaker, _: pytest.MonkeyPatch) -> None:
    archive(zip_of(RELEASE))
    archive.server.files.clear()


def _nobody(archive: ArchiveMaker, _: pytest.MonkeyPatch) -> None:
    url = archive.server.url
    archive.server.url = "http://127.0.0.1:9"
    archive(zip_of(RELEASE))
    archive.server.url = url


def _with(
    data: bytes, digest: str | None = None, **ways: object
) -> Callable[[ArchiveMaker, pytest.MonkeyPatch], None]:
    """The server has these bytes, in certain ways, and the manifest expects a digest."""

    def prepare(archive: ArchiveMaker, _: pytest.MonkeyPatch) -> None:
        archive(data, digest)
        archive.server.files |= cast("dict[str, bytes]", ways.pop("files", {}))
        for way, value in ways.items():
            getattr(archive.server, way).update(value)

    return prepare


ZIP = zip_of(RELEASE)
T = "release/data/t.mrg"
LESS = {name: data for name, data in RELEASE.items() if name != T}
FLIPPED = bytes([*ZIP[:99], ZIP[99] ^ 4, *ZIP[100:]])
NOT_THE_FILE = "is not the file that the manifest names"
FAULTS = (
    Fault("truncated", _with(ZIP, cut=["/r.zip"]), "the download failed"),
    Fault("cut, and the server does not know", _with(ZIP[:-50], sha256(ZIP)), NOT_THE_FILE),
    Fault("a bit flipped", _with(FLIPPED, sha256(ZIP)), NOT_THE_FILE),
    Fault("another file", _with(zip_of(RELEASE | EXTRA), sha256(ZIP)), NOT_THE_FILE),
    Fault("no such file", _nothing_there, "the download failed: 404"),
    Fault(
        "redirected to a page",
        _with(ZIP, moved={"/r.zip": "/page"}, files={"/page": b"<!DOCTYPE html>"}),
        NOT_THE_FILE,
    ),
    Fault("redirected in a circle", _with(ZIP, moved={"/r.zip": "/r.zip"}), "the download failed"),
    Fault("moved to another address", _with(ZIP, moved={"/r.zip": "/n"}, files={"/n": ZIP})),
    Fault("without end", _with(ZIP, endless=["/r.zip"]), "sends more than"),
    Fault("compressed on the way", _with(gzip.compress(ZIP), sha256(ZIP), encoded=["/r.zip"]),
          NOT_THE_FILE),
    Fault("nobody answers", _nobody, "the download failed"),
    Fault("an archive without a file", _with(zip_of(LESS)), r"the archive lacks t\.mrg"),
    Fault("another file in the archive", _with(zip_of(LESS | {T: b"(S (N other))"})),
          r"t\.mrg: the download has another file of this name"),
    Fault("zero bytes", _with(b"", sha256(ZIP)), NOT_THE_FILE),
    Fault("no folder for downloads", _no_folder, "cannot keep the download"),
    Fault("no space for the download", _no_space_for_the_download, "No space left"),
    *(Fault(f"no space for file {k + 1}", _full(k), "No space left") for k in range(len(FILES))),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults(
    fault: Fault,
    archive: ArchiveMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tally: Tally,
) -> None:
    """Refused, with nothing left behind; and when all is well again, it is fetched."""
    held = tally("R24", "faults of downloads")
    monkeypatch.setattr("spmrl_bench.treebanks.download.UNPACKED", 1 << 20)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    root = tmp_path / "new"
    with monkeypatch.context() as patch:
        fault.prepare(archive, patch)
        held.add()
        if fault.says:
            with pytest.raises(TreebankError, match=fault.says):
                fetch(root)
            assert files_under(root).items() < WHOLE.items(), "nothing but whole files"
        else:
            assert fetch(root) == sorted(FILES)
    assert not list((tmp_path / "temporary").iterdir())
    for ways in (archive.server.cut, archive.server.endless, archive.server.encoded):
        ways.clear()
    archive.server.moved.clear()
    archive(ZIP)
    fetch(root)
    assert files_under(root) == WHOLE


def test_single_files_that_came_are_kept_when_the_next_fails(
    manifests: WriteManifest, server: Server, tmp_path: Path, tally: Tally
) -> None:
    tally("R24", "downloads taken up again").add()
    server.files = {f"/{name}": data for name, data in CONTENT.items() if name != "d_10.mrg"}
    write_checksums(manifests(fetch=f'[{{ url = "{server.url}/" }}]').parent)
    with pytest.raises(TreebankError, match=r"d_10\.mrg: the download failed: 404"):
        fetch(tmp_path / "new")
    before = len(server.asked)
    server.files["/d_10.mrg"] = CONTENT["d_10.mrg"]
    fetch(tmp_path / "new")
    assert files_under(tmp_path / "new") == WHOLE
    assert len(server.asked) - before == 2, "d_10.mrg, and the one behind it"


def test_bounds(archive: ArchiveMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(zip_of(RELEASE))
    for bound, says in (("UNPACKED", "to more than 5 bytes"), ("MEMBERS", "than 5 members")):
        with monkeypatch.context() as patch:
            patch.setattr(f"spmrl_bench.storage.unzip.{bound}", 5)
            with pytest.raises(TreebankError, match=says):
                fetch(tmp_path / "new")
    assert files_under(tmp_path / "new") == {}


def test_two_at_once(archive: ArchiveMaker, tmp_path: Path, tally: Tally) -> None:
    tally("R24", "two downloads at once").add()
    archive(zip_of(RELEASE | EXTRA))
    with ThreadPoolExecutor(2) as pool:
        for result in [pool.submit(fetch, tmp_path / "new") for _ in range(2)]:
            result.result()
    assert files_under(tmp_path / "new") == WHOLE


def test_an_interrupted_download_is_taken_up_again(
    archive: ArchiveMaker, tmp_path: Path, manifests: WriteManifest, tally: Tally
) -> None:
    tally("R24", "downloads taken up again").add()
    archive(zip_of(RELEASE))
    archive.server.slow.add("/r.zip")
    folder = manifests(fetch="[]").parent  # only to learn where the manifests are
    archive(zip_of(RELEASE))
    code = (
        "import sys\nfrom pathlib import Path\n"
        "import spmrl_bench.treebanks.catalogue as catalogue\n"
        "catalogue.data_dirs = lambda _: [Path(sys.argv[1])]\n"
        "from spmrl_bench.treebanks.download import fetch_treebank\n"
        "fetch_treebank(catalogue.load_manifest('tiny'), sys.argv[2])\n"
    )
    environment = {**os.environ, "SPMRL_BENCH_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(tmp_path / "new")], env=environment
    )
    assert archive.server.halfway.wait(PATIENCE)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert files_under(tmp_path / "new") == {}
    archive.server.slow.clear()
    assert fetch(tmp_path / "new") == sorted(FILES)


def test_what_cannot_be_fetched(
    manifests: WriteManifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests()
    with pytest.raises(TreebankError, match=r"tiny has no stable address\. Ask the elves"):
        fetch(tmp_path)
    with pytest.raises(TreebankError, match=r"german-mini .* nothing to download"):
        fetch_treebank(read_manifest(data_dir("treebanks") / "german-mini.toml"))
    manifests(fetch=f'[{{ url = "http://x/y", sha256 = "{"0" * 64}", members = {{ "a" = "b" }} }}]')
    monkeypatch.delenv("TREEBANKS", raising=False)
    with pytest.raises(TreebankError, match="set TREEBANKS to the directory"):
        fetch_treebank(load_manifest("tiny"))
