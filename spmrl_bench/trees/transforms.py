"""The named changes between a treebank as released and the trees that are trained on and scored.

Two scores compare only if the same things were stripped, dropped and raised before. Each such
change is therefore a function with a name; a manifest lists the names in the order in which
they apply, and they are part of a treebank's fingerprint. They apply at one of three stages:
to the text of a file before it is split into brackets, to a graph that may have crossing
branches, or to a tree. A tree transform returns None for a tree that it leaves without words.
Those that change words alone apply to dependency trees, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from itertools import accumulate, compress, pairwise
from typing import Any, Literal, TypeVar

import numpy as np

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.trees import graph
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree, readonly_int32

Stage = Literal["text", "graph", "tree"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Transform:
    """A named change."""

    name: str  # the function's, with hyphens
    stage: Stage  # whether `apply` is `str -> str`, `Graph -> Graph` or `Tree -> Tree | None`
    apply: Callable[..., Any]
    # Whether it changes words alone; then it also is `DependencyTree -> DependencyTree`.
    word: bool = False
    version: int = 1  # part of fingerprints, to be raised when the results change


#: Every transform by its name.
TRANSFORMS: dict[str, Transform] = {}


def transform_named(name: str) -> Transform:
    """Return the transform of a name; a SpmrlError if there is none."""
    if name not in TRANSFORMS:
        raise SpmrlError(unknown_name("transform", name, TRANSFORMS))
    return TRANSFORMS[name]


def word_transforms(names: Iterable[str]) -> list[Callable[[DependencyTree], DependencyTree]]:
    """Return those of the transforms named that change words alone, for dependency trees."""
    return [transform.apply for transform in map(transform_named, names) if transform.word]


def transform(stage: Stage, *, word: bool = False) -> Callable[[Function], Function]:
    """Register a function as the transform of its name."""

    def register(function: Function) -> Function:
        name = function.__name__.replace("_", "-")
        TRANSFORMS[name] = Transform(name, stage, function, word)
        return function

    return register


def transform_strings(
    *fields: Literal["words", "tags", "labels"],
) -> Callable[[Callable[[str], str]], Callable[[str], str]]:
    """Register a function of one string as a transform of these fields of a tree."""

    def register(function: Callable[[str], str]) -> Callable[[str], str]:
        change = lru_cache(maxsize=1 << 17)(function)

        @wraps(function)
        def apply(tree: Any) -> Any:
            before = {field: getattr(tree, field) for field in fields}
            after = {field: tuple(map(change, values)) for field, values in before.items()}
            return tree if after == before else replace(tree, **after)

        transform("tree", word=fields == ("words",))(apply)
        return function

    return register


# Text --------------------------------------------------------------------------------------


@transform("text")
def strip_features(text: str) -> str:
    """Remove morphological features between pairs of ##, as the SPMRL releases write them.

    Done on the text because features may contain spaces. A pair stands within one line.
    """
    return _FEATURES.sub("", text) if "##" in text else text


_FEATURES = re.compile(r"##.*?##")


@transform("text")
def strip_markup(text: str) -> str:
    """Empty the lines that hold only SGML, as <S ID=7> and </S> in the Chinese Treebank.

    They begin with < and end with >. The lines stay, so that errors name the right one.
    """
    return _MARKUP.sub("", text) if "<" in text else text


# Only \n and \r end lines here. In MULTILINE ^ and $ mean \n alone, hence the looking around.
_MARKUP = re.compile(r"(?:(?<=[\n\r])|\A)[ \t]*<[^\n\r]*>[ \t]*(?=[\n\r]|\Z)")


# Graphs ------------------------------------------------------------------------------------

for _function in (
    graph.add_vroot, graph.attach_loose_tokens, graph.drop_markup_tokens, graph.loosen_punctuation,
    graph.vroot_for_top, graph.raise_crossing_branches, graph.split_crossing_branches,
):  # fmt: skip
    transform("graph")(_function)


# Constituents ------------------------------------------------------------------------------

#: The tag of an empty element, in every tree; readers of formats that write them in another way
#: give them that tag.
EMPTY_TAG = "-NONE-"


@transform("tree")
def drop_traces(tree: Tree) -> Tree | None:
    """Remove empty elements (tag -NONE-) and the constituents that they leave empty."""
    if EMPTY_TAG not in tree.tags:
        return tree
    overt = [tag != EMPTY_TAG for tag in tree.tags]
    tags = tuple(compress(tree.tags, overt))
    if not tags:
        return None
    # The new position of every old fencepost.
    fences = np.fromiter(accumulate(overt, initial=0), dtype=np.int32, count=len(overt) + 1)
    spans = fences[tree.spans]
    kept = spans[:, 0] < spans[:, 1]
    return Tree(
        tuple(compress(tree.words, overt)),
        tags,
        tuple(compress(tree.labels, kept.tolist())),
        readonly_int32(spans[kept]),
    )


@transform("tree")
def strip_root(tree: Tree) -> Tree:
    """Drop the outer bracket (unlabelled, TOP, ROOT or S1) around a single constituent.

    Others stay, named TOP where they have no label, and a bare word gets one: every tree has a
    labelled root.
    """
    outer = 0
    while _is_whole(tree, outer + 1) and tree.labels[outer] in ROOTS:
        outer += 1
    if not _is_whole(tree, outer):
        return _under(tree, outer, "TOP")
    labels = (tree.labels[outer] or "TOP", *tree.labels[outer + 1 :])
    if labels == tree.labels:
        return tree
    return Tree(tree.words, tree.tags, labels, readonly_int32(tree.spans[outer:]))


def with_root(tree: Tree, root: str) -> Tree:
    """Return a tree whose outer bracket is called so; another one of :data:`ROOTS` is renamed."""
    return _under(tree, int(_is_whole(tree, 0) and tree.labels[0] in ROOTS), root)


#: Labels of a bracket around a sentence that says nothing of it.
ROOTS = frozenset({"", "TOP", "ROOT", "S1"})


@transform("tree")
def ensure_top(tree: Tree) -> Tree:
    """Give every sentence the one outer bracket TOP, above all its constituents.

    An outer bracket that is there already (unlabelled, TOP, ROOT, S1 or VROOT) takes that name;
    several of them become one.
    """
    outer = 0
    while _is_whole(tree, outer) and tree.labels[outer] in OUTER_BRACKETS:
        outer += 1
    if outer == 1 and tree.labels[0] == "TOP":
        return tree
    return _under(tree, outer, "TOP")


#: What releases call the bracket around a sentence.
OUTER_BRACKETS = ROOTS | {"VROOT"}


@transform("tree")
def vroot_over_words(tree: Tree) -> Tree:
    """Put VROOT above a sentence that is a bare word, or a word in unlabelled brackets."""
    return tree if len(tree) != 1 or any(tree.labels) else _under(tree, len(tree.labels), "VROOT")


@transform("tree")
def merge_x_over_x(tree: Tree) -> Tree:
    """Merge a constituent into the only child of the same label: (NP (NP ...)) to (NP ...)."""
    kept = [True, *(row != above for above, row in pairwise(tree.constituents()))]
    if all(kept):
        return tree
    labels = tuple(compress(tree.labels, kept))
    return Tree(tree.words, tree.tags, labels, readonly_int32(tree.spans[kept]))


def _is_whole(tree: Tree, row: int) -> bool:
    """Whether there is such a constituent, and it is over all words."""
    spans = tree.spans
    return row < len(spans) and spans[row, 0] == 0 and bool(spans[row, 1] == len(tree))


def _under(tree: Tree, row: int, root: str) -> Tree:
    """The constituents from a row on, below a new root over all words."""
    spans = readonly_int32([[0, len(tree)], *tree.spans[row:].tolist()])
    return Tree(tree.words, tree.tags, (root, *tree.labels[row:]), spans)


# Labels and tags ---------------------------------------------------------------------------


@transform_strings("labels")
def strip_functions(label: str) -> str:
    """Cut labels of constituents to their category: NP-SBJ-1 and NP=2 to NP, ADVP|PRT to ADVP.

    A label is cut at its first hyphen, equals sign or bar after the first character, unless
    hyphens enclose all of it (-LRB-).
    """
    if label.startswith("-") and label.endswith("-"):
        return label
    return label[:1] + _FUNCTION.split(label[1:], maxsplit=1)[0]


_FUNCTION = re.compile("[-=|]")


@transform_strings("tags")
def strip_tag_functions(tag: str) -> str:
    """Cut part-of-speech tags to their category, as strip-functions does with labels: CLS-SUJ."""
    return strip_functions(tag)


@transform_strings("labels", "tags")
def strip_visl_functions(label: str) -> str:
    """Cut labels and tags of VISL-style trees to their form: SUBJ+np to np, H+v-fin to v-fin.

    The form follows the last plus. Parts of what is torn apart, P+vp- and -P+vp, become vp.
    """
    form = label.rpartition("+")[2] or label
    return form.strip("-") or form


@transform_strings("labels")
def strip_semantic_marks(label: str) -> str:
    """Cut labels of constituents at a semicolon, as Keyaki marks them: NP;*SBJ* to NP."""
    return label.partition(";")[0] or label


@transform_strings("labels")
def strip_cess_marks(label: str) -> str:
    """Cut from labels of CESS treebanks what is no category: grup.nom.ms to grup.nom.

    These are agreement (espec.fp, s.a.ms), coordination and other marks of a node (sn.co, sp.x,
    S.j, sn.e, S.NF.P.1c, S*) and the kind of a name (snp, snl and so on to sn). The kinds of
    phrases and clauses stay (grup.verb, s.a, S.F.C, S.NF.P, S.F.AComp), and functions too.
    """
    marked, hyphen, function = label.partition("-")
    category = _CESS_NAME.sub("sn", _CESS_MARK.sub("", marked).replace("*", ""))
    return (category or marked) + hyphen + function


_CESS_MARK = re.compile(r"\.(?:[mf]?[sp]|co|[ejx]|\d[a-z])(?![^.*])")
_CESS_NAME = re.compile(r"^sn[adlnop](?![^.])")


@transform_strings("tags")
def coarse_eagles_tags(tag: str) -> str:
    """Cut EAGLES tags to category and type: ncms000 to nc, da0fs0 to da; verbs keep their mood.

    So vmip3s0 becomes vmi. Tags that start with a capital (Fc, Fpa, Zm, W) stay.
    """
    return tag[: 3 if tag[0] == "v" else 2] if _EAGLES.fullmatch(tag) else tag


_EAGLES = re.compile("[a-z][a-z0-9]*")


@transform_strings("labels", "tags")
def strip_roles(label: str) -> str:
    """Cut labels and tags to what follows their last colon: theme:NP to NP, Head:Nab to Nab."""
    return label.rpartition(":")[2] or label


@transform_strings("labels", "tags")
def coarse_sinica_categories(label: str) -> str:
    """Cut word classes of the Sinica Treebank, in labels and tags, to their main classes.

    Nab becomes Na, VH11 VH, V_11 V_1, Dbab Db, Cbca Cb, P07 P and Ta T; features go (VC2[+NEG],
    NP[+theme]). Phrases (NP), constructions (VP‧的), DM, DE, A and I stay. Needs strip-roles first.
    """
    name = label[:1] + label[1:].partition("[")[0]
    found = _SINICA_WORD_CLASS.fullmatch(name)
    return found[1] if found else name


_SINICA_WORD_CLASS = re.compile(r"(N[a-hv]|V[A-L]|V_\d|D[a-k]|C[ab]|P|T)[a-z]*\d*")


# Words -------------------------------------------------------------------------------------

# The shared-task releases spell Arabic in Buckwalter's transliteration and Hebrew in the one of
# its treebank; a pre-trained encoder knows these languages in their own script only. Nothing
# tells Latin words in an Arabic text apart, so they change as well.

#: Buckwalter's character for each Arabic one; the last four are for foreign sounds.
BUCKWALTER = dict(
    zip(
        [chr(code) for code in (*range(0x621, 0x63B), *range(0x640, 0x653), 0x670, 0x671)]
        + ["\u067e", "\u0686", "\u06a4", "\u06af"],
        "'|>&<}AbptvjHxd*rzs$SDTZEg_fqklmnhwYyFNKaui~o`{PJVG",
        strict=True,
    )
)

# Words that are no transliteration: the names of signs, left by or undone besides the reader's.
_ARABIC_SIGNS = {"-PLUS-": "+", "-MINUS-": "-", "-LRB-": "(", "-RRB-": ")"} | {
    name: name for name in ("-LCB-", "-RCB-", "-LSB-", "-RSB-")
}

#: The form of a Hebrew letter at the end of a word, where it has one of its own: the one before it.
HEBREW_FINALS = {chr(code + 1): chr(code) for code in (0x5DA, 0x5DD, 0x5DF, 0x5E3, 0x5E5)}

#: The Hebrew treebank's letter for each that is no final form, and for two signs inside words.
HEBREW_LETTERS = dict(
    zip(
        [chr(code) for code in range(0x5D0, 0x5EB) if chr(code) not in HEBREW_FINALS.values()],
        "ABGDHWZXJIKLMNSEPCQRFT",
        strict=True,
    )
) | {'"': "U", "%": "O"}

#: The Hebrew treebank's names of punctuation; each is a whole word.
HEBREW_SIGNS: dict[str, str] = {
    "yyCLN": ":", "yyCM": ",", "yyDASH": "-", "yyDOT": ".", "yyELPS": "...", "yyEXCL": "!",
    "yyLRB": "(", "yyQM": "?", "yyQUOT": '"', "yyRRB": ")", "yySCLN": ";",
}  # fmt: skip

_FROM_BUCKWALTER = str.maketrans(
    {latin: arabic for arabic, latin in BUCKWALTER.items()}
    | {"O": "\u0623", "W": "\u0624", "I": "\u0625"}  # where < > & are avoided, as they are XML's
)
_FROM_HEBREW_LATIN = str.maketrans({latin: hebrew for hebrew, latin in HEBREW_LETTERS.items()})


@transform_strings("words")
def arabic_script(word: str) -> str:
    """Write the words in Arabic script instead of Buckwalter's transliteration.

    O, W and I are read as the >, & and < that they stand for. Bracket names such as -LSB- stay;
    -PLUS- and -MINUS- become the signs. Words that are not Arabic change as well.
    """
    return _ARABIC_SIGNS.get(word) or word.translate(_FROM_BUCKWALTER)


@transform_strings("words")
def hebrew_script(word: str) -> str:
    """Write the words in Hebrew script instead of the transliteration of the Hebrew treebank.

    The last letter of a word gets its final form. Words in Hebrew script already stay.
    """
    hebrew = HEBREW_SIGNS.get(word) or word.translate(_FROM_HEBREW_LATIN)
    if hebrew == word:
        return word
    return hebrew[:-1] + HEBREW_FINALS.get(hebrew[-1], hebrew[-1])
