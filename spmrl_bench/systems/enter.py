"""What a parser of somebody else is given and answers, scored as ours are and kept as a record.

It is given the words that our own parsers read, after the treebank's transforms. Many programs
split lines at any white space, so that what is inside a word is ``_``. Trees stand in one
constituent ``ROOT`` more than they have, because programs expect one that is the only one of its
kind; it is taken away from the answers again.

Which sentence an answer is of is never guessed: a file has as many answers as the split has
sentences, in their order. No policy for answers that cannot be scored can raise a score: one that
is of no use has no bracket and no head that is right.

A record has what was entered at once of a version of a system on a treebank, dev and test, brackets
and dependencies. A system that was trained here has a record for each seed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spmrl_bench.errors import ReadError, RecordError, ScoreError, SpmrlError
from spmrl_bench.experiments.evaluation import gold_parses, metric_result, record_of, rules_of
from spmrl_bench.leaderboard.board import Group, groups_of, load_results
from spmrl_bench.leaderboard.documents import read_document, write_document
from spmrl_bench.leaderboard.frame import Run
from spmrl_bench.leaderboard.record import (
    SPLITS,
    WRITING,
    MetricResult,
    Output,
    Record,
    SplitResult,
    System,
    load_records,
)
from spmrl_bench.leaderboard.saved_parses import SavedParses, empty_parse
from spmrl_bench.readers.brackets import parse_brackets, read_brackets
from spmrl_bench.readers.conll import UNSPECIFIED, conll_lines, looks_like_conll, read_conll
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.attachment import first_other_word
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.scoring.signature import settings_text
from spmrl_bench.storage.files import write_text
from spmrl_bench.storage.locks import in_turn
from spmrl_bench.treebanks.reading import transform_parse
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.transforms import transform_named
from spmrl_bench.trees.tree import Tree, readonly_int32

#: What is done with answers that cannot be scored as they stand: nothing is scored; they count as
#: sentences without a parse; the same, but brackets are repaired first where only these are wrong.
Policy = Literal["refuse", "missing", "repair"]
#: What is wrong with an answer that has not the words of its sentence.
OTHER = "other words"

_ROOT, _NO_TAG = "ROOT", "X"
_SHOWN = 20  # answers that an error lists


def file_text(
    parses: Iterable[Parse],
    form: Literal["brackets", "conllu", "words"],
    *,
    tags: bool = False,
    structure: bool = False,
    spaces: bool = False,
) -> str:
    """Sentences as a system reads them: trees, one a line, CoNLL-U, or words, a sentence a line.
    Without ``tags`` those of the treebank are left out; without ``structure`` trees have their root
    alone, and words no heads. Only where ``spaces`` are kept a word has white space."""

    def text(parse: Parse) -> str:
        words = parse.words if spaces else _given(parse.words)
        blank = [UNSPECIFIED] * len(parse)
        if form == "words":
            return f"{' '.join(words)}\n"
        if form == "brackets":
            below = parse.tree if structure and parse.tree else Tree.build((), (), [])
            spans = readonly_int32([[0, len(parse)], *below.spans.tolist()])
            own = parse.tags if tags else (_NO_TAG,) * len(parse)
            return f"{write_brackets(Tree(words, own, (_ROOT, *below.labels), spans))}\n"
        heads, relations = blank, blank
        if structure and (arcs := parse.dependencies):
            heads, relations = [*map(str, arcs.heads.tolist())], [*arcs.relations]
        return conll_lines(words, parse.tags if tags else blank, heads, relations)

    return "".join(map(text, parses))


def _given(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(re.sub(r"\s", "_", word) for word in words)


class Predictions(NamedTuple):
    """The answers to all sentences of a split, with the words and tags of gold."""

    layer: Layer
    parses: list[Parse]
    handled: dict[str, int]
    """How many answers could not be scored as they stood, by what was wrong, or ``repaired``."""


class _Answer(NamedTuple):
    """One answer: a parse, or what is wrong (``kind``, and ``problem`` for people)."""

    line: int
    parse: Parse | None = None
    kind: str = ""
    problem: str = "no parse"


def read_predictions(
    path: Path,
    gold: Sequence[Parse],
    *,
    transforms: Sequence[str] = (),
    policy: Policy = "refuse",
    encoding: str = "utf-8",
) -> Predictions:
    """The answers of a file, trees (one a line or laid out over several) or CoNLL-U, to the
    sentences of a split, which have the layer of the file.

    The treebank's ``transforms`` that change trees, not words, are applied to them. A ReadError if
    the file cannot be read or, laid out over lines, has a malformed tree; a ScoreError if it has
    another number of sentences or, by the policy ``refuse``, answers that cannot be scored.
    """
    text = read_text(path, encoding)
    layer: Layer = "dependencies" if looks_like_conll(text) else "constituents"
    if gold and layer not in gold[0].layers:
        known = " and ".join(gold[0].layers)
        raise ScoreError(f"{path}: has {layer}, but the treebank has {known}")
    if layer == "dependencies":
        answers = _dependency_answers(text, path)
    else:
        answers = _bracket_answers(text, path, len(gold), policy == "repair")
    if len(answers) != len(gold):
        raise ScoreError(
            f"{path}: has {len(answers)} sentences, the split has {len(gold)}; expected the same "
            "in the same order, an answer that failed as a line '(())'"
        )
    names = [name for name in transforms if not transform_named(name).word]
    checked = [_align(answer, right, names) for answer, right in zip(answers, gold, strict=True)]
    invalid = [(k, answer) for k, answer in enumerate(checked, start=1) if answer.parse is None]
    if invalid and policy == "refuse":
        listed = (
            str(ReadError(one.problem, path=path, line=one.line or None, sentence=k))
            for k, one in invalid[:_SHOWN]
        )
        raise ScoreError(
            "\n".join(listed) + f"\n{len(invalid)} of {len(gold)} answers cannot be scored. "
            "--faults missing counts them as sentences without a parse; --faults repair repairs "
            "brackets first"
        )
    handled = Counter(answer.kind for answer in checked if answer.kind)
    parses = [
        answer.parse or empty_parse(sentence, layer)
        for answer, sentence in zip(checked, gold, strict=True)
    ]
    return Predictions(layer, parses, dict(sorted(handled.items())))


def _bracket_answers(text: str, path: Path, sentences: int, repair: bool) -> list[_Answer]:
    """The trees of a file: of each line where it has as many lines, else wherever they are."""
    lines = text.removesuffix("\n").split("\n")
    while len(lines) > sentences and not lines[-1].strip():
        lines.pop()
    if len(lines) == sentences:
        return [_of_line(number, line, repair) for number, line in enumerate(lines, start=1)]
    return [_Answer(0, Parse.of(tree)) for tree in read_brackets(text, path=path, margin=False)]


def _of_line(number: int, line: str, repair: bool) -> _Answer:
    if not line.strip("() \t\r"):
        return _Answer(number, kind="no parse")
    try:
        return _Answer(number, Parse.of(parse_brackets(line)))
    except ReadError as error:
        if repair and (tree := _repair_brackets(line)) is not None:
            return _Answer(number, Parse.of(tree), "repaired")
        return _Answer(number, kind="malformed", problem=error.problem)


def _repair_brackets(line: str) -> Tree | None:
    """The first tree of a line, closed where its end is missing, without what is around it."""
    line, depth = line[line.find("(") :] if "(" in line else "", 0
    for place, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            line = line[: place + 1]
            break
    try:
        return parse_brackets(line + ")" * depth)
    except ReadError:
        return None


def _dependency_answers(text: str, path: Path) -> list[_Answer]:
    answers: list[_Answer] = []

    def note(error: ReadError) -> None:
        answers.append(_Answer(error.line or 0, kind="malformed", problem=error.problem))

    for sentence in read_conll(text, path=path, roots="several", on_error=note):
        answers.append(_Answer(sentence.lines[0], Parse.of(dependencies=sentence.tree)))
    return answers


def _align(answer: _Answer, gold: Parse, transforms: Sequence[str]) -> _Answer:
    """The answer with the words and tags of gold, or why it cannot be scored."""
    parse = answer.parse
    if parse is None:
        return answer
    if parse.tree is not None and (parse := transform_parse(transforms, parse)) is None:
        return _Answer(answer.line, kind="no parse")
    tree, arcs = parse.tree, parse.dependencies
    if tree is not None and gold.tree is not None:
        tree = _without_root(tree, gold.tree)
    if parse.words == _given(gold.words):
        tree = tree and replace(tree, words=gold.words)
        arcs = arcs and replace(arcs, words=gold.words)
    parse = Parse.of(tree, arcs)
    if parse.words == gold.words:
        return answer._replace(parse=parse.with_tags(gold.tags))
    return _Answer(answer.line, kind=OTHER, problem=first_other_word(gold.words, parse.words)[1])


def _without_root(tree: Tree, gold: Tree) -> Tree:
    """The tree without a constituent ``ROOT`` around it that gold has not."""

    def roots(one: Tree) -> int:
        pairs = zip(one.labels, one.spans.tolist(), strict=True)
        return sum(pair == (_ROOT, [0, len(one)]) for pair in pairs)

    if tree.labels[:1] != (_ROOT,) or roots(tree) <= roots(gold):
        return tree
    return replace(tree, labels=tree.labels[1:], spans=readonly_int32(tree.spans[1:]))


# Scoring and keeping --------------------------------------------------------------------------

KIND = "system"


def write_task(bank: Treebank, split: str, folder: Path, *, tags: bool = False) -> list[Path]:
    """Write the words of a split for an outside system, and return the files.
    ``TREEBANK.SPLIT.txt`` has a sentence a line, with ``_`` for white space inside a word.
    ``TREEBANK.SPLIT.conllu`` has a word a line, and in column XPOS the treebank's tags if asked."""
    if tags and bank.manifest.tags == "none":
        raise ScoreError(f"treebank {bank.name} has no tags to give")
    sentences = bank.examples(split, bank.layers[:1])
    paths = [folder / f"{bank.name}.{split}.{ending}" for ending in ("conllu", "txt")]
    write_text(paths[0], file_text(sentences, "conllu", tags=tags, spaces=True))
    write_text(paths[1], file_text(sentences, "words"))
    return paths


