"""Reading the NEGRA export format, both versions, and a place for what breaks it."""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.graphs import read_negra_export
from spmrl_bench.trees.graph import NO_PARENT, Graph
from tests.conftest import shared_data
from tests.readers.cases import Encoded, SentenceFormat, edits, to_rooted_tree, ways_of_text

TABLES = """%% Wörter und Knoten
#FORMAT 3
#BOT ORIGIN
0\tnone\tnot specified
#EOT ORIGIN
"""
SENTENCE = """#BOS 7 2 985275570 1 %% geprüft
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
GRAPH = Graph(
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
    for line in SENTENCE.splitlines(keepends=True)
)

# Text of the sentence, what stands there instead, the line of the sentence, the problem.
MALFORMED = {
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
    "no words": (SENTENCE[SENTENCE.index("Das") : SENTENCE.index("#EOS")], "", 1, "found no word"),
    "nodes only": (
        SENTENCE[SENTENCE.index("Das") : SENTENCE.index("#500")],
        "",
        1,
        "found no word",
    ),
    "another end": ("#EOS 7", "#EOS 8", 10, "found #EOS 8, expected #EOS 7"),
    "no end": ("#EOS 7\n", "", 10, "found #BOS before the sentence's #EOS"),
    "a table inside": ("#EOS 7\n", "#BOT ORIGIN\n#EOT ORIGIN\n", 10, "found #BOT before the"),
}

NEGRA = SentenceFormat(
    name="negra-export",
    good=SENTENCE,
    expected=lambda _: GRAPH,
    ways={
        **ways_of_text(TABLES + SENTENCE),
        **{
            name: text.encode()
            for name, text in {
                "version 4": TABLES.replace("3", "4") + LEMMAS,
                "version 3 by its columns": SENTENCE,
                "version 4 by its columns": LEMMAS,
                "spaces": (TABLES + SENTENCE).replace("\t\t\t", "\t").replace("\t", "   "),
                "end without a name": (TABLES + SENTENCE).replace("#EOS 7", "#EOS"),
                "table without an end": TABLES.replace("#EOT ORIGIN\n", "") + SENTENCE,
            }.items()
        },
    },
    malformed=edits(SENTENCE, MALFORMED),
    bad_name="7",
    deep=(
        "#BOS 1\na\tT\t--\t--\t500\n"
        + "".join(f"#{500 + k}\tN\t--\t--\t{501 + k}\n" for k in range(5000))
        + "#5500\tN\t--\t--\t0\n#EOS 1\n",
        ["N"] * 5001,
    ),
    encoded=Encoded(SENTENCE, {"latin-1": GRAPH.words}, "1: byte 0xfc is not utf-8 text"),
    recognised=(TABLES, TABLES.replace("\n", "\r\n"), SENTENCE, "%% a\n\n%% b\n#FORMAT 4"),
    others=(
        "#BOS-1 a",
        "# sent_id = #BOS 1\n1\ta",
        "#FORMAT 5\n",
        "(S (NP a))\n#BOS 1\n",
        "%%\n" * 20_000,
        "",
    ),
)
read = NEGRA.read_file


# Text around SENTENCE as {}, the errors as line and problem, how often the sentence is read.
OUTSIDE = {
    "end alone": ("#EOS 7\n{}", [(1, "found #EOS without #BOS")], 1),
    "lines alone": (
        "a\tT\t--\t--\t0\nb\tT\t--\t--\t0\n#EOS 1\n{}",
        [(1, "found 'a' outside a sentence, expected #BOS")],
        1,
    ),
    "lines between": (
        "{}a\tT\t--\t--\t0\n{}",
        [(11, "found 'a' outside a sentence, expected #BOS")],
        2,
    ),
    "another version": (
        "#FORMAT 5\n{}",
        [(1, "found #FORMAT 5, expected #FORMAT 3 or #FORMAT 4")],
        0,
    ),
    "no version": ("{}#FORMAT\n{}", [(11, "found #FORMAT, expected #FORMAT 3 or #FORMAT 4")], 1),
    "cut": ("{}#BOS 8\na\tT\t--\t--\t0\n", [(11, "sentence 8: the sentence has no #EOS")], 1),
    "no export": (
        "<corpus>\n</corpus>",
        [(1, "found '<corpus>' outside a sentence, expected #BOS")],
        0,
    ),
    "empty": ("\n\n%%\n", [], 0),
}


def test_versions_may_change_between_sentences_of_joined_files(tmp_path: Path) -> None:
    assert list(read(tmp_path, SENTENCE + LEMMAS + SENTENCE)) == [GRAPH] * 3
    formats = "#FORMAT 4\n" + LEMMAS + "#FORMAT 3\n" + SENTENCE
    assert list(read(tmp_path, formats)) == [GRAPH] * 2


def test_the_way_to_a_tree(tmp_path: Path) -> None:
    (graph,) = read(tmp_path, SENTENCE)
    rows = [(0, 5, "VROOT"), (0, 4, "S"), (3, 4, "VP")]
    assert list(to_rooted_tree(graph).constituents()) == rows


def test_words_that_look_like_something_else(tmp_path: Path) -> None:
    words = ["#", "#1", "#12", "#499", "-LRB-", "New\xa0York", "zwei Wörter", "100%%"]
    rows = "".join(f"{word}\tT\t--\t--\t0\n" for word in words)
    (graph,) = read(tmp_path, "#BOS a\n" + rows + "#EOS a\n")
    assert (graph.name, graph.words) == ("a", tuple(words))


def test_mistakes_outside_sentences(tmp_path: Path) -> None:
    for name in OUTSIDE:
        text, mistakes, graphs = OUTSIDE[name]
        errors: list[ReadError] = []
        found = list(read(tmp_path, text.replace("{}", SENTENCE), on_error=errors.append))
        assert found == [GRAPH] * graphs
        expected = [f"{tmp_path}/file:{line}: {problem}" for line, problem in mistakes]
        assert list(map(str, errors)) == expected


def test_the_real_sample_is_as_it_says() -> None:
    graphs = list(read_negra_export(shared_data("treebanks/alpino_nl/alpinosample.export")))
    assert (len(graphs), sum(len(graph.words) for graph in graphs)) == (3, 76)
    assert [graph.name.partition("_")[0] for graph in graphs] == ["RSTCode"] * 3
    first = graphs[0]
    assert first.words[19:21] == ("waar", "het")
    assert first.labels[first.token_parents[19]] == "REL"  # not PP, its secondary edge
    assert first.token_parents.count(NO_PARENT) == 4
    assert [to_rooted_tree(graph).labels[0] for graph in graphs] == ["VROOT"] * 3
