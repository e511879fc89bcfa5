"""Mistakes that a programmer makes, to be planted one at a time: the tests must notice them.

Each is a change of one place of the program that leaves it running: no name is undefined and no
file is missing. :mod:`tests.reliability.test_planted_bugs` plants them in a copy of the program.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Bug(NamedTuple):
    """One mistake."""

    name: str  # what is wrong then
    file: str  # under ``spmrl_bench/``
    tests: str  # files and folders under ``tests/`` whose quick tests are expected to notice it
    right: str  # the text that stands there, once
    wrong: str  # what it is replaced by


# Of each the name, the file and the tests, then what stands there and what is put in its place.
_BUGS = r"""
# Charts

of equal splits the last one is taken
chart/_spans.pyx < chart/test_decode.py chart/test_enumeration.py
-if value > top:
+if value >= top:

a wrong span gains nothing in training where gold has no constituent
chart/span_trees.py < chart/test_decode.py chart/test_enumeration.py
-others[row, labels - 1].astype(np.float64) + 1
+others[row, labels - 1].astype(np.float64) + (gold > 0)

a whole sentence may be left without a label
chart/span_trees.py < chart/test_decode.py chart/test_enumeration.py
-    empty[offsets[:-1] + words - 1] = -np.inf
+    empty[offsets[:-1] + words - 1] += 0

the root's arc is left out when the best root is chosen
chart/_dependencies.pyx < chart/test_decode.py chart/test_enumeration.py
-+ arcs[word * (n + 1)]
++ 0.0 * arcs[word * (n + 1)]

an arc into a cycle keeps its score as if nothing were given up
chart/_dependencies.pyx < chart/test_decode.py chart/test_enumeration.py
-            values[target, head] -= top
+            values[target, head] -= 0.0 * top

a head that begins the right part of a span is looked for in the left one
chart/_joint.pyx < chart/test_decode.py chart/test_enumeration.py
-        dependent_left = head >= split
+        dependent_left = head > split

# Transitions

all hypotheses of a beam begin alike
transitions/system.py < transitions/test_beam.py
-    scores[:, 0] = 0.0
+    scores[:] = 0.0

illegal actions are taken if the network likes them
transitions/system.py < transitions/test_beam.py
-np.where(legal, found, -np.inf)
+np.where(legal | True, found, -np.inf)

the root takes a word while others wait
transitions/system.py < transitions/test_system.py
-        self._legal[0, 2, 1 + self.relations :] = table[:, 0]
+        self._legal[:, 2, 1 + self.relations :] = table[:, 0]

# Scoring

a bracket found once counts for both of two gold ones
scoring/evalb.py < scoring/test_evalb.py
-        (Counter(gold_brackets) & Counter(test_brackets)).total(),
+        len({*gold_brackets} & {*test_brackets}),

brackets that touch are taken to cross
scoring/evalb.py < scoring/test_evalb.py
-a < start < b < end or start < a < end < b
+a < start <= b < end or start < a <= end < b

labels that are declared equal are not
scoring/evalb.py < scoring/test_evalb.py
-        return representative.get(label, label)
+        return label

a quotation mark is put back behind marks that were removed
scoring/evalb.py < scoring/test_evalb.py
-        index += tag not in prm.delete_labels
+        index += 1

gold brackets are counted that cross
scoring/evalb.py < scoring/test_evalb.py scoring/test_planted_mistakes.py
-        _crossing(gold_brackets, test_brackets),
+        _crossing(test_brackets, gold_brackets),

the length of a sentence is that without what is removed
scoring/evalb.py < scoring/test_evalb.py scoring/test_planted_mistakes.py
-self.not_in_length = prm.delete_labels_for_length
+self.not_in_length = prm.delete_labels

a sentence without a parse is a complete match where gold has no bracket
scoring/counts.py < scoring/test_metrics.py
-(matched == gold) & (gold == test) & parsed)
+(matched == gold) & (gold == test))

a word counts for LAS if its head or its relation is right
scoring/attachment.py < scoring/test_attachment.py
-        for right in (every, head, label, head & label)
+        for right in (every, head, label, head | label)

