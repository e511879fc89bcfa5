"""Files with one mistake each, by format and name: what people and programs really write wrong.

Each text is refused, at a line; what else is in the file is read.
"""

from __future__ import annotations

from collections.abc import Mapping

DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n"

BRACKETS: Mapping[str, str] = {
    "cut after a word": "(S (NP (DT the) (NN dog",
    "cut after a label": "(S (NP (DT",
    "cut after an opening bracket": "(S (NP (",
    "one closing bracket missing": "(S (NP (DT the) (NN dog))\n",
    "one closing bracket missing, in the middle": "(S (NP (DT the) (NN dog) (VP (VBZ barks)))\n"
    + DOG * 2,
    "one closing bracket too many": f"(S (NN dog)))\n{DOG}",
    "closing brackets alone": ")))\n",
    "an opening bracket alone": "(\n",
    "text between trees": f"{DOG}the dog barks\n{DOG}",
    "text before the first tree": f"sentence 1: {DOG}",
    "two words below a tag": "(S (NN guide dog))\n",
    "a word beside a constituent": "(S (NP (NN dog)) barks)\n",
    "a word before a constituent": "(S the (NN dog))\n",
    "a constituent below a word": "(S (NN dog (VBZ barks)))\n",
    "a label without anything": "(S (NP) (VP (VBZ barks)))\n",
    "brackets without anything": "(S () (VP (VBZ barks)))\n",
    "a leaf without a tag": "(S (NP ((dog))))\n",
    "square brackets": "[S [NN dog]]\n",
    "curly brackets": "{S {NN dog}}\n",
    "XML": "<S><NN>dog</NN></S>\n",
    "a word that is a bracket": "(S (NN dog) (-LRB- ())\n",
    "a smiley": "(S (NN dog) (SYM :)))\n",
    "a nest without words": "(" * 50 + ")" * 50 + "\n",
    "a title": f"# {DOG}",
    "a comma between": f"{DOG.strip()},\n{DOG}",
}

ROW = "{}\t{}\t--\t{}\t{}\n"


def _export(*rows: str, begin: str = "#BOS 1 1 1 1\n", end: str = "#EOS 1\n") -> str:
    return f"#FORMAT 3\n{begin}{''.join(rows)}{end}"


def _row(word: str = "Das", tag: str = "PDS", edge: str = "SB", parent: str = "500") -> str:
    return ROW.format(word, tag, edge, parent)


_S = _row("#500", "S", "--", "0")
EXPORT: Mapping[str, str] = {
    "no end": _export(_row(), _S, end=""),
    "another end": _export(_row(), _S, end="#EOS 2\n"),
    "an end alone": "#FORMAT 3\n#EOS 1\n",
    "a begin in a sentence": _export(_row(), "#BOS 2 1 1 1\n", _row(), _S),
    "nothing in it": _export(),
    "nodes alone": _export(_S),
    "a word after the nodes": _export(_row(), _S, _row("dog")),
    "a node twice": _export(_row(), _S, _S),
    "a parent that is none": _export(_row(parent="501"), _S),
    "a parent that is no number": _export(_row(parent="S"), _S),
    "a parent below 500": _export(_row(parent="7"), _S),
    "a parent below zero": _export(_row(parent="-1"), _S),
    "no parent": _export("Das\tPDS\t--\tSB\n", _S),
    "one column": _export("Das\n", _S),
    "two columns": _export("Das\tPDS\n", _S),
    "six columns": _export("Das\tPDS\t--\tSB\t500\t501\n", _S),
    "a node that is its parent": _export(_row(), _row("#500", "S", "--", "500")),
    "two nodes that are each other's": _export(
        _row(), _row("#500", "S", "--", "501"), _row("#501", "NP", "--", "500")
    ),
    "three in a circle": _export(
        _row(),
        *(_row(f"#{500 + k}", "X", "--", str(500 + (k + 1) % 3)) for k in range(3)),
    ),
    "a node without anything": _export(_row(), _S, _row("#501", "NP", "--", "0")),
    "a row outside of sentences": "#FORMAT 3\n" + _row() + _export(_row(), _S)[10:],
    "text before": "Das ist ein Satz.\n" + _export(_row(), _S),
    "an unknown version": _export(_row(), _S).replace("#FORMAT 3", "#FORMAT 9"),
    "a version that is no number": _export(_row(), _S).replace("#FORMAT 3", "#FORMAT x"),
    "a node of four digits with a word's row": _export(_row(), _row("#500", "S", "--", "0x1F4")),
    "a parent of five thousand digits": _export(_row(parent="5" * 5000), _S),
    "a secondary edge without an end": _export("Das\tPDS\t--\tSB\t500\tHD\n", _S),
}


def _tiger(body: str, root: str = "2") -> str:
    return (
        f'<corpus><body>\n<s id="1"><graph root="{root}">\n{body}\n</graph></s>\n</body></corpus>'
    )


