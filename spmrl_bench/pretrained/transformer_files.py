"""Folders of pre-trained encoders: finding them, reading them, and saying what is wrong with one.

The library ``transformers`` only warns of weights that are missing or do not fit and then makes
them up, takes a tokenizer without words, downloads whatever a name on the hub stands for today,
and draws progress bars. Here a folder is read whole or not at all, and silently.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn

from spmrl_bench.bounded_files import open_regular, read_regular
from spmrl_bench.errors import PretrainedError
from spmrl_bench.json_files import parsed_json
from spmrl_bench.tensor_budget import TensorBudget
from spmrl_bench.tensor_files import TensorFile, check_finite

#: What is fetched from the hub: no pickled weights, and nothing made for other programs.
WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
#: A folder needs one of these groups to have a tokenizer.
TOKENIZERS = (
    ("tokenizer.json",),
    ("vocab.txt",),
    ("vocab.json", "merges.txt"),
    ("sentencepiece.bpe.model",),
    ("spiece.model",),
)
#: Bytes of the largest file of a tokenizer.
LARGEST = 64 << 20
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
# Kept by old files beside the weights, but computed today.
_COMPUTED = re.compile(r"(^|\.)(position_ids|token_type_ids)$")


def package() -> Any:
    """The module ``transformers``, which takes seconds to load; an error without it."""
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise PretrainedError(
            f"the input 'transformer' needs the package transformers ({error}). "
            "Install it: pip install 'spmrl-bench[pretrained]'"
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Within it, the library prints neither warnings nor progress bars."""
    progress = package().utils.logging
    drawn = progress.is_progress_bar_enabled()
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    progress.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if drawn:
            progress.enable_progress_bar()


