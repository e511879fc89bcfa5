"""Reading Alpino XML: surface order, repeated nodes, and a place for what breaks the format."""

from __future__ import annotations

import html
import re
from pathlib import Path

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.graphs import read_alpino_xml
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    attach_loose_tokens,
    loosen_punctuation,
    raise_crossing_branches,
    to_tree,
)
from spmrl_bench.trees.tree import Tree
from tests.conftest import shared_data
from tests.readers.cases import SentenceFormat, edits, ways_of_xml
from tests.trees.graphs import gaps

HEAD = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<alpino version="1.2">\n'
# Lines 3 to 19. The verb comes first in the file and second in the sentence; the subject of
# the infinitive, and the whole of a phrase, are only repeated.
SENTENCE = """<alpino_ds version="1.2" id="0007">
<node begin="0" cat="top" end="5" id="0" rel="top">
<node begin="0" cat="smain" end="4" id="1" rel="--">
<node begin="1" end="2" id="2" pos="verb" rel="hd" root="wil" word="wil"/>
<node begin="0" cat="inf" end="4" id="3" rel="vc">
<node begin="2" end="3" id="4" index="1" rel="su"/>
<node begin="3" end="4" id="5" pos="verb" rel="hd" root="h" word="h&#246;ren"/>
<node begin="0" end="1" id="6" pos="det" rel="obj1" root="dat" word="Dat"/>
<node begin="2" cat="pp" end="3" id="7" rel="mod">
<node begin="2" end="3" id="8" index="1" rel="obj1"/>
</node>
</node>
<node begin="2" end="3" id="9" index="1" pos="pron" rel="su" root="ze" word="ze"/>
</node>
<node begin="4" end="5" id="10" pos="punct" rel="--" root="." word="."/>
</node>
<sentence>Dat wil ze h&#246;ren .</sentence>
</alpino_ds>
"""
NODES = SENTENCE[SENTENCE.index("<node") : SENTENCE.index("<sentence>")]
GRAPH = Graph(
    name="0007",
    words=("Dat", "wil", "ze", "hören", "."),
    tags=("det", "verb", "pron", "verb", "punct"),
    token_parents=(2, 1, 1, 2, 0),
    token_edges=("obj1", "hd", "su", "hd", "--"),
    labels=("top", "smain", "inf"),
    parents=(NO_PARENT, 0, 1),
    edges=("top", "--", "vc"),
)


def to_whole_tree(graph: Graph) -> Tree:
    return to_tree(raise_crossing_branches(attach_loose_tokens(loosen_punctuation(graph))))


# Text of the sentence, what stands there instead, the line of the sentence, the problem.
MALFORMED = {
    "no label of an edge": (' rel="vc"', "", 5, "<node> lacks the attribute 'rel'"),
    "no tag": (' pos="det"', "", 8, "<node> lacks the attribute 'pos'"),
    "no begin": ('begin="1" end', "end", 4, "<node> lacks the attribute 'begin'"),
    "begin is no number": ('begin="1" end', 'begin="x" end', 4, 'found begin="x", expected a'),
    "negative begin": ('begin="1" end', 'begin="-1" end', 4, 'found begin="-1", expected a'),
    "begin with other digits": ('"1" end', '"&#1633;" end', 4, 'found begin="\u0661", expected a'),
    "endless begin": ('begin="1" end', f'begin="{"9" * 5000}" end', 4, 'found begin="999'),
    "begin twice": ('begin="3" end', 'begin="1" end', 7, 'found begin="1", expected begin="2"'),
    "begin left out": ('begin="3" end', 'begin="7" end', 15, 'found begin="4", expected'),
    "not from 0": ('begin="0" end', 'begin="8" end', 4, 'found begin="1", expected begin="0" for'),
    "neither word nor phrase": (' cat="inf"', "", 5, "<node> has none of the attributes 'word',"),
    "repeated node with children": (' cat="inf"', ' index="2"', 6, "found a <node> inside one"),
    "word with children": ('"wil"/>', '"wil"><node rel="x" index="1"/></node>', 4, "inside one"),
    "childless phrase": (SENTENCE.splitlines()[9], "", 9, "the node 'pp' without children"),
    "two tops": ("<sentence>", '<node rel="top" index="7"/><sentence>', 17, "second outermost"),
    "sentence in a sentence": ("<sentence>", "<alpino_ds/><sentence>", 17, "found <alpino_ds>"),
    "no words": (
        NODES,
        '<node cat="top" rel="top"><node rel="--" index="1"/></node>\n',
        1,
        "no word",
    ),
    "no nodes": (NODES, "", 1, "found no word"),
}

