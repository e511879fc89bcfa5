"""Entering what a parser of somebody else gave: scored as our own parsers are, kept as a record.

A record has what was entered at once of a version of a system on a treebank, dev and test, brackets
and dependencies. A system that was trained here has a record for each seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from spmrl_bench.errors import ReadError, RecordError, ScoreError, SpmrlError
from spmrl_bench.experiments.evaluation import gold_parses, metric_result, record_of, rules_of
from spmrl_bench.leaderboard.board import Group, groups_of, load_results
from spmrl_bench.leaderboard.documents import read_document, write_document
from spmrl_bench.leaderboard.frame import StoredRecord
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
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.scoring.signature import settings_text
from spmrl_bench.storage.files import write_text
from spmrl_bench.storage.locks import in_turn
from spmrl_bench.systems.predictions import OTHER, Policy, Predictions, file_text, read_predictions
from spmrl_bench.treebanks.treebank import Treebank, open_treebank

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
    what keeps it from a board.

    Its figures follow from its counts, or it cannot be read (RecordError). The counts are those of
    the parses in the folder of results that it lies in, by the treebank as it is here.
    """
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
    groups = groups_of([*known, StoredRecord(record, path, results, shipped=False)])
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

    Args:
        files: by split: brackets, CoNLL-U, or a file of each; an answer for each sentence.
        recipe: what tells it from other systems and runs.
        tags: whether the system read the treebank's tags.
        parses_in: a results folder, to keep the parses as they were scored.
        about: further keys of the signature.
        fields: of the record of a system that was trained here.
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
