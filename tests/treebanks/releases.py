"""Small releases in the layouts of the licensed ones, with invented sentences.

The files are written here as the releases have them (folders, names, encodings, line ends,
outer brackets, features, escapes), from sentences that say what a release says of them: words,
gold and predicted tags, features, constituents with functions, heads and relations. Nothing of
the program under test is used to write them. :func:`shrink_manifest` makes copies of the
program's manifests for releases of this size; all else in these stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from spmrl_bench.storage.paths import data_dir


@dataclass(frozen=True)
class Token:
    word: str
    gold: str
    predicted: str
    features: str
    head: int
    relation: str


@dataclass(frozen=True)
class Sentence:
    """``brackets`` is the tree with the number of each word, from 1, in its place."""

    brackets: str
    tokens: tuple[Token, ...]

    def ptb(self, kind: str) -> str:
        """One line of a file in the folder ``ptb``."""

        def leaf(match: re.Match[str]) -> str:
            token = self.tokens[int(match[0]) - 1]
            word = token.word.replace("(", "-LRB-").replace(")", "-RRB-")
            return (
                f"({token.gold if kind == 'gold' else token.predicted}##{token.features}## {word})"
            )

        return re.sub(r"(?<=[ (])\d+", leaf, f" {self.brackets}").removeprefix(" ")

    def conll(self, kind: str) -> str:
        """The lines of a file in the folder ``conll``."""
        rows = []
        for number, token in enumerate(self.tokens, start=1):
            tag = token.gold if kind == "gold" else token.predicted
            row = [number, token.word, "_", tag[:1], tag, token.features, token.head]
            rows.append("\t".join(map(str, [*row, token.relation, "_", "_"])) + "\n")
        return "".join(rows) + "\n"


def sentence(brackets: str, *tokens: str) -> Sentence:
    """A sentence from its tree and ``word gold[>predicted] head relation [features]`` by word."""
    found = []
    for token in tokens:
        word, tags, head, relation, *features = token.split(maxsplit=4)
        gold, _, predicted = tags.partition(">")
        text = features[0] if features else f"lem={word.lower()}"
        found.append(Token(word, gold, predicted or gold, text, int(head), relation))
    return Sentence(brackets, tuple(found))


#: A few sentences of each language. The first of each has a tag that is predicted wrongly.
SENTENCES: Mapping[str, list[Sentence]] = {
    "Arabic": [
        sentence("(TOP (S (VP 1 (NP-SBJ 2) (NP-OBJ 3)) 4))", "ktb VBD 0 ---",
                 "Alwld DTNN>DTNNP 1 SBJ", "rsAlp NN 1 OBJ", ". PUNC 1 PNX"),
        sentence("(TOP (NP 1 (NP 2)))", "byt NN 0 ---", ">Hmd NNP 1 IDF lem=>aHomad|cas=g x"),
        sentence("(XP 1)", "$kr NN 0 ---"),
    ],
    "Basque": [
        sentence("(S (SINT-ERG 1) (SINT 2) 3 4)", "Mirenek IZE>ADJ 2 ncsubj lem=Miren|KAS=ERG",
                 "dakar ADT 0 ROOT", "ogia IZE 2 ncobj", ". PUNT_PUNT 2 PUNC"),
        sentence("(SINT 1 2)", "etxe IZE 0 ROOT", "handia ADJ 1 ncmod"),
        sentence("(S 1)", "Bai PRT 0 ROOT"),
    ],
    "French": [
        sentence("( (SENT (NP-SUJ 1 2) (VN 3) 4))", "Le DET 2 det", "chat NC>ADJ 3 suj g=m|n=s|s=c",
                 "dort V 0 root", ". PONCT 3 ponct"),
        sentence("( (SENT (VN 1 2) (AdP-MOD 3)))", "Elle CLS 2 suj", "rit V 0 root",
                 "bien ADV 2 mod"),
        sentence("( (SENT 1))", "Oui I 0 root"),
    ],
    "German": [
        sentence("(VROOT (S (NP-SB 1 2) 3 4 (AVP-MO 5) 6) 7)", "Der ART>PDS 2 NK lem=der|case=nom",
                 "Hund NN 3 SB", "bellt VVFIN 0 --", "( $[ 5 --", "laut ADJD 3 MO lem=laut ( x|y",
                 ") $[ 5 --", ". $. 3 --"),
        sentence("1", "Inhalt NN 0 --"),
        sentence("(S (NP-SB 1) 2 3)", "Wer PWS 2 SB", "kommt VVFIN 0 --", "morgen ADV 2 MO"),
    ],
    "Hebrew": [
        sentence("(TOP (S (NP-SBJ (SYN_NN 1 2)) (VP 3 (NP-OBJ 4)) 5))", "H DEF 2 def",
                 "ILD NN>NNT 3 subj", "AKL VB 0 ROOT", "LXM NN 3 obj", "yyDOT yyDOT 3 punct"),
        sentence("(TOP (NP 1 2))", "50O CD 2 num", "CHUL NNP 0 ROOT"),
        sentence("(TOP (INTJ 1))", "KN INTJ 0 ROOT"),
    ],
    "Hungarian": [
        sentence("(ROOT (CP (NP-SUBJ 1 2) (V_ 3) 4))", "A T 2 DET",
                 "kutya N>A 3 SUBJ lem=kutya|Num=s", "ugat V 0 ROOT", ". . 3 PUNCT"),
        sentence("(ROOT (NP 1 2))", "nagy A 2 ATT", "ház N 0 ROOT"),
        sentence("(ROOT (CP 1))", "Igen I 0 ROOT"),
    ],
    "Korean": [
        sentence("(S (NP-SBJ 1) (VP (NP-AJT 2) (VP 3)) 4)", "나는 npp+jxt>ncn+jxt 3 SBJ lem=나+는",
                 "학교에 ncn+jca 3 AJT", "갔다 pvg+ep+ef 0 ROOT", ". sf 3 P"),
        sentence("(NP 1 2)", "새 mma 2 MOD", "책 ncn 0 ROOT"),
        sentence("(VP 1)", "간다 pvg+ef 0 ROOT"),
    ],
    "Polish": [
        sentence("(wypowiedzenie (zdanie (fno 1) (ff 2)) (znakkonca 3))", "Pies subst>adj 2 subj",
                 "szczeka fin 0 pred lem=szczekać|num=sg", ". interp 2 punct"),
        sentence("(wypowiedzenie (fpt 1))", "Dobrze adv 0 pred"),
        sentence("(wypowiedzenie (zdanie (ff 1)))", "Idę fin 0 pred"),
    ],
    "Swedish": [
        sentence("( (S (NP-SS 1 2) 3 (AVP-TA 4) 5))", "Den PO>AJ 2 DT",
                 "hunden NN 3 SS lem=hund|DD", "skällde VV 0 ROOT", "igår AB 3 TA", ". IP 3 IP"),
        sentence("( (NP 1 2))", "stora AJ 2 AT", "hus NN 0 ROOT"),
        sentence("( (S 1 (NP-OO 2)))", "Läs VV 0 ROOT", "detta PO 1 OO"),
    ],
}  # fmt: skip

#: Which of a language's sentences are in which folder.
DIVISION: Mapping[str, tuple[int, ...]] = {
    "train": (0, 1, 2), "train5k": (0, 1), "dev": (0, 2), "test": (1,)
}  # fmt: skip


def write_spmrl(
    root: Path,
    language: str,
    *,
    folders: Iterable[str] = DIVISION,
    name: str | None = None,
    path: str | None = None,
    line_end: str = "\n",
    sentences: list[Sentence] | None = None,
) -> Path:
    """A release of the SPMRL shared task; its folder.

    It has these of the folders train, train5k, dev and test. Its path, its name in the names of
    files, line ends and sentences are those of the language, if no others are given.
    """
    release = root / (path or f"{language.upper()}_SPMRL")
    chosen = sentences or SENTENCES[language]
    for kind in ("gold", "pred"):
        for folder in folders:
            lines = [chosen[index] for index in DIVISION[folder]]
            texts = {
                "ptb": "".join(line.ptb(kind) + "\n" for line in lines),
                "conll": "".join(line.conll(kind) for line in lines),
            }
            for form, text in texts.items():
                file = release / kind / form / folder / f"{folder}.{name or language}.{kind}.{form}"
                _write(file, text, line_end=line_end)
    return release


def in_hebrew_script(line: Sentence) -> Sentence:
    """The copies of the Hebrew release that are not transliterated."""
    words = {"H": "ה", "ILD": "ילד", "AKL": "אכל", "LXM": "לחם", "yyDOT": ".", "50O": "50%",
             "CHUL": 'צה"ל', "KN": "כן"}  # fmt: skip
    return replace(
        line, tokens=tuple(replace(token, word=words[token.word]) for token in line.tokens)
    )


PTB_TREES = [
    """\
