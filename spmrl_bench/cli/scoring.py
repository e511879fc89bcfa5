"""The commands that score files of parses, and say whether two parsers differ by chance."""

from __future__ import annotations

import json
import statistics
import string
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from typer import Argument, Option

from spmrl_bench.cli import options
from spmrl_bench.cli.app import app
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.console import echo

if TYPE_CHECKING:
    from spmrl_bench.leaderboard.record import Record
    from spmrl_bench.scoring import BracketCounts
    from spmrl_bench.scoring.bracket_metric import BracketRules
    from spmrl_bench.scoring.counts import Counts
    from spmrl_bench.scoring.metric import Metric
    from spmrl_bench.scoring.significance import Interval
    from spmrl_bench.trees import Tree

_SNIFFED = 65536  # bytes in which a file shows what it holds
FEW = 100  # sentences below which the bootstrap finds too many differences


@app.command()
def score(
    gold: Path = Argument(..., help="Gold trees: brackets, CoNLL-U or CoNLL-X."),
    test: Path = Argument(..., help="Parses of the same sentences."),
    prm: str = Option(
        "spmrl",
        help="Brackets: COLLINS, new, nk, spmrl, spmrl_hebrew, or a parameter file of evalb.",
    ),
    program: str | None = Option(
        None, help="Brackets: whose conventions the file follows. Default: EVALB, or what it says."
    ),
    missing_parse: Literal["skip", "count"] = Option(
        "skip", help="Brackets: leave a sentence without parse out, or count its gold as missed."
    ),
    punctuation: Literal["by-tag", "by-gold", "none", "ptb-ctb", "unicode"] | None = Option(
        None,
        help="Brackets: removed by the tags of each side as EVALB does (by-tag), or at gold's "
        "positions (by-gold, the default where a file has no tags). CoNLL: scored (none, the "
        "default), or not with the gold tag . , : `` '' PU (ptb-ctb) or of Unicode's (unicode).",
    ),
    outer: Literal["keep", "drop"] = Option(
        "keep",
        help="Brackets: compare a bracket around the sentence (unlabelled, TOP, ROOT, S1) as EVALB "
        "does, or drop it on both sides, as before training.",
    ),
    escapes: Literal["brackets", "ptb", "none"] = Option(
        "brackets", help="Brackets: how words are escaped; ptb reads \\/ and / as the same."
    ),
    tags: Literal["xpos", "upos"] = Option("xpos", help="CoNLL: the column for ptb-ctb."),
    relations: Literal["whole", "universal", "none"] = Option(
        "whole", help="CoNLL: as they are, without subtypes (nsubj:pass is nsubj), or none."
    ),
    roots: Literal["one", "several"] = Option("one", help="CoNLL: roots that a sentence may have."),
    by: Literal["length", "label", "span"] | None = Option(
        None, help="Brackets: break down by length of the sentence, label, or length of the span."
    ),
    intervals: bool = Option(False, "--intervals", help="Add 95 % intervals (bootstrap)."),
    strict: bool = Option(False, "--strict", help="Fail if any sentence cannot be scored."),
    allow_skipped: bool = Option(
        False,
        "--allow-skipped",
        help="Accept a score without more than a twentieth of the sentences; with --official "
        "without any.",
    ),
    official: Path | None = Option(
        None,
        metavar="PATH",
        help="Brackets: print nothing unless this EVALB or EVALB_SPMRL binary counts the same.",
    ),
    encoding: options.Encoding = "utf-8",
    form: Literal["table", "json", "evalb"] = Option(
        "table", "--format", help="evalb is what the C programs print, byte for byte."
    ),
) -> None:
    """Score a file of parses against gold trees.

    Both files hold the same sentences in the same order. Brackets are scored as EVALB does, CoNLL
    files by attachment. A sentence whose brackets have other words is left out of every figure, and
    the report says so; where more than a twentieth are, the status is 1.

    Examples:
        spmrl-bench score gold.mrg parses.mrg
        spmrl-bench score gold.mrg parses.mrg --by label --intervals
        spmrl-bench score gold.conllu parses.conllu --punctuation ptb-ctb
    """
    as_json = form == "json"
    if is_conll(gold, encoding):
        of_brackets = {"--by": by, "--official": official, "--format evalb": form == "evalb"}
        of_brackets |= {"--outer": outer != "keep", "--escapes": escapes != "brackets"}
        of_brackets[f"--punctuation {punctuation}"] = punctuation in ("by-tag", "by-gold")
        for option, value in of_brackets.items():
            if value:
                raise SpmrlError(f"{option}: for brackets, but {gold} holds dependency trees")
        from spmrl_bench.scoring.attachment import AttachmentRules, score_dependency_files

        attachment_rules = AttachmentRules(punctuation or "none", tags, relations, roots)
        attached = score_dependency_files(gold, test, attachment_rules, encoding=encoding)
        _print("attachment", attached, attachment_rules, intervals=intervals, as_json=as_json)
        return
    from spmrl_bench import scoring
    from spmrl_bench.scoring import bracket_metric as brackets
    from spmrl_bench.scoring.counts import Status
    from spmrl_bench.scoring.evalb import first_difference
    from spmrl_bench.scoring.official import as_evalb, check_against_program
    from spmrl_bench.scoring.signature import sign
    from spmrl_bench.scoring.texts import other_root, read_sides, written_otherwise
    from spmrl_bench.trees.tree import NO_TAG

    if punctuation not in (None, "by-tag", "by-gold"):
        raise SpmrlError(f"--punctuation {punctuation}: for CoNLL, but {gold} holds brackets")
    parameters = scoring.load_prm(prm, program)
    for note in parameters.notes:
        options.say_line(note)
    missing, by_gold = scoring.MissingParse(missing_parse), scoring.Punctuation.BY_GOLD
    policy = scoring.Policy(missing, scoring.Punctuation(punctuation or "by-tag"))
    if official is not None and policy != scoring.PUBLISHED:
        raise SpmrlError(
            "--missing-parse count and --punctuation by-gold are for our own scorer; the official"
            " programs cannot do that (EVALB_SPMRL -X counts brackets that no tree has)"
        )
    if form == "evalb" and (by is not None or intervals):
        raise SpmrlError("--by and --intervals are for the formats table and json")
    read = partial(read_sides, escapes=escapes, encoding=encoding, outer=outer == "keep")
    sides = cache(partial(read, gold, test))
    ours = official is None and form != "evalb"  # the C programs know tags only
    if (outer, escapes) == ("keep", "brackets"):
        counts = scoring.score_files(gold, test, parameters, policy, encoding=encoding)
        if note := other_root(_beginning(gold, encoding), _beginning(test, encoding), parameters):
            options.say_line(note)
    elif ours:
        counts = scoring.score_trees(*sides(), parameters, policy)
    else:
        raise SpmrlError(
            "--outer and --escapes are for our own scorer: the C programs know neither"
        )
    if counts.skipped and punctuation is None and ours:
        for name, trees in zip(("gold", "the file of parses"), sides(), strict=True):
            if {tag for tree in trees for tag in tree.tags} == {NO_TAG}:
                options.say_line(
                    f"{name} has no tags ({NO_TAG}): punctuation is removed where gold has it "
                    "(--punctuation by-gold)"
                )
                policy = scoring.Policy(missing, by_gold)
                counts = scoring.score_trees(*sides(), parameters, policy)
                break
    rules = brackets.BracketRules(parameters, policy)
    if strict:
        brackets.require_all(counts)
    also: dict[str, str] = {} if outer == "keep" else {"outer": outer}
    also |= {} if escapes == "brackets" else {"escapes": escapes}
    if official is not None:
        also["scorer"] = scorer = check_against_program(
            official, gold, test, counts, parameters, allow_skipped=allow_skipped,
            encoding=encoding,
        )  # fmt: skip
        options.say_line(
            f"{scorer} and our own scorer agree in every count of {len(counts)} sentences"
        )
    # The first sentence left out because of its words, and because of their number: which word.
    alike: dict[str, list[int]] = {}
    for status in (Status.WORDS_UNMATCH, Status.LENGTH_UNMATCH):
        left_out = counts.sentences_with(status).tolist()
        for k in left_out:
            one, other = (side[k] for side in sides())
            if k == left_out[0]:
                difference = first_difference(one, other, parameters, policy)
                options.say_line(f"sentence {k + 1}: {difference}")
            reason = written_otherwise(one, other)
            if reason and not (punctuation and "--punctuation" in reason):
                alike.setdefault(reason, []).append(k + 1)
    if form == "evalb":
        echo(as_evalb(sides, counts, parameters, policy), nl=False)
        signature = sign(brackets.BRACKETS, counts, rules, **also)
        options.say_line(f"{brackets.left_out_text(counts)}{signature.long()}")
    else:
        parts = None if by is None else _parts(by, sides(), counts, rules)
        _print("brackets", counts, rules, parts=parts, intervals=intervals, as_json=as_json, **also)
    if not allow_skipped:
        if alike and ours:
            left = (f"\n  {len(ks)} (sentence {ks[0]}): {why}" for why, ks in alike.items())
            words = (
                "sentences that have the words of gold were left out; --allow-skipped accepts it"
            )
            raise SpmrlError(words + "".join(left))
        brackets.require_most(counts)


