"""Whether the recipes that name a treebank can be trained on it, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.plan import make_plan
from spmrl_bench.experiments.recipe import list_recipes, load_recipe
from spmrl_bench.parsers.base import ParserConfig


def recipe_problems(treebank: str, longest: Mapping[str, tuple[int, int]]) -> list[str]:
    """Why recipes could not be trained or scored on a treebank, in words.

    Args:
        treebank: its name; its files are there.
        longest: of each split the number of words of the longest sentence, and its number.
    """
    problems = []
    for name in list_recipes():
        try:
            if treebank not in load_recipe(name).language.treebanks:
                continue
        except SpmrlError:
            continue  # whatever is wrong there, it is not with this treebank
        try:
            configs = make_plan(name, treebank=treebank).configs
        except SpmrlError as error:
            problems.append(f"recipe {name}: {error}")
            continue
        rooms = {config.variant: _room(config.model) for config in configs}
        for split, (words, number) in longest.items():
            short = [name for name, room in rooms.items() if room is not None and words + 2 > room]
            if short:
                problems.append(
                    f"recipe {name}, variant {', '.join(short)}: sentence {number} of {split} has "
                    f"{words} words, for which model.max_positions must be {words + 2} at least; "
                    "set it in the recipe"
                )
    return problems


def _room(model: ParserConfig) -> int | None:
    """Tokens that a sentence may have; None for any."""
    tables = model.tables().values()
    return next((room for own in tables if (room := getattr(own, "max_positions", None))), None)
