"""Bracket dialects by description: what each option means, and what mistakes in it say."""

from __future__ import annotations

from typing import Any

import pytest

from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.readers.dialects import Dialect, read_described_text
from spmrl_bench.trees.brackets import write_brackets
from tests.readers.invented_dialects import INVENTED, Invented


def read(text: str, **options: Any) -> tuple[list[str], list[str]]:
    """The trees as lines of brackets, and the errors."""
    errors: list[ReadError] = []
    options.setdefault("escapes", "brackets")
    trees = list(read_described_text(text, path="f", on_error=errors.append, **options))
    return [write_brackets(tree, "brackets") for tree in trees], list(map(str, errors))


@pytest.mark.parametrize("dialect", INVENTED, ids=lambda dialect: dialect.name)
def test_invented_dialects(dialect: Invented) -> None:
    assert dialect.toml.count("\n") <= 6
    for text in (dialect.text, dialect.text.replace("\n", "\r\n"), dialect.text.rstrip()):
        assert read(text, **dialect.options) == (list(dialect.trees), [])


@pytest.mark.parametrize("dialect", INVENTED, ids=lambda dialect: dialect.name)
def test_a_mistake_costs_its_tree(dialect: Invented) -> None:
    """A tree without its last bracket, among whole ones."""
    before, _, after = dialect.text.rpartition(")")
    text = dialect.text * 8 + before + after + dialect.text * 8
    found, errors = read(text, **dialect.options)
    whole = list(dialect.trees) * 8
    assert (found[: len(whole)], found[-len(whole) :], len(errors)) == (whole, whole, 1)


@pytest.mark.parametrize(
    ("leaf", "text", "tree"),
    [
        ("(TAG WORD)", "(S (A a) (B b))", "(S (A a) (B b))"),
        ("(WORD TAG)", "(S (a A) (b B))", "(S (A a) (B b))"),
        ("(TAG LEMMA WORD)", "(S (A x a) (B y b))", "(S (A a) (B b))"),
        ("(TAG WORD ...)", "(S (A a) (B b x y))", "(S (A a) (B b))"),
        ("(TAG ... form=WORD ...)", "(S (A x form=a y) (B form=b))", "(S (A a) (B b))"),
        ('(TAG w="WORD")', '(S (A w="a") (B w="b"c"))', '(S (A a) (B b"c))'),
        ("(TAG WORD...)", "(S (A New  York) (B b))", "(S (A New\\x20York) (B b))"),
        ("(TAG (WORD))", "(S (A (a)) (B (b)))", "(S (A a) (B b))"),
        ("WORD/TAG", "(S (NP a/A 1/2/B) (VP c/C (NP d/D)) ./.)",
         "(S (NP (A a) (B 1/2)) (VP (C c) (NP (D d))) (. .))"),
        ("TAG:WORD", "(S A:a B:12:30)", "(S (A a) (B 12:30))"),
        ("WORD", "(S (NP the dog) barks)", "(S (NP (_ the) (_ dog)) (_ barks))"),
        ("(TAG WORD/LEMMA)", "(S (A a/b/c) (B ///))", "(S (A a/b) (B /))"),
    ],
)  # fmt: skip
def test_leaves(leaf: str, text: str, tree: str) -> None:
    assert read(text, leaf=[leaf], drop=["X"]) == ([tree], [])


def test_several_templates_are_tried_in_turn() -> None:
    text = "(S (A a x) (B b) (C c/D d))"
    leaves = ["(TAG WORD LEMMA)", "(TAG WORD)"]
    assert read(text, leaf=leaves) == (["(S (A a) (B b) (C c/D))"], [])
    assert read(text, leaf=leaves[:1])[1] == [
        "f:1:12: sentence 1: found '(B b)', expected '(TAG WORD LEMMA)'"
    ]


@pytest.mark.parametrize(
    ("node", "leaf", "text"),
    [
        ("[LABEL CHILD CHILD]", "[TAG WORD]", "[S [NP [D the] [N d(g]] [VP [V barks]]]"),
        ("{LABEL CHILD CHILD}", "WORD_TAG", "{S {NP the_D d(g_N} {VP barks_V}}"),
        ("LABEL(CHILD,CHILD)", "TAG(WORD)", "S(NP(D(the), N(d[g)), VP(V(barks)))"),
        ("LABEL(CHILD CHILD)", "TAG:WORD", "S(NP(D:the N:d[g) VP(V:barks))"),
        ("LABEL[CHILD; CHILD]", "WORD/TAG", "S[NP[the/D; d(g/N]; VP[barks/V]]"),
    ],
)
def test_nodes(node: str, leaf: str, text: str) -> None:
    tree = "(S (NP (D the) (N d(g)) (VP (V barks)))".replace("d(g", "d-LRB-g")
    tree = tree if "d(g" in text else tree.replace("-LRB-", "[")
    assert read(text, node=node, leaf=[leaf]) == ([tree], [])