def is_conll(path: Path, encoding: str = "utf-8") -> bool:
    """Whether a file begins with a comment or a number, as dependency trees do."""
    start = _beginning(path, encoding).lstrip("\ufeff" + string.whitespace)
    return start[:1] in tuple("#0123456789")


def _beginning(path: Path, encoding: str) -> str:
    with suppress(OSError, LookupError):  # whoever reads it says what is wrong
        if path.is_file():  # a pipe can be read once, by whoever scores it
            with path.open("rb") as file:
                return file.read(_SNIFFED).decode(encoding, errors="replace")
    return ""


def _print(
    metric: str,
    counts: Counts,
    rules: object,
    *,
    parts: tuple[str, object, str] | None = None,
    intervals: bool,
    as_json: bool,
    **signed: str,
) -> None:
    """The report of a metric, with what is added (key, value in JSON, text), and the signature."""
    from spmrl_bench.scoring.metric import metric_named
    from spmrl_bench.scoring.signature import sign

    scorer = metric_named(metric)
    added = [_intervals(scorer, counts)] if intervals else []
    added += [parts] if parts else []
    signature = sign(scorer, counts, rules, **signed)
    if as_json:
        report = scorer.report_dict(counts, rules)
        report |= {key: value for key, value, _ in added} | {"signature": signature.as_dict()}
        echo(json.dumps(report, indent=2))
    else:
        texts = "".join(text for *_, text in added)
        echo(f"{scorer.report(counts, rules)}\n{texts}{signature.long()}")


