"""What drivers have in common: their command line, and how trees are scored on dev.

Drivers run in the environment of a parser, so nothing but the standard library is imported here.
"""

import argparse
from collections import Counter


def main(**commands):
    """Run a command: a function of options, and the names of texts, whole numbers, and numbers."""
    parser = argparse.ArgumentParser()
    added = parser.add_subparsers(required=True)
    for name, (function, *kinds) in commands.items():
        command = added.add_parser(name)
        command.set_defaults(run=function)
        for kind, names in zip((str, int, float), kinds, strict=False):
            for option in names.split():
                command.add_argument(f"--{option}", type=kind, required=True)
    options = parser.parse_args()
    options.run(options)


def brackets(tree, children, roots=()):
    """The labelled spans of a tree below its root, but for some labels, as a multiset.

    ``children`` gives label and children of a constituent, and None of what covers one word.
    """
    found = Counter()

    def visit(node, start, inside):
        constituent = children(node)
        if constituent is None:
            return start + 1
        end = start
        for child in constituent[1]:
            end = visit(child, end, True)
        if inside and constituent[0] not in roots:
            found[constituent[0], start, end] += 1
        return end

    visit(tree, 0, False)
    return found


def f1(pairs):
    """F1 in percent of pairs of multisets of brackets, gold and found."""
    same = sum((gold & found).total() for gold, found in pairs)
    both = sum(gold.total() + found.total() for gold, found in pairs)
    return 200 * same / both if both else 0.0