_T = '<terminals><t id="1" word="a" pos="N"/></terminals>'
_NT = '<nonterminals><nt id="2" cat="S"><edge idref="1" label="x"/></nt></nonterminals>'
_BOTH = _T + _NT
TIGER: Mapping[str, str] = {
    "cut": _tiger(_BOTH)[:90],
    "cut in an attribute": _tiger(_BOTH)[:60],
    "cut after the sentence": _tiger(_BOTH).replace("</body></corpus>", ""),
    "an element that is not closed": _tiger(_BOTH.replace("</terminals>", "")),
    "elements that cross": _tiger(_BOTH.replace("</nt></nonterminals>", "</nonterminals></nt>")),
    "two roots of the file": _tiger(_BOTH) + "<corpus/>",
    "text after the file": _tiger(_BOTH) + "text",
    "an ampersand": _tiger(_BOTH.replace('"a"', '"a & b"')),
    "an unknown entity": _tiger(_BOTH.replace('"a"', '"&nbsp;"')),
    "a control character": _tiger(_BOTH.replace('"a"', '"\x02"')),
    "a reference to a control character": _tiger(_BOTH.replace('"a"', '"&#2;"')),
    "no quotes": _tiger(_BOTH.replace('"a"', "a")),
    "an attribute twice": _tiger(_BOTH.replace('word="a"', 'word="a" word="b"')),
    "no id": _tiger(_BOTH.replace('<t id="1"', "<t")),
    "no word": _tiger(_BOTH.replace('word="a" ', "")),
    "no tag": _tiger(_BOTH.replace(' pos="N"', "")),
    "no category": _tiger(_BOTH.replace(' cat="S"', "")),
    "an id twice": _tiger(_BOTH.replace('<nt id="2"', '<nt id="1"')),
    "an edge without an end": _tiger(_BOTH.replace(' idref="1"', "")),
    "an edge to nothing": _tiger(_BOTH.replace('idref="1"', 'idref="9"')),
    "an edge to itself": _tiger(_BOTH.replace('idref="1"', 'idref="2"')),
    "two edges to a word": _tiger(
        _BOTH.replace("</nt>", '</nt><nt id="3" cat="T"><edge idref="1" label="y"/></nt>')
    ),
    "a circle": _tiger(
        _T + '<nonterminals><nt id="2" cat="S"><edge idref="1"/><edge idref="3"/></nt>'
        '<nt id="3" cat="T"><edge idref="2"/></nt></nonterminals>'
    ),
    "a node without edges": _tiger(_BOTH.replace('<edge idref="1" label="x"/>', "")),
    "a root that is none": _tiger(_BOTH, root="9"),
    "a root that has a parent": _tiger(_BOTH, root="1"),
    "no words": _tiger(_NT.replace('<edge idref="1" label="x"/>', "")),
    "a sentence in a sentence": _tiger(f'{_BOTH}<s id="3"/>'),
    "a graph outside": "<corpus><body><graph/></body></corpus>",
    "an unknown encoding": '<?xml version="1.0" encoding="elvish"?>' + _tiger(_BOTH),
    "entities of entities": '<!DOCTYPE c [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9))
    + "]>"
    + _tiger(_BOTH.replace('"a"', '"&j;"')),
    "an entity from a file": '<!DOCTYPE c [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    + _tiger(_BOTH.replace('"a"', '"&a;"')),
}


def _words(*heads: int | str, relation: str = "x") -> str:
    return (
        "".join(
            f"{k}\tw{k}\t_\tN\tN\t_\t{head}\t{'root' if head == 0 else relation}\t_\t_\n"
            for k, head in enumerate(heads, 1)
        )
        + "\n"
    )


