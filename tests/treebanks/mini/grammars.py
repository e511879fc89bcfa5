"""A small correct grammar, and a way to damage it, for the tests of the engine."""

from __future__ import annotations

from pathlib import Path

SMALL = r"""
language = "Small"
[settings]
start = "TOP"
capitalise = true
zipf_pools = ["Noun"]
[features]
case = "nom dat"
num = "sg pl"
gender = "masc fem"
ptk = { values = "0 ab", default = "0" }
[phrases]
TOP = ""
S = ""
NP = { features = "case num", unary = false }
NX = { features = "case num", label = "" }
PP = ""
[words]
NN = { features = "num gender", tail = "lower" }
[categories]
Noun = "num gender"
Art = "case num gender"
V = { features = "num ptk", tag = "VVFIN" }
Part = { features = "ptk", tag = "PTKVZ" }
P = "case"
Dot = { tag = "$." }
[rules]
main = '''
TOP -> S Dot
S -> NP[nom,num] V[num,ptk=0] PP?0.5
S -> NP[nom,num] V[num,ptk=?p:!0] PP?0.5 Part[ptk=?p]
PP -> P[case] NX[case]
NP[case,num] -> NX[case,num] nmod:PP?0.2
NX[case,num] -> Art[case,num,gender] NN[num,gender]
NX[case,num=pl] -> NN[num=pl]
3 NN[num,gender] -> Noun[num,gender]
NN[num,gender] -> Noun[num=sg] Noun[num,gender]
'''
[dependencies]
nsubj = "NP[nom]"
obl = "PP"
det = "Art"
case = "P"
"compound:prt" = "Part"
punct = "Dot"
[lexicon]
Dot = "."
P = "mit dat"
Part = "ab ptk=ab"
Art = '''
der nom sg masc
die nom sg fem
dem dat sg masc
der dat sg fem
die nom pl
den dat pl
'''
[paradigms.noun]
stems = 2
over = { Noun = "num" }
cells = '''
Noun[sg] : {1}
Noun[pl] : {2}
'''
lexemes = '''
Hund/Hunde masc
Wolf/Wölfe masc
Hase/Hasen masc
Maus/Mäuse fem
Gans/Gänse fem
'''
[paradigms.verb]
over = { V = "num" }
cells = '''
V[sg] : {1}+t
V[pl] : {1}+en
'''
lexemes = '''
sag
wart
nehm ptk=ab
'''
[[spelling]]
pattern = 't\+t$'
replace = 't+et'
"""


def write_grammar(folder: Path, *edits: tuple[str, str]) -> Path:
    """``SMALL`` with each old text replaced by the new one, as a file."""
    text = SMALL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path
