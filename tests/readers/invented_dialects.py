"""Six bracket dialects that nobody uses, in the manner of those that people do.

Each has a text, its description as a manifest has it, and its trees as lines of brackets.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Invented:
    """A dialect.

    Attributes:
        name: in the names of tests.
        text: a file of a few trees.
        toml: its options.
        trees: what is read.
        proposal: what is proposed for it, where that differs from the options.
    """

    name: str
    text: str
    toml: str
    trees: tuple[str, ...]
    proposal: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """The description as keyword arguments, lists where a manifest may have one text."""
        return listed(tomllib.loads(self.toml))


def listed(options: dict[str, Any]) -> dict[str, Any]:
    """Options with a list of templates where there is one."""
    several = {"leaf", "entry", "comment", "wrappers", "drop", "empty_tags", "empty_words"}
    return {
        key: [value] if key in several and isinstance(value, str) else value
        for key, value in options.items()
    }


OLD_ENGLISH = Invented(
    "old-english",
    """\
( (METADATA (AUTHOR Anon) (DATE 1050))
  (IP-MAT (CODE <P_12>) (NP-NOM (D se-se) (N^N cyning-cyning))
          (VBDI rad-ridan)
          (. .-.))
  (ID COCHRON,12.1))
( (METADATA (AUTHOR Anon) (DATE 1051))
  (IP-MAT (NP-NOM *pro*) (CODE {COM:faded}) (VBDI for<dash/>com-cuman) (, ---))
  (ID COCHRON,13.2))
""",
    """\
escapes = "brackets"
id = "ID"
drop = ["CODE", "METADATA"]
leaf = "(TAG WORD-LEMMA)"
empty_words = ["penn"]
replace = { "<dash/>" = "-" }
""",
    (
        "( (IP-MAT (NP-NOM (D se) (N^N cyning)) (VBDI rad) (. .)))",
        r"( (IP-MAT (NP-NOM (-NONE- *pro*)) (VBDI for-com) (, -)))",
    ),
)

CATALAN = Invented(
    "catalan",
    """\
(S
  (sn.e-SUJ *0*)
  (grup.verb (vmis3s0 wd=menjà lem=menjar))
  (sn-CD
    (da0fs0 wd=la lem=el ne=-)
    (grup.nom (ncfs000 wd=poma=verda lem=poma)))
  (Fpa wd=-Fpa- lem=-Fpa-))
(S
  (sn-SUJ (np00000 wd=Aina lem=Aina ne=person))
  (grup.verb (vmip3s0 wd=dorm lem=dormir)))
""",
    """\
escapes = "brackets"
leaf = "(TAG wd=WORD ...)"
empty_words = ["*...*"]
replace = { "-Fpa-" = "(", "-Fpt-" = ")" }
""",
    (
        r"(S (sn.e-SUJ (-NONE- *0*)) (grup.verb (vmis3s0 menjà))"
        " (sn-CD (da0fs0 la) (grup.nom (ncfs000 poma=verda))) (Fpa -LRB-))",
        "(S (sn-SUJ (np00000 Aina)) (grup.verb (vmip3s0 dorm)))",
    ),
    """\
escapes = "brackets"
leaf = "(TAG wd=WORD ...)"
empty_words = ["penn"]
""",
)

FORMOSAN = Invented(
    "formosan",
    """\
12> S(agent:NP(Head:Nh:他)/Head:VC:看/goal:NP(quantifier:DM:一本/Head:Na:書)) 。
13> VP(Head:VC:吃/goal:NP(property:A:大/Head:Na:飯)) !
14> NP(Head:Nb:a-b)
""",
    """\
escapes = "none"
node = "LABEL(CHILD/CHILD)"
leaf = "TAG...:WORD"
entry = "NAME TREE..."
""",
    (
        "(S (agent:NP (Head:Nh 他)) (Head:VC 看) (goal:NP (quantifier:DM 一本) (Head:Na 書)))",
        "(VP (Head:VC 吃) (goal:NP (property:A 大) (Head:Na 飯)))",
        "(NP (Head:Nb a-b))",
    ),
    """\
escapes = "brackets"
node = "LABEL(CHILD/CHILD)"
leaf = "TAG...:WORD"
entry = "NAME TREE..."
""",
)

PARTS = Invented(
    "parts",
    """\
(S (NP-SBJ (DET (lemma the) (word The)) (NN (word guinea pig) (lemma guinea_pig)))
   (VP (VBZ (word sleeps) (lemma sleep) (feat 3sg pres)))
   (PUNCT (word -RRB-) (lemma -RRB-)))
(S (NP-SBJ (PRP (word she) (lemma she))) (VP (VBD (word saw) (lemma see))))
""",
    """\
escapes = "brackets"
leaf = "(TAG (word WORD...) ...)"
""",
    (
        r"(S (NP-SBJ (DET The) (NN guinea\x20pig)) (VP (VBZ sleeps)) (PUNCT -RRB-))",
        "(S (NP-SBJ (PRP she)) (VP (VBD saw)))",
    ),
)

BACKSLASHES = Invented(
    "backslashes",
    r"""(S (NP (N sm\(il\)ey)) (VP (V and\/or) (NP (N C:\\dir))) (PU \)))
(S (NP (N -LRB-)) (VP (V \eats)))
""",
    """\
escapes = "backslash"
""",
    (
        r"(S (NP (N sm-LRB-il-RRB-ey)) (VP (V and/or) (NP (N C:\\dir)))"
        " (PU -RRB-))",
        r"(S (NP (N \-LRB-)) (VP (V eats)))",
    ),
)

COMMENTED = Invented(
    "commented",
    """\
% file 7, checked (twice
(SENTENCE (NUM 7)
  (COMMENT second reading (by MK))
  (TREE (S (NP (DT the) (NN dog)) (VP (VBZ barks) (COMMENT loud)) (TRACE t1))))
(COMMENT end of page)
% (S (NP (NN nothing)))
(SENTENCE (NUM 8)
  (TREE (S (NP (NN cats)) (VP (VBP sleep)))))
""",
    """\
escapes = "brackets"
id = "NUM"
wrappers = ["SENTENCE", "TREE"]
drop = ["COMMENT"]
empty_tags = ["TRACE"]
comment = "%"
""",
    (
        "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (-NONE- t1))",
        "(S (NP (NN cats)) (VP (VBP sleep)))",
    ),
)

INVENTED = (OLD_ENGLISH, CATALAN, FORMOSAN, PARTS, BACKSLASHES, COMMENTED)