_OK = _words(2, 0)
_EMPTY = "\te" + "\t_" * 8 + "\n"
#: What the levels 1 to 3 of the validation of Universal Dependencies find, where it concerns what
#: a tree is; level 4 and up are of languages, and other columns than those read are not looked at.
CONLL: Mapping[str, str] = {
    "a circle of two": _words(2, 1),
    "a circle beside a root": _words(0, 3, 2),
    "a circle of all": _words(2, 3, 4, 1),
    "a word that is its head": _words(1, 0),
    "the only word is its head": _words(1),
    "no root": _words(2, 3, 1),
    "two roots": _words(0, 0),
    "three roots": _words(0, 0, 0),
    "a head behind the end": _words(3, 0),
    "a head far behind the end": _words(999999999, 0),
    "a head of twenty digits": _words("9" * 20, 0),
    "a head of five thousand digits": _words("9" * 5000, 0),
    "a head below zero": _words(-1, 0),
    "a head with a plus": _words("+2", 0),
    "a head with zeros in front": _words("02", 0),
    "a head that is no whole number": _words("2.0", 0),
    "a head in other digits": _words("٢", 0),
    "a head that is a word": _words("w2", 0),
    "no head": _words("_", 0),
    "an empty head": _words("", 0),
    "a space before a head": _words(" 2", 0),
    "a head that is an empty node": _words("1.1", 0),
    "numbers twice": _OK.replace("2\tw2", "1\tw2"),
    "a number left out": _OK.replace("2\tw2", "3\tw2"),
    "numbers from zero": _OK.replace("2\tw2", "1\tw2").replace("1\tw1", "0\tw1"),
    "numbers that fall": _OK.replace("1\tw1", "3\tw1"),
    "a number that is none": _OK.replace("2\tw2", "x\tw2"),
    "a number with zeros in front": _OK.replace("2\tw2", "02\tw2"),
    "a number below zero": _OK.replace("2\tw2", "-2\tw2"),
    "an empty number": _OK.replace("2\tw2", "\tw2"),
    "nine columns": _OK.replace("\t_\n", "\n", 1),
    "eleven columns": _OK.replace("\t_\n", "\t_\t_\n", 1),
    "one column": "word\n\n",
    "spaces between columns": _OK.replace("\t", "    "),
    "no word": _OK.replace("w1", ""),
    "a space at the end of a word": _OK.replace("w1", "w1 "),
    "a space before a word": _OK.replace("w1", " w1"),
    "an empty relation": _words(2, 0, relation=""),
    "an empty tag": _OK.replace("N\tN", "N\t", 1),
    "no blank line between sentences": _OK.strip() + "\n" + _OK,
    "a comment in a sentence": _OK.replace("2\tw2", "# text\n2\tw2"),
    "comments alone": "# sent_id = 1\n\n",
    "a range that ends behind the end": "1-3\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" + _OK,
    "a range that falls": "2-1\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" + _OK,
    "a range behind its words": _OK.rstrip("\n") + "\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
    "a range twice": "1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" * 2 + _OK,
    "ranges that overlap": "1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n"
    + _words(2, 0, 2).replace("2\tw2", "2-3\tbc\t_\t_\t_\t_\t_\t_\t_\t_\n2\tw2"),
    "an empty node that is not the next": _OK.replace("2\tw2", f"1.2{_EMPTY}2\tw2"),
    "an empty node of another word": _OK.replace("2\tw2", f"5.1{_EMPTY}2\tw2"),
    "other columns": "# global.columns = ID FORM UPOS HEAD DEPREL\n" + _OK,
    "a carriage return in a word": _OK.replace("w1", "w\r1"),
}  # fmt: skip

_DP_OK = "The\tDT\t2\ndog\tNN\t0\n\n"
DP: Mapping[str, str] = {
    "a circle": "a\tN\t2\nb\tN\t1\n\n",
    "a word that is its head": "a\tN\t1\n\n",
    "a head behind the end": "a\tN\t0\nb\tN\t7\n\n",
    "a head that is no number": _DP_OK.replace("\t2", "\tx"),
    "no head": _DP_OK.replace("\t2", "\t"),
    "two columns": _DP_OK.replace("\t2", ""),
    "four columns": _DP_OK.replace("\t2", "\t2\tdet"),
    "spaces between columns": _DP_OK.replace("\t", " "),
    "no word": _DP_OK.replace("The", ""),
    "a head below zero": _DP_OK.replace("\t2", "\t-2"),
}

_PRM = "#PROGRAM EVALB\n"
PRM: Mapping[str, str] = {
    "an unknown program": "#PROGRAM EVALC\n",
    "two programs": "#PROGRAM EVALB\n#PROGRAM EVALB_SPMRL\n",
    "an empty program": "#PROGRAM\n",
    "an unknown key": f"{_PRM}DELETE_LABLE TOP\n",
    "a key in small letters": f"{_PRM}delete_label TOP\n",
    "a key with a colon": f"{_PRM}DELETE_LABEL: TOP\n",
    "a label missing": f"{_PRM}DELETE_LABEL\n",
    "two labels": f"{_PRM}DELETE_LABEL TOP S1\n",
    "a pair of one": f"{_PRM}EQ_LABEL ADVP\n",
    "a pair of three": f"{_PRM}EQ_LABEL ADVP PRT X\n",
    "words that are a pair of one": f"{_PRM}EQ_WORD a\n",
    "no number": f"{_PRM}MAX_ERROR\n",
    "two numbers": f"{_PRM}MAX_ERROR 1 2\n",
    "a number that is none": f"{_PRM}MAX_ERROR ten\n",
    "a number below zero": f"{_PRM}MAX_ERROR -1\n",
    "a number that is not whole": f"{_PRM}CUTOFF_LEN 1.5\n",
    "a number in other digits": f"{_PRM}CUTOFF_LEN ٤٠\n",
    "a number of five thousand digits": f"{_PRM}CUTOFF_LEN {'9' * 5000}\n",
    "a number twice": f"{_PRM}CUTOFF_LEN 40\nCUTOFF_LEN 40\n",
    "neither yes nor no": f"{_PRM}LABELED 2\n",
    "labels that are the same as one": f"{_PRM}EQ_LABEL A B\nEQ_LABEL B C\n",
    "quotes where no words are removed": "#PROGRAM EVALB_SPMRL\nQUOTE_LABEL ''\n",
    "a program of another file": "<html>\n",
    "a NUL": f"{_PRM}DELETE\0LABEL TOP\n",
    "a label of 1 MB as a key": f"{_PRM}{'A' * (1 << 20)}\n",
}

MALFORMED: Mapping[str, Mapping[str, str]] = {
    "brackets": BRACKETS,
    "negra-export": EXPORT,
    "tiger-xml": TIGER,
    "conll": CONLL,
    "dp": DP,
}
