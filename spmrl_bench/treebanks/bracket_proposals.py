"""Which bracket dialect an unknown file is written in, proposed as options of its manifest.

What distinguishes dialects shows in their leaves: how many parts they have, which of these repeat
themselves (tags do, words do not), which characters join them. So the beginning of a file is
taken apart without knowing what it means, counted, and described; the description is tried on
the same text, and proposed if the text can be read by it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.readers.building import is_empty_element
from spmrl_bench.readers.described import read_described_text
from spmrl_bench.readers.formats import FORMATS, Format
from spmrl_bench.trees.transforms import OUTER_BRACKETS

#: Characters of a file that are looked at.
LOOKED_AT = 1 << 15
_FEW = 1 << 13  # of one that looks like a format already
#: Sentences that are read on trial.
TRIED = 500
# Of all trees and errors, how many may be errors: files have mistakes.
_BROKEN = 0.2
#: Formats that are descriptions themselves, with what these say of leaves and dropped nodes.
_NAMED: Mapping[str, tuple[set[str], set[str]]] = {
    "psd": ({"(TAG WORD)", "(TAG WORD-LEMMA)"}, {"CODE"}),
    "tbf": ({"(TAG WORD LEMMA)"}, set()),
    "bracketed-words": ({"(TAG (WORD...))"}, set()),
}
# What may be a word's tag elsewhere is metadata only beside a tree.
_METADATA = re.compile(r"CODE|(?:COMMENT|META|METADATA|REMARK)S?", re.I)
_BESIDE = re.compile(
    r"(?:COM|COMM|NOTE|REM|SOURCE|HEADER|AUTHOR|DATE|PAGE|LINE|REF|TIME|URL|ANNOTATOR|TRANSLATION"
    r"|GLOSS|TEXT)S?",
    re.I,
)
_NAMES = re.compile(r"ID|SID|SENT_?ID|NAME|NUMBER|NUM|NO|NR", re.I)
_WRAPPERS = re.compile(r"TREE|PARSE|SYNTAX|SENT|SENTENCE|UTT|UTTERANCE|ENTRY|DOC|BODY", re.I)
_WORDS = re.compile(r"w|wd|wf|word|form|orth|token|tok|t|lex|txt|text|surface|string", re.I)
_EMPTY_TAGS = re.compile(r"TRACE|EC|EMPTY|NULL|GAP|ELLIPSIS", re.IGNORECASE)
_ENTITIES = {
    "&lpar;": "(", "&rpar;": ")", "&brl;": "(", "&brr;": ")", "&lt;": "<", "&gt;": ">",
    "&lsqb;": "[", "&rsqb;": "]", "&amp;": "&", "<dash/>": "-",
}  # fmt: skip


@dataclass(slots=True)
class _Node:
    """A bracket: what text stands in it, and what brackets."""

    atoms: list[str] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.atoms[0] if self.atoms else ""

    def all(self) -> Iterator[_Node]:
        """The node and all below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children


def proposed_format(text: str, form: Format | None) -> Format | None:
    """The format of the beginning of a file, where ``form`` is what it looks like at first."""
    if form is not None and form.name not in _NAMED:
        return form
    options = described(text[:LOOKED_AT] if form is None else text[:_FEW])
    if form is not None:
        leaves, dropped = _NAMED[form.name]
        other = set(options.get("leaf", ["(TAG WORD)"])) - leaves
        more = set(options.get("drop", [])) - dropped or options.get("wrappers")
        if not options or not (other or more):
            return form
    return FORMATS["brackets"] if options and _fits(text[:LOOKED_AT], options) else form


def proposed_options(text: str) -> dict[str, Any]:
    """The options of the format ``brackets`` for a file that begins so."""
    options = described(text)
    if options and _fits(text, options):
        return options
    return {"escapes": "ptb" if _escapes(text) == "ptb" else "brackets"}


def _fits(text: str, options: Mapping[str, Any]) -> bool:
    """Whether the text, less its last tree, which may be cut off, can be read so."""
    errors: list[ReadError] = []
    try:
        read = read_described_text(text, path="", on_error=errors.append, **options)
        found = sum(1 for _ in islice(read, TRIED))
    except SpmrlError:
        return False
    broken = max(0, len(errors) - 1)
    return found > 0 and broken <= _BROKEN * (found + broken)