def _intervals(metric: Metric[Any, Any], counts: Counts) -> tuple[str, object, str]:
    from spmrl_bench.scoring.significance import LEVEL, confidence_intervals

    ratios = [ratio for ratio in metric.ratios(counts) if ratio.value is not None]
    bounds = confidence_intervals(ratios) if ratios else []
    found = {ratio.name: bound for ratio, bound in zip(ratios, bounds, strict=True)}
    shown = ", ".join(f"{name} {one.low:.2f} to {one.high:.2f}" for name, one in found.items())
    values = {name: [one.low, one.high] for name, one in found.items()}
    return "intervals", values, f"{LEVEL:g} % confidence intervals: {shown or 'n/a'}\n\n"


def _parts(
    how: str, sides: tuple[list[Tree], list[Tree]], counts: BracketCounts, rules: BracketRules
) -> tuple[str, object, str]:
    from tabulate import tabulate

    from spmrl_bench.scoring.bracket_metric import BRACKETS
    from spmrl_bench.trees.parse import Parse

    gold, test = ([Parse.of(tree) for tree in side] for side in sides)
    parts = BRACKETS.break_down(how, counts, gold, test, rules)
    rows = [(part.name, *part.figures().values()) for part in parts]
    headings = (how, *parts[0].figures())
    text = tabulate(rows, headers=headings, tablefmt="simple", floatfmt=".2f", missingval="n/a")
    return f"by_{how}", [{"name": part.name, **part.figures()} for part in parts], f"{text}\n\n"


class _Side(NamedTuple):
    """The counts of one side on the same sentences, for each seed, and the first signature."""

    counts: list[Counts]
    signature: str