def enter(
    files: Mapping[str, Sequence[Path]],
    bank: Treebank,
    system: System,
    results_dir: Path,
    *,
    save_parses: bool = False,
    **options: Any,
) -> tuple[Record, Path]:
    """Score files of parses (:func:`score_answers`), write the record, and return both."""
    recipe = {"kind": KIND, "system": {"name": system.name, "version": system.version}}
    place = results_dir if save_parses else None
    record = score_answers(files, bank, system, recipe=recipe, parses_in=place, **options)
    return write_counted(record, results_dir / "runs")


def check_entry(path: Path, results: Path) -> tuple[list[Group], list[str]]:
    """Return the tables of the records of ``results`` with one among them that somebody sends, and
    what keeps it from a board. Its figures follow from its counts, or it cannot be read
    (RecordError). The counts are those of the parses in the folder of results that it lies in, by
    the treebank as it is here."""
    record, every = read_document(Record, path), load_results([results]).stored
    known = [one for one in every if one.path.name != path.name]
    name, system, found = record.treebank.name, record.system, list[str]()
    if system is not None:
        said = {"version": system.version, "training data": system.training_data}
        said |= {"url or paper": system.url or system.paper}
        found += [f"says no {what}" for what, text in said.items() if not text.strip()]
        if not (system.oath or system.training):
            found.append("nobody swears that test was not used: enter it with --oath")
    for one in known:
        if _outputs(one.record) & _outputs(record):
            found.append(f"has parses of {one.path}, {one.record.variant}")
    saved = SavedParses.of_record(path.absolute().parents[1], record)
    bank = open_treebank(name).with_test()
    here = ((one, bank.fingerprint_of(one)) for one in bank.layers)
    if not record.treebank.fingerprints.items() <= {*here}:
        found.append(f"is of other sentences than treebank {name} has here")
    for split in SPLITS:
        result = record.result(split)
        if result is None:
            found.append(f"has no scores on {split}")
            continue
        gold = gold_parses(bank, split, list(result.metrics))
        if not saved.are_of(split, result, rules_of(bank, list(result.metrics)), gold):
            place = saved.path(split, gold[0].layers[0])
            found.append(f"{place}: absent, or not the parses that were scored")
    groups = groups_of([*known, Run(record, path, results)])
    return [own for own in groups if any(run.record is record for run in own.runs)], found


