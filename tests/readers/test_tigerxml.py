"""Reading TIGER-XML: what a graph keeps, and a place for what is no graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.on_error import OnError, fail
from spmrl_bench.readers.tigerxml import looks_like_tiger_xml, read_tiger_xml
from spmrl_bench.trees.crossing import raise_crossing_branches
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    add_vroot,
    attach_loose_tokens,
    to_tree,
)
from spmrl_bench.trees.tree import Tree
from tests.conftest import shared_data
from tests.readers.damage import damaged, read_both_ways

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


def read(tmp_path: Path, *sentences: str, on_error: OnError = fail) -> Iterator[Graph]:
    path = tmp_path / "a.xml"
    path.write_text(HEAD + "".join(sentences) + "</body></corpus>", encoding="utf-8")
    return read_tiger_xml(path, on_error=on_error)


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


# Text of the sentence, what stands there instead, the line (and column), the problem.
MALFORMED = {
    "edge to nowhere": (
        'idref="51"/><edge',
        'idref="5x"/><edge',
        "16",
        "found an edge to '5x', which is no id of the sentence",
    ),
    "second parent of a token": (
        '"OC" idref="51"',
        '"OC" idref="4"',
        "16",
        "found a second edge to '4', expected one parent",
    ),
    "second parent of a node": (
        '"SB" idref="3"',
        '"SB" idref="51"',
        "16",
        "found a second edge to '51', expected one parent",
    ),
    "node below itself": (
        '"SB" idref="3"',
        '"SB" idref="50"',
        "16",
        "found the node 'S' below itself",
    ),
    "cycle": ('"OA" idref="1"', '"OA" idref="50"', "15", "found the node 'VP' below itself"),
    "no category": (' cat="VP"', "", "15", "<nt> lacks the attribute 'cat'"),
    "no word": (' word="Das"', "", "8", "<t> lacks the attribute 'word'"),
    "no tag": (' pos="$."', "", "12", "<t> lacks the attribute 'pos'"),
    "no target": (' idref="3"/>', "/>", "16", "<edge> lacks the attribute 'idref'"),
    "no id of a token": ('<t id="2"', "<t", "9", "<t> lacks the attribute 'id'"),
    "no id of a node": ('<nt id="50"', "<nt", "16", "<nt> lacks the attribute 'id'"),
    "id of two tokens": ('id="2"', 'id="1"', "9", "found the id '1' twice in the sentence"),
    "id of token and node": (
        'nt id="51"',
        'nt id="5"',
        "15",
        "found the id '5' twice in the sentence",
    ),
    "root below another": ('root="50"', 'root="51"', "6", "the graph's root '51' has a parent"),
    "root is a child token": ('root="50"', 'root="1"', "6", "the graph's root '1' has a parent"),
    "unknown root": ('root="50"', 'root="x"', "6", "the graph's root 'x' is no id of the sentence"),
    "childless node": (
        '<edge label="HD" idref="4"/><edge label="OA" idref="1"/>',
        "",
        "15",
        "found the node 'VP' without children",
    ),
    "no tokens": (TERMINALS, "", "5", "found no <t> in the sentence"),
    "sentence in a sentence": (
        '<t id="2"',
        '<s id="n"/><t id="2"',
        "9",
        "found <s> inside another <s>",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(tmp_path: Path, name: str) -> None:
    found, changed, place, problem = MALFORMED[name]
    good = sentence()
    assert found in good
    bad = good.replace(found, changed, 1)
    expected = f"{tmp_path}/a.xml:{place}: sentence s7: {problem}"
    with pytest.raises(ReadError) as caught:
        list(read(tmp_path, bad))
    assert str(caught.value) == expected
    # The sentence is left out, and reported once, if the caller wishes; the next one is read.
    errors: list[ReadError] = []
    (graph,) = read(tmp_path, bad, good, on_error=errors.append)
    assert len(graph.words) == 5
    assert [str(error) for error in errors] == [expected]


def test_what_is_not_well_formed_ends_the_file(tmp_path: Path) -> None:
    good = sentence()
    bad = good.replace("</terminals>", "</terminal>")
    errors: list[ReadError] = []
    assert len(list(read(tmp_path, good, bad, good, on_error=errors.append))) == 1
    assert [str(error) for error in errors] == [
        f"{tmp_path}/a.xml:28:3: sentence s7: not well-formed XML: mismatched tag"
    ]


def test_one_sentence_has_one_error(tmp_path: Path) -> None:
    bad = sentence().replace(' word="Das"', "").replace(' pos="$."', "").replace('"51"', '"5"')
    errors: list[ReadError] = []
    assert list(read(tmp_path, bad, on_error=errors.append)) == []
    assert [error.line for error in errors] == [8]


@pytest.mark.parametrize("name", ["crlf", "cr", "bom", "utf-16", "no final newline", "latin-1"])
def test_ends_of_lines_and_encodings_do_not_matter(tmp_path: Path, name: str) -> None:
    text = HEAD + sentence() + sentence() + "</body></corpus>"
    if name == "latin-1":
        text = text.replace("UTF-8", "ISO-8859-1").replace("&#246;", "ö")
    if name == "utf-16":
        text = text.replace("UTF-8", "UTF-16")
    data = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "cr": text.replace("\n", "\r").encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "utf-16": text.encode("utf-16"),
        "no final newline": text.encode(),
        "latin-1": text.encode("latin-1"),
    }[name]
    path = tmp_path / "a.xml"
    path.write_bytes(data)
    first, second = read_tiger_xml(path)
    assert first == second == next(read(tmp_path, sentence()))


def test_numbers_stand_for_names_that_are_missing(tmp_path: Path) -> None:
    anonymous = sentence().replace(' id="s7"', "")
    assert [graph.name for graph in read(tmp_path, anonymous, anonymous)] == ["1", "2"]


def test_time_is_linear_in_a_long_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """expat scans an unfinished tag from its start with each piece of the file."""
    sizes: list[int] = []

    def piece(file: BinaryIO, size: int, path: Path) -> bytes:
        sizes.append(size)
        return file.read(size)

    monkeypatch.setattr("spmrl_bench.readers.xml_stream._piece", piece)
    long = "x" * 10_000_000
    (graph,) = read(tmp_path, sentence().replace("Das", long))
    assert graph.words[0] == long
    assert len(sizes) < 12
    sizes.clear()
    assert len(list(read(tmp_path, *[sentence()] * 2000))) == 2000
    assert len(set(sizes)) == 1  # memory does not grow with the file


def test_deep_nodes(tmp_path: Path) -> None:
    nodes = (
        "".join(f'<nt id="n{k}" cat="N"><edge idref="n{k + 1}"/></nt>' for k in range(5000))
        + '<nt id="n5000" cat="N"><edge idref="1"/></nt>'
    )
    terminals = '<t id="1" word="a" pos="X"/>'
    (graph,) = read(tmp_path, sentence(terminals, nodes, root="n0"))
    assert len(to_tree(graph).labels) == 5001


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


@given(damaged((HEAD + sentence() * 2 + "</body></corpus>").encode()))
def test_damaged_files_never_cause_another_error(data: bytes) -> None:
    def read_to_trees(path: Path, on_error: OnError) -> Iterator[Tree]:
        for graph in read_tiger_xml(path, on_error=on_error):
            yield to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(graph))))

    read_both_ways(read_to_trees, data)


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"none\.xml: cannot be read: No such file"):
        list(read_tiger_xml(tmp_path / "none.xml", on_error=lambda _: None))
    with pytest.raises(ReadError, match=r"cannot be read: Is a directory"):
        list(read_tiger_xml(tmp_path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD, True),
        ("\ufeff" + HEAD, True),
        ("\n<!-- a <corpus> --><!DOCTYPE corpus [<!ENTITY a 'b'>]>\n<corpus><graph>", True),
        ("<subcorpus name='a'><s id='1'>\r\n<graph root='1'>", True),
        ("<corpus><text>Das will er hören.</text></corpus>", False),
        ("<alpino><alpino_ds><graph/></alpino_ds></alpino>", False),
        ("<html><corpus><graph></html>", False),
        ("(corpus (graph a))", False),
        ("<" * 70_000, False),
        ("<!DOCTYPE " * 7_000, False),
        ("<?" * 30_000, False),
        ("", False),
    ],
)
def test_recognition(text: str, expected: bool) -> None:
    assert looks_like_tiger_xml(text) is expected


@pytest.mark.parametrize(
    ("language", "sentences", "tokens"), [("sv", 93, 1731), ("de", 86, 1906), ("en", 79, 1876)]
)
def test_smultron_has_as_many_tokens_as_it_says(language: str, sentences: int, tokens: int) -> None:
    path = shared_data(f"treebanks/smultron_sv_de_en/smultron_{language}_banana.xml")
    graphs = list(read_tiger_xml(path))
    assert (len(graphs), sum(len(graph.words) for graph in graphs)) == (sentences, tokens)


def test_squoia_has_as_many_tokens_and_nodes_as_it_says() -> None:
    folder = shared_data("treebanks/squoia_de")
    graphs = [graph for path in folder.glob("*.xml") for graph in read_tiger_xml(path)]
    counts = (
        len(graphs),
        sum(len(graph.words) for graph in graphs),
        sum(len(graph.labels) for graph in graphs),
        sum(graph.token_parents.count(NO_PARENT) for graph in graphs),
    )
    assert counts == (2824, 46857, 32283, 6093)