def reason(error: BaseException) -> str:
    """The message of a library in one line, cut where it becomes a lecture."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + " ..."


def from_folder(auto: str, folder: Path, **options: Any) -> Any:
    """What a class of the library reads from a folder, without a network or code of others."""
    reader = getattr(package(), auto)
    options |= {"trust_remote_code": False, "local_files_only": True}
    return reader.from_pretrained(str(folder), **options)


def attempt(what: str, action: Callable[[], Any], remedy: str) -> Any:
    """The result of a call of the library, whose errors are of any class.

    Raises:
        PretrainedError: it failed: ``what``, the reason, and the ``remedy``.
    """
    try:
        with quiet():
            return action()
    except PretrainedError:
        raise
    except Exception as error:
        raise PretrainedError(f"{what} ({reason(error)}). {remedy}") from None


def locate(name: str, revision: str | None) -> Path:
    """The folder of an encoder; one of the hub is fetched, once.

    Args:
        name: a folder, or a name on the hub.
        revision: 40 hexadecimal digits of a commit on the hub; None for a folder.

    Raises:
        PretrainedError: there is no such folder, the revision is missing or could change, or
            the hub has no answer.
    """
    path = Path(name)
    if path.is_dir():
        if revision is not None:
            raise PretrainedError(
                f"{name}: a folder, but transformer_revision is set ({revision}), and only an "
                "encoder of the hub has revisions. Leave the revision out"
            )
        return path
    if path.exists() or not _HUB_NAME.fullmatch(name):
        raise PretrainedError(
            f"{name}: {'a file' if path.exists() else 'no such folder'}. The setting transformer "
            "names a folder with config.json, model.safetensors and a tokenizer, or an encoder of "
            "the hub, such as ORGANISATION/NAME"
        )
    if revision is None or not _COMMIT.fullmatch(revision):
        found = "is not set" if revision is None else f"is '{revision}'"
        raise PretrainedError(
            f"{name}: no such folder, and for an encoder of the hub transformer_revision {found}. "
            "Set it to the 40 hexadecimal digits of a commit (see the encoder's history on the "
            "hub), so that the name always stands for the same weights"
        )
    return _fetched(name, revision)


def _fetched(name: str, revision: str) -> Path:
    package()
    hub = importlib.import_module("huggingface_hub")

    def fetch(cached: bool) -> Path:
        # A pattern with a slash matches what lies in folders of the repository.
        return Path(
            hub.snapshot_download(
                name,
                revision=revision,
                allow_patterns=list(WANTED),
                ignore_patterns=["*/*"],
                local_files_only=cached,
            )
        )

    try:
        folder: Path = attempt(name, lambda: fetch(cached=True), "")
        weight_files(folder)
        check_has_tokenizer(folder)
    except PretrainedError:  # not fetched yet, or only in part
        folder = attempt(
            f"{name}: revision {revision} cannot be fetched from the hub",
            lambda: fetch(cached=False),
            "Check the name, the revision and the connection; or copy the encoder's folder to "
            "this machine and set transformer to its path",
        )
    return folder


def weight_files(folder: Path) -> list[Path]:
    """The files with the weights of an encoder, which can be read without running its code."""
    found = sorted(folder.glob("*.safetensors"))
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            parts = {*map(str, parsed_json(read_regular(index), wide=True)["weight_map"].values())}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _broken(index, reason(error))
        absent = sorted(parts - {path.name for path in found})
        if absent:
            raise PretrainedError(
                f"{folder / absent[0]}: missing, but {index.name} names it. Copy the whole folder "
                "of the encoder"
            )
    if found:
        return found
    pickled = sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.h5")])
    if pickled:
        raise PretrainedError(
            f"{pickled[0]}: weights in a format that is not read, because a pickled file can run "
            "any code. Convert them to model.safetensors, or choose a revision that has it"
        )
    raise PretrainedError(
        f"{folder}: no weights (model.safetensors). Copy the whole folder of the encoder, or "
        "choose a revision that has them"
    )


def check_has_tokenizer(folder: Path) -> None:
    """Make sure that there is a tokenizer, for which the library would make up an empty one."""
    if any(all((folder / file).is_file() for file in group) for group in TOKENIZERS):
        return
    groups = ", or ".join(" with ".join(group) for group in TOKENIZERS)
    raise PretrainedError(
        f"{folder}: no tokenizer. It needs {groups}. Copy the whole folder of the encoder"
    )


def read_config(folder: Path) -> Any:
    """The library's configuration of an encoder.

    Raises:
        PretrainedError: ``config.json`` is missing, broken, or of no encoder.
    """
    path = folder / "config.json"
    try:
        content = parsed_json(read_regular(path), wide=True)
    except FileNotFoundError:
        raise PretrainedError(
            f"{path}: missing, so {folder} is not the folder of an encoder. It needs config.json, "
            "model.safetensors and a tokenizer"
        ) from None
    except (OSError, ValueError) as error:
        _broken(path, getattr(error, "strerror", None) or reason(error))
    check_files(folder)
    if not isinstance(content, dict) or not isinstance(content.get("model_type"), str):
        _broken(path, "it does not say its model_type")
    kind = content["model_type"]
    auto = importlib.import_module(f"{package().__name__}.models.auto.modeling_auto")
    encoders = {*auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, "xlnet"}
    if kind not in encoders:
        raise PretrainedError(
            f"{path}: model_type '{kind}' is no encoder that reads a sentence in both directions "
            "and that the installed transformers knows. Use one such as bert, roberta, "
            "xlm-roberta, xlnet, electra or deberta-v2"
        )
    config = attempt(
        f"{path}: cannot be read",
        lambda: from_folder("AutoConfig", folder),
        "Copy the file anew",
    )
    for key, what in (
        ("is_encoder_decoder", "an encoder with a decoder"),
        ("is_decoder", "a decoder, which reads a sentence in one direction"),
    ):
        if getattr(config, key, False):
            raise PretrainedError(f"{path}: {what} ({key} is true). Use an encoder")
    return config


def check_files(folder: Path) -> None:
    """Make sure that the library will find files alone, whose size is that of such files.

    Raises:
        PretrainedError: something in the folder is a pipe, a device or the like, or too large.
    """
    for path in sorted(folder.iterdir()):
        if not any(path.match(pattern) for pattern in WANTED) or path.is_dir():
            continue
        try:
            with open_regular(path) as file:
                size = os.fstat(file.fileno()).st_size
            if path.suffix != ".safetensors" and size > LARGEST:
                raise ValueError(f"{size} bytes, where at most {LARGEST} are read")
        except (OSError, ValueError) as error:
            _broken(path, getattr(error, "strerror", None) or reason(error))


def _broken(path: Path, problem: str) -> NoReturn:
    raise PretrainedError(f"{path}: cannot be read ({problem}). Copy the file anew")


def read_encoder(folder: Path, config: Any) -> nn.Module:
    """The encoder of a folder, float32, in evaluation mode, without its pooler.

    Raises:
        PretrainedError: weights are missing, or do not fit the configuration.
    """
    files = weight_files(folder)
    where = str(files[0]) if len(files) == 1 else f"{folder}/*.safetensors"

    def load() -> Any:
        # What the library makes up, a pooler say, must not shift the parser's random numbers.
        # What config.json asks for is made only as far as there are weights for it.
        numbers = sum(map(math.prod, shapes.values()))
        budget = TensorBudget(len(shapes), numbers, filled=True)
        with torch.random.fork_rng(devices=[]), budget:
            return from_folder(
                "AutoModel",
                folder,
                config=config,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # to be told of all of them
            )

    remedy = "Copy the files anew"
    shapes = attempt(f"{where}: cannot be read", lambda: _shapes(files), remedy)
    encoder, report = attempt(f"{where}: cannot be read", load, remedy)
    _check_weights(where, encoder, shapes, report)
    encoder = _without_pooler(encoder)
    for name, weight in encoder.state_dict().items():
        try:
            check_finite(name, weight)
        except ValueError as error:
            raise PretrainedError(f"{where}: {error}. {remedy}") from None
    return encoder


def empty_encoder(folder: Path, config: Any) -> nn.Module:
    """An encoder whose weights do not matter, because they will be replaced."""

    def build() -> Any:
        with torch.random.fork_rng(devices=[]), _uninitialised():
            return package().AutoModel.from_config(config, trust_remote_code=False)

    encoder = attempt(
        f"{folder / 'config.json'}: no encoder can be built from it", build, "Copy the file anew"
    )
    return _without_pooler(encoder)


@contextmanager
def _uninitialised() -> Iterator[None]:
    """Within it, models are built without drawing numbers for their weights, which takes long."""
    name = package().__name__
    for home in ("initialization", "modeling_utils"):  # of new and of old versions
        try:
            skip = importlib.import_module(f"{name}.{home}").no_init_weights
        except (ImportError, AttributeError):
            continue
        with skip():
            yield
        return
    yield


def _without_pooler(encoder: nn.Module) -> nn.Module:
    # It reads the first token for tasks with one answer for a text; nothing here would train it.
    if getattr(encoder, "pooler", None) is not None:
        encoder.register_module("pooler", None)
    return encoder.float().eval()


def _shapes(files: Iterable[Path]) -> dict[str, list[int]]:
    """The shapes of all tensors of some files."""
    found: dict[str, list[int]] = {}
    for path in files:
        with TensorFile(path) as file:
            found |= {name: list(stored.shape) for name, stored in file.tensors.items()}
    return found


def _check_weights(
    where: str, encoder: nn.Module, shapes: dict[str, list[int]], report: dict[str, Any]
) -> None:
    prefix = f"{getattr(encoder, 'base_model_prefix', '')}."
    parts = {name for name, _ in encoder.named_children()}
    parts |= {name for name, _ in encoder.named_parameters(recurse=False)}

    def counts(key: str) -> bool:
        """Whether a key is of the encoder, not of a head or of the pooler."""
        part = key.removeprefix(prefix).split(".")[0]
        return part in parts - {"pooler"} and not _COMPUTED.search(key)

    def refuse(problem: str) -> NoReturn:
        raise PretrainedError(
            f"{where}: {problem}. Copy config.json and the weights from one and the same encoder"
        )

    missing = [key for key in report["missing_keys"] if counts(key)]
    if missing:
        refuse(f"no weights for {_some(missing)}, which config.json asks for")
    unfit = {key: sizes for key, *sizes in report["mismatched_keys"] if counts(key)}
    weights = encoder.state_dict()
    for key, shape in shapes.items():  # since old versions of the library do not report all
        name = key.removeprefix(prefix)
        if name in weights and counts(name) and list(weights[name].shape) != shape:
            unfit[name] = [shape, weights[name].shape]
    if unfit:
        found, wanted = (list(size) for size in unfit[min(unfit)])
        refuse(f"the shape of {_some(unfit)} is {found}, but config.json asks for {wanted}")
    surplus = [key for key in report["unexpected_keys"] if counts(key)]
    if surplus:
        refuse(f"{_some(surplus)} has no place in the encoder that config.json describes")
    if report.get("error_msgs"):
        raise PretrainedError(f"{where}: {'; '.join(report['error_msgs'])}. Copy the files anew")


def _some(keys: Iterable[str]) -> str:
    first, *others = sorted(keys)
    return f"{first} (and {len(others)} more)" if others else first


def positions(encoder: nn.Module, config: Any) -> int | None:
    """How many sub-words an encoder can read at once; None if any number."""
    for name, module in encoder.named_modules():
        table = name.rpartition(".")[2] == "position_embeddings"
        if table and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            # RoBERTa and its kin count from the row after that of the padding.
            return module.num_embeddings - module.padding_idx - 1
    stated = getattr(config, "max_position_embeddings", None)
    return stated if isinstance(stated, int) and stated > 0 else None