@lru_cache(maxsize=64)
def _cached(text: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines() if line.strip()]
    comment = _comment(lines)
    if comment:
        lines = [line for line in lines if not line.lstrip().startswith(comment)]
    plain = "\n".join(lines)
    options: dict[str, Any] = {}
    if _is_label_first(plain):
        options = _label_first(lines)
    else:
        opening = max("([{", key=plain.count)
        closing = {"(": ")", "[": "]", "{": "}"}[opening]
        entry = _entry(lines, opening)
        trees = _parsed(plain, opening, closing)
        if not trees:
            return {}
        if opening != "(":
            options["node"] = f"{opening}LABEL CHILD CHILD{closing}"
        options |= _around(trees)
        options |= _leaves(trees, options, opening, closing)
        options |= entry
    if not options.get("leaf"):
        options.pop("leaf", None)
    if comment:
        options["comment"] = [comment]
    replace = {name: word for name, word in _ENTITIES.items() if name in plain}
    if replace:
        options["replace"] = replace
    return {"escapes": _escapes(plain)} | options


def described(text: str) -> dict[str, Any]:
    """The options that the beginning of a file suggests, untried; empty if it has no brackets."""
    return dict(_cached(text))


def _escapes(text: str) -> str:
    """The escape policy of words: the one that changes least, unless others show."""
    if re.search(r"\\[()\[\]{}]", text):
        return "backslash"
    if r"\/" in text or "-LCB-" in text:
        return "ptb"
    return "brackets"


def _comment(lines: list[str]) -> str:
    """How lines without brackets begin, if some have the same beginning of punctuation."""
    starts = Counter(
        found[0]
        for line in lines
        if (found := re.match(r"\s*([%#;/*!]+)", line)) and not re.search(r"[)\]}]\W*$", line)
    )
    return starts.most_common(1)[0][0].strip()[:2] if starts else ""


def _is_label_first(text: str) -> bool:
    """Whether labels stand before their brackets."""
    return len(re.findall(r"[\w\]+-]\(", text)) > len(re.findall(r"\(\s*[\w(]", text)) / 2


def _label_first(lines: list[str]) -> dict[str, Any]:
    """Options of lines such as ``#3 NP(Det:the|N:dog)#.``."""
    text = "\n".join(lines)
    separators = Counter(re.findall(r"\)\s*([|,;/])", text))
    separator = separators.most_common(1)[0][0] if separators else " "
    leaves = re.findall(rf"[({re.escape(separator)}]([^(){re.escape(separator)}]+)", text)
    if separator == " ":
        leaves = [atom for leaf in leaves for atom in leaf.split()]
    joints = Counter(
        found[1] for leaf in leaves if (found := re.fullmatch(r"\S+([:/_])\S.*", leaf))
    )
    joint, number = joints.most_common(1)[0] if joints else ("", 0)
    if 2 * number > len(leaves):
        before = {leaf.rpartition(joint)[0] for leaf in leaves}
        after = {leaf.rpartition(joint)[2] for leaf in leaves}
        tag_first = len(before) <= len(after) if joint != "/" else len(before) < len(after)
        long = any(leaf.count(joint) > 1 for leaf in leaves)
        leaf = f"TAG{'...' if long else ''}{joint}WORD" if tag_first else f"WORD{joint}TAG"
    else:
        leaf = "TAG(WORD)"
    blank = "" if separator != " " else " "
    node = f"LABEL(CHILD{separator.strip() or blank}CHILD)"
    entry: dict[str, Any] = {}
    starts = [re.match(r"(\W*)(\S*?)([\s]+)[\w:+-]+\(", line) for line in lines]
    named = [start for start in starts if start is not None and (start[1] or start[2])]
    if 2 * len(named) > len(lines):
        mark = named[0][1] if len({start[1] for start in named}) == 1 else ""
        template = f"{mark}{'...' if mark else 'NAME'}{named[0][3][:1]}TREE"
        ends = [line.rpartition(")")[2].strip() for line in lines]
        if mark and all(mark in line[1:] for line in lines):
            template += f"{mark}..."  # the mark that stands before each tree stands after it too
        elif any(ends):
            template += "..."
        entry["entry"] = [template]
    return {"node": node, "leaf": [leaf]} | entry


