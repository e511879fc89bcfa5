"""Write generated treebanks: those that the program ships, or one of another size or seed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import SpmrlError
from spmrl_bench.trees.brackets import write_brackets
from spmrl_bench.trees.conll import conll_lines
from spmrl_bench.trees.parse import Parse
from tools.minigen.generate import generate, read_grammar
from tools.minigen.ground import GroundGrammar

ROOT = Path(__file__).resolve().parents[2]
GRAMMARS = Path(__file__).with_name("grammars")
SHIPPED = ROOT / "treebanks" / "mini"
SIZES = {"train": 2000, "dev": 300, "test": 300}
SEED = 1


def files_of(source: GroundGrammar, sizes: dict[str, int], seed: int) -> dict[str, str]:
    """The files of a treebank by name: of each split the trees, and the dependencies."""
    splits = generate(source, sizes, seed)
    files = {}
    for split, parses in splits.items():
        files[f"{split}.mrg"] = "".join(map(_brackets, parses))
        files[f"{split}.conll"] = "".join(map(_conll, parses))
    return files


def _brackets(parse: Parse) -> str:
    assert parse.tree is not None
    return write_brackets(parse.tree) + "\n"


def _conll(parse: Parse) -> str:
    layer = parse.dependencies
    assert layer is not None
    return conll_lines(layer.words, layer.tags, map(str, layer.heads), layer.relations)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    names = sorted(path.stem for path in GRAMMARS.glob("*.toml"))
    parser = argparse.ArgumentParser(prog="python -m tools.minigen", description=__doc__)
    parser.add_argument("grammar", nargs="?", help=f"{', '.join(names)}, or the path of a file")
    parser.add_argument("--check", action="store_true", help="compare, but write nothing")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where to write (treebanks/mini)")
    parser.add_argument("--seed", type=int, help=f"any whole number ({SEED})")
    for split, size in SIZES.items():
        parser.add_argument(f"--{split}", type=int, metavar="N", help=f"sentences ({size})")
    given = parser.parse_args(arguments)
    sizes = {split: getattr(given, split) for split in SIZES}
    if given.to is None and (given.seed, *sizes.values()) != (None,) * 4:
        parser.error("--seed, --train, --dev and --test need --to FOLDER")
    if given.to is not None and given.grammar is None:
        parser.error("--to needs the name of a grammar")
    if min(size or 0 for size in sizes.values()) < 0:
        parser.error("a number of sentences is 0 or more")
    sizes = {
        split: default if sizes[split] is None else sizes[split] for split, default in SIZES.items()
    }
    differing = 0
    for name in [given.grammar] if given.grammar else names:
        path = GRAMMARS / f"{name}.toml" if name in names else Path(name)
        folder = given.to or SHIPPED / path.stem
        try:
            files = files_of(read_grammar(path), sizes, SEED if given.seed is None else given.seed)
        except SpmrlError as error:
            sys.exit(f"minigen: {error}")
        for file, text in files.items():
            target, content = folder / file, text.encode()
            if not given.check:
                folder.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            elif not target.is_file() or target.read_bytes() != content:
                differing += 1
                print(f"{target}: differs from what the grammar gives")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