@app.command()
def compare(
    first: str = Argument(
        ...,
        metavar="A",
        help="A run folder; a record, or the beginning of its name; a variant or a system of the "
        "table, with all its seeds; or, with --gold, a file of parses.",
    ),
    second: str = Argument(..., metavar="B", help="Likewise."),
    treebank: str | None = Option(None, help="Needed where several have the variant or system."),
    split: Literal["dev", "test"] | None = Option(
        None, help="Default: test where both were scored on it."
    ),
    metric: str | None = Option(None, help="Default: the first that both have."),
    gold: Path | None = Option(None, help="Gold trees of two files of parses."),
    prm: str = Option("spmrl", help="Parameter set for files of brackets."),
    trials: int = Option(
        10_000, min=1, max=1_000_000, help="Random swaps and random draws of sentences."
    ),
    seed: int = Option(0, min=0, help="Seed of the swaps and draws."),
    form: Literal["table", "json"] = Option("table", "--format", help="What to print."),
    latex: Path | None = Option(None, metavar="FILE", help="Also write the table as LaTeX."),
    results: options.ResultsFolder = Path("results"),
    strict: options.StrictFiles = False,
) -> None:
    """Test whether two parsers differ by chance; say what differs.

    Prints both scores with 95 % confidence intervals, the difference B - A, and the p of two
    tests over sentences: approximate randomisation and paired bootstrap; over several seeds of
    both, also that of a permutation test of their means. Below stands what else differs in their
    making. Scores that do not compare are refused, with the keys that differ.

    Examples:
        spmrl-bench compare runs/german-mini/small-{charlstm,bilstm}-seed1
        spmrl-bench compare charlstm bilstm --treebank german-mini --latex table.tex
        spmrl-bench compare a.mrg b.mrg --gold gold.mrg
    """
    from spmrl_bench.scoring import significance
    from spmrl_bench.scoring.metric import metric_named

    differing: list[tuple[str, str, str]] = []
    if gold is not None:
        where = str(gold)
        name, sides = _of_files(gold, Path(first), Path(second), prm)
    else:
        from spmrl_bench.leaderboard import compare as of_records

        found = _find((first, second), results, treebank, strict)
        one, other = (records[0] for records in found)
        name = metric or of_records.common_metric(one, other)
        where = split or ("test" if one.test and other.test else "dev")
        differing = of_records.record_differences(one, other)
        sides = []
        for records, (beside, *_) in (found, found[::-1]):
            both = (of_records.comparable_counts(own, beside, where, name) for own in records)
            counted = [counts for counts, _ in both]
            result: Any = records[0].result(where)
            sides.append(_Side(counted, result.metrics[name].signature_long))
    scorer = metric_named(name)
    # All seeds of a side together, so many times over that both sides weigh the same.
    ratios = [
        [
            significance.summed(each, len(beside.counts))
            for each in zip(*map(scorer.ratios, side.counts), strict=True)
        ]
        for side, beside in (sides, sides[::-1])
    ]
    # What is 0 of 0 cannot be compared, as the precision of parses without brackets.
    pairs = zip(*ratios, strict=True)
    defined = [pair for pair in pairs if all(one.value is not None for one in pair)]
    if not defined:
        raise SpmrlError(f"nothing was counted by the metric {name} on {where}")
    compared = significance.compare(*zip(*defined, strict=True), trials=trials, seed=seed)
    over_seeds = _over_seeds(scorer, sides)
    counts = sides[0].counts[0]
    headings = ("", "A", "B", "B - A", "p randomisation", "p bootstrap")
    rows = [
        (
            scorer.title(one.name),
            f"{one.one:.2f} {_shown(one.one_interval)}",
            f"{one.other:.2f} {_shown(one.other_interval)}",
            f"{one.difference:+.2f} {_shown(one.interval, '+')}",
            f"{one.p_randomisation:.4f}",
            f"{one.p_bootstrap:.4f}",
        )
        for one in compared
    ]
    if latex is not None:
        from spmrl_bench.leaderboard.writing import Document, Table, to_latex, write_file

        table = Table(f"A: {first}; B: {second}; {where}", headings, rows, frozenset(headings[1:]))
        write_file(latex, to_latex(Document("", tables=(table,))).encode())
    if form == "json":
        report = {
            "metric": name,
            "split": where,
            "sentences": len(counts),
            "skipped": counts.skipped,
            "trials": trials,
            "seed": seed,
            "level": significance.LEVEL,
            "figures": {result.name: asdict(result) for result in compared},
            "signatures": [side.signature for side in sides],
            "seeds": over_seeds,
            "differences": {key: [left, right] for key, left, right in differing},
        }
        echo(json.dumps(report, indent=2))
        return
    options.print_rows(headings, rows)
    best = compared[0]
    equal = len(counts) - best.better - best.worse
    echo(
        f"\nB is better than A on {best.better:,} sentences of {where}, worse on {best.worse:,}, "
        f"equal on {equal:,} (by {scorer.title(best.name)})."
    )
    if over_seeds:
        echo(
            f"Over seeds: {over_seeds['A']} and {over_seeds['B']}; p {over_seeds['p']:.4f} "
            "(permutation test of the means)."
        )
    if len(counts) < FEW:
        echo(f"Fewer than {FEW} sentences: intervals and p bootstrap are rough.")
    if counts.skipped:
        echo(f"LEFT OUT of every figure: {counts.skipped:,} sentences.")
    swaps = "all swaps" if best.exact else f"{trials:,} random swaps"
    echo(
        f"Randomisation: {swaps}; bootstrap: {trials:,} draws; seed {seed}. Intervals: "
        f"{significance.LEVEL:g} %.\n"
    )
    for letter, side in zip("AB", sides, strict=True):
        echo(f"{letter}: {side.signature}")
    if differing:
        echo("\nWhat else differs:\n")
        options.print_rows(("key", "A", "B"), differing)


