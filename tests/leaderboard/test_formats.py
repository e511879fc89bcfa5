"""Tables as Markdown and LaTeX: the structure of each, and no character that breaks it."""

from __future__ import annotations

import re

from spmrl_bench.leaderboard.writing import Document, Table, to_latex, to_markdown

NASTY = r"50 % of a_b & {c} \d #1 $2 ~x ^y <i>|</i>"
TABLE = Table(
    title="Scores of <both> & more",
    headings=["system", "dev F1 charlstm", "difference"],
    rows=[
        ["Björkelund", "82.53 ± 0.31", "-1.20"],
        [NASTY, "", "+2.00"],
        ["[average]", "84.00", ""],
    ],
    numeric=frozenset({"dev F1 charlstm", "difference"}),
    breaks=frozenset({2}),
    strong=frozenset({(0, 1), (1, 1)}),
    notes=(
        "`*`: p < 0.05 & not corrected.",
        ("german-mini: `sc:own|m:labelled|tr:a+b_c`",),
        "Second note.",
    ),
)
DOCUMENT = Document("Title & <more>", ("An introduction with ± and `code`.",), (TABLE,))


def test_markdown_of_a_table_without_rows() -> None:
    empty = Document("T", (), (Table("Nothing", ["a"], [], notes=("Why.",)),))
    assert to_markdown(empty) == "# T\n\n## Nothing\n\nWhy.\n"
    assert "begin" not in to_latex(empty)


def check_latex(text: str) -> None:
    """Environments and braces are balanced and no special character is left bare."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    environments: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
        if kind == "begin":
            environments.append(name)
        else:
            assert environments.pop() == name
    assert environments == []
    bare = re.sub(r"\\[\\{}&%$#_]", "", body)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[#%]", bare)
    outside = re.sub(r"\$[^$]*\$|\\[\^~_]\{", "", bare)
    assert not re.search(r"[_^]", outside)


def test_latex_is_well_formed() -> None:
    text = to_latex(DOCUMENT)
    check_latex(text)
    rules = {"toprule": 1, "midrule": 2, "bottomrule": 1}
    assert {rule: text.count(rf"\{rule}") for rule in rules} == rules
    assert r"\begin{tabular}{lrr}" in text
    assert r"\caption{Scores of \textless{}both\textgreater{} \& more}" in text
    assert r"Björkelund & \textbf{82.53 $\pm$ 0.31} & $-$1.20 \\" in text
    assert "{}[average] & 84.00 &  \\\\" in text  # else the row end would take [average]
    assert r"\textbf{}" not in text


def test_markdown() -> None:
    text = re.sub("-{2,}", "-", re.sub(" +", " ", to_markdown(DOCUMENT)))
    rows = "|:-|-:|-:|\n| Björkelund | 82.53 ± 0.31 | -1.20 |\n| " + NASTY.replace("|", r"\|")
    assert text.startswith("# Title & <more>\n\nAn introduction with ± and `code`.\n\n## Scores of")
    assert f"\n\n| system | dev F1 charlstm | difference |\n{rows} | | +2.00 |\n" in text
    assert text.endswith("\n\n- german-mini: `sc:own|m:labelled|tr:a+b_c`\n\nSecond note.\n")
