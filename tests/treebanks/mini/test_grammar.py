"""Every mistake a grammar writer can make is named with its key, and all come at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.treebanks.mini.problems import GrammarError

from .grammars import write_grammar

MISTAKES = [
    pytest.param(("language =", "tongue ="), "tongue", "unknown key", id="unknown-key"),
    pytest.param(('start = "TOP"', 'start = "ROOT"'), "settings.start", "'ROOT'", id="start"),
    pytest.param(("[settings]\n", "[settings]\nmax_words = 0\n"), "max_words", "0", id="range"),
    pytest.param(("-> S Dot", "-> S Dott"), "rules.main line 1", "'Dott'. Did you", id="symbol"),
    pytest.param(("Art[case,num,gender]", "Art[kasus]"), "line 6", "'kasus'", id="feature"),
    pytest.param(("NX[case,num=pl]", "NX[case,num=du]"), "line 7", "'du'", id="value"),
    pytest.param(("S Dot", "S Dot ]"), "rules.main line 1", "cannot read ']'", id="syntax"),
    pytest.param(("TOP -> S Dot", "TOP S Dot"), "rules.main line 1", "no '->'", id="arrow"),
    pytest.param(("-> S Dot", "->"), "rules.main line 1", "write '()'", id="empty"),
    pytest.param(("PP?0.5 Part", "PP?7 Part"), "line 3", "between 0 and 1", id="chance"),
    pytest.param(("V[num,ptk=0]", "V[num,num]"), "line 2", "given twice", id="twice"),
    pytest.param(
        ("NP[nom,num] V[num,ptk=0]", "NP[nom,num=?x:sg] V[num=?x:pl]"),
        "line 2",
        "'?x'",
        id="empty-variable",
    ),
    pytest.param(('P = "mit dat"', ""), "categories.P", "has no word", id="no-word"),
    pytest.param(('P = "mit dat"', 'P = "mit"\nQ = "x"'), "lexicon.Q", "'Q'", id="category"),
    pytest.param(('P = "mit dat"', 'P = "mit dat *x"'), "lexicon.P line 1", "> 0", id="weight"),
    pytest.param(("PP -> P", "S -> P"), "phrases.PP", "has no rule", id="no-rule"),
    pytest.param(('PP = ""', 'PP = ""\nXP = ""'), "phrases.XP", "not reachable", id="reach"),
    pytest.param(("Noun[pl] : {2}", "Noun[pl] : {3}"), "noun.cells line 2", "{3}", id="stem-slot"),
    pytest.param(("Noun[pl] : {2}\n", ""), "noun.over.Noun", "Noun[pl]", id="missing-cell"),
    pytest.param(("Wolf/Wölfe masc", "Wolf masc"), "line 2 'Wolf masc'", "2 expected", id="stems"),
    pytest.param(("Wolf/Wölfe masc", "Wolf/Wölfe neut"), "line 2", "'neut'", id="lexeme-value"),
    pytest.param(('zipf_pools = ["Noun"]', 'zipf_pools = ["N"]'), "zipf_pools", "'N'", id="pool"),
    pytest.param(("pattern = ", 'pattern = "("#'), "spelling.0", "regular", id="regex"),
    pytest.param(('case = "nom dat"', 'case = "nom dat num"'), "features.case", "num", id="clash"),
    pytest.param(('num = "sg pl"', 'num = { like = "numm" }'), "num.like", "'numm'", id="like"),
    pytest.param(("nehm ptk=ab\n", ""), "rules.main line 3", "never be used", id="dead-rule"),
    pytest.param(("Noun[num=sg] Noun", "Noun[num=sg] NN"), "words.NN", "itself", id="cyclic-word"),
    pytest.param(("PP?0.5", "PP[nom]?0.5"), "line 2", "'nom'", id="no-such-feature"),
    pytest.param(("nmod:PP", "nmood:PP"), "line 5", "'nmood'. Did you mean nmod", id="relation"),
    pytest.param(('obl = "', 'obll = "'), "dependencies.obll", "Did you mean obl", id="default"),
    pytest.param(('obl = "', 'head = "'), "dependencies.head", "'head'", id="default-head"),
    pytest.param(('obl = "PP', 'obl = "QP'), "dependencies.obl", "'QP'", id="default-symbol"),
    pytest.param(('"NP[nom]"', '"NP[acc]"'), "dependencies.nsubj", "'acc'", id="default-value"),
    pytest.param(('obl = "', 'headless = "'), "dependencies.headless", "label", id="headless"),
    pytest.param(("-> S Dot", "-> (S Dot"), "line 1", "no ')'", id="parenthesis"),
    pytest.param(("PP -> P", "obl:PP -> P"), "line 4", "'obl:'", id="relation-on-the-left"),
    pytest.param(("Noun[sg] :", "obj:Noun[sg] :"), "cells line 1", "'obj:'", id="relation-in-cell"),
    pytest.param(("Noun[num=sg] ", "flat:Noun[num=sg] "), "line 9", "parts", id="word-relation"),
    pytest.param(('det = "Art"\n', ""), "line 6", "'Art' and 'NN': which", id="two-heads"),
    pytest.param(("-> S Dot", "-> head:S head:Dot"), "line 1", "'S' and 'Dot': which", id="heads"),
    pytest.param(('"NP[nom]"', '"NP[nom] V"'), "line 2", "'NP' and 'V': which", id="no-head"),
    pytest.param(("-> Art[", "-> head:Art["), "line 6", "'NN' bears no relation", id="bare"),
    pytest.param(("NX[case,num=pl] ->", "NX -> ()\nNX ->"), "line 4", "no words", id="empty-head"),
    pytest.param(('obl = "PP', 'headless = "NX'), "line 5", "'NX': which is", id="no-able-head"),
]


@pytest.mark.parametrize(("edit", "key", "text"), MISTAKES)
def test_mistake_is_reported_with_its_place(
    tmp_path: Path, edit: tuple[str, str], key: str, text: str
) -> None:
    path = write_grammar(tmp_path, edit)
    with pytest.raises(GrammarError) as caught:
        generate(path, {"train": 1}, seed=0)
    assert isinstance(caught.value, TreebankError)
    assert str(path) in str(caught.value)
    assert any(key in problem and text in problem for problem in caught.value.problems), (
        caught.value.problems
    )


def test_daughters_of_headless_phrases_have_relations_and_they_themselves_none(
    tmp_path: Path,
) -> None:
    path = write_grammar(
        tmp_path, ('obl = "PP', 'headless = "NX'), ("P[case] NX", "P[case] obl:NX")
    )
    with pytest.raises(GrammarError) as caught:
        generate(path, {"train": 1}, seed=0)
    text = "\n".join(caught.value.problems)
    assert "line 4 'PP -> P[case] obl:NX[case]': headless 'NX' bears no relation" in text
    assert "line 6 'NX[case,num] -> Art[case,num,gender] NN[num,gender]': 'NN' bears no" in text


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    path = write_grammar(
        tmp_path, ("-> S Dot", "-> S Dott"), ("Wolf/Wölfe", "Wolf"), ("mit dat", "mit gen")
    )
    with pytest.raises(GrammarError) as caught:
        generate(path, {"train": 1}, seed=0)
    text = "\n".join(caught.value.problems)
    assert "'Dott'" in text
    assert "2 expected" in text
    assert "'gen'" in text


@pytest.mark.parametrize("content", [b"a = [", b"\xff\xfe", None], ids=["toml", "utf8", "absent"])
def test_unreadable_file(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "broken.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TreebankError, match=r"broken\.toml"):
        generate(path, {"train": 1}, seed=0)