p-values do not count the difference that was seen
scoring/significance.py < scoring/test_significance.py
-    return (int(_extreme(differences, seen).sum()) + 1) / (len(differences) + 1)
+    return int(_extreme(differences, seen).sum()) / len(differences)

draws of the bootstrap miss the last sentence
scoring/significance.py < scoring/test_significance.py
-random.integers(0, sentences, size=(size, sentences))
+random.integers(0, max(1, sentences - 1), size=(size, sentences))

# Reading and trees

a range that ends behind the sentence is accepted
readers/conll.py < readers/test_formats.py
-        if self._range[0] > len(self._rows):
+        if self._range[0] > len(self._rows) + 1:

co-indices stay in labels
trees/transforms.py < trees/test_transforms.py
-_FUNCTION = re.compile("[-=|]")
+_FUNCTION = re.compile("[-|]")

square brackets are read as curly ones
trees/escapes.py < trees/test_escapes.py readers/test_brackets.py
-"[": "-LSB-", "]": "-RSB-"}
+"[": "-LSB-", "]": "-RRB-"}

an arc is lifted one word too far
trees/projective.py < trees/test_projective.py
-            heads[dependent - 1] = heads[word - 1]
+            heads[dependent - 1] = heads[heads[word - 1] - 1] if heads[word - 1] else 0

parts of a word that was cut hang from the first of them
trees/dependencies.py < trees/test_dependencies.py
-heads += [last[word + 1]] * (size - 1)
+heads += [max(1, last[word + 1] - 1)] * (size - 1)

# Networks and batches

words become UNK half as often as they should
parsers/batches.py < parsers/test_margin_loss.py
-        chosen = random.random(len(self._words)) < probability[self._words]
+        chosen = random.random(len(self._words)) < probability[self._words] / 2

the limit of the gradient is taken of each weight by itself
training/trainer.py < training/test_optimiser.py
-torch.linalg.vector_norm(torch.stack(norms)).item()
+torch.stack(norms).max().item()

# Training

every epoch has the order of the first
training/trainer.py < training/test_trainer.py
-generator(self.seed, Stream.ORDER, state.epoch)
+generator(self.seed, Stream.ORDER, 0)

the second moments of the optimiser are lost when training goes on
training/checkpoint.py < training/test_resume.py
-("step", "exp_avg", "exp_avg_sq")
+("step", "exp_avg")

of equal dev scores the last one is kept
training/schedule.py < training/test_schedule.py
-score <= progress.best_score
+score < progress.best_score

the rate is halved in every epoch once it was halved
training/schedule.py < training/test_schedule.py
-    progress.epochs_since_decay = 0
-    return True
+    return True

the weights of the average stay in place after an evaluation
training/trainer.py < training/test_optimiser.py training/test_trainer.py
-        finally:
-            self._exchange()
+        finally:
+            pass

the rate of the first step of the warm-up is nought
training/schedule.py < training/test_schedule.py
-(warmup_steps(config, progress) + 1) / warmup
+warmup_steps(config, progress) / warmup

# Records and tables

of two records of a run the older one counts
leaderboard/frame.py < leaderboard
-    return sorted(map(Run, records), key=lambda one: one.record.finished)
+    return sorted(map(Run, records), key=lambda one: one.record.finished)[::-1]

deviations are those of a whole population
leaderboard/board.py < leaderboard
-        sd = statistics.stdev(values) if len(values) > 1 else None
+        sd = statistics.pstdev(values) if len(values) > 1 else None

runs with other settings are taken for seeds of one
leaderboard/frame.py < leaderboard
-        return *about, self.digest, self.precision, members
+        return *about, self.precision, members
"""

BUGS = [
    Bug(*about, *(re.sub("^.", "", lines[:-1], flags=re.MULTILINE) for lines in changed))
    for *about, right, wrong in re.findall(r"(.+)\n(\S+) < (.+)\n((?:-.*\n)+)((?:\+.*\n)+)", _BUGS)
    for changed in [(right, wrong)]
]