def test_dropped_nodes_of_a_label_first_dialect() -> None:
    options = {"node": "LABEL(CHILD|CHILD)", "leaf": ["TAG:WORD"], "drop": ["META", "X"]}
    text = "S(META(A:a|B(C:c))|N:n|X:x|VP(V:v))"
    assert read(text, **options) == (["(S (N n) (VP (V v)))"], [])


def test_wrappers_hold_trees() -> None:
    text = "(DOC (PAR (S (A a)) (S (B b)))\n (PAR (S (C c)) (D d)))\n(S (DOC (E e)))"
    assert read(text, wrappers=["DOC", "PAR"])[0] == [
        "(S (A a))", "(S (B b))", "(S (C c))", "(D d)", "(S (DOC (E e)))"
    ]  # fmt: skip
    assert read("(DOC (S (A a)) word)", wrappers=["DOC"]) == (
        ["(S (A a))"],
        ["f:1:16: sentence 2: found 'word' between brackets, expected '('"],
    )


def test_empty_elements() -> None:
    text = "(S (NP *T*-1) (X ∅) (T t12) (SYM *) (CD 0) (V v))"
    tree = r"(S (NP (-NONE- *T*-1)) (X (-NONE- ∅)) (-NONE- t12) (SYM *) (CD 0) (V v))"
    options = {"empty_words": ["*...*-...", "∅"], "empty_tags": ["T"]}
    assert read(text, **options) == ([tree], [])
    assert read("(S (NP 0) (CD 0))", empty_words=["penn"])[0] == ["(S (NP (-NONE- 0)) (CD 0))"]


def test_names_stand_in_messages() -> None:
    text = (
        "( (S (A a)) (ID x1))\n( (S (B b c)) (ID x2))\n( (S (C c)))\n( (S (D d)) (ID 4) (ID 5))\n"
    )
    trees, errors = read(text, id="ID")
    assert trees == ["( (S (A a)))"]
    assert errors == [
        "f:2:6: sentence 2: found '(B b c)', expected '(TAG WORD)'",
        "f:3:1: sentence 3: found a tree without '(ID name)', which others of the file have",
        "f:4:20: sentence 4: found a second ID, '5'; is a tree not closed?",
    ]


def test_entries() -> None:
    text = "#a7: (S (A a)) ;ok\n#b8: (S (A b) ;no\n\nnothing\n#c9: (S (A c)) ;\n"
    trees, errors = read(text, entry=["#NAME: TREE;..."])
    assert trees == ["(S (A a))", "(S (A c))"]
    assert errors == [
        "f:2:6: sentence b8: the tree that starts here is not closed before the end of the line",
        "f:4:1: sentence 3: found 'nothing', expected '#NAME: TREE;...'",
    ]


def test_constituents_at_the_margin_and_mistakes() -> None:
    """The layout decides where reading goes on, as in plain brackets."""
    tree = "(S\n(NP (N a x))\n(VP (V b x))\n)\n"
    options = {"leaf": ["(TAG WORD LEMMA)"]}
    assert read(tree * 3, **options)[0] == ["(S (NP (N a)) (VP (V b)))"] * 3
    flat = tree.replace("\n", " ").strip() + "\n"
    found, errors = read(flat * 10 + flat.replace(")", "", 1) + flat * 5, **options)
    assert len(found) == 15
    assert errors == [
        "f:11:1: sentence 11: the tree that starts here is not closed before the next bracket at "
        "the beginning of a line"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaf": ["(TAG)"]}, "found no WORD in '(TAG)', expected one, as '(TAG WORD)'"),
        ({"leaf": ["(TAG WORD WORD)"]}, "found several WORD in '(TAG WORD WORD)'"),
        ({"leaf": ["WORD TAG"]}, "found a space in 'WORD TAG', expected it in brackets or none"),
        ({"leaf": ["(TAG (WORD)"]}, "cannot make sense of '(TAG (WORD)', expected a leaf such as"),
        ({"leaf": []}, "found no template, expected one or several"),
        ({"node": "LABEL"}, "found 'LABEL', expected a label and two children in brackets"),
        ({"node": "(LABEL CHILD CHILD]"}, "expected a label and two children in brackets"),
        ({"node": "LABEL(CHILD|CHILD)"}, "found '(TAG WORD)', but labels of nodes stand before"),
        ({"entry": ["NAME"]}, "found 'NAME', expected one TREE, perhaps a NAME before it"),
        ({"escapes": "ptbb"}, "unknown escape policy 'ptbb'. Did you mean ptb?"),
    ],
)
def test_mistakes_in_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpmrlError) as caught:
        Dialect.of(**{"escapes": "none", **options})
    assert message in str(caught.value)
