"""Files that no treebank has, for the reader of every format: each by name, from a small one.

What they have in common with a treebank is the format: a few golden sentences that are then
stretched, cut, written in other ways or put where they do not belong.
"""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.storage.paths import data_dir

#: Options that the golden sentences of a format need.
OPTIONS: Mapping[str, dict[str, Any]] = {"brackets": {"escapes": "ptb"}, "psd": {"lemmas": True}}


def golden(form: str) -> bytes:
    """A few sentences of a format."""
    return (data_dir("treebanks") / "golden" / f"{form}.txt").read_bytes()


@dataclass(frozen=True)
class Shape:
    """A sentence of a format in pieces."""

    begin: str  # of the file
    end: str
    word: str  # of a sentence of one word, with ``WORD`` and ``LABEL`` in it
    open: str = ""  # of one constituent more around it, or a row; "" where there is no depth
    close: str = ""
    inner: str = ""  # what stands inside all of them


SHAPES: Mapping[str, Shape] = {
    "brackets": Shape("", "", "(S (LABEL WORD))\n", "(S ", ")", "(N a)"),
    "psd": Shape("", "", "( (S (LABEL WORD-l)) (ID 1))\n", "(S ", ")", "(N a-b)"),
    "tbf": Shape("", "", "(\n  (S\n    (LABEL WORD l)))\n", "(S ", ")", "(n a b)"),
    "visl": Shape("", "", "#1 A1-1 x\n(STA+fcl (H+LABEL WORD))\n\n", "(A+b ", ")", "(H+n a)"),
    "bracketed-words": Shape("", "", "(S (LABEL (WORD)))\n", "(S ", ")", "(N (a))"),
    "sinica": Shape(
        "", "", "#1:1.[1] S(Head:LABEL:WORD)#\n", "S(a:", ")", "NP(Head:N:a)"
    ),
    "tiger-xml": Shape(
        "<corpus><body>\n",
        "</body></corpus>",
        '<s id="1"><graph root="2"><terminals><t id="1" word="WORD" pos="LABEL"/></terminals>'
        '<nonterminals><nt id="2" cat="S"><edge idref="1" label="x"/></nt></nonterminals></graph>'
        "</s>\n",
        "<s>", "</s>", "<graph/>",
    ),
    "alpino-xml": Shape(
        "<treebank>\n",
        "</treebank>",
        '<alpino_ds id="1"><node begin="0" end="1" id="0" cat="top" rel="top">'
        '<node begin="0" end="1" id="1" pos="LABEL" rel="x" word="WORD"/></node>'
        "<sentence>WORD</sentence></alpino_ds>\n",
        '<node begin="0" end="1" id="1" cat="x" rel="y">', "</node>", "",
    ),
    "negra-export": Shape(
        "#FORMAT 3\n", "", "#BOS 1 1 1 1\nWORD\tLABEL\t--\t--\t500\n#500\tS\t--\t--\t0\n#EOS 1\n"
    ),
    "conll": Shape("", "", "1\tWORD\t_\tLABEL\tLABEL\t_\t0\troot\t_\t_\n\n"),
    "dp": Shape("", "", "WORD\tLABEL\t0\n\n"),
}  # fmt: skip


@dataclass(frozen=True)
class Extreme:
    """A file."""

    name: str  # in reports
    form: str  # the format that it is read as
    make: Callable[[], bytes]  # gives its bytes


def _sentence(form: str, word: str = "a", label: str = "N", number: int = 1) -> str:
    shape = SHAPES[form]
    text = shape.word.replace("WORD", word).replace("LABEL", label)
    return shape.begin + text * number + shape.end


def _nested(form: str, depth: int, closed: bool = True) -> str:
    shape = SHAPES[form]
    text = shape.open * depth + shape.inner + (shape.close * depth if closed else "")
    if form == "sinica":
        text = f"#1:1.[1] {text}#"
    elif form == "alpino-xml":
        text = f'<alpino_ds id="1">{text}</alpino_ds>'
    elif form == "visl":
        text = f"#1 A1-1 x\n{text}\n"
    return shape.begin + text + shape.end


def _extremes(form: str) -> Mapping[str, Callable[[], bytes]]:
    """Files of one format by name."""
    whole, text = golden(form), golden(form).decode()

    def plain(word: str = "a", label: str = "N", number: int = 1) -> Callable[[], bytes]:
        return lambda: _sentence(form, word, label, number).encode(errors="surrogatepass")

    found: dict[str, Callable[[], bytes]] = {
        "a token of 1 MB": lambda: _sentence(form, "a" * (1 << 20)).encode(),
        "a label of 1 MB": lambda: _sentence(form, label="N" * (1 << 20)).encode(),
        "a NUL in a token": plain("a\0b"),
        "a NUL before the file": lambda: b"\0" + whole,
        "NULs alone": lambda: bytes(10_000),
        "a byte order mark": lambda: codecs.BOM_UTF8 + whole,
        "two byte order marks": lambda: codecs.BOM_UTF8 * 2 + whole,
        "UTF-16": lambda: text.encode("utf-16"),
        "UTF-16 without its mark": lambda: text.encode("utf-16-le"),
        "UTF-32": lambda: text.encode("utf-32"),
        "half of a surrogate pair": plain("a\ud800b"),
        "half a letter": lambda: whole + b"\xc3",
        "a letter written too long": lambda: plain("XX")().replace(b"XX", b"\xc0\xaf"),
        "line feeds after carriage returns": lambda: whole.replace(b"\n", b"\r\n"),
        "carriage returns alone": lambda: whole.replace(b"\n", b"\r"),
        "all kinds of line ends": lambda: whole.replace(b"\n", b"\r\n", 3) + b"\r" + whole,
        "separators that are no line ends": plain("a\u2028b\u0085c\x0bd\x1ce"),
        "spaces that are none": plain("a\u00a0b\u3000c"),
        "a gzip file": lambda: gzip.compress(whole),
        "a gzip file of garbage": lambda: b"\x1f\x8b" + bytes(range(256)) * 40,
        "garbage": lambda: bytes(range(256)) * 40,
        "nothing": lambda: b"",
        "white space alone": lambda: b" \t\r\n" * 1000,
        "the first half": lambda: whole[: len(whole) // 2],
        "the second half": lambda: whole[len(whole) // 2 :],
        "the end missing": lambda: whole.rstrip()[:-3],
        "ten thousand sentences": plain(number=10_000),
        "a hundred thousand blank lines": lambda: b"\n" * 100_000 + whole,
        "another format": lambda: golden("dp" if form != "dp" else "brackets"),
        "XML without end": lambda: b"<a>" * 100_000,
    }
    if SHAPES[form].open:
        found["100,000 constituents in each other"] = lambda: _nested(form, 100_000).encode()
        found["100,000 opened"] = lambda: _nested(form, 100_000, closed=False).encode()
        found["100,000 closed"] = lambda: (
            SHAPES[form].begin + SHAPES[form].close * 100_000 + "\n" + text
        ).encode()
    return found


EXTREMES = [
    Extreme(name, form, make) for form in FORMATS.names() for name, make in _extremes(form).items()
]
#: What takes more than a test of seconds may.
LARGE = [
    Extreme(name, form, make)
    for form in FORMATS.names()
    for name, make in {
        "a line of 100 MB": lambda form=form: _sentence(form, "a" * (100 << 20)).encode(),
        "a line of 100 MB of spaces": lambda form=form: (
            _sentence(form).encode() + b" " * (100 << 20)
        ),
    }.items()
]  # fmt: skip
