"""What labels and tags lose before training: functions, indices, agreement, marks.

Releases write more into a label than its category. Each named cut here takes one kind of
addition off, so that a manifest can say exactly what its scores were made on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from spmrl_bench.trees.tree import Tree


def strip_functions(tree: Tree) -> Tree:
    """Cut labels of constituents to their category: NP-SBJ-1 and NP=2 to NP, ADVP|PRT to ADVP.

    A label is cut at its first hyphen, equals sign or bar after the first character, unless
    hyphens enclose all of it (-LRB-).
    """
    return _with_labels(tree, _category)


def strip_tag_functions(tree: Tree) -> Tree:
    """Cut part-of-speech tags to their category, as strip-functions does with labels: CLS-SUJ."""
    return _with_tags(tree, _category)


def strip_visl_functions(tree: Tree) -> Tree:
    """Cut labels and tags of VISL-style trees to their form: SUBJ+np to np, H+v-fin to v-fin.

    The form follows the last plus. Parts of what is torn apart, P+vp- and -P+vp, become vp.
    """
    return _with_tags(_with_labels(tree, _form), _form)


def strip_semantic_marks(tree: Tree) -> Tree:
    """Cut labels of constituents at a semicolon, as Keyaki marks them: NP;*SBJ* to NP."""
    return _with_labels(tree, _before_semicolon)


def strip_cess_marks(tree: Tree) -> Tree:
    """Cut from labels of CESS treebanks what is no category: grup.nom.ms to grup.nom.

    These are agreement (espec.fp, s.a.ms), coordination and other marks of a node (sn.co, sp.x,
    S.j, sn.e, S.NF.P.1c, S*) and the kind of a name (snp, snl and so on to sn). The kinds of
    phrases and clauses stay (grup.verb, s.a, S.F.C, S.NF.P, S.F.AComp), and functions too.
    """
    return _with_labels(tree, _cess_category)


def coarse_eagles_tags(tree: Tree) -> Tree:
    """Cut EAGLES tags to category and type: ncms000 to nc, da0fs0 to da; verbs keep their mood.

    So vmip3s0 becomes vmi. Tags that start with a capital (Fc, Fpa, Zm, W) stay.
    """
    return _with_tags(tree, _eagles_category)


def strip_roles(tree: Tree) -> Tree:
    """Cut labels and tags to what follows their last colon: theme:NP to NP, Head:Nab to Nab."""
    return _with_tags(_with_labels(tree, _after_colon), _after_colon)


def coarse_sinica_categories(tree: Tree) -> Tree:
    """Cut word classes of the Sinica Treebank, in labels and tags, to their main classes.

    Nab becomes Na, VH11 VH, V_11 V_1, Dbab Db, Cbca Cb, P07 P and Ta T; features go (VC2[+NEG],
    NP[+theme]). Phrases (NP, GP), constructions (VP‧的), DM, DE, A and I stay. Roles must have
    been cut before (strip-roles).
    """
    return _with_tags(_with_labels(tree, _main_class), _main_class)


def _with_labels(tree: Tree, change: Callable[[str], str]) -> Tree:
    labels = tuple(map(change, tree.labels))
    return tree if labels == tree.labels else replace(tree, labels=labels)


def _with_tags(tree: Tree, change: Callable[[str], str]) -> Tree:
    tags = tuple(map(change, tree.tags))
    return tree if tags == tree.tags else replace(tree, tags=tags)


@lru_cache(maxsize=1 << 16)
def _category(label: str) -> str:
    if label.startswith("-") and label.endswith("-"):
        return label
    return label[:1] + _FUNCTION.split(label[1:], maxsplit=1)[0]


_FUNCTION = re.compile("[-=|]")


@lru_cache(maxsize=1 << 16)
def _form(label: str) -> str:
    form = label.rpartition("+")[2] or label
    return form.strip("-") or form


@lru_cache(maxsize=1 << 16)
def _before_semicolon(label: str) -> str:
    return label.partition(";")[0] or label


@lru_cache(maxsize=1 << 16)
def _cess_category(label: str) -> str:
    marked, hyphen, function = label.partition("-")
    category = _CESS_NAME.sub("sn", _CESS_MARK.sub("", marked).replace("*", ""))
    return (category or marked) + hyphen + function


_CESS_MARK = re.compile(r"\.(?:[mf]?[sp]|co|[ejx]|\d[a-z])(?![^.*])")
_CESS_NAME = re.compile(r"^sn[adlnop](?![^.])")


@lru_cache(maxsize=1 << 16)
def _eagles_category(tag: str) -> str:
    if not _EAGLES.fullmatch(tag):
        return tag
    return tag[: 3 if tag[0] == "v" else 2]


_EAGLES = re.compile("[a-z][a-z0-9]*")


@lru_cache(maxsize=1 << 16)
def _after_colon(label: str) -> str:
    return label.rpartition(":")[2] or label


@lru_cache(maxsize=1 << 16)
def _main_class(label: str) -> str:
    name = label[:1] + label[1:].partition("[")[0]
    found = _SINICA_WORD_CLASS.fullmatch(name)
    return found[1] if found else name


_SINICA_WORD_CLASS = re.compile(r"(N[a-hv]|V[A-L]|V_\d|D[a-k]|C[ab]|P|T)[a-z]*\d*")

#: Every transform of labels and tags; the name is the function's, with hyphens.
LABEL_TRANSFORMS = (
    strip_functions,
    strip_tag_functions,
    strip_visl_functions,
    strip_semantic_marks,
    strip_cess_marks,
    coarse_eagles_tags,
    strip_roles,
    coarse_sinica_categories,
)
