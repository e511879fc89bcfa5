"""A treebank grammar: Markovised rules counted in trees, and nltk's Viterbi parser.

The classical baseline. Rules are binarised to the right with the last siblings in their names
(horizontal order) and, if wished, the parent's label (vertical order); chains of constituents
become one label. Words seen once stand for words never seen, as classes by their ending and shape.
Training is counting; parsing takes nltk's parser, in plain Python, a time that grows with the cube
of a sentence's length, so each sentence has a limit, after which it is given up.
"""

import json
import signal
from collections import Counter
from pathlib import Path

from nltk import Nonterminal, Tree
from nltk.grammar import PCFG, ProbabilisticProduction
from nltk.parse import ViterbiParser

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


class Rules:
    """The rules of a grammar by their children, which have numbers: Nonterminals hash slowly."""

    def __init__(self, productions):
        self.numbers = {}
        self.unary = {}  # child -> (probability, parent, rule)
        self.binary = {}  # left child -> right child -> the same
        for rule in productions:
            parent, *children = map(self.number, (rule.lhs(), *rule.rhs()))
            place = (rule.prob(), parent, rule)
            if len(children) == 1:
                self.unary.setdefault(children[0], []).append(place)
            else:
                left, right = children
                self.binary.setdefault(left, {}).setdefault(right, []).append(place)

    def number(self, symbol):
        return self.numbers.setdefault(symbol, len(self.numbers))


class IndexedParser(ViterbiParser):
    """nltk's parser, but that a span asks for the rules whose children are there.

    The original tries all rules on each span, split by split: thousands in a treebank's grammar.
    And of several ways to build a constituent the original is given the most probable alone,
    which is the one that it keeps.
    """

    def __init__(self, grammar, rules, lexical):
        super().__init__(grammar)
        self._rules = rules
        self._of_token = {}
        for rule in lexical:
            self._of_token.setdefault(rule.rhs()[0], []).append(rule)

    def parse(self, tokens):
        self._there = {}  # span -> constituents' numbers with their probabilities
        return super().parse(tokens)

    def _add_constituents_spanning(self, span, constituents, tokens):
        super()._add_constituents_spanning(span, constituents, tokens)
        self._there[span] = {
            self._rules.number(symbol): constituents[*span, symbol].prob()
            for symbol in self._there[span]
        }

    def _find_instantiations(self, span, constituents):
        start, end = span
        found = []
        if span not in self._there:  # else asked again, for chains of unary rules
            self._there[span] = set()
            found += self._pairs(start, end, constituents)
            if end == start + 1:
                found += [
                    (rule, [token])
                    for token, rules in self._of_token.items()
                    if (start, end, token) in constituents
                    for rule in rules
                ]
        for symbol in self._there[span]:
            child = constituents[start, end, symbol]
            for _, _, rule in self._rules.unary.get(self._rules.number(symbol), ()):
                found.append((rule, [child]))
        self._there[span].update(rule.lhs() for rule, _ in found)
        return found

    def _pairs(self, start, end, constituents):
        """The best way to build each constituent of a span from two."""
        best = {}
        for split in range(start + 1, end):
            rights = self._there[split, end]
            for left, left_prob in self._there[start, split].items():
                partners = self._rules.binary.get(left, {})
                if len(partners) > len(rights):
                    common = [right for right in rights if right in partners]
                else:
                    common = [right for right in partners if right in rights]
                for right in common:
                    for prob, parent, rule in partners[right]:
                        whole = prob * left_prob * rights[right]
                        if parent not in best or whole > best[parent][0]:
                            best[parent] = (whole, rule, split)
        for _, rule, split in best.values():
            left, right = rule.rhs()
            yield rule, [constituents[start, split, left], constituents[split, end, right]]


class Grammar:
    """The rules, and for each sentence a grammar with those of its words alone."""

    def __init__(self, path):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        self.start = Nonterminal(content["start"])
        totals = Counter()
        for left, *_, number in content["rules"] + content["lexical"]:
            totals[left] += number
        self.rules = [
            ProbabilisticProduction(
                Nonterminal(left), [Nonterminal(part) for part in right], prob=number / totals[left]
            )
            for left, *right, number in content["rules"]
        ]
        self.by_children = Rules(self.rules)
        self.lexical = {}
        for left, word, number in content["lexical"]:
            self.lexical.setdefault(word, []).append((left, number / totals[left]))

    def terminal(self, word):
        """What stands for the word in the rules; None if nothing does."""
        candidates = (word, word_class(word), coarse_class(word))
        return next((one for one in candidates if one in self.lexical), None)

    def of(self, terminals):
        """nltk's grammar for a sentence, and those of its rules that have words."""
        lexical = [
            ProbabilisticProduction(Nonterminal(left), [terminal], prob=share)
            for terminal in sorted(set(terminals))
            for left, share in self.lexical[terminal]
        ]
        grammar = PCFG.__new__(PCFG)  # whose constructor wants every probability to sum to one
        super(PCFG, grammar).__init__(
            self.start, [*self.rules, *lexical], calculate_leftcorners=False
        )
        return grammar, lexical

    def parse(self, words):
        terminals = [self.terminal(word) for word in words]
        if None in terminals:
            return None
        grammar, lexical = self.of(terminals)
        found = next(IndexedParser(grammar, self.by_children, lexical).parse(terminals), None)
        if found is None:
            return None
        tree = Tree.convert(found)
        tree.un_chomsky_normal_form(unaryChar=JOINT)
        for place, word in zip(tree.treepositions("leaves"), words, strict=True):
            tree[place] = word
        return tree


class TooLongError(Exception):
    pass


def give_up(number, frame):
    raise TooLongError


def parse(options):
    grammar = Grammar(Path(options.model, "grammar.json"))
    signal.signal(signal.SIGALRM, give_up)
    with (
        open(options.input, encoding="utf-8") as lines,
        open(options.output, "w", encoding="utf-8") as out,
    ):
        for line in lines:
            words = Tree.fromstring(line).leaves()  # spelt as in training
            signal.setitimer(signal.ITIMER_REAL, options.seconds)
            try:
                tree = grammar.parse(words)
            except (TooLongError, TimeoutError):  # nltk has a limit of its own
                tree = None
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            text = "(())" if tree is None else " ".join(str(tree).split())
            out.write(text + "\n")


if __name__ == "__main__":
    import common

    common.main(
        train=(train, "train model", "horizontal vertical"),
        parse=(parse, "model input output", "", "seconds"),
    )
