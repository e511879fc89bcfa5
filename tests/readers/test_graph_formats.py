"""Alpino XML, NEGRA export and TIGER-XML: what graphs keep, and a place for what is none."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from io import FileIO
from itertools import pairwise
from pathlib import Path

import pytest

from spmrl_bench.readers.graphs import read_alpino_xml, read_negra_export
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
from tests.readers.cases import (
    Encoded,
    SentenceFormat,
    edits,
    read_all,
    to_rooted_tree,
    ways_of_text,
    ways_of_xml,
)
from tests.trees.graphs import gaps

# Alpino XML: surface order and repeated nodes --------------------------------------------------

ALPINO_HEAD = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<alpino version="1.2">\n'
# Lines 3 to 19. The verb comes first in the file and second in the sentence; the subject of
# the infinitive, and the whole of a phrase, are only repeated.
VERB_FIRST = """<alpino_ds version="1.2" id="0007">
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
ALPINO_NODES = VERB_FIRST[VERB_FIRST.index("<node") : VERB_FIRST.index("<sentence>")]
ALPINO_GRAPH = Graph(
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
ALPINO_MALFORMED = {
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
    "childless phrase": (VERB_FIRST.splitlines()[9], "", 9, "the node 'pp' without children"),
    "two tops": ("<sentence>", '<node rel="top" index="7"/><sentence>', 17, "second outermost"),
    "sentence in a sentence": ("<sentence>", "<alpino_ds/><sentence>", 17, "found <alpino_ds>"),
    "no words": (
        ALPINO_NODES,
        '<node cat="top" rel="top"><node rel="--" index="1"/></node>\n',
        1,
        "no word",
    ),
    "no nodes": (ALPINO_NODES, "", 1, "found no word"),
}

ALPINO = SentenceFormat(
    name="alpino-xml",
    head=ALPINO_HEAD,
    tail="</alpino>",
    good=VERB_FIRST,
    expected=lambda _: ALPINO_GRAPH,
    ways=ways_of_xml(ALPINO_HEAD + VERB_FIRST + "</alpino>", declared="ISO-8859-1"),
    malformed=edits(VERB_FIRST, ALPINO_MALFORMED),
    bad_name="0007",
    ending=(
        VERB_FIRST.replace("</sentence>", ""),
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
        ALPINO_HEAD + VERB_FIRST,
        "<treebank>\r\n<alpino_ds id='1'",
        '<?xml version="1.0"?><alpino_ds version="1.3"><node',
    ),
    others=(ALPINO_HEAD, "<alpino_dsx><node/>", "an <alpino_ds> element", ""),
)
read_alpino = ALPINO.read_file


def test_the_way_to_a_tree_from_alpino(tmp_path: Path) -> None:
    (graph,) = read_alpino(tmp_path, VERB_FIRST)
    rows = [(0, 5, "top"), (0, 4, "smain"), (3, 4, "inf")]
    assert list(to_whole_tree(graph).constituents()) == rows


def test_a_file_with_one_sentence(tmp_path: Path) -> None:
    """Such files name the sentence in another place."""
    path = tmp_path / "7.xml"
    alone = VERB_FIRST.replace(' id="0007"', "").replace("<sentence>", '<sentence sentid="7">')
    path.write_text(alone, encoding="ascii")
    assert [graph.name for graph in read_alpino_xml(path)] == ["7"]


def test_one_word_needs_no_phrase(tmp_path: Path) -> None:
    word = '<alpino_ds><node begin="0" rel="--" pos="adv" word="Ja"/></alpino_ds>'
    (graph,) = read_alpino(tmp_path, word)
    assert (graph.name, graph.words, graph.labels) == ("1", ("Ja",), ())
    assert to_tree(graph).words == ("Ja",)


def test_a_node_outside_a_sentence() -> None:
    text = ALPINO.file('<node rel="top"/>\n', VERB_FIRST)
    assert read_all(ALPINO.read, text) == ([ALPINO_GRAPH], ["3: found <node> outside <alpino_ds>"])


def test_the_real_treebank_has_every_sentence_a_second_time_as_text() -> None:
    path = shared_data("treebanks/alpino_nl/alpino.first1200.xml")
    graphs = list(read_alpino_xml(path))
    found = [gaps(loosen_punctuation(graph)) for graph in graphs]
    assert (sum(found), sum(map(bool, found))) == (1068, 579)
    texts = re.findall(r"<sentence[^>]*>(.*)</sentence>", path.read_text("latin-1"))
    assert [" ".join(graph.words) for graph in graphs] == [html.unescape(each) for each in texts]


# NEGRA export, both versions -------------------------------------------------------------------

TABLES = """%% Wörter und Knoten
#FORMAT 3
#BOT ORIGIN
0\tnone\tnot specified
#EOT ORIGIN
"""
LINES = """#BOS 7 2 985275570 1 %% geprüft
Das\t\t\tPDS\t--\t\tOA\t500
will\t\t\tVMFIN\t3.Sg\t\tHD\t501\tSB\t500\t%% Vorfeld
er\t\t\tPPER\t--\t\tSB\t501
hören\t\t\tVVINF\t--\t\tHD\t500
%% Zeichen
.\t\t\t$.\t--\t\t--\t0
#500\t\t\tVP\t--\t\tOC\t501
#501\t\t\tS\t--\t\t--\t0\tX\t500\tY\t500
#EOS 7
"""
NEGRA_GRAPH = Graph(
    name="7",
    words=("Das", "will", "er", "hören", "."),
    tags=("PDS", "VMFIN", "PPER", "VVINF", "$."),
    token_parents=(0, 1, 1, 0, NO_PARENT),
    token_edges=("OA", "HD", "SB", "HD", "--"),
    labels=("VP", "S"),
    parents=(1, NO_PARENT),
    edges=("OC", "--"),
)
# The same with lemmas, as version 4 has them.
LEMMAS = "".join(
    line if line.startswith(("#BOS", "#EOS", "%%")) else line.replace("\t", "\tlemma\t", 1)
    for line in LINES.splitlines(keepends=True)
)

# Text of the sentence, what stands there instead, the line of the sentence, the problem.
NEGRA_MALFORMED = {
    "4 columns": ("PPER\t--\t\tSB", "PPER\t--", 4, "found 4 columns, expected 5 in version 3,"),
    "half a secondary edge": ("\tSB\t500\t%%", "\tSB\t%%", 3, "found 6 columns, expected 5 in"),
    "parent is no number": ("SB\t501", "SB\tx", 4, "the parent is 'x', expected 0, or a number"),
    "parent is a small number": ("SB\t501", "SB\t499", 4, "the parent is '499', expected 0, or a"),
    "parent of 5000 digits": ("SB\t501", "SB\t" + "9" * 5000, 4, "the parent is '999"),
    "unknown parent of a word": ("SB\t501", "SB\t502", 4, "the parent 502 is no node of the"),
    "unknown parent of a node": ("OC\t501", "OC\t502", 8, "the parent 502 is no node of the"),
    "node twice": ("#501", "#500", 9, "found the node #500 twice in the sentence"),
    "node below itself": ("OC\t501", "OC\t500", 8, "found the node 'VP' below itself"),
    "cycle": ("S\t--\t\t--\t0", "S\t--\t\t--\t500", 8, "found the node 'VP' below itself"),
    "childless node": ("#EOS", "#502\tNP\t--\t--\t501\n#EOS", 10, "found the node 'NP' without"),
    "word after the nodes": ("#EOS", "!\tT\t--\t--\t0\n#EOS", 10, "found the word '!' after the"),
    "no words": (LINES[LINES.index("Das") : LINES.index("#EOS")], "", 1, "found no word"),
    "nodes only": (LINES[LINES.index("Das") : LINES.index("#500")], "", 1, "found no word"),
    "another end": ("#EOS 7", "#EOS 8", 10, "found #EOS 8, expected #EOS 7"),
    "no end": ("#EOS 7\n", "", 10, "found #BOS before the sentence's #EOS"),
    "a table inside": ("#EOS 7\n", "#BOT ORIGIN\n#EOT ORIGIN\n", 10, "found #BOT before the"),
}

NEGRA = SentenceFormat(
    name="negra-export",
    good=LINES,
    expected=lambda _: NEGRA_GRAPH,
    ways={
        **ways_of_text(TABLES + LINES),
        **{
            name: text.encode()
            for name, text in {
                "version 4": TABLES.replace("3", "4") + LEMMAS,
                "version 3 by its columns": LINES,
                "version 4 by its columns": LEMMAS,
                "spaces": (TABLES + LINES).replace("\t\t\t", "\t").replace("\t", "   "),
                "comments behind blanks": re.sub(r"(\t\d+)\n", r"\1 %% R=c.1:502\n", LINES),
                "tabs and blanks": re.sub(r"\t+--\t+", " \t -- ", LINES),
                "end without a name": (TABLES + LINES).replace("#EOS 7", "#EOS"),
                "table without an end": TABLES.replace("#EOT ORIGIN\n", "") + LINES,
            }.items()
        },
    },
    malformed=edits(LINES, NEGRA_MALFORMED),
    bad_name="7",
    deep=(
        "#BOS 1\na\tT\t--\t--\t500\n"
        + "".join(f"#{500 + k}\tN\t--\t--\t{501 + k}\n" for k in range(5000))
        + "#5500\tN\t--\t--\t0\n#EOS 1\n",
        ["N"] * 5001,
    ),
    encoded=Encoded(LINES, {"latin-1": NEGRA_GRAPH.words}, "1: byte 0xfc is not utf-8 text"),
    recognised=(TABLES, TABLES.replace("\n", "\r\n"), LINES, "%% a\n\n%% b\n#FORMAT 4"),
    others=("#BOS-1 a", "# id = #BOS 1\n1", "#FORMAT 5\n", "(N a)\n#BOS 1\n", "%%\n" * 20_000, ""),
)
read_negra = NEGRA.read_file


# Text around LINES as {}, the errors as line and problem, how often the sentence is read.
ROW = "a\tT\t--\t--\t0\n"
OUTSIDE = [
    ("#EOS 7\n{}", ["1: found #EOS without #BOS"], 1),
    (f"{ROW}{ROW}#EOS 1\n{{}}", ["1: found text outside a sentence, expected #BOS"], 1),
    (f"{{}}{ROW}{{}}", ["11: found text outside a sentence, expected #BOS"], 2),
    ("#FORMAT 5\n{}", ["1: found #FORMAT 5, expected #FORMAT 3 or #FORMAT 4"], 0),
    ("{}#FORMAT\n{}", ["11: found #FORMAT, expected #FORMAT 3 or #FORMAT 4"], 1),
    (f"{{}}#BOS 8\n{ROW}", ["11: sentence 8: the sentence has no #EOS"], 1),
    ("<corpus>\n</corpus>", ["1: found text outside a sentence, expected #BOS"], 0),
    ("\n\n%%\n", [], 0),
]


def test_versions_may_change_between_sentences_of_joined_files(tmp_path: Path) -> None:
    assert list(read_negra(tmp_path, LINES + LEMMAS + LINES)) == [NEGRA_GRAPH] * 3
    formats = "#FORMAT 4\n" + LEMMAS + "#FORMAT 3\n" + LINES
    assert list(read_negra(tmp_path, formats)) == [NEGRA_GRAPH] * 2


def test_the_way_to_a_tree_from_negra(tmp_path: Path) -> None:
    (graph,) = read_negra(tmp_path, LINES)
    rows = [(0, 5, "VROOT"), (0, 4, "S"), (3, 4, "VP")]
    assert list(to_rooted_tree(graph).constituents()) == rows


def test_words_that_look_like_something_else(tmp_path: Path) -> None:
    words = ["#", "#1", "#12", "#499", "-LRB-", "New\xa0York", "zwei Wörter", "100%%"]
    rows = "".join(f"{word}\tT\t--\t--\t0\n" for word in words)
    (graph,) = read_negra(tmp_path, "#BOS a\n" + rows + "#EOS a\n")
    assert (graph.name, graph.words) == ("a", tuple(words))


def test_mistakes_outside_sentences() -> None:
    for text, mistakes, number in OUTSIDE:
        found = read_all(NEGRA.read, text.replace("{}", LINES))
        assert found == ([NEGRA_GRAPH] * number, mistakes)


def test_the_real_sample_is_as_it_says() -> None:
    graphs = list(read_negra_export(shared_data("treebanks/alpino_nl/alpinosample.export")))
    first = graphs[0]
    assert first.words[19:21] == ("waar", "het")
    assert first.labels[first.token_parents[19]] == "REL"  # not PP, its secondary edge
    assert first.token_parents.count(NO_PARENT) == 4
    assert [to_rooted_tree(graph).labels[0] for graph in graphs] == ["VROOT"] * 3


# TIGER-XML -------------------------------------------------------------------------------------

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


TIGER_GRAPH = replace(
    NEGRA_GRAPH,
    name="s7",
    words=("Das", "will", "er", 'hören "("', "."),
    token_edges=("OA", "HD", "SB", "HD", ""),
    edges=("OC", ""),
)

# Text of the sentence, what stands there instead, the line of the sentence, the problem.
TIGER_MALFORMED = {
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
    "edge outside a node": ("<nonterminals>", '<nonterminals><edge idref="5"/>', 10, "outside <n"),
    "edge in a token": ("<secedge", "<edge", 6, "outside <nt>"),
    "no tokens": (TERMINALS, "", 1, "found no <t> in the sentence"),
    "sentence in a sentence": ('<t id="2"', '<s id="n"/><t id="2"', 5, "found <s> inside another"),
}

TIGER = SentenceFormat(
    name="tiger-xml",
    head=HEAD,
    tail="</body></corpus>",
    good=sentence(),
    expected=lambda _: TIGER_GRAPH,
    ways=ways_of_xml(HEAD + sentence() + "</body></corpus>", declared="UTF-8"),
    malformed=edits(sentence(), TIGER_MALFORMED),
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
read_tiger = TIGER.read_file


def test_root_may_be_a_token_and_nodes_absent(tmp_path: Path) -> None:
    nodes = "<nonterminals/>"
    (graph,) = read_tiger(tmp_path, sentence('<t id="1" word="Ja" pos="ITJ"/>\n', nodes, root="1"))
    assert (graph.words, graph.labels, graph.token_parents) == (("Ja",), (), (NO_PARENT,))


def test_one_sentence_has_one_error() -> None:
    bad = sentence().replace(' word="Das"', "").replace(' pos="$."', "").replace('"51"', '"5"')
    found, (error,) = read_all(TIGER.read, TIGER.file(bad))
    assert (found, error[:2]) == ([], "8:")


def test_numbers_stand_for_names_that_are_missing(tmp_path: Path) -> None:
    anonymous = sentence().replace(' id="s7"', "")
    assert [graph.name for graph in read_tiger(tmp_path, anonymous, anonymous)] == ["1", "2"]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were read_tiger at a time."""
    found: list[int] = []

    class Counting(FileIO):
        def read(self, size: int | None = -1) -> bytes:
            found.append(size or 0)
            return super().read(size)

    monkeypatch.setattr("spmrl_bench.readers.graphs.open_unpacked", Counting)
    return found


def test_time_is_linear_in_a_long_value(tmp_path: Path, sizes: list[int]) -> None:
    """expat scans an unfinished tag from its start with each piece of the file."""
    long = "x" * 10_000_000
    (graph,) = read_tiger(tmp_path, sentence().replace("Das", long))
    assert graph.words[0] == long
    assert len(sizes) < 12
    sizes.clear()
    assert len(list(read_tiger(tmp_path, *[sentence()] * 2000))) == 2000
    assert len(set(sizes)) == 1  # memory does not grow with the file


def test_xml_without_sentences_is_read_in_pieces(tmp_path: Path, sizes: list[int]) -> None:
    text = "<a>word</a>\n" + "word " * 50
    assert list(read_tiger(tmp_path, text * 150_000)) == []
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
        assert read_all(TIGER.read, TIGER.file(text)) == ([], [f"{line}: {problem}"])
    assert list(read_tiger(tmp_path, f"<x>{long}</x>\n")) == []  # text is no sentence, and not kept


SPELT = "<corpus><s id='1'><graph root='1'><t id='1' pos='N' word='"


def test_no_xml() -> None:
    declared = "<?xml version='1.0' encoding='{}'?><corpus/>"
    entities = "<!ENTITY a 'aaaaaaaaaa'>"
    for name, inner in pairwise("abcdefghij"):
        entities += f"<!ENTITY {inner} '{f'&{name};' * 10}'>"
    outside = "<!ENTITY a SYSTEM 'file:///etc/passwd'>"
    for text, problem in (
        *((text, r"1:\d+: .*not well-formed XML") for text in ("", "no xml", "<corpus><s id='1'>")),
        (declared.format("klingon"), r"1: declares an encoding: .*encoding"),
        (TIGER.file("<graph/>"), r"5: found <graph> outside <s>"),
        (declared.format("utf-7"), r"1: declares an encoding: .*encoding"),
        (f"<!DOCTYPE c [{entities}]>{SPELT}&j;'/>", r"1:\d+: .*: limit on input amplification"),
        (f"<!DOCTYPE c [{outside}]>{SPELT}&a;'/>", r"1:\d+: .*: reference to external entity"),
    ):
        (error,) = read_all(TIGER.read, text)[1]
        assert re.match(problem, error)
