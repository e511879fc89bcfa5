"""Reading TIGER-XML: what a graph keeps, and a place for what is no graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.tigerxml import read_tiger_xml
from spmrl_bench.trees.crossing import raise_crossing_branches
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    add_vroot,
    attach_loose_tokens,
    to_tree,
)

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
NODES = """<nonterminals>
<nt id="51" cat="VP"><edge label="HD" idref="4"/><edge label="OA" idref="1"/></nt>
<nt id="50" cat="S"><edge label="OC" idref="51"/><edge label="SB" idref="3"/>
<edge label="HD" idref="2"/><secedge label="X" idref="1"/></nt>
</nonterminals>
"""


def sentence(terminals: str = TERMINALS, nodes: str = NODES, root: str = "50") -> str:
    return f'<s id="s7">\n<graph root="{root}">\n{terminals}{nodes}</graph></s>\n'


def read(tmp_path: Path, *sentences: str) -> Iterator[Graph]:
    path = tmp_path / "a.xml"
    path.write_text(HEAD + "".join(sentences) + "</body></corpus>", encoding="utf-8")
    return read_tiger_xml(path)


def test_graph_keeps_crossing_branches_and_loose_tokens(tmp_path: Path) -> None:
    (graph,) = read(tmp_path, sentence())
    assert graph == Graph(
        name="s7",
        words=("Das", "will", "er", 'hören "("', "."),
        tags=("PDS", "VMFIN", "PPER", "VVINF", "$."),
        token_parents=(0, 1, 1, 0, NO_PARENT),
        token_edges=("OA", "HD", "SB", "HD", ""),
        labels=("VP", "S"),
        parents=(1, NO_PARENT),
        edges=("OC", ""),
    )
    assert graph.yields() == [[0, 3], [0, 1, 2, 3]]


def test_root_may_be_a_token_and_nodes_absent(tmp_path: Path) -> None:
    nodes = "<nonterminals/>"
    (graph,) = read(tmp_path, sentence('<t id="1" word="Ja" pos="ITJ"/>\n', nodes, root="1"))
    assert (graph.words, graph.labels, graph.token_parents) == (("Ja",), (), (NO_PARENT,))


def test_long_files_are_streamed(tmp_path: Path) -> None:
    assert len(list(read(tmp_path, *[sentence()] * 200))) == 200


@pytest.mark.parametrize(
    ("found", "changed", "line", "message"),
    [
        ('idref="51"/><edge', 'idref="5x"/><edge', 16, "an edge to '5x', which is no id"),
        ('"OC" idref="51"', '"OC" idref="4"', 16, "found a second edge to '4', expected one paren"),
        ('"SB" idref="3"/>', '"SB" idref="50"/>', 16, "found the node 'S' below itself"),
        (' cat="VP"', "", 15, "<nt> lacks the attribute 'cat'"),
        (' word="Das"', "", 8, "<t> lacks the attribute 'word'"),
        (' pos="$."', "", 12, "<t> lacks the attribute 'pos'"),
        (
            '<edge label="SB" idref="3"/>',
            '<edge label="SB"/>',
            16,
            "<edge> lacks the attribute 'id",
        ),
        ('id="2"', 'id="1"', 9, "found the id '1' twice"),
        ('root="50"', 'root="51"', 6, "the graph's root '51' has a parent"),
        ('root="50"', 'root="x"', 6, "the graph's root 'x' is no id of the sentence"),
        (
            '<edge label="HD" idref="4"/><edge label="OA" idref="1"/>',
            "",
            15,
            "node 'VP' without chi",
        ),
        (TERMINALS, "", 5, "found no <t> in the sentence"),
        ('<t id="2"', '<s id="n"/><t id="2"', 9, "found <s> inside another <s>"),
        ("</terminals>", "</terminal>", 13, "not well-formed XML: mismatched tag"),
    ],
)
def test_malformed(tmp_path: Path, found: str, changed: str, line: int, message: str) -> None:
    good = sentence()
    assert found in good
    with pytest.raises(ReadError) as caught:
        list(read(tmp_path, good.replace(found, changed, 1)))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/a.xml:{line}:")
    assert "sentence s7: " in str(caught.value)


def test_graphs_before_the_mistake_are_read(tmp_path: Path) -> None:
    reader = read(tmp_path, sentence(), sentence(root="none"))
    assert len(next(reader).words) == 5
    with pytest.raises(ReadError, match="'none' is no id"):
        next(reader)


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


@given(place=st.integers(0, 700), byte=st.integers(0, 255), cut=st.booleans())
def test_damaged_files_never_cause_another_error(place: int, byte: int, cut: bool) -> None:
    whole = (HEAD + sentence() + "</body></corpus>").encode()
    data = whole[:place] + (b"" if cut else bytes([byte]) + whole[place + 1 :])
    with NamedTemporaryFile(suffix=".xml") as file:
        file.write(data)
        file.flush()
        with suppress(ReadError):
            for graph in read_tiger_xml(file.name):
                to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(graph))))


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"none\.xml: cannot be read: No such file"):
        list(read_tiger_xml(tmp_path / "none.xml"))
