"""Packages on the hub of Hugging Face, of which a name stands for the same bytes for ever.

A name on the hub is a repository that its owner may change at any time, and so are its branches and
tags. A result that depends on one cannot be traced, and whoever takes over a repository would be
read by all who named it once. So a package is named with its commit: 40 digits that are a hash of
what is in it. Any other revision is an error that says which commit it stands for today.

The library ``huggingface_hub`` downloads and keeps files; its settings (``HF_HOME``,
``HF_ENDPOINT``, ``HF_HUB_OFFLINE``) are its own. What is there already needs no network. Of the
repository only the description and what that lists is taken, each file of the size and with the
SHA-256 that are listed.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from spmrl_bench.errors import PackageError, SpmrlError
from spmrl_bench.packages.description import LARGEST, PACKAGE, file_fault, read_package

_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetched(name: str, revision: str) -> Path:
    """The folder of a package on the hub, downloaded where it is not there yet.

    Args:
        name: ``OWNER/NAME``.
        revision: the 40 hexadecimal digits of a commit.

    Raises:
        PackageError: the revision is none or can change, the hub has no such package or no answer,
            or gives other files than the package lists.
    """
    hub = _library()
    if not _COMMIT.fullmatch(revision):
        raise _unpinned(hub, name, revision)
    repository = _Repository(hub, name, revision)
    described = repository.file(PACKAGE, LARGEST)
    package = read_package(described.parent)
    for file, stored in (package.files if package is not None else {}).items():
        path = repository.file(file, stored.size)
        if file_fault(path, stored) is not None:  # as a disk or another program has left it
            path = repository.download(file, stored.size, again=True)
        if (fault := file_fault(path, stored)) is not None:
            raise PackageError(
                f"{name}@{revision}: {file}: {fault}, so the package on the hub is broken. Take "
                "another commit, or ask its owner"
            )
    return described.parent


class _Repository:
    """One commit of a repository."""

    def __init__(self, hub: Any, name: str, revision: str) -> None:
        self._hub = hub
        self._name = name
        self._revision = revision

    def file(self, file: str, most: int) -> Path:
        """A file, of so many bytes at most if it has to be downloaded."""
        found = self._attempt(
            file,
            lambda: self._hub.try_to_load_from_cache(self._name, file, revision=self._revision),
        )
        return Path(found) if isinstance(found, str) else self.download(file, most)

    def download(self, file: str, most: int, *, again: bool = False) -> Path:
        """A file as the hub has it now, even if it is here (``again``)."""
        return Path(self._attempt(file, lambda: self._downloaded(file, most, again)))

    def _downloaded(self, file: str, most: int, again: bool) -> Any:
        url = self._hub.hf_hub_url(self._name, file, revision=self._revision)
        size = self._hub.get_hf_file_metadata(url).size
        if size is None or size > most:
            said = "no size" if size is None else f"{size:,} bytes"
            raise PackageError(
                f"{self._name}@{self._revision}: {file}: the hub says {said}, where at most "
                f"{most:,} bytes are taken"
            )
        return self._hub.hf_hub_download(
            self._name, file, revision=self._revision, force_download=again
        )

    def _attempt(self, file: str, action: Any) -> Any:
        """What a call of the library returns, whose errors are of any class."""
        try:
            return action()
        except SpmrlError:
            raise
        except Exception as error:
            raise PackageError(
                f"{self._name}@{self._revision}: {file} cannot be had from the hub "
                f"({_reason(error)}). Check name, commit and connection"
            ) from None


def _unpinned(hub: Any, name: str, revision: str) -> PackageError:
    """The error of a revision that can change."""
    shown = revision or "main"
    problem = f"{name}@{revision}: '{revision}' is no commit, and may stand for another model later"
    try:
        commit = str(hub.HfApi().model_info(name, revision=shown).sha)
    except Exception as error:
        return PackageError(
            f"{problem}. Give the 40 hexadecimal digits of one; which {shown} is, the hub did not "
            f"say ({_reason(error)})"
        )
    return PackageError(f"{problem}. Today {shown} is {commit}: give {name}@{commit}")


def _library() -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise PackageError(
            f"a model of the hub needs the package huggingface_hub ({error}). Install it: "
            "pip install 'spmrl-bench[hub]'"
        ) from None


def _reason(error: Exception) -> str:
    """The message of a library in one line, cut where it becomes a lecture."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + " ..."
