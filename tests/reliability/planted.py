"""Mistakes that a programmer makes, to be planted one at a time: the tests must notice them.

Each is a change of one place of the program that leaves it running: no name is undefined and no
file is missing. :mod:`tests.reliability.test_planted_bugs` plants them in a copy of the program.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """One mistake.

    Attributes:
        name: what is wrong then.
        file: under ``spmrl_bench/``.
        right: the text that stands there, once.
        wrong: what it is replaced by.
        tests: files and folders under ``tests/`` whose quick tests are expected to notice it.
    """

    name: str
    file: str
    right: str
    wrong: str
    tests: str


BUGS = [
    # ---- Charts ----
    Bug(
        "of equal splits the last one is taken",
        "chart/_spans.pyx",
        "if value > top:",
        "if value >= top:",
        "chart/test_decode.py chart/test_enumeration.py",
    ),
    Bug(
        "a wrong span gains nothing in training where gold has no constituent",
        "chart/span_trees.py",
        "others[row, labels - 1].astype(np.float64) + 1",
        "others[row, labels - 1].astype(np.float64) + (gold > 0)",
        "chart/test_decode.py chart/test_enumeration.py",
    ),
    Bug(
        "a whole sentence may be left without a label",
        "chart/span_trees.py",
        "    empty[offsets[:-1] + words - 1] = -np.inf\n",
        "    empty[offsets[:-1] + words - 1] += 0\n",
        "chart/test_decode.py chart/test_enumeration.py",
    ),
    Bug(
        "the root's arc is left out when the best root is chosen",
        "chart/_dependencies.pyx",
        "+ arcs[word * (n + 1)]\n",
        "+ 0.0 * arcs[word * (n + 1)]\n",
        "chart/test_decode.py chart/test_enumeration.py",
    ),
    Bug(
        "an arc into a cycle keeps its score as if nothing were given up",
        "chart/_dependencies.pyx",
        "            values[target, head] -= top\n",
        "            values[target, head] -= 0.0 * top\n",
        "chart/test_decode.py chart/test_enumeration.py",
    ),
    Bug(
        "a head that begins the right part of a span is looked for in the left one",
        "chart/_joint.pyx",
        "        dependent_left = head >= split\n",
        "        dependent_left = head > split\n",
        "chart/test_decode.py chart/test_enumeration.py",
    ),
    # ---- Transitions ----
    Bug(
        "all hypotheses of a beam begin alike",
        "transitions/beam.py",
        "    scores[:, 0] = 0.0\n",
        "    scores[:] = 0.0\n",
        "transitions/test_beam.py",
    ),
    Bug(
        "illegal actions are taken if the network likes them",
        "transitions/beam.py",
        "np.where(legal, found, -np.inf)",
        "np.where(legal | True, found, -np.inf)",
        "transitions/test_beam.py",
    ),
    Bug(
        "the root takes a word while others wait",
        "transitions/system.py",
        "        self._legal[0, 2, 1 + self.relations :] = table[:, 0]",
        "        self._legal[:, 2, 1 + self.relations :] = table[:, 0]",
        "transitions/test_system.py",
    ),
    # ---- Scoring ----
    Bug(
        "a bracket found once counts for both of two gold ones",
        "scoring/evalb.py",
        "    return (Counter(gold) & Counter(test)).total()\n",
        "    return len({*gold} & {*test})\n",
        "scoring/test_evalb.py",
    ),
    Bug(
        "brackets that touch are taken to cross",
        "scoring/evalb.py",
        "a < start < b < end or start < a < end < b",
        "a < start <= b < end or start < a <= end < b",
        "scoring/test_evalb.py",
    ),
    Bug(
        "labels that are declared equal are not",
        "scoring/evalb.py",
        "        return representative.get(label, label)\n",
        "        return label\n",
        "scoring/test_evalb.py",
    ),
    Bug(
        "a quotation mark is put back behind marks that were removed",
        "scoring/evalb.py",
        "        index += tag not in prm.delete_labels\n",
        "        index += 1\n",
        "scoring/test_evalb.py",
    ),
    Bug(
        "gold brackets are counted that cross",
        "scoring/evalb.py",
        "        _crossing(gold_brackets, test_brackets),\n",
        "        _crossing(test_brackets, gold_brackets),\n",
        "scoring/test_evalb.py scoring/test_planted_mistakes.py",
    ),
    Bug(
        "the length of a sentence is that without what is removed",
        "scoring/evalb.py",
        "        not_in_length=prm.delete_labels_for_length,\n",
        "        not_in_length=prm.delete_labels,\n",
        "scoring/test_evalb.py scoring/test_planted_mistakes.py",
    ),
    Bug(
        "a sentence without a parse is a complete match where gold has no bracket",
        "scoring/counts.py",
        "(matched == gold) & (gold == test) & parsed)",
        "(matched == gold) & (gold == test))",
        "scoring/test_metrics.py",
    ),
    Bug(
        "a word counts for LAS if its head or its relation is right",
        "scoring/attachment.py",
        "        for right in (every, head, label, head & label)\n",
        "        for right in (every, head, label, head | label)\n",
        "scoring/test_attachment.py",
    ),
    Bug(
        "p-values do not count the difference that was seen",
        "scoring/significance.py",
        "    return (int(_extreme(differences, seen).sum()) + 1) / (len(differences) + 1)\n",
        "    return int(_extreme(differences, seen).sum()) / len(differences)\n",
        "scoring/test_significance.py",
    ),
    Bug(
        "draws of the bootstrap miss the last sentence",
        "scoring/significance.py",
        "random.integers(0, sentences, size=(size, sentences))",
        "random.integers(0, max(1, sentences - 1), size=(size, sentences))",
        "scoring/test_significance.py",
    ),
    # ---- Reading and trees ----
    Bug(
        "a range that ends behind the sentence is accepted",
        "readers/conll.py",
        "        if self._range[0] > len(self._rows):\n",
        "        if self._range[0] > len(self._rows) + 1:\n",
        "readers/test_formats.py",
    ),
    Bug(
        "co-indices stay in labels",
        "trees/transforms.py",
        '_FUNCTION = re.compile("[-=|]")',
        '_FUNCTION = re.compile("[-|]")',
        "trees/test_transforms.py",
    ),
    Bug(
        "square brackets are read as curly ones",
        "trees/escapes.py",
        '"[": "-LSB-", "]": "-RSB-"}',
        '"[": "-LSB-", "]": "-RRB-"}',
        "trees/test_escapes.py readers/test_brackets.py",
    ),
    Bug(
        "an arc is lifted one word too far",
        "trees/projective.py",
        "            heads[dependent - 1] = heads[word - 1]\n",
        "            heads[dependent - 1] = heads[heads[word - 1] - 1] if heads[word - 1] else 0\n",
        "trees/test_projective.py",
    ),
    Bug(
        "parts of a word that was cut hang from the first of them",
        "trees/dependencies.py",
        "heads += [last[word + 1]] * (size - 1)",
        "heads += [max(1, last[word + 1] - 1)] * (size - 1)",
        "trees/test_dependencies.py",
    ),
    # ---- Networks and batches ----
    Bug(
        "words become UNK half as often as they should",
        "parsers/batches.py",
        "        chosen = random.random(len(self._words)) < probability[self._words]\n",
        "        chosen = random.random(len(self._words)) < probability[self._words] / 2\n",
        "parsers/test_margin_loss.py",
    ),
    Bug(
        "the limit of the gradient is taken of each weight by itself",
        "training/trainer.py",
        "torch.linalg.vector_norm(torch.stack(norms)).item()",
        "torch.stack(norms).max().item()",
        "training/test_optimiser.py",
    ),
    # ---- Training ----
    Bug(
        "every epoch has the order of the first",
        "training/trainer.py",
        "generator(self.seed, Stream.ORDER, state.epoch)",
        "generator(self.seed, Stream.ORDER, 0)",
        "training/test_trainer.py",
    ),
    Bug(
        "the second moments of the optimiser are lost when training goes on",
        "training/checkpoint.py",
        '("step", "exp_avg", "exp_avg_sq")',
        '("step", "exp_avg")',
        "training/test_resume.py",
    ),
    Bug(
        "of equal dev scores the last one is kept",
        "training/schedule.py",
        "score <= progress.best_score",
        "score < progress.best_score",
        "training/test_schedule.py",
    ),
    Bug(
        "the rate is halved in every epoch once it was halved",
        "training/schedule.py",
        "    progress.epochs_since_decay = 0\n    return True\n",
        "    return True\n",
        "training/test_schedule.py",
    ),
    Bug(
        "the weights of the average stay in place after an evaluation",
        "training/trainer.py",
        "        finally:\n            self._exchange()\n",
        "        finally:\n            pass\n",
        "training/test_optimiser.py training/test_trainer.py",
    ),
    Bug(
        "the rate of the first step of the warm-up is nought",
        "training/schedule.py",
        "(warmup_steps(config, progress) + 1) / warmup",
        "warmup_steps(config, progress) / warmup",
        "training/test_schedule.py",
    ),
    # ---- Records and tables ----
    Bug(
        "of two records of a run the older one counts",
        "leaderboard/frame.py",
        "    return sorted(stored, key=lambda one: one.record.finished)\n",
        "    return sorted(stored, key=lambda one: one.record.finished, reverse=True)\n",
        "leaderboard/test_multilingual.py leaderboard/test_table.py leaderboard/test_identity.py",
    ),
    Bug(
        "deviations are those of a whole population",
        "leaderboard/board.py",
        "        sd = statistics.stdev(values) if len(values) > 1 else None\n",
        "        sd = statistics.pstdev(values) if len(values) > 1 else None\n",
        "leaderboard",
    ),
    Bug(
        "runs with other settings are taken for seeds of one",
        "leaderboard/frame.py",
        "        return *about, self.digest, self.precision, members\n",
        "        return *about, self.precision, members\n",
        "leaderboard/test_multilingual.py leaderboard/test_table.py leaderboard/test_identity.py",
    ),
]