( (S
    (NP-SBJ-1 (DT The) (NN clerk) )
    (VP (VBD wanted)
      (S
        (NP-SBJ (-NONE- *-1) )
        (VP (TO to)
          (VP (VB leave) (PRT|ADVP (RB away) )))))
    (. .) ))
""",
    """\
( (NP (CD 3\\/4) (-LRB- -LRB-) (NN \\*) (-RRB- -RRB-) ))
( (S (NP-SBJ (NNP Section) (CD {section}) ) (VP (VBZ ends) ) (. .) ) )
""",
]

PTB_LINES = [
    "(TOP (S (NP (DT The) (NN clerk)) (VP (VBD wanted) (S (VP (TO to) (VP (VB leave) "
    "(PRT (RP away)))))) (. .)))",
    "(TOP (NP (CD 3\\/4) (-LRB- -LRB-) (SYM \\*) (-RRB- -RRB-)))",
]


def write_ptb(root: Path, *, inner: str = "parsed/mrg/wsj", line_end: str = "\n") -> Path:
    """Treebank-3: three sentences in each of the sections 00 to 24, in two files.

    In capitals, as on the disc, where ``inner`` is.
    """
    folder = root / "treebank_3" / inner
    for section in range(25):
        for number, text in enumerate(PTB_TREES, start=1):
            name = f"wsj_{section:02}{number:02}.mrg"
            file = folder / f"{section:02}" / (name.upper() if inner.isupper() else name)
            _write(file, text.replace("{section}", f"{section:02}"), line_end=line_end)
    return root / "treebank_3"


def write_merged_ptb(root: Path) -> Path:
    """The three merged files with predicted tags."""
    folder = root / "ptb_predicted"
    for name, count in (("02-21.10way.clean", 2), ("22.auto.clean", 1), ("23.auto.clean", 2)):
        end = "\n\n" if name.startswith("23") else "\n"  # the sentences of train, not its bytes
        _write(folder / name, "".join(line + end for line in PTB_LINES[:count]))
    return folder


CTB_DOCUMENT = """\
<DOC>
<DOCID> CTB{number} </DOCID>
<HEADER>
<DATE> 980101 </DATE>
</HEADER>
<BODY>
<HEADLINE>
<S ID={number}1>
( (NP-HLN (NR 朱镕基)
          (CD {number})) )
