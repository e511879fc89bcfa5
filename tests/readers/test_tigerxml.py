"""Reading TIGER-XML: what a graph keeps, and a place for what is no graph."""

from __future__ import annotations

from io import FileIO
from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.graphs import read_tiger_xml
from spmrl_bench.trees.graph import NO_PARENT, Graph
from tests.readers.cases import SentenceFormat, edits, ways_of_xml
from tests.trees.graphs import yields

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<corpus id="c">
<head><annotation><edgelabel><value name="HD">head</value></edgelabel></annotation></head>
<body>
"""
TERMINALS = """<terminals>
<t id="1" word="Das" pos="PDS"/>
<t id="2" word="will" pos="VMFIN"/>
<t id="3" word="er" pos="PPER"><secedge label="SB" idref="51"/></t>
<t id="4" word="h&#246;ren &quot;(&quot;" pos="VVINF"/>
<t id="5" word="." pos="$."/>
</terminals>
"""
EDGES = '<edge label="HD" idref="4"/><edge label="OA" idref="1"/>'
NODES = f"""<nonterminals>
<nt id="51" cat="VP">{EDGES}</nt>
<nt id="50" cat="S"><edge label="OC" idref="51"/><edge label="SB" idref="3"/>
<edge label="HD" idref="2"/><secedge label="X" idref="1"/></nt>
</nonterminals>
"""


def sentence(terminals: str = TERMINALS, nodes: str = NODES, root: str = "50") -> str:
    return f'<s id="s7">\n<graph root="{root}">\n{terminals}{nodes}</graph></s>\n'


GRAPH = Graph(
    name="s7",
    words=("Das", "will", "er", 'hören "("', "."),
    tags=("PDS", "VMFIN", "PPER", "VVINF", "$."),
    token_parents=(0, 1, 1, 0, NO_PARENT),
    token_edges=("OA", "HD", "SB", "HD", ""),
    labels=("VP", "S"),
    parents=(1, NO_PARENT),
    edges=("OC", ""),
)

# Text of the sentence, what stands there instead, the line of the sentence, the problem.
MALFORMED = {
    "edge to nowhere": ('idref="51"/><edge', 'idref="5x"/><edge', 12, "found an edge to '5x',"),
    "second parent of a token": ('"OC" idref="51"', '"OC" idref="4"', 12, "found a second edge"),
    "second parent of a node": ('"SB" idref="3"', '"SB" idref="51"', 12, "found a second edge to"),
    "node below itself": ('"SB" idref="3"', '"SB" idref="50"', 12, "found the node 'S' below"),
    "cycle": ('"OA" idref="1"', '"OA" idref="50"', 11, "found the node 'VP' below itself"),
    "no category": (' cat="VP"', "", 11, "<nt> lacks the attribute 'cat'"),
    "no word": (' word="Das"', "", 4, "<t> lacks the attribute 'word'"),
    "no tag": (' pos="$."', "", 8, "<t> lacks the attribute 'pos'"),
    "no target": (' idref="3"/>', "/>", 12, "<edge> lacks the attribute 'idref'"),
    "no id of a token": ('<t id="2"', "<t", 5, "<t> lacks the attribute 'id'"),
    "no id of a node": ('<nt id="50"', "<nt", 12, "<nt> lacks the attribute 'id'"),
    "id of two tokens": ('id="2"', 'id="1"', 5, "found the id '1' twice in the sentence"),
    "id of token and node": ('nt id="51"', 'nt id="5"', 11, "found the id '5' twice in the"),
    "root below another": ('root="50"', 'root="51"', 2, "the root '51' has a parent"),
    "root is a child token": ('root="50"', 'root="1"', 2, "the root '1' has a parent"),
    "unknown root": ('root="50"', 'root="x"', 2, "the root 'x' is no id of the sentence"),
    "childless node": (EDGES, "", 11, "without children"),
    "edge outside a node": (
        "<nonterminals>",
        '<nonterminals><edge idref="5"/>',
        10,
        "outside <nt>",
    ),
    "edge in a token": ("<secedge", "<edge", 6, "outside <nt>"),
    "no tokens": (TERMINALS, "", 1, "found no <t> in the sentence"),
    "sentence in a sentence": ('<t id="2"', '<s id="n"/><t id="2"', 5, "found <s> inside another"),
}

TIGER = SentenceFormat(
    name="tiger-xml",
    head=HEAD,
    tail="</body></corpus>",
    good=sentence(),
    expected=lambda _: GRAPH,
    ways=ways_of_xml(HEAD + sentence() + "</body></corpus>", declared="UTF-8"),
    malformed=edits(sentence(), MALFORMED),
    bad_name="s7",
    ending=(
        sentence().replace("</terminals>", "</terminal>"),
        "28:3: sentence s7: not well-formed XML: mismatched tag",
    ),
    deep=(
        sentence(
            '<t id="1" word="a" pos="X"/>',
            "".join(f'<nt id="n{k}" cat="N"><edge idref="n{k + 1}"/></nt>' for k in range(5000))
            + '<nt id="n5000" cat="N"><edge idref="1"/></nt>',
            root="n0",
        ),
        ["N"] * 5001,
    ),
    recognised=(
        HEAD,
        HEAD,
        "\n<!-- a <corpus> --><!DOCTYPE corpus [<!ENTITY a 'b'>]>\n<corpus><graph>",
        "<subcorpus name='a'><s id='1'>\r\n<graph root='1'>",
    ),
    others=(
        "<corpus><text>Das will er hören.</text></corpus>",
        "<alpino><alpino_ds><graph/></alpino_ds></alpino>",
        "<html><corpus><graph></html>",
        "(corpus (graph a))",
        "<" * 70_000,
        "<!DOCTYPE " * 7_000,
        "<?" * 30_000,
        "",
    ),
)
read = TIGER.read_file


def test_graph_keeps_crossing_branches_and_loose_tokens(tmp_path: Path) -> None:
    (graph,) = read(tmp_path, sentence())
    assert graph == GRAPH
    assert yields(graph) == [[0, 3], [0, 1, 2, 3]]


def test_root_may_be_a_token_and_nodes_absent(tmp_path: Path) -> None:
    nodes = "<nonterminals/>"
    (graph,) = read(tmp_path, sentence('<t id="1" word="Ja" pos="ITJ"/>\n', nodes, root="1"))
    assert (graph.words, graph.labels, graph.token_parents) == (("Ja",), (), (NO_PARENT,))


def test_one_sentence_has_one_error(tmp_path: Path) -> None:
    bad = sentence().replace(' word="Das"', "").replace(' pos="$."', "").replace('"51"', '"5"')
    errors: list[ReadError] = []
    assert list(read(tmp_path, bad, on_error=errors.append)) == []
    assert [error.line for error in errors] == [8]


def test_numbers_stand_for_names_that_are_missing(tmp_path: Path) -> None:
    anonymous = sentence().replace(' id="s7"', "")
    assert [graph.name for graph in read(tmp_path, anonymous, anonymous)] == ["1", "2"]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were read at a time."""
    found: list[int] = []

    class Counting(FileIO):
        def read(self, size: int | None = -1) -> bytes:
            found.append(size or 0)
            return super().read(size)

    monkeypatch.setattr("spmrl_bench.readers.graphs.open", Counting, raising=False)
    return found