def _entry(lines: list[str], opening: str) -> dict[str, Any]:
    """The template of lines that have a name before their tree."""
    before = [line.partition(opening)[0] for line in lines if opening in line]
    named = [text for text in before if re.fullmatch(r"[^\s()]+\s+", text)]
    if 2 * len(named) <= len(lines):
        return {}
    blank = "\t" if "\t" in named[0] else " "
    mark = re.match(r"[^\w\s]*", named[0])
    mark_text = mark[0] if mark and all(text.startswith(mark[0]) for text in named) else ""
    return {"entry": [f"{mark_text}NAME{blank}TREE", "TREE"]}


def _parsed(text: str, opening: str, closing: str) -> list[_Node]:
    """The outermost brackets of a text, those that are closed."""
    both = re.escape(opening + closing)
    pieces = re.findall(rf"[{both}]|(?:\\.|[^\s\\{both}])+", text)
    outermost: list[_Node] = []
    stack: list[_Node] = []
    for piece in pieces:
        if piece == opening:
            node = _Node()
            if stack:
                stack[-1].children.append(node)
            stack.append(node)
        elif piece == closing:
            if stack:
                node = stack.pop()
                if not stack:
                    outermost.append(node)
        elif stack:
            stack[-1].atoms.append(piece)
    return outermost


def _around(trees: list[_Node]) -> dict[str, Any]:
    """What stands around the trees: metadata, the node that names them, wrappers."""
    drop = {tree.label for tree in trees if _METADATA.fullmatch(tree.label)}
    drop |= {tree.label for tree in trees if _BESIDE.fullmatch(tree.label)}
    names: Counter[str] = Counter()
    for tree in trees:
        labels = {node.label for node in tree.all()}
        drop.update(filter(_METADATA.fullmatch, labels))
        if len(tree.children) > 1:
            beside = {child.label for child in tree.children}
            drop.update(filter(_BESIDE.fullmatch, beside))
            names.update(filter(_NAMES.fullmatch, beside))
    drop -= _constituents(trees, drop)
    options: dict[str, Any] = {}
    if names and 2 * names.most_common(1)[0][1] > len(trees):
        options["id"] = names.most_common(1)[0][0]
    out = drop | {options.get("id", "")}
    roots = {tree.label for tree in trees} - drop
    wrappers = []
    while len(roots) == 1 and (root := next(iter(roots))) not in OUTER_BRACKETS:
        outer = [tree for tree in trees if tree.label == root]
        inside = [[c for c in tree.children if c.label not in out] for tree in outer]
        with_others = sum(map(len, inside)) < sum(len(tree.children) for tree in outer)
        if not (with_others or _WRAPPERS.fullmatch(root)) or not all(inside):
            break
        wrappers.append(root)
        trees = [child for children in inside for child in children]
        roots = {tree.label for tree in trees}
    if wrappers:
        options["wrappers"] = wrappers
    if drop:
        options["drop"] = sorted(drop)
    return options


def _constituents(trees: list[_Node], labels: set[str]) -> set[str]:
    """Those of some labels that have nodes below them as trees have: headings, but no metadata."""
    outside: set[str] = set()
    inside: dict[str, set[str]] = {label: set() for label in labels}
    stack: list[tuple[_Node, str | None]] = [(tree, None) for tree in trees]
    while stack:
        node, within = stack.pop()
        if within is not None:
            inside[within].add(node.label)
        elif node.label in labels:
            within = node.label
        else:
            outside.add(node.label)
        stack += [(child, within) for child in node.children]
    return {label for label in labels if inside[label] & outside}