def _outputs(record: Record) -> set[str]:
    outputs = record.system.outputs.values() if record.system else ()
    return {*record.members, *(digest for one in outputs for digest in one.sha256.values())}


def score_answers(
    files: Mapping[str, Sequence[Path]],
    bank: Treebank,
    system: System,
    *,
    recipe: Mapping[str, Any],
    policy: Policy = "refuse",
    tags: bool = False,
    encoding: str = "utf-8",
    parses_in: Path | None = None,
    speeds: Mapping[str, float | None] | None = None,
    about: Mapping[str, str] | None = None,
    **fields: Any,
) -> Record:
    """The record of the answers of a system, which is not written.

    The ``files`` of each split are brackets, CoNLL-U or one of each; the ``recipe`` tells it from
    other systems and runs; with ``tags`` it read the treebank's. In ``parses_in``, a results
    folder, the parses are kept as they were scored. ``about`` has further keys of the signature,
    ``fields`` are of the record of a system that was trained here.
    """
    source = {
        "tags": bank.manifest.tags if tags else "none",
        "variant": system.title.translate(str.maketrans("|:\n", "///")),  # which part a signature
        "settings": settings_text(recipe.get("settings", {})),
        "size": fields.get("size"),
        "seed": fields.get("seed"),
        **(about or {}),
    }
    metrics = {metric_named(name).layers: name for name in METRICS.names()}
    able = [name for layers, name in metrics.items() if {*layers} <= {*bank.layers}]
    results, outputs = dict[str, SplitResult](), dict[str, Output]()
    answers: list[tuple[str, Predictions]] = []
    for split, paths in files.items():
        gold, handled = gold_parses(bank, split, able), Counter[str]()
        scored, digests = dict[str, MetricResult](), dict[str, str]()
        for path in paths:
            known: dict[str, Any] = {"transforms": bank.manifest.transforms, "encoding": encoding}
            try:
                found = read_predictions(path, gold, policy=policy, **known)
            except (ReadError, ScoreError):
                other, foreign = "dev" if split == "test" else "test", 1.0
                with suppress(SpmrlError):
                    fits = read_predictions(
                        path, gold_parses(bank, other, able), policy="missing", **known
                    )
                    foreign = fits.handled.get(OTHER, 0) / len(fits.parses)
                if foreign > 0.5:
                    raise
                problem = f"has the sentences of {other}, not of {split}: --{other} {path}"
                raise ScoreError(f"{path}: {problem}") from None
            if found.layer in digests:
                names = " and ".join(map(str, paths))
                raise ScoreError(f"{names}: two files of {split} have the same layer; expected one")
            name = metrics[found.layer,]
            rules = rules_of(bank, [name])[name]
            counts = metric_named(name).count(gold, found.parses, rules)
            invalid = "+".join(f"{kind} {number}" for kind, number in found.handled.items())
            signed = source | {"output": invalid}
            scored[name] = metric_result(bank, split, name, counts, rules, signed)
            digests[found.layer] = sha256(path.read_bytes()).hexdigest()
            handled.update(found.handled)
            answers.append((split, found))
        speed = (speeds or {}).get(split)
        results[split] = SplitResult(sentences=len(gold), metrics=scored, tokens_per_second=speed)
        outputs[split] = Output(sha256=digests, policy=policy, handled=handled)
    hashes = [one.sha256[layer] for one in outputs.values() for layer in sorted(one.sha256)]
    named = dict.fromkeys(name for one in results.values() for name in one.metrics)
    record = record_of(
        bank,
        bank.layers,
        kind=KIND,
        variant=system.title,
        selected=True,
        select=" + ".join(f"{name}.{metric_named(name).headline}" for name in named),
        weights=sha256("".join(hashes).encode()).hexdigest(),
        recipe=dict(recipe),
        system=system.model_copy(update={"outputs": outputs}),
        dev=results.get("dev"),
        test=results.get("test"),
        **({"lang": bank.language, "size": "", "seed": 0} | fields),
    )
    if parses_in is not None:
        saved = SavedParses.of_record(parses_in, record)
        for split, found in answers:
            saved.write(split, bank.examples(split, [found.layer]), found.parses)
    return record


def write_counted(record: Record, folder: Path) -> tuple[Record, Path]:
    """Write a record with how many outputs of its system have been scored on test by now. Counting
    and writing are one step, whoever else writes there."""
    assert record.system is not None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with in_turn(folder / WRITING):
            tested = {
                digest
                for one in [*load_records(folder)[0], record]
                if one.system is not None
                and one.system.name == record.system.name
                and one.treebank.name == record.treebank.name
                and (output := one.system.outputs.get("test"))
                for digest in output.sha256.values()
            }
            system = record.system.model_copy(update={"tested": len(tested)})
            record = record.model_copy(update={"system": system})
            return record, write_document(record, folder)
    except OSError as error:
        raise RecordError(f"{folder}: cannot be written: {error.strerror}") from None
