"""A treebank grammar: Markovised rules counted in trees by nltk, and the most probable tree.

The classical baseline. Rules are binarised to the right with the last siblings in their names
(horizontal order) and, if wished, the parent's label (vertical order); chains of constituents
become one label. Words seen once stand for words never seen, as classes by their ending and shape.
Training is counting; parsing (CKY, in plain Python) takes a time that grows with the cube of a
sentence's length, so each sentence has a limit, after which it is given up.
"""

import json
import signal
from collections import Counter
from pathlib import Path

from nltk import Tree

JOINT = "+"


def word_class(word):
    """What stands for a word that training has not seen."""
    shape = "9" if any(c.isdigit() for c in word) else "A" if word[:1].isupper() else "a"
    dash = "-" if "-" in word else ""
    return f"<{shape}{dash}{word[-2:].lower()}>"


def coarse_class(word):
    """The same without the ending."""
    return f"<{word_class(word)[1]}>"


def train(options):
    with open(options.train, encoding="utf-8") as lines:
        trees = [Tree.fromstring(line) for line in lines]
    counts = Counter(word for tree in trees for word in tree.leaves())
    rules, lexical = Counter(), Counter()
    for tree in trees:
        for tagged in list(tree.subtrees(lambda node: node.height() == 2)):
            word = tagged[0]
            if counts[word] <= 1:
                lexical[tagged.label(), word_class(word)] += 1
                lexical[tagged.label(), coarse_class(word)] += 1
        tree.collapse_unary(collapsePOS=False, joinChar=JOINT)
        tree.chomsky_normal_form(
            factor="right", horzMarkov=options.horizontal, vertMarkov=options.vertical
        )
        for production in tree.productions():
            counted = lexical if production.is_lexical() else rules
            counted[(str(production.lhs()), *map(str, production.rhs()))] += 1
    content = {
        "start": trees[0].label(),
        "rules": [[*rule, number] for rule, number in sorted(rules.items())],
        "lexical": [[*rule, number] for rule, number in sorted(lexical.items())],
    }
    Path(options.model, "grammar.json").write_text(
        json.dumps(content, ensure_ascii=False), encoding="utf-8"
    )


class Grammar:
    """Rules with their probabilities, by what they are made of, and the best trees by them."""

    def __init__(self, content):
        """``rules`` and ``lexical`` have parent, children and a count of each rule."""
        self.start = content["start"]
        totals = Counter()
        for left, *_, number in content["rules"] + content["lexical"]:
            totals[left] += number
        self.unary = {}  # child -> (probability, parent)
        self.binary = {}  # left child -> right child -> the same
        self.lexical = {}  # word -> the same
        for left, word, number in content["lexical"]:
            self.lexical.setdefault(word, []).append((number / totals[left], left))
        for left, *right, number in content["rules"]:
            rule = (number / totals[left], left)
            if len(right) == 1:
                self.unary.setdefault(right[0], []).append(rule)
            else:
                self.binary.setdefault(right[0], {}).setdefault(right[1], []).append(rule)

    def terminal(self, word):
        """What stands for the word in the rules; None if nothing does."""
        candidates = (word, word_class(word), coarse_class(word))
        return next((one for one in candidates if one in self.lexical), None)

    def parse(self, words):
        """The most probable tree of a sentence and its probability; None if there is none."""
        terminals = [self.terminal(word) for word in words]
        if None in terminals:
            return None
        chart = {}  # span -> symbol -> probability, and what it is made of
        for end in range(1, len(words) + 1):
            for start in range(end - 1, -1, -1):
                chart[start, end] = self.cell(chart, start, end, terminals)
        if self.start not in chart[0, len(words)]:
            return None

        def tree(symbol, start, end):
            made_of = chart[start, end][symbol][1]
            if made_of is None:
                return Tree(symbol, [words[start]])
            if isinstance(made_of, str):
                return Tree(symbol, [tree(made_of, start, end)])
            split, left, right = made_of
            return Tree(symbol, [tree(left, start, split), tree(right, split, end)])

        return tree(self.start, 0, len(words)), chart[0, len(words)][self.start][0]

    def cell(self, chart, start, end, terminals):
        """The best way to build each constituent of a span."""
        found = {}

        def offer(rule, prob, made_of):
            whole, parent = rule[0] * prob, rule[1]
            if parent in found and whole <= found[parent][0]:
                return False
            found[parent] = whole, made_of
            return True

        if end == start + 1:
            for rule in self.lexical[terminals[start]]:
                offer(rule, 1.0, None)
        for split in range(start + 1, end):
            rights = chart[split, end]
            for left, (left_prob, _) in chart[start, split].items():
                partners = self.binary.get(left, {})
                fewer, more = sorted((partners, rights), key=len)
                for right in (right for right in fewer if right in more):
                    prob = left_prob * rights[right][0]
                    for rule in partners[right]:
                        offer(rule, prob, (split, left, right))
        changed = list(found)
        while changed:
            child = changed.pop()
            for rule in self.unary.get(child, ()):
                if offer(rule, found[child][0], child):
                    changed.append(rule[1])
        return found


def give_up(number, frame):
    raise TimeoutError


def parse(options):
    content = json.loads(Path(options.model, "grammar.json").read_text(encoding="utf-8"))
    grammar = Grammar(content)
    signal.signal(signal.SIGALRM, give_up)
    with (
        open(options.input, encoding="utf-8") as lines,
        open(options.output, "w", encoding="utf-8") as out,
    ):
        for line in lines:
            words = Tree.fromstring(line).leaves()  # spelt as in training
            signal.setitimer(signal.ITIMER_REAL, options.seconds)
            try:
                found = grammar.parse(words)
            except TimeoutError:
                found = None
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if found is not None:
                found[0].un_chomsky_normal_form(unaryChar=JOINT)
            out.write("(())\n" if found is None else " ".join(str(found[0]).split()) + "\n")


if __name__ == "__main__":
    import common

    common.main(
        train=(train, "train model", "horizontal vertical"),
        parse=(parse, "model input output", "", "seconds"),
    )
