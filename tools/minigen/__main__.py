"""Write generated treebanks: those that the program ships, or one of another size or seed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.conll import conll_lines
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse
from tools.minigen.generate import generate, read_grammar
from tools.minigen.ground import GroundGrammar

ROOT = Path(__file__).resolve().parents[2]
GRAMMARS = Path(__file__).with_name("grammars")
SHIPPED = ROOT / "treebanks" / "mini"
SIZES = {"train": 2000, "dev": 300, "test": 300}
SEED = 1


def files_of(source: GroundGrammar, sizes: Mapping[str, int], seed: int) -> dict[str, str]:
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
        parser.add_argument(f"--{split}", type=_size, metavar="N", help=f"sentences ({size})")
    given = vars(parser.parse_args(arguments))
    changed = {key: given[key] for key in ("seed", *SIZES) if given[key] is not None}
    if changed and given["to"] is None:
        parser.error("--seed, --train, --dev and --test need --to FOLDER")
    if given["to"] is not None and given["grammar"] is None:
        parser.error("--to needs the name of a grammar")
    seed = changed.pop("seed", SEED)
    same = True
    try:
        for name in [given["grammar"]] if given["grammar"] else names:
            path = GRAMMARS / f"{name}.toml" if name in names else Path(name)
            files = files_of(read_grammar(path), {**SIZES, **changed}, seed)
            same &= _put(files, given["to"] or SHIPPED / path.stem, given["check"])
    except (SpmrlError, OSError) as error:
        sys.exit(f"minigen: {error}")
    return 0 if same else 1


def _size(text: str) -> int:
    size = int(text)
    if size < 0:
        raise argparse.ArgumentTypeError(f"{text} found, 0 or more expected")
    return size


def _put(files: Mapping[str, str], folder: Path, check: bool) -> bool:
    """Write files, or compare them with those that are there and tell which differ."""
    same = True
    for name, text in files.items():
        target, content = folder / name, text.encode()
        if not check:
            folder.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        elif not target.is_file() or target.read_bytes() != content:
            same = False
            print(f"{target}: differs from what the grammar gives")
    return same


if __name__ == "__main__":
    sys.exit(main())