def _find(
    wanted: Sequence[str], results: Path, treebank: str | None, strict: bool
) -> list[list[Record]]:
    """The records of both sides: of one run, or of all seeds of an entry of the table."""
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.leaderboard.compare import find_record

    loaded = load_results([results]) if not all(Path(one).exists() for one in wanted) else None
    found: list[list[Record]] = []
    for one in wanted:
        entry = loaded.named(one, treebank) if loaded and not Path(one).exists() else []
        if not entry:
            mistakes: list[str] = []
            entry = [find_record(one, results, mistakes)]
            options.name_left_out(mistakes, strict)
        found.append(entry)
    return found


def _of_files(gold: Path, first: Path, second: Path, prm: str) -> tuple[str, list[_Side]]:
    from spmrl_bench.scoring import AttachmentRules, load_prm, score_dependency_files, score_files
    from spmrl_bench.scoring.bracket_metric import BracketRules
    from spmrl_bench.scoring.metric import metric_named
    from spmrl_bench.scoring.signature import sign

    name = "attachment" if is_conll(gold) else "brackets"
    conll = name == "attachment"
    rules: Any = AttachmentRules() if conll else BracketRules(load_prm(prm))
    sides = []
    for path in (first, second):
        counts: Counts = (
            score_dependency_files(gold, path, rules) if conll else score_files(gold, path, *rules)
        )
        sides.append(_Side([counts], sign(metric_named(name), counts, rules).long()))
    if (sides[0].counts[0].scored != sides[1].counts[0].scored).any():
        raise SpmrlError(
            f"{first} and {second} leave out different sentences of {gold}: a comparison of the "
            "others would reward failures"
        )
    return name, sides


def _over_seeds(scorer: Metric[Any, Any], sides: Sequence[_Side]) -> dict[str, Any]:
    """Means over the seeds and the p of their difference; empty without several on both sides."""
    from spmrl_bench.scoring.significance import permutation

    values = [[scorer.ratios(one)[0].value or 0.0 for one in side.counts] for side in sides]
    if min(map(len, values)) < 2:
        return {}
    texts = [f"{statistics.fmean(one):.2f} ± {statistics.stdev(one):.2f}" for one in values]
    return {"A": texts[0], "B": texts[1], "p": permutation(*values)}


def _shown(interval: Interval, sign: str = "") -> str:
    return f"[{interval.low:{sign}.2f}, {interval.high:{sign}.2f}]"
