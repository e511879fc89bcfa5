"""Where the files of a new treebank go, and writing them without replacing anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.data import data_dir, home
from spmrl_bench.errors import TreebankError
from spmrl_bench.files import write_text
from spmrl_bench.treebanks.catalogue import manifest_names, read_manifest
from spmrl_bench.treebanks.new import NewTreebank
from spmrl_bench.treebanks.presence import treebanks_root


@dataclass(frozen=True, slots=True)
class Written:
    """The files written, and what ``train`` calls the recipe ("" if there is none)."""

    paths: tuple[Path, ...]
    recipe_name: str


def manifest_path(folder: Path) -> str:
    """How a manifest names a folder: relative to the directory of treebanks if it lies there."""
    absolute, root = folder.absolute(), treebanks_root()
    if root is not None and absolute.is_relative_to(root) and absolute != root:
        return absolute.relative_to(root).as_posix()
    return str(absolute)


def write_new_treebank(found: NewTreebank, into: Path | None = None) -> Written:
    """Write manifest, checksums and recipe.

    The recipe is named after the language, or after the treebank if there is a recipe for the
    language already.

    Args:
        found: the inspected treebank.
        into: the folder that gets ``treebanks/`` and ``recipes/``; without it, the checkout, or
            the user's own folder if the program is installed from a wheel.

    Raises:
        TreebankError: there is a treebank of that name, or a file cannot be written.
    """
    if found.name in manifest_names():
        raise TreebankError(
            f"there is a treebank '{found.name}' already: choose another name (--name)"
        )
    top = into if into is not None else _default_folder()
    manifest = top / "treebanks" / f"{found.name}.toml"
    checksums = manifest.parent / "checksums" / f"{found.name}.sha256"
    texts = {checksums: found.checksums, manifest: found.manifest}
    recipe_name = ""
    if found.files.form.yields != "dependencies":
        taken = {path.stem for folder in _recipe_folders(top) for path in folder.glob("*.toml")}
        names = [name for name in (found.language, found.name) if name not in taken]
        if not names:
            raise TreebankError(
                f"there is a recipe '{found.name}' already: choose another name (--name)"
            )
        recipe_name = names[0]
        texts[top / "recipes" / f"{recipe_name}.toml"] = found.recipe
    existing = [str(path) for path in texts if path.exists()]
    if existing:
        raise TreebankError(f"{', '.join(existing)}: there already; remove it or use --name")
    try:
        for path, text in texts.items():
            write_text(path, text)
    except OSError as error:
        raise TreebankError(f"{top}: cannot write: {error.strerror}") from error
    read_manifest(manifest)  # what was written is a manifest
    if into is not None and not {top, top.absolute()} & {home(), data_dir("treebanks").parent}:
        recipe_name = str(top / "recipes" / f"{recipe_name}.toml") if recipe_name else ""
    return Written(tuple(texts), recipe_name)


def _default_folder() -> Path:
    checkout = data_dir("treebanks").parent
    return home() if checkout.name == "_data" else checkout


def _recipe_folders(top: Path) -> list[Path]:
    return [data_dir("recipes"), home() / "recipes", top / "recipes"]
