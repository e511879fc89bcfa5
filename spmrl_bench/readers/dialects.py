"""Bracket dialects of treebanks: what a leaf is in each, and how its trees are kept apart.

Formats of nested brackets agree on ``(LABEL part part)`` and differ in what the innermost ones
say: a word with its tag or with a lemma too, a bare mark, an empty element, a number that is no
part of the sentence. A dialect is therefore a function from a leaf to a :class:`Leaf`, and a few
words on what stands around a tree. Some have a reader of their own here; others are described by
options of a manifest, or by the function of an installed package (:func:`read_dialect`).

An empty element is a word with the tag ``-NONE-`` below the node that the release writes it in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from itertools import zip_longest
from typing import Any, Literal

from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.readers.brackets import (
    Leaf,
    ReadLeaf,
    Scanner,
    lines,
    looks_like_brackets,
    read_brackets,
)
from spmrl_bench.readers.text import (
    FilePath,
    LineIndex,
    MistakeError,
    OnError,
    excerpt,
    fail,
    fields,
    read_text,
)
from spmrl_bench.trees.escapes import escapes_named
from spmrl_bench.trees.transforms import EMPTY_TAG
from spmrl_bench.trees.tree import Tree, readonly_int32

#: The options of the format ``brackets`` that tell a dialect, and their defaults: plain brackets.
BRACKET_OPTIONS: Mapping[str, Any] = {"leaf": "{tag} {word}", "drop": [], "wrappers": [], "id": ""}

_MARKER = re.compile(r"\*(?:[^*]+\*)?(?:[-=](?:\d+|[A-Z]+))*")


def is_empty_element(text: str, parent: str = "") -> bool:
    """Return whether the text in a node marks that nothing is said there, as in Penn treebanks.

    Markers are ``*``, ``*pro*`` or ``*を*``, each perhaps with an index or a case (``*T*-1``,
    ``*con*-D``), and ``0`` unless the node above is a numeral (NUM, CD). ``**`` is a word.
    """
    if text == "0":
        return not parent.startswith(("NUM", "CD"))
    return text.startswith("*") and _MARKER.fullmatch(text) is not None


def read_dialect(
    path: FilePath, leaf: ReadLeaf, *, encoding: str = "utf-8", **options: Any
) -> Iterator[Tree]:
    """Yield the trees of a file whose leaves a function reads, in order.

    ``leaf`` tells what an innermost bracket stands for, by its label and the text after it. Options
    are ``drop``, labels of nodes that are left out with all below them; ``wrappers``, labels of
    brackets that hold trees and are no part of them; ``id``, the label of the node, left out too,
    that names a tree; ``on_error``, which takes the error of a tree. Raise a ReadError if the file
    cannot be read or decoded.
    """
    return Scanner(read_text(path, encoding), path, leaf, **options).all_trees()


def read_bracket_dialect(
    path: FilePath,
    *,
    encoding: str = "utf-8",
    prepare: Callable[[str], str] = str,
    escapes: str = "ptb",
    leaf: str = BRACKET_OPTIONS["leaf"],
    on_error: OnError = fail,
    **options: Any,
) -> Iterator[Tree]:
    """Yield the trees of a file in plain brackets, or in a dialect that a few words describe.

    ``prepare`` changes its text first; ``escapes`` names the escape policy of its words; ``leaf``
    is how one is written (:func:`check_bracket_options`); for the rest see :func:`read_dialect`.
    Raise a SpmrlError if an option has a mistake.
    """
    source = prepare(read_text(path, encoding))
    if leaf.endswith(_SISTERS):
        source, leaf = without_sisters(source), leaf.removesuffix(_SISTERS)
    if leaf == BRACKET_OPTIONS["leaf"] and not any(options.values()):
        return read_brackets(source, path=path, escapes=escapes, on_error=on_error)
    read = _leaf_of_template(leaf, escapes_named(escapes).decode_word)
    return Scanner(source, path, read, on_error=on_error, **options).all_trees()


def check_bracket_options(options: Mapping[str, Any]) -> None:
    """Make sure of ``leaf`` and ``escapes``, as far as given; a SpmrlError says what is allowed.

    A leaf is written as it stands between its brackets, with ``{tag}``, ``{word}`` and ``{lemma}``
    for what changes: ``{tag} {word}``, ``{word} {tag} {lemma}``, ``{tag} {word}/{lemma}``. Of parts
    joined by marks only the word may hold such a mark. ``{word...}`` is a word with spaces, and
    ``...`` stands for any other parts. Where the word has brackets of its own beside the lemma's,
    ``{tag} (word {word...}) ...`` names its bracket, and the tag is the label around it. Behind
    ``{tag} {word...} (...)`` stand brackets that say something of the word.
    """
    escapes_named(options.get("escapes", "none"))
    leaf = str(options.get("leaf", BRACKET_OPTIONS["leaf"]))
    _leaf_of_template(leaf.removesuffix(_SISTERS))


_ID = re.compile(r"\(\s*ID\s[^()]*\)\s*\)")
_INNERMOST = re.compile(r"\(([^()]*)\)")
_NAME = re.compile(r"[ \t]*(?:([^()\s]+)\t[ \t]*(?![^(\s]))?")
_PLACEHOLDER = re.compile(r"\{(tag|lemma|word(\.\.\.)?)\}")
_NESTED = re.compile(r"\{tag\} \(([^()]*)\)( \.\.\.)?")
_MARK_AND_LEMMA = re.compile(r"([^\w\s])-\1")
_SISTERS = " (...)"  # at the end of a template
_TEXT = r"(?:[^()\\]|\\.)"  # in which a backslash makes a bracket part of a word
_WITH_SISTERS = re.compile(rf"(\(\s*+[^\s()]++\s++{_TEXT}++)((?:\({_TEXT}*+\)\s*+)++)(?=\))")
_LABELS = re.compile(r"\(\s*+([^\s()]++)")
_BRACKETS = {"\\(": "-LRB-", "\\)": "-RRB-"}


def without_sisters(text: str) -> str:
    """Return a text in which no bracket stands beside a word, as ``(lemma dog)`` in ``(noun dogs
    (lemma dog))``; lines keep their numbers, and brackets that are words become ``-LRB-``.

    A label that mostly stands elsewhere is that of a word or a node, and stays: a mistake.
    """
    every = Counter(_LABELS.findall(text))
    beside = Counter(_LABELS.findall("".join(part for _, part in _WITH_SISTERS.findall(text))))

    def leaf(match: re.Match[str]) -> str:
        if any(2 * beside[label] <= every[label] for label in _LABELS.findall(match[2])):
            return match[0]
        return match[1] + re.sub(r"[^\n]", " ", match[2])

    return re.sub(r"\\[()]", lambda match: _BRACKETS[match[0]], _WITH_SISTERS.sub(leaf, text))


def looks_like_sisters(text: str) -> bool:
    """Return whether a text begins with trees whose words have such brackets beside them."""
    alone = _WITH_SISTERS.sub("(TAG word", text)
    return alone != text and looks_like_brackets(alone)


def _leaf_of_template(template: str, decode: Callable[[str], str] = str) -> ReadLeaf:
    nested = _NESTED.fullmatch(template)
    pattern = _pattern(template, nested[1], {"word"}) if nested else _pattern(template, template)

    def leaf(label: str, rest: str) -> Leaf | None:
        content = " ".join(fields(f"{label} {rest}"))
        if found := pattern.fullmatch(content):
            return Leaf(decode(found["word"]), None if nested else found["tag"])
        if nested and nested[2] and content:
            return Leaf(None)
        raise ValueError(f"found '({excerpt(content)})', expected '({template})'")

    return leaf


def _pattern(
    template: str, text: str, required: Set[str] = frozenset({"tag", "word"})
) -> re.Pattern[str]:
    """What matches the content of a bracket, with single spaces, in time linear in its length."""
    names = [name.removesuffix("...") for name, _ in _PLACEHOLDER.findall(text)]
    parts = text.split()
    once = len(set(names)) == len(names) and required <= set(names)
    wide = parts.count("...") + 2 * ("{word...}" in text)
    if not once or wide > 2 or re.search(r"[(){}]", _PLACEHOLDER.sub("", text)):
        raise SpmrlError(
            f"found '{template}', expected a leaf with {{tag}} and {{word}} once each, such as "
            "'{tag} {word}', '{tag} {word} {lemma}', '{tag} {word}-{lemma}' or '{tag} {word...}', "
            "or a word in its own brackets as in '{tag} (word {word...}) ...'"
        )
    pattern = ""
    for part in parts:
        if part == "...":
            pattern += "(?: .*)?"
            continue
        apart = f"[^ {re.escape(_PLACEHOLDER.sub('', part))}]+"
        kinds = {"tag": apart, "lemma": apart, "word": "[^ ]+", "word...": ".+"}
        pattern += " " if pattern else ""
        for literal, name, dots in re.findall(r"([^{]*)(?:\{(\w+)(\.\.\.)?\})?", part):
            pattern += re.escape(literal) + (f"(?P<{name}>{kinds[name + dots]})" if name else "")
    return re.compile(pattern, re.DOTALL)


def read_psd(
    path: FilePath,
    *,
    lemmas: bool | Literal["punctuation"] = False,
    drop: Collection[str] = (),
    **options: Any,
) -> Iterator[Tree]:
    """Yield the trees of a CorpusSearch file (``.psd``), as IcePaHC and Keyaki have them.

    A bracket without a label wraps a tree and ``(ID name)``, which all trees of a file have or
    none; ``(CODE ...)`` holds comments, anywhere. Empty elements stand directly in a node:
    ``(NP-SBJ *pro*)``, ``(C 0)``. With ``lemmas`` leaves are ``(TAG word-lemma)``. The last hyphen
    separates them; ``---`` is a dash with its lemma, ``-`` a dash without. Where
    ``punctuation`` alone has them, they are ``(, ,-,)``. Other options are those of
    :func:`read_dialect`.
    """
    decode = escapes_named("brackets").decode_word

    def leaf(label: str, rest: str) -> Leaf:
        parts = fields(rest)
        word, lemma = (parts[0] if len(parts) == 1 else ""), "?"
        if label and word and is_empty_element(word, label):
            return Leaf(word, EMPTY_TAG, label)
        if lemmas == "punctuation":
            word = word[0] if _MARK_AND_LEMMA.fullmatch(word) else word
        elif lemmas and word.strip("-"):
            word, _, lemma = word.rpartition("-")
        elif lemmas and len(word) > 2 and len(word) % 2:
            word = word[: len(word) // 2]
        if label and word and lemma:
            return Leaf(decode(word).replace("<dash/>", "-"), label)
        expected = "(TAG word-lemma)" if lemmas else "(TAG word)"
        raise ValueError(f"found '({excerpt(f'{label} {rest}')})', expected '{expected}'")

    return read_dialect(path, leaf, drop=["CODE", *drop], id="ID", **options)


def read_tbf(path: FilePath, **options: Any) -> Iterator[Tree]:
    """Yield the trees of a TBF file of the CESS treebanks: ``(TAG word lemma)``, ``(NODE *0*)``."""

    def leaf(label: str, rest: str) -> Leaf:
        word, *lemma = fields(rest) or [""]
        if label and word == "*0*" and len(lemma) <= 1:
            return Leaf(word, EMPTY_TAG, None if lemma else label)
        if label and len(lemma) == 1:
            return Leaf(word.replace("-Fpa-", "(").replace("-Fpt-", ")"), label)
        raise ValueError(f"found '({excerpt(f'{label} {rest}')})', expected '(TAG word lemma)'")

    return read_dialect(path, leaf, **options)


def looks_like_psd(text: str) -> bool:
    """Return whether a file begins like this format, told by its ID nodes."""
    return text.lstrip().startswith("(") and _ID.search(text) is not None


def most_leaves_have(parts: int, text: str) -> bool:
    """Return whether a file begins with brackets of which most innermost ones have so many parts:
    three in ``tbf``."""
    sizes = [len(fields(leaf)) for leaf in _INNERMOST.findall(text)]
    return text.lstrip().startswith("(") and 2 * sizes.count(parts) > len(sizes)


def read_bracketed_words(
    path: FilePath, *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Tree]:
    """Yield the trees of a file with every word in its own brackets: ``(NN (pesta olahraga))``.

    Each line has a sentence, or several trees of one, perhaps with its name and a tab in front.
    """

    def leaf(label: str, rest: str) -> Leaf:
        word = " ".join(fields(f"{label} {rest}"))
        if not word:
            raise ValueError("found '()', expected '(TAG (word))'")
        return Leaf(word.replace("&brl;", "(").replace("&brr;", ")"))

    text = read_text(path, encoding)
    scanner = Scanner(
        text, path, leaf, is_empty=is_empty_element, limit="the line ends", on_error=on_error
    )
    for start, end in lines(text):
        if name := _NAME.match(text, start, end):
            scanner.name = name[1]
            yield from scanner.region(name.end(), start + len(text[start:end].rstrip()))


def looks_like_bracketed_words(text: str) -> bool:
    """Return whether a file begins like this format: most innermost brackets hold a word."""
    return most_leaves_have(1, _NAME.sub("", text.lstrip(), count=1))


_HEADER = re.compile(r"^#[^\n]*", re.MULTILINE)
_ENTRY = re.compile(r"^#\d+[ \t]+(\S+)", re.MULTILINE)
_ENTRY_AND_TREE = re.compile(r"^#\d+[ \t]+\S[^\n]*\n\s*\([^()\s]*(?:\+[^()\s]*|[^()\w\s]\))", re.M)


def _visl_leaf(label: str, rest: str) -> Leaf:
    parts = fields(rest)
    if len(parts) == 1 and label:
        return Leaf(parts[0], label)
    if not parts and label and re.search(r"\w|.\+.", label) is None:  # a mark, not a label
        return Leaf({"{": "(", "}": ")"}.get(label, label), label)
    content = excerpt(f"{label} {rest}")
    raise ValueError(f"found '({content})', expected a mark or a label and one word")


def read_visl(
    path: FilePath, *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Tree]:
    """Yield the trees of a file of Floresta: a line with number, name and text before each tree.

    ``#1 CP1-1 Um revivalismo`` is an entry's first line, whose text may hold any brackets. In the
    tree a label is ``FUNCTION+form``, a mark is a bracket with nothing else in it, ``(,)``, and
    parentheses of the text are ``({)`` and ``(})``. The tag of a mark is the mark as it is written.
    A mistake ends with its entry. Lines with ``#`` before the first entry are comments.
    """
    text = read_text(path, encoding)
    entry = _ENTRY.search(text)
    first = entry.start() if entry else len(text)
    text = _HEADER.sub(lambda line: " " * len(line[0]), text[:first]) + text[first:]
    scanner = Scanner(text, path, _visl_leaf, limit="the next entry", on_error=on_error)
    try:
        for _ in scanner.trees(0, first):
            begin = first - len(text[:first].lstrip())
            scanner.fail(begin, "found a tree before the first entry, expected '#1 name text'")
    except ReadError as error:
        scanner.leave_out(error)
    headers = list(_HEADER.finditer(text, first))
    for header, following in zip_longest(headers, headers[1:]):
        end = following.start() if following else len(text)
        named = _ENTRY.match(text, header.start(), header.end())
        scanner.name = named[1] if named else None
        try:
            if named is None:
                scanner.fail(header.start(), "expected '#number name text' to begin an entry")
            trees = list(scanner.trees(header.end(), end))
            if len(trees) != 1:
                scanner.fail(header.start(), f"found {len(trees)} trees in the entry, expected one")
        except ReadError as error:
            scanner.leave_out(error)
        else:
            yield trees[0]


def looks_like_visl(text: str) -> bool:
    """Return whether a file begins like this format, told by its first entry and root label."""
    entry = _ENTRY_AND_TREE.search(text)
    before = text[: entry.start()].splitlines() if entry else ["no entry"]
    return all(line.startswith("#") or not line.strip() for line in before)


# 1: a label and its bracket, 2: other text, 3: what separates nodes, 4: the end of a node
_SINICA_PIECE = re.compile(r"([^()|]*+)\s*\(|([^()|]++)|(\|)|(\))")
_SINICA_ENTRY = re.compile(r"[ \t]*#[^ \t]*[ \t]+")
_SINICA_LEAF = re.compile(r"([^ ]*[^ :]):([^:]+)", re.DOTALL)
#: How a file of the Sinica Treebank begins: with the number of its first line.
SINICA_START = re.compile(r"\s*+#\d+:[\d.]*\.\[\d+\][ \t]+")


def read_sinica(
    path: FilePath, *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Tree]:
    """Yield the trees of a file of the Sinica Treebank, each on a line.

    ``#1:1.[7] NP(property:A:大|Head:Nab:門)#、(PAUSECATEGORY)``: labels stand before their
    brackets, and labels and tags keep their roles.
    """
    text = read_text(path, encoding)
    index = LineIndex(text)
    filled = ((start, end) for start, end in lines(text) if text[start:end].strip())
    for number, (start, end) in enumerate(filled, start=1):
        entry = _SINICA_ENTRY.match(text, start, end)
        last = text.rfind("#", entry.end(), end) if entry else -1
        try:
            if entry is None or last < 0:
                raise MistakeError("found another line than '#number TREE#mark'", start)
            yield _sinica_tree(text, entry.end(), last)
        except MistakeError as mistake:
            problem, place = mistake.args
            line, column = index.place(place)
            on_error(ReadError(problem, path=path, line=line, column=column, sentence=number))


def _sinica_tree(text: str, start: int, end: int) -> Tree:
    words: list[str] = []
    tags: list[str] = []
    labels: list[str] = []
    bounds: list[int] = []
    opened: list[tuple[int, int]] = []  # row and offset
    complete = False  # whether a node has just ended, so that no other may follow at once
    for piece in _SINICA_PIECE.finditer(text, start, end):
        label, leaf, separator, _ = piece.groups()
        place, found = piece.start(), f"found '{excerpt(piece[0])}'"
        if leaf is not None and leaf.isspace():
            continue
        if label is None and leaf is None:
            if not complete:
                raise MistakeError(f"{found}, expected a node before it", place)
            if not opened:
                raise MistakeError(f"{found} but no bracket is open", place)
            complete = separator is None
            if complete:
                bounds[2 * opened.pop()[0] + 1] = len(words)
        elif complete:
            expected = "'|' or ')'" if opened else "the end of the tree"
            raise MistakeError(f"{found} after a node, expected {expected}", place)
        elif label is not None:
            label = label.strip()
            if not label or label.endswith(":"):
                raise MistakeError(f"{found}, expected a label before '('", place)
            opened.append((len(labels), place))
            labels.append(label)
            bounds += (len(words), 0)
        else:
            parts = _SINICA_LEAF.fullmatch(" ".join(fields(leaf)))
            if parts is None:
                raise MistakeError(f"{found}, expected 'tag:word'", place)
            tags.append(parts[1])
            words.append(parts[2])
            complete = True
    if opened:
        problem = "the node that starts here is not closed before the tree ends"
        raise MistakeError(problem, opened[-1][1])
    if not words:
        raise MistakeError("found no word, expected a tree", start)
    return Tree(tuple(words), tuple(tags), tuple(labels), readonly_int32(bounds, -1, 2))
