"""Reading Alpino XML: surface order, repeated nodes, and a place for what breaks the format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.alpino import looks_like_alpino_xml, read_alpino_xml
from spmrl_bench.readers.on_error import OnError, fail
from spmrl_bench.trees.crossing import discontinuous_nodes, raise_crossing_branches
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    attach_loose_tokens,
    loosen_punctuation,
    to_tree,
)
from spmrl_bench.trees.tree import Tree
from tests.conftest import shared_data
from tests.readers.damage import damaged, read_both_ways

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


def read(tmp_path: Path, *sentences: str, on_error: OnError = fail) -> Iterator[Graph]:
    path = tmp_path / "a.xml"
    path.write_text(HEAD + "".join(sentences) + "</alpino>", encoding="ascii")
    return read_alpino_xml(path, on_error=on_error)


def test_words_come_in_their_order_and_repeated_nodes_go(tmp_path: Path) -> None:
    assert list(read(tmp_path, SENTENCE)) == [GRAPH]


def test_the_way_to_a_tree(tmp_path: Path) -> None:
    (graph,) = read(tmp_path, SENTENCE)
    tree = to_tree(raise_crossing_branches(attach_loose_tokens(loosen_punctuation(graph))))
    rows = [(0, 5, "top"), (0, 4, "smain"), (3, 4, "inf")]
    assert list(tree.constituents()) == rows


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


@pytest.mark.parametrize("name", ["crlf", "cr", "bom", "utf-16", "no final newline", "latin-1"])
def test_ends_of_lines_and_encodings_do_not_matter(tmp_path: Path, name: str) -> None:
    text = HEAD + SENTENCE + "</alpino>"
    if name in ("bom", "utf-16"):
        text = text.replace("ISO-8859-1", "UTF-8" if name == "bom" else "UTF-16")
    data = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "cr": text.replace("\n", "\r").encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "utf-16": text.encode("utf-16"),
        "no final newline": text.encode(),
        "latin-1": text.replace("&#246;", "ö").encode("latin-1"),
    }[name]
    path = tmp_path / "a.xml"
    path.write_bytes(data)
    assert list(read_alpino_xml(path)) == [GRAPH]


# Text of the sentence, what stands there instead, the line, the problem.
MALFORMED = {
    "no label of an edge": (' rel="vc"', "", 7, "<node> lacks the attribute 'rel'"),
    "no tag": (' pos="det"', "", 10, "<node> lacks the attribute 'pos'"),
    "no begin": ('begin="1" end', "end", 6, "<node> lacks the attribute 'begin'"),
    "begin is no number": ('begin="1" end', 'begin="x" end', 6, 'found begin="x", expected'),
    "negative begin": ('begin="1" end', 'begin="-1" end', 6, 'found begin="-1", expected'),
    "begin with other digits": ('"1" end', '"&#1633;" end', 6, 'found begin="\u0661", expected'),
    "endless begin": ('begin="1" end', f'begin="{"9" * 5000}" end', 6, 'found begin="9999'),
    "begin twice": (
        'begin="3" end',
        'begin="1" end',
        9,
        'found a second word with begin="1"',
    ),
    "begin left out": (
        'begin="3" end',
        'begin="7" end',
        17,
        'found begin="4", expected begin="3" for the next word',
    ),
    "not from 0": (
        'begin="0" end',
        'begin="8" end',
        6,
        'found begin="1", expected begin="0" for the next word',
    ),
    "neither word nor phrase": (
        ' cat="inf"',
        "",
        7,
        "<node> has none of the attributes 'word', 'cat' and 'index'",
    ),
    "repeated node with children": (
        ' cat="inf"',
        ' index="2"',
        8,
        "found a <node> inside one with a word or without 'cat'",
    ),
    "word with children": (
        'word="wil"/>',
        'word="wil"><node rel="x" index="1"/></node>',
        6,
        "found a <node> inside one with a word or without 'cat'",
    ),
    "childless phrase": (
        '<node begin="2" end="3" id="8" index="1" rel="obj1"/>',
        "",
        11,
        "found the node 'pp' without children",
    ),
    "two tops": (
        "<sentence>",
        '<node begin="5" rel="top" pos="x" word="y"/><sentence>',
        19,
        "found a second outermost <node>, expected one",
    ),
    "sentence in a sentence": (
        "<sentence>",
        "<alpino_ds/><sentence>",
        19,
        "found <alpino_ds> inside another <alpino_ds>",
    ),
    "no words": (
        SENTENCE[SENTENCE.index("<node") : SENTENCE.index("<sentence>")],
        '<node cat="top" rel="top"><node rel="--" index="1"/></node>\n',
        3,
        "found no <node> with a word in the sentence",
    ),
    "no nodes": (
        SENTENCE[SENTENCE.index("<node") : SENTENCE.index("<sentence>")],
        "",
        3,
        "found no <node> with a word in the sentence",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(tmp_path: Path, name: str) -> None:
    found, changed, line, problem = MALFORMED[name]
    assert found in SENTENCE
    bad = SENTENCE.replace(found, changed, 1)
    with pytest.raises(ReadError) as caught:
        list(read(tmp_path, bad))
    message = str(caught.value)
    if problem.endswith("expected"):
        problem += " a number from 0"
    if "9999" in problem:
        message, problem = message[: message.index("9999")], problem[: problem.index("9999")]
    assert message == f"{tmp_path}/a.xml:{line}: sentence 0007: {problem}"
    # The sentence is left out, and reported once, if the caller wishes; the next one is read.
    errors: list[ReadError] = []
    assert list(read(tmp_path, bad, SENTENCE, on_error=errors.append)) == [GRAPH]
    assert list(map(str, errors)) == [str(caught.value)]


def test_what_is_not_well_formed_ends_the_file(tmp_path: Path) -> None:
    errors: list[ReadError] = []
    bad = SENTENCE.replace("</sentence>", "")
    assert list(read(tmp_path, SENTENCE, bad, SENTENCE, on_error=errors.append)) == [GRAPH]
    assert list(map(str, errors)) == [
        f"{tmp_path}/a.xml:38:3: sentence 0007: not well-formed XML: mismatched tag"
    ]


def test_a_node_outside_a_sentence(tmp_path: Path) -> None:
    errors: list[ReadError] = []
    found = list(read(tmp_path, '<node rel="top"/>\n', SENTENCE, on_error=errors.append))
    assert found == [GRAPH]
    assert list(map(str, errors)) == [f"{tmp_path}/a.xml:3: found <node> outside <alpino_ds>"]


def test_deep_nodes(tmp_path: Path) -> None:
    depth = 5000
    word = '<node begin="0" rel="hd" pos="x" word="a"/>'
    nodes = '<node rel="r" cat="c">' * depth + word + "</node>" * depth
    (graph,) = read(tmp_path, f"<alpino_ds>{nodes}</alpino_ds>")
    assert to_tree(graph).labels == ("c",) * depth


@given(damaged((HEAD + SENTENCE * 2 + "</alpino>").encode()))
def test_damaged_files_never_cause_another_error(data: bytes) -> None:
    def read_to_trees(path: Path, on_error: OnError) -> Iterator[Tree]:
        for graph in read_alpino_xml(path, on_error=on_error):
            yield to_tree(raise_crossing_branches(attach_loose_tokens(loosen_punctuation(graph))))

    read_both_ways(read_to_trees, data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + SENTENCE, True),
        ("\ufeff<treebank>\r\n<alpino_ds id='1'", True),
        ('<?xml version="1.0"?><alpino_ds version="1.3"><node', True),
        (HEAD, False),
        ("<alpino_dsx><node/>", False),
        ("an <alpino_ds> element", False),
        ("", False),
    ],
)
def test_recognition(text: str, expected: bool) -> None:
    assert looks_like_alpino_xml(text) is expected


def test_the_real_treebank_is_as_it_says() -> None:
    path = shared_data("treebanks/alpino_nl/alpino.first1200.xml")
    graphs = list(read_alpino_xml(path))
    assert (len(graphs), sum(len(graph.words) for graph in graphs)) == (1200, 23629)
    assert sum(len(graph.labels) for graph in graphs) == 13464
    for these, nodes, sentences in (
        (graphs, 2964, 816),
        ([loosen_punctuation(graph) for graph in graphs], 1068, 579),
    ):
        gaps = [len(discontinuous_nodes(graph)) for graph in these]
        assert (sum(gaps), sum(map(bool, gaps))) == (nodes, sentences)
    # The file has every sentence a second time as text.
    lines = path.read_text("latin-1").split("\n")
    texts = [
        line.strip()[len("<sentence>") : -len("</sentence>")] for line in lines if "<sent" in line
    ]
    assert [" ".join(graph.words) for graph in graphs] == [
        text.replace("&amp;", "&").replace("&quot;", '"').replace("&apos;", "'") for text in texts
    ]