</S>
</HEADLINE>
<TEXT>
<P>
<S ID={number}2>
( (IP (NP-SBJ (-NONE- *pro*))
      (VP (ADVP (AD 已))
          (VP (VV 到达)
              (NP-OBJ (NN-SHORT 沪))))
      (PU 。)) )
</S>
</P>
</TEXT>
</BODY>
</DOC>
"""

#: The same sentences as Penn2Malt writes them: word, tag, governor, relation.
CTB_PENN2MALT = """\
朱镕基\tNR\t2\tNMOD
{number}\tCD\t0\tROOT

已\tAD\t2\tVMOD
到达\tVV\t0\tROOT
沪\tNN\t2\tOBJ
。\tPU\t2\tP

"""

#: Numbers of the documents of the Chinese fixture: both ends of every range, and gaps.
CTB_NUMBERS = (1, 5, 270, 271, 300, 301, 325, 400, 414, 439, 440, 815, 816, 885, 886, 931,
               1001, 1078, 1136, 1137, 1147, 1148, 1151)  # fmt: skip


def write_ctb(
    root: Path,
    *,
    path: str = "ctb5.1_507K/data/bracketed",
    encoding: str = "gb18030",
    release: int = 5,
    line_end: str = "\n",
    penn2malt: Callable[[str], str] | None = None,
) -> Path:
    """The Chinese Treebank, release 5.1 or 8: two sentences in each document.

    With ``penn2malt``, which makes CoNLL-X of what the program of that name writes, it has a
    second layer.
    """
    for number in CTB_NUMBERS:
        if release == 5:
            name = f"chtb_{number:03}.fid"
        else:
            name = f"chtb_{number:04}.{'nw' if number < 1001 else 'mz'}"
        text = CTB_DOCUMENT.replace("{number}", str(number))
        _write(root / path / name, text, encoding=encoding, line_end=line_end)
        if penn2malt is not None:
            rows = penn2malt(CTB_PENN2MALT.replace("{number}", str(number)))
            _write((root / "ctb_penn2malt" / name).with_suffix(".conllx"), rows)
    return root / path.split("/")[0]


def shrink_manifest(name: str, folder: Path, sizes: Mapping[str, object]) -> None:
    """Copy a manifest of the program into a folder, with other numbers of sentences.

    ``sizes`` has them by the name of the split, and by ``EDITION.SPLIT`` where an edition differs.
    Numbers of tokens are left out.
    """
    lines, table = [], ""
    for line in (data_dir("treebanks") / f"{name}.toml").read_text(encoding="utf-8").splitlines():
        if (header := re.match(r"\[([\w.-]+)\]", line)) is not None:
            table = header[1]
        if (count := re.match(r"([\w.]*)\b(sentences|tokens) = ", line)) is not None:
            place = f"{table}.{count[1]}".removesuffix(".")
            key = place.removeprefix("editions.").replace("splits.", "")
            if count[2] == "tokens":
                continue
            line = f"{count[1]}sentences = {sizes[key]}"
        lines.append(line + "\n")
    _write(folder / f"{name}.toml", "".join(lines))


def _write(path: Path, text: str, *, encoding: str = "utf-8", line_end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.replace("\n", line_end).encode(encoding))