def _leaves(
    trees: list[_Node], around: Mapping[str, Any], opening: str, closing: str
) -> dict[str, Any]:
    """The template of leaves, and what marks empty elements."""
    dropped = {*around.get("drop", ()), around.get("id", "\0")}
    innermost: list[tuple[_Node, _Node]] = []  # with the node above
    stack = [(tree, tree) for tree in trees]
    while stack:
        above, node = stack.pop()
        if node.atoms and node.label in dropped:
            continue
        if node.children:
            stack += [(node, child) for child in node.children]
        elif node.atoms:
            innermost.append((above, node))
    pairs = [node for _, node in innermost if len(node.atoms) == 2]
    empties = [node for node in pairs if is_empty_element(node.atoms[1], node.label)]
    empty: dict[str, Any] = {}
    # A mark in a constituent; (SYM *) is a word.
    constituents = {above.label for above, _ in innermost}
    of_empties = {node.label for node in empties}
    clear = of_empties & constituents or any(len(node.atoms[1]) > 1 for node in empties)
    if clear and "-NONE-" not in of_empties:
        empty["empty_words"] = ["penn"]
    tags = sorted({n.label for _, n in innermost if _EMPTY_TAGS.fullmatch(n.label)})
    if tags:
        empty["empty_tags"] = tags
    marks = {id(node) for node in empties}
    known = [(above, node) for above, node in innermost if id(node) not in marks]
    atoms = [node.atoms for _, node in known if node.label not in tags]
    if not atoms:
        return empty
    template = _nested(known, opening, closing) or _bare(trees, dropped) or _flat(atoms)
    leaf = template.replace("(", opening).replace(")", closing)
    return ({} if leaf == "(TAG WORD)" else {"leaf": [leaf]}) | empty


def _nested(known: list[tuple[_Node, _Node]], opening: str, closing: str) -> str | None:
    """The template of leaves whose parts have brackets of their own."""
    if 2 * sum(len(node.atoms) == 1 for _, node in known) > len(known):
        return "(TAG (WORD...))"
    groups = {id(above): above for above, _ in known}
    labels = [tuple(child.label for child in above.children) for above in groups.values()]
    word = Counter(label for found in labels for label in set(found) if _WORDS.fullmatch(label))
    if not word:
        return None
    name, number = word.most_common(1)[0]
    whole = [found for found in labels if found.count(name) == 1]
    if 2 * len(whole) <= len(labels) or 2 * number <= len(labels):
        return None
    others = any(len(found) > 1 for found in whole)
    sizes = {len(node.atoms) for _, node in known if node.label == name}
    long = "..." if max(sizes) > 2 else ""
    return f"(TAG ({name} WORD{long}){' ...' if others else ''})"


def _bare(trees: list[_Node], dropped: set[str]) -> str | None:
    """The template of words that stand without brackets in their constituents."""
    texts: list[str] = []
    mixed = False  # whether words stand beside constituents
    stack = list(trees)
    while stack:
        node = stack.pop()
        if node.label not in dropped:
            texts += node.atoms[1:]
            mixed = mixed or (len(node.atoms) > 1 and node.children != [])
            stack += node.children
    for joint in "/_|":
        pairs = [text.rpartition(joint) for text in texts]
        if texts and all(before and after for before, _, after in pairs):
            words, tags = {before for before, _, _ in pairs}, {after for _, _, after in pairs}
            return f"WORD{joint}TAG" if len(tags) <= len(words) else f"TAG{joint}WORD"
    return "WORD" if mixed else None


def _flat(atoms: list[list[str]]) -> str:
    """The template of leaves in one bracket."""
    sizes = Counter(map(len, atoms))
    size, number = sizes.most_common(1)[0]
    usual = [leaf for leaf in atoms if len(leaf) == size]
    keys = [re.match(r"([\w.-]+)=", atom) for atom in usual[0][1:]]
    keyed = [key[1] for key in keys if key]
    if keyed:
        word = next((key for key in keyed if _WORDS.fullmatch(key)), keyed[0])
        place = next(k for k, key in enumerate(keys) if key and key[1] == word)
        before = "... " if place else ""
        after = " ..." if size > place + 2 or len(sizes) > 1 else ""
        quote = '"' if f'{word}="' in usual[0][place + 1] else ""
        return f"(TAG {before}{word}={quote}WORD{quote}{after})"
    first, second = ({leaf[k] for leaf in usual} for k in (0, min(1, size - 1)))
    if size == 2 and len(sizes) > 1 and 20 * number < 19 * len(atoms):
        return "(TAG WORD...)"
    if size == 2:
        pairs = [leaf[1].rpartition("-") for leaf in usual]
        lemmas = sum(bool(w and lemma) for w, _, lemma in pairs)
        if 2 * lemmas > len(pairs):
            return "(TAG WORD-LEMMA)"
        return "(WORD TAG)" if 2 * len(second) < len(first) else "(TAG WORD)"
    return (
        "(TAG WORD LEMMA)"
        if len(sizes) == 1 or (size == 3 and number == len(atoms))
        else ("(TAG WORD LEMMA ...)" if max(sizes) > 3 and min(sizes) >= 3 else "(TAG WORD...)")
    )