def test_time_is_linear_in_a_long_value(tmp_path: Path, sizes: list[int]) -> None:
    """expat scans an unfinished tag from its start with each piece of the file."""
    long = "x" * 10_000_000
    (graph,) = read(tmp_path, sentence().replace("Das", long))
    assert graph.words[0] == long
    assert len(sizes) < 12
    sizes.clear()
    assert len(list(read(tmp_path, *[sentence()] * 2000))) == 2000
    assert len(set(sizes)) == 1  # memory does not grow with the file


def test_xml_without_sentences_is_read_in_pieces(tmp_path: Path, sizes: list[int]) -> None:
    text = "<a>word</a>\n" + "word " * 50
    assert list(read(tmp_path, text * 150_000)) == []
    assert max(sizes) <= 1 << 22
    assert sum(sizes) > 1 << 25


def test_what_does_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spmrl_bench.readers.graphs.LONGEST", 1 << 20)
    long = "x" * (3 << 20)
    for text, line, problem in (
        (sentence().replace("Das", long), 5, "sentence s7: <s> of more than 1 MiB begins here"),
        (f"\n<t word='{long}'/>", 6, "a tag of more than 1 MiB begins here"),
        (f"\n<!--{long}-->", 6, "a tag of more than 1 MiB begins here"),
    ):
        errors: list[ReadError] = []
        assert list(read(tmp_path, text, on_error=errors.append)) == []
        assert list(map(str, errors)) == [f"{tmp_path}/file:{line}: {problem}"]
    assert list(read(tmp_path, f"<x>{long}</x>\n")) == []  # text is no sentence, and not kept


def test_graph_outside_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="found <graph> outside <s>"):
        list(read(tmp_path, "<graph/>"))


@pytest.mark.parametrize("content", ["", "no xml", "<corpus><s id='1'>"])
def test_no_xml(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.xml"
    path.write_text(content)
    with pytest.raises(ReadError, match=r"a\.xml:1:\d+: .*not well-formed XML"):
        list(read_tiger_xml(path))


@pytest.mark.parametrize("encoding", ["klingon", "utf-7"])
def test_unusable_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.xml"
    path.write_text(f"<?xml version='1.0' encoding='{encoding}'?><corpus/>")
    with pytest.raises(ReadError, match=r"a\.xml:1: declares an encoding: .*encoding"):
        list(read_tiger_xml(path))