ALPINO = SentenceFormat(
    name="alpino-xml",
    head=HEAD,
    tail="</alpino>",
    good=SENTENCE,
    expected=lambda _: GRAPH,
    ways=ways_of_xml(HEAD + SENTENCE + "</alpino>", declared="ISO-8859-1"),
    malformed=edits(SENTENCE, MALFORMED),
    bad_name="0007",
    ending=(
        SENTENCE.replace("</sentence>", ""),
        "38:3: sentence 0007: not well-formed XML: mismatched tag",
    ),
    deep=(
        "<alpino_ds>"
        + '<node rel="r" cat="c">' * 5000
        + '<node begin="0" rel="hd" pos="x" word="a"/>'
        + "</node>" * 5000
        + "</alpino_ds>",
        ["c"] * 5000,
    ),
    recognised=(
        HEAD + SENTENCE,
        "<treebank>\r\n<alpino_ds id='1'",
        '<?xml version="1.0"?><alpino_ds version="1.3"><node',
    ),
    others=(HEAD, "<alpino_dsx><node/>", "an <alpino_ds> element", ""),
)
read = ALPINO.read_file


def test_words_come_in_their_order_and_repeated_nodes_go(tmp_path: Path) -> None:
    assert list(read(tmp_path, SENTENCE)) == [GRAPH]


def test_the_way_to_a_tree(tmp_path: Path) -> None:
    (graph,) = read(tmp_path, SENTENCE)
    rows = [(0, 5, "top"), (0, 4, "smain"), (3, 4, "inf")]
    assert list(to_whole_tree(graph).constituents()) == rows


def test_a_file_with_one_sentence(tmp_path: Path) -> None:
    """Such files name the sentence in another place."""
    path = tmp_path / "7.xml"
    alone = SENTENCE.replace(' id="0007"', "").replace("<sentence>", '<sentence sentid="7">')
    path.write_text(alone, encoding="ascii")
    assert [graph.name for graph in read_alpino_xml(path)] == ["7"]


def test_one_word_needs_no_phrase(tmp_path: Path) -> None:
    word = '<alpino_ds><node begin="0" rel="--" pos="adv" word="Ja"/></alpino_ds>'
    (graph,) = read(tmp_path, word)
    assert (graph.name, graph.words, graph.labels) == ("1", ("Ja",), ())
    assert to_tree(graph).words == ("Ja",)


def test_a_node_outside_a_sentence(tmp_path: Path) -> None:
    errors: list[ReadError] = []
    found = list(read(tmp_path, '<node rel="top"/>\n', SENTENCE, on_error=errors.append))
    assert found == [GRAPH]
    assert list(map(str, errors)) == [f"{tmp_path}/file:3: found <node> outside <alpino_ds>"]


def test_the_real_treebank_has_every_sentence_a_second_time_as_text() -> None:
    path = shared_data("treebanks/alpino_nl/alpino.first1200.xml")
    graphs = list(read_alpino_xml(path))
    found = [gaps(loosen_punctuation(graph)) for graph in graphs]
    assert (sum(found), sum(map(bool, found))) == (1068, 579)
    texts = re.findall(r"<sentence[^>]*>(.*)</sentence>", path.read_text("latin-1"))
    assert [" ".join(graph.words) for graph in graphs] == [html.unescape(each) for each in texts]
