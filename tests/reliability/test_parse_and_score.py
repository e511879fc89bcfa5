"""Whatever a treebank's words are: its trees, parsed anew and scored, lose no sentence."""

from __future__ import annotations

import io

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.parsing.bulk import Counts as Done
from spmrl_bench.parsing.bulk import ParseOptions, Worker, parse_input
from spmrl_bench.parsing.streams import read_input
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.prm import load_prm
from spmrl_bench.scoring.texts import score_texts
from spmrl_bench.treebanks.catalogue import load_manifest, manifest_names, treebank_status
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.escapes import write_brackets
from tests.conftest import shared_data
from tests.reliability.growth import parser_of
from tests.reliability.tally import Tally

MINIS = ("german-mini", "hebrew-mini")
OTHERS = [name for name in manifest_names() if name not in MINIS]
PROPERTY = "R12", "sentences parsed and scored as brackets, none of them left out"


def left_out(gold: str, prm: str, transforms: list[str]) -> tuple[int, int]:
    """Sentences of a text, and how many the score of a parse of it leaves out."""
    answerer = Worker(parser_of("bilstm", max_positions=2000), ParseOptions())
    given = read_input([], "brackets", io.BytesIO(gold.encode()), transforms=transforms)
    lines = parse_input(given, lambda windows: map(answerer, windows), Done())
    parses = "".join(text for texts in lines for text in texts)
    counts = score_texts(gold, parses, load_prm(prm))
    return len(counts), counts.skipped


@pytest.mark.parametrize(
    "name", [*MINIS, *(pytest.param(name, marks=pytest.mark.campaign) for name in OTHERS)]
)
def test_gold_trees(name: str, tally: Tally) -> None:
    held = tally(*PROPERTY)
    bank = open_present(name)
    if "constituents" not in bank.layers:
        pytest.skip("has no trees")
    sentences = bank.examples("dev", ("constituents",))
    some = sentences[:100] if name in MINIS else sentences
    for escapes in ("ptb", "brackets"):
        lines = [write_brackets(each.tree, escapes) for each in some if each.tree is not None]
        text = "".join(f"{line}\n" for line in lines)
        found = left_out(text, bank.manifest.rules["brackets"]["prm"], [])
        assert found == (len(some), 0), escapes
        held.add(len(some))


@pytest.mark.campaign
@pytest.mark.parametrize("name", OTHERS)
def test_the_files_themselves(name: str, tally: Tally) -> None:
    manifest = load_manifest(name)
    if manifest.format != "brackets":
        pytest.skip("its files are not brackets")
    open_present(name)
    files = treebank_status(manifest, shared_data("treebanks")).files
    assert files is not None
    assert manifest.prm is not None
    for path in files.of("dev").paths[:20]:
        text = read_text(path, str(manifest.options["encoding"]).split(" | ")[0])
        sentences, lost = left_out(text, manifest.prm, list(manifest.transforms))
        assert not lost, path
        tally(*PROPERTY).add(sentences)


def open_present(name: str) -> Treebank:
    try:
        return open_treebank(name, None if name in MINIS else shared_data("treebanks"))
    except TreebankError as error:
        pytest.skip(f"not here: {error}"[:200])
