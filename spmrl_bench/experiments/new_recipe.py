"""The recipe of a treebank that nobody has trained on yet.

Whatever layers the treebank has, the variants of ``base.toml`` are those that fit them, so the
recipe names the treebank and nothing else, unless its sentences are longer than models expect.
"""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.errors import RecipeError
from spmrl_bench.storage.paths import data_dir, home
from spmrl_bench.storage.toml import read_toml, toml_text

_ENDS = 2  # positions of a model for the ends of a sentence


def recipe_text(language: str, treebank: str, longest: int) -> str:
    """Return the text of a recipe for a treebank whose longest sentence has so many words."""
    content: dict[str, object] = {"base": "base", "language": language, "treebanks": [treebank]}
    sizes = read_toml(data_dir("recipes") / "base.toml", RecipeError)["size"].values()
    if longest + _ENDS > min(size["model"]["attention"]["max_positions"] for size in sizes):
        content["model"] = {"max_positions": longest + _ENDS}
    return toml_text(content)


def recipe_path(language: str, treebank: str, top: Path) -> Path:
    """Return where a new recipe goes below a folder: called as the language, or as the treebank.

    Raises:
        RecipeError: there are recipes of both names.
    """
    folders = [data_dir("recipes"), home() / "recipes", top / "recipes"]
    taken = {path.stem for folder in folders for path in folder.glob("*.toml")}
    for name in (language, treebank):
        if name not in taken:
            return top / "recipes" / f"{name}.toml"
    raise RecipeError(f"there is a recipe '{treebank}' already: choose another name (--name)")
