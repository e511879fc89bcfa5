"""Reading the NEGRA export format, both versions, and a place for what breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.negra_export import looks_like_negra_export, read_negra_export
from spmrl_bench.readers.on_error import OnError, fail
from spmrl_bench.trees.crossing import raise_crossing_branches
from spmrl_bench.trees.graph import NO_PARENT, Graph, add_vroot, attach_loose_tokens, to_tree
from spmrl_bench.trees.tree import Tree
from tests.conftest import shared_data
from tests.readers.damage import damaged, read_both_ways

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


def read(tmp_path: Path, text: str, on_error: OnError = fail) -> Iterator[Graph]:
    path = tmp_path / "a.export"
    path.write_text(text, encoding="utf-8", newline="")
    return read_negra_export(path, on_error=on_error)


@pytest.mark.parametrize(
    "text",
    [
        TABLES + SENTENCE,
        TABLES.replace("3", "4") + LEMMAS,
        SENTENCE,  # without #FORMAT, the columns tell
        LEMMAS,
        "\ufeff" + TABLES + SENTENCE,
        (TABLES + SENTENCE).replace("\n", "\r\n"),
        (TABLES + SENTENCE).removesuffix("\n"),
        (TABLES + SENTENCE).replace("\t\t\t", "\t").replace("\t", "   "),
        (TABLES + SENTENCE).replace("#EOS 7", "#EOS"),
        TABLES.replace("#EOT ORIGIN\n", "") + SENTENCE,
    ],
)
def test_one_sentence_in_many_ways(tmp_path: Path, text: str) -> None:
    assert list(read(tmp_path, text)) == [GRAPH]


def test_versions_may_change_between_sentences_of_joined_files(tmp_path: Path) -> None:
    assert list(read(tmp_path, SENTENCE + LEMMAS + SENTENCE)) == [GRAPH] * 3
    formats = "#FORMAT 4\n" + LEMMAS + "#FORMAT 3\n" + SENTENCE
    assert list(read(tmp_path, formats)) == [GRAPH] * 2


def test_the_way_to_a_tree(tmp_path: Path) -> None:
    (graph,) = read(tmp_path, SENTENCE)
    tree = to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(graph))))
    assert list(tree.constituents()) == [(0, 5, "VROOT"), (0, 4, "S"), (3, 4, "VP")]


def test_words_that_look_like_something_else(tmp_path: Path) -> None:
    words = ["#", "#1", "#12", "#499", "-LRB-", "New\xa0York", "zwei Wörter", "100%%"]
    rows = "".join(f"{word}\tT\t--\t--\t0\n" for word in words)
    (graph,) = read(tmp_path, "#BOS a\n" + rows + "#EOS a\n")
    assert (graph.name, graph.words) == ("a", tuple(words))


def test_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.export"
    path.write_bytes(SENTENCE.encode("latin-1"))
    assert list(read_negra_export(path, encoding="latin-1")) == [GRAPH]
    with pytest.raises(ReadError, match=r"a\.export:1: byte 0xfc is not utf-8 text"):
        list(read_negra_export(path, on_error=lambda _: None))
    with pytest.raises(ReadError, match=r"none: cannot be read: No such file"):
        list(read_negra_export(tmp_path / "none", on_error=lambda _: None))


# Text of the sentence, what stands there instead, the line, the problem.
MALFORMED = {
    "4 columns": (
        "PPER\t--\t\tSB",
        "PPER\t--",
        4,
        "found 4 columns, expected 5 in version 3, and two more for each secondary edge",
    ),
    "half a secondary edge": (
        "\tSB\t500\t%%",
        "\tSB\t%%",
        3,
        "found 6 columns, expected 5 in version 3, and two more for each secondary edge",
    ),
    "parent is no number": (
        "SB\t501",
        "SB\tx",
        4,
        "the parent is 'x', expected 0, or a number from 500",
    ),
    "parent is a small number": (
        "SB\t501",
        "SB\t499",
        4,
        "the parent is '499', expected 0, or a number from 500",
    ),
    "parent of 5000 digits": (
        "SB\t501",
        "SB\t" + "9" * 5000,
        4,
        f"the parent is '{'9' * 5000}', expected 0, or a number from 500",
    ),
    "unknown parent of a word": (
        "SB\t501",
        "SB\t502",
        4,
        "the parent 502 is no node of the sentence",
    ),
    "unknown parent of a node": (
        "OC\t501",
        "OC\t502",
        8,
        "the parent 502 is no node of the sentence",
    ),
    "node twice": ("#501", "#500", 9, "found the node #500 twice in the sentence"),
    "node below itself": ("OC\t501", "OC\t500", 8, "found the node 'VP' below itself"),
    "cycle": ("S\t--\t\t--\t0", "S\t--\t\t--\t500", 8, "found the node 'VP' below itself"),
    "childless node": (
        "#EOS",
        "#502\tNP\t--\t--\t501\n#EOS",
        10,
        "found the node 'NP' without children",
    ),
    "word after the nodes": (
        "#EOS",
        "!\tT\t--\t--\t0\n#EOS",
        10,
        "found the word '!' after the nodes",
    ),
    "no words": (
        SENTENCE[SENTENCE.index("Das") : SENTENCE.index("#EOS")],
        "",
        1,
        "found no word in the sentence",
    ),
    "nodes only": (
        SENTENCE[SENTENCE.index("Das") : SENTENCE.index("#500")],
        "",
        1,
        "found no word in the sentence",
    ),
    "another end": ("#EOS 7", "#EOS 8", 10, "found #EOS 8, expected #EOS 7"),
    "no end": ("#EOS 7\n", "", 10, "found #BOS before the sentence's #EOS"),
    "a table inside": (
        "#EOS 7\n",
        "#BOT ORIGIN\n#EOT ORIGIN\n",
        10,
        "found #BOT before the sentence's #EOS",
    ),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(tmp_path: Path, name: str, line_end: str) -> None:
    found, changed, line, problem = MALFORMED[name]
    assert found in SENTENCE
    text = (SENTENCE.replace(found, changed, 1) + SENTENCE).replace("\n", line_end)
    expected = f"{tmp_path}/a.export:{line}: sentence 7: {problem}"
    with pytest.raises(ReadError) as caught:
        list(read(tmp_path, text))
    assert str(caught.value) == expected
    # The sentence is left out, and reported once, if the caller wishes; the next one is read.
    errors: list[ReadError] = []
    assert list(read(tmp_path, text, errors.append)) == [GRAPH]
    assert list(map(str, errors)) == [expected]


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


@pytest.mark.parametrize("name", OUTSIDE)
def test_mistakes_outside_sentences(tmp_path: Path, name: str) -> None:
    text, mistakes, graphs = OUTSIDE[name]
    errors: list[ReadError] = []
    found = list(read(tmp_path, text.replace("{}", SENTENCE), errors.append))
    assert found == [GRAPH] * graphs
    expected = [f"{tmp_path}/a.export:{line}: {problem}" for line, problem in mistakes]
    assert list(map(str, errors)) == expected


def test_deep_nodes(tmp_path: Path) -> None:
    rows = "".join(f"#{500 + k}\tN\t--\t--\t{501 + k}\n" for k in range(5000))
    text = f"#BOS 1\na\tT\t--\t--\t500\n{rows}#5500\tN\t--\t--\t0\n#EOS 1\n"
    (graph,) = read(tmp_path, text)
    assert to_tree(graph).labels == ("N",) * 5001


@given(damaged((TABLES + SENTENCE * 2).encode()))
def test_damaged_files_never_cause_another_error(data: bytes) -> None:
    def read_to_trees(path: Path, on_error: OnError) -> Iterator[Tree]:
        for graph in read_negra_export(path, on_error=on_error):
            yield to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(graph))))

    read_both_ways(read_to_trees, data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TABLES, True),
        ("\ufeff" + TABLES.replace("\n", "\r\n"), True),
        (SENTENCE, True),
        ("%% a\n\n%% b\n#FORMAT 4", True),
        ("#BOS-1 a", False),
        ("# sent_id = #BOS 1\n1\ta", False),
        ("#FORMAT 5\n", False),
        ("(S (NP a))\n#BOS 1\n", False),
        ("%%\n" * 20_000, False),
        ("", False),
    ],
)
def test_recognition(text: str, expected: bool) -> None:
    assert looks_like_negra_export(text) is expected


def test_the_real_sample_is_as_it_says() -> None:
    graphs = list(read_negra_export(shared_data("treebanks/alpino_nl/alpinosample.export")))
    assert (len(graphs), sum(len(graph.words) for graph in graphs)) == (3, 76)
    assert [graph.name.partition("_")[0] for graph in graphs] == ["RSTCode"] * 3
    first = graphs[0]
    trees = [to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(g)))) for g in graphs]
    assert first.words[19:21] == ("waar", "het")
    assert first.labels[first.token_parents[19]] == "REL"  # not PP, its secondary edge
    assert first.token_parents.count(NO_PARENT) == 4
    assert trees[0].labels[0] == "VROOT"
