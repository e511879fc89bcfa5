"""A run's best parser as a package: a folder to share, in the layout of a repository of the hub.

All that the package and its card say comes from the record of the run, the manifest of the treebank
and the parser itself, so a run has to be scored first; and the parser is loaded once more from what
was written before anybody sees it. The same run gives the same bytes. Word order of the training
sentences and folders of this machine are taken out; the packaged parser parses as the saved one.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from spmrl_bench import __version__
from spmrl_bench.errors import PackageError, remedy
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, read_config
from spmrl_bench.leaderboard.compare import find_record
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.parsers.base import Parser, ParserConfig
from spmrl_bench.parsers.legacy import short
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.parsing.packages import (
    CARD,
    FORMAT,
    PACKAGE,
    PARSER,
    Package,
    Score,
    StoredFile,
    Trained,
    is_model_file,
    read_package,
)
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import read_regular, write_folder, write_new, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.manifest import SPLITS, Manifest

#: The tracks of treebanks that only those have who were given a licence.
LICENSED = ("spmrl", "ptb", "ctb")
#: How the program is cited, as the README has it.
SOFTWARE = """\
@software{{spmrl_bench,
  author  = {{{{spmrl_bench contributors}}}},
  title   = {{{{spmrl_bench: a benchmark suite for neural parsers over many treebanks}}}},
  version = {{{version}}},
  year    = {{2026}}
}}"""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")  # the hub's rule
# Beside the listed files; large files of a repository are kept apart by git.
_ATTRIBUTES = ".gitattributes"
_LARGE_FILES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
# Where an encoder's settings and tokenizer were read from, as its library notes it.
_PLACES = ("_name_or_path", "name_or_path")
_LARGEST_NOTES = 1 << 20  # bytes; a whole vocabulary is larger, and has no notes
_TASKS = {
    "brackets": ("constituency-parsing", "Constituency parsing"),
    "attachment": ("dependency-parsing", "Dependency parsing"),
}
# What the hub calls figures; others are left out there, and stand in the table all the same.
_FIGURES = {
    "f1": "f1",
    "precision": "precision",
    "recall": "recall",
    "las": "accuracy",
    "uas": "accuracy",
}
_LABEL_ATTENTION = (
    "Mrini, Dernoncourt, Tran, Bui, Chang & Nakashole (2020). Rethinking Self-Attention: Towards "
    "Interpretability in Neural Parsing. Findings of EMNLP."
)

#: ISO 639-1 codes, or 639-3 where there is none, by the English names that manifests have.
LANGUAGES = {
    "afrikaans": "af", "albanian": "sq", "amharic": "am", "ancient greek": "grc", "arabic": "ar",
    "armenian": "hy", "basque": "eu", "belarusian": "be", "bengali": "bn", "breton": "br",
    "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "croatian": "hr", "czech": "cs",
    "danish": "da", "dutch": "nl", "english": "en", "estonian": "et", "faroese": "fo",
    "finnish": "fi", "french": "fr", "galician": "gl", "georgian": "ka", "german": "de",
    "gothic": "got", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu",
    "icelandic": "is", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja",
    "kazakh": "kk", "korean": "ko", "latin": "la", "latvian": "lv", "lithuanian": "lt",
    "macedonian": "mk", "maltese": "mt", "marathi": "mr", "norwegian": "no", "old english": "ang",
    "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru",
    "sanskrit": "sa", "scottish gaelic": "gd", "serbian": "sr", "slovak": "sk", "slovenian": "sl",
    "spanish": "es", "swedish": "sv", "tamil": "ta", "telugu": "te", "thai": "th", "turkish": "tr",
    "ukrainian": "uk", "urdu": "ur", "uyghur": "ug", "vietnamese": "vi", "welsh": "cy",
}  # fmt: skip

#: What the hub calls licences (docs/hub/repositories-licenses).
LICENCES = frozenset({
    "apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-2.0", "cc-by-2.5",
    "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-2.0", "cc-by-nc-3.0",
    "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0", "cc-by-nc-sa-2.0",
    "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "gpl-2.0", "gpl-3.0", "agpl-3.0", "lgpl-2.1", "lgpl-3.0",
    "lgpl-lr", "odc-by", "odbl", "pddl", "etalab-2.0", "unlicense", "isc",
})  # fmt: skip


class ModelFacts(NamedTuple):
    """What is known of a parser once it is loaded."""

    parameters: int
    words: int  # of its vocabulary
    longest: int | None  # words of a sentence that it takes
    reads_tags: bool
    predicts_tags: bool
    label_attention: bool
    citations: tuple[str, ...]


def package_run(
    run: Path,
    to: Path,
    *,
    results: Path = Path("results"),
    name: str | None = None,
    licence: str | None = None,
) -> tuple[Path, list[str]]:
    """Package the best parser of a run; its version is the day on which it was scored.

    Args:
        run: its folder.
        to: the folder in which the package is written, as a folder of its name; what an earlier
            call has written there is replaced.
        results: folder of the results, with the record of the run.
        name: by default ``spmrl_bench_`` and the treebank.
        licence: under which the model is shared. By default that of the treebank, if it is an
            open one under a licence that everybody knows.

    Returns:
        The folder of the package, and what whoever shares it has to know, a sentence each.

    Raises:
        PackageError: the name will not do, the licence is missing, the parser reads files that
            cannot be packaged, something else is in the way, or it cannot be written.
        CheckpointError: the folder holds no run, or its parser cannot be loaded.
        RecordError: the run was not scored.
        TreebankError: its treebank is not known here.
    """
    config = read_config(run / "run.json")
    record = find_record(str(run), results)
    manifest = load_manifest(config.treebank)
    name = name or "spmrl_bench_" + re.sub("[^a-z0-9]+", "_", manifest.name.lower()).strip("_")
    if not _NAME.fullmatch(name):
        raise PackageError(
            f"--name {name[:100]}: expected up to 96 letters, digits, '-', '_' and '.', which "
            "stands neither first nor last"
        )
    licence = licence or _own_licence(manifest)
    check_outside(run, config.model)
    _check_place(to / name)
    package, facts = None, None

    def fill(new: Path) -> None:
        nonlocal package, facts
        parser = load_parser(run, "cpu")
        if best_weights(run) != record.weights:
            raise PackageError(f"{run}: is being trained; package it when training has ended")
        files = write_parser(parser, new)
        package = _description(name, licence, config, record, manifest, files)
        text = json.dumps(package.model_dump(mode="json"), ensure_ascii=False, indent=1)
        write_new(new / PACKAGE, [f"{text}\n".encode()])
        facts = _facts(load_parser(new, "cpu"), record)
        write_new(new / CARD, [write_card(package, facts).encode()])
        write_new(new / _ATTRIBUTES, [_LARGE_FILES])

    try:
        write_folder(to / name, fill)
    except OSError as error:
        raise PackageError(
            f"{error.filename or to}: cannot be written: {error.strerror or error}. "
            f"{remedy(error)}, or choose another --to folder"
        ) from None
    assert package is not None
    assert facts is not None
    return to / name, _warnings(package, facts)


def check_outside(run: Path, config: ParserConfig) -> None:
    """Raise PackageError where weights of a run's parser are neither its own, nor on the hub."""
    if outside := config.outside():
        places = ", ".join(f"model.{key} = {place}" for key, place in short(outside).items())
        raise PackageError(
            f"{run}: its parser reads weights that are not its own, and not packaged ({places}). "
            "Only a parser whose weights are all its own can be shared: one that fine-tunes an "
            "encoder, has one of the hub, or begins with word vectors (model.word_vectors)"
        )


def write_parser(parser: Parser, folder: Path) -> dict[str, StoredFile]:
    """Write a parser, which changes, into an empty folder; return the files as packages list them.

    Raises:
        PackageError: it has a file that no package can have.
        OSError: it cannot be written.
    """
    parser.prepare_for_sharing()
    parser.save(folder)
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not is_model_file(name):
            raise PackageError(
                f"the kind {parser.kind} saves the file {name}, which nobody could load without a "
                "risk: only weights (safetensors) and text are packaged"
            )
        if path.suffix == ".json" and name != PARSER and path.stat().st_size < _LARGEST_NOTES:
            _forget_places(path)
        found[name] = StoredFile(sha256=file_digest(path), size=path.stat().st_size)
    return found


def _forget_places(path: Path) -> None:
    """Leave out of a file of an encoder where it was read from."""
    content = parse_json(read_regular(path), wide=True)
    if isinstance(content, dict) and any(key in content for key in _PLACES):
        kept = {key: value for key, value in content.items() if key not in _PLACES}
        write_text(path, json.dumps(kept, ensure_ascii=False, indent=2) + "\n")


def _facts(parser: Parser, record: Record) -> ModelFacts:
    bound = getattr(getattr(parser, "encoder", None), "max_tokens", None)
    vocabulary = getattr(parser, "vocabulary", None)
    return ModelFacts(
        parameters=(record.training.parameters if record.training is not None else None) or 0,
        words=len(vocabulary.words) if vocabulary is not None else 0,
        longest=bound - 2 if bound is not None else None,
        reads_tags=parser.reads_tags,
        predicts_tags=parser.predicts_tags,
        label_attention=getattr(getattr(parser, "config", None), "label_attention", False),
        citations=parser.citations,
    )


def _description(
    name: str,
    licence: str,
    config: RunConfig,
    record: Record,
    manifest: Manifest,
    files: Mapping[str, StoredFile],
) -> Package:
    day = record.finished.astimezone(datetime.UTC)
    # No folder of this machine.
    settings = {
        key: Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
        for key, value in config.overrides.items()
    }
    return Package(
        format=FORMAT,
        name=name,
        version=f"{day.year}.{day.month}.{day.day}",
        license=licence,
        program=__version__,
        kind=config.kind,
        variant=config.variant,
        size=config.size,
        seed=config.seed,
        settings=settings,
        finished=record.finished,
        commit=record.commit,
        treebank=Trained(
            name=manifest.name,
            title=manifest.title,
            language=manifest.language,
            track=manifest.track,
            licence=manifest.licence,
            source=manifest.source,
            citation=manifest.citation,
            commit=manifest.commit,
            fingerprints=record.treebank.fingerprints,
            transforms=manifest.transforms,
            sentences=_sentences(manifest, record),
            learnt=config.train.sentences,
        ),
        scores=_scores(record),
        files=dict(files),
    )


def _sentences(manifest: Manifest, record: Record) -> dict[str, list[int]]:
    """The sentences of each split: as they were scored, or as the manifest declares them."""
    found: dict[str, list[int]] = {}
    for split in SPLITS:
        scored = record.result(split) if split != "train" else None
        if scored is not None:
            found[split] = [scored.sentences]
        else:
            found[split] = list(manifest.splits[split].sentences or ())
    return found


def _scores(record: Record) -> dict[str, dict[str, Score]]:
    """The figures that tables show, by split and metric, each with the long signature."""
    found: dict[str, dict[str, Score]] = {}
    for split in ("dev", "test"):
        if (result := record.result(split)) is not None:
            found[split] = {
                name: Score(
                    figures={
                        figure: one.figures.get(figure) for figure in metric_named(name).tabled
                    },
                    signature=one.signature_long,
                )
                for name, one in result.metrics.items()
            }
    return found


def _check_place(folder: Path) -> None:
    """Make sure that nothing is replaced but a package."""
    if not folder.is_dir():
        if folder.exists() or folder.is_symlink():
            raise PackageError(f"{folder}: is no folder; move it away, or choose another --to")
        return
    try:
        package = read_package(folder)
    except PackageError:
        package = None
    own = {CARD, PACKAGE, _ATTRIBUTES, *(package.files if package is not None else ())}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    other = sorted(found - own)
    if other or folder.is_symlink():
        raise PackageError(
            f"{folder}: has {other[0] if other else 'another place'}, which is not of a package "
            "that was written here. Move it away, or choose another --to or --name"
        )


def _own_licence(manifest: Manifest) -> str:
    """The licence of a model of which nobody has said one."""
    if manifest.track == "mini":
        return "MIT"
    found = None if manifest.track in LICENSED else licence_identifier(manifest.licence)
    if found is None:
        raise PackageError(
            f"{manifest.name} is under '{manifest.licence}': whether, and under which licence, a "
            "model with its words may be shared is yours to find out. Say it with --license: an "
            "identifier such as cc-by-nc-4.0, or a sentence"
        )
    return found


def _warnings(package: Package, facts: ModelFacts) -> list[str]:
    found = []
    treebank = package.treebank
    if treebank.track in LICENSED:
        found.append(
            f"{treebank.name} is licensed ({treebank.licence}). The package has no sentence of it, "
            f"but the {facts.words:,} words of its training split with their frequencies: make "
            "sure that you may share them"
        )
    if "test" not in package.scores:
        found.append(
            "the run was not scored on test, because dev selected another variant; the card has "
            "its scores on dev alone"
        )
    return found


def licence_identifier(text: str) -> str | None:
    """Return what the hub calls a licence, such as ``cc-by-4.0`` for ``CC BY 4.0``."""
    found = "-".join(text.lower().split())
    return found if found in LICENCES else None


def write_card(package: Package, facts: ModelFacts) -> str:
    """Return the card of a package: Markdown, with what the hub reads of it in front, as YAML."""
    forms = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown
    )
    forms.filters["json"] = partial(json.dumps, ensure_ascii=False)
    forms.filters["number"] = lambda value: f"{value:,}"
    forms.filters["line"] = lambda text: " ".join(text.split())
    forms.filters["cell"] = lambda text: " ".join(text.split()).replace("|", "\\|")
    layers = kind_named(package.kind).layers
    return forms.get_template("card.md.jinja").render(
        package=package,
        facts=facts,
        front=_front(package),
        layers=" and ".join(layers),
        finds_trees="constituents" in layers,
        finds_heads="dependencies" in layers,
        papers=[*facts.citations, *[_LABEL_ATTENTION][: facts.label_attention]],
        software=SOFTWARE.format(version=package.program),
        tables=_tables(package),
        licensed=package.treebank.track in LICENSED,
        generated=package.treebank.track == "mini",
        sizes={
            name: " or ".join(map("{:,}".format, found)) or "not stated"
            for name, found in package.treebank.sentences.items()
        },
    )


def _front(package: Package) -> dict[str, Any]:
    """What the hub reads of a card; of the scores those on test, or on dev where there are none."""
    identifier = licence_identifier(package.license)
    language = LANGUAGES.get(package.treebank.language.lower())
    tasks = [_TASKS[metric][0] for metric in kind_named(package.kind).metrics if metric in _TASKS]
    split = "test" if "test" in package.scores else "dev"
    dataset = {"type": package.treebank.name, "name": package.treebank.title, "split": split}
    results = []
    for name, score in package.scores.get(split, {}).items():
        metric = metric_named(name)
        figures = {key: value for key, value in score.figures.items() if key in _FIGURES}
        results.append(
            {
                "task": {"type": "token-classification", "name": _TASKS.get(name, ("", name))[1]},
                "dataset": dataset | {"args": {"signature": score.signature}},
                "metrics": [
                    {"type": _FIGURES[key], "name": metric.title(key), "value": round(value, 2)}
                    for key, value in figures.items()
                    if value is not None
                ],
            }
        )
    scored = [one for scores in package.scores.values() for one in scores.values()]
    kinds = {_FIGURES[key] for one in scored for key in one.figures if key in _FIGURES}
    front = {
        "language": [language] if language else None,
        "license": identifier or "other",
        "license_name": None if identifier else " ".join(package.license.split()),
        "library_name": "spmrl_bench",
        "tags": ["spmrl_bench", *tasks, "parsing", "treebank", package.kind],
        "datasets": [package.treebank.name],
        "metrics": sorted(kinds) or None,
        "model-index": [{"name": package.name, "results": results}],
    }
    return {key: value for key, value in front.items() if value is not None}


def _tables(package: Package) -> list[dict[str, Any]]:
    """A table for each metric: its title, headings, rows and signatures."""
    shown = lambda value: "" if value is None else f"{value:.2f}"  # noqa: E731
    tables = []
    for name in dict.fromkeys(name for scores in package.scores.values() for name in scores):
        metric = metric_named(name)
        rows, signatures = [], []
        for split, scores in package.scores.items():
            if name not in scores:
                continue
            figures = scores[name].figures
            rows.append([split, *(shown(figures.get(figure)) for figure in metric.tabled)])
            signatures.append(f"{split}: {scores[name].signature}")
        titles = [metric.title(figure) for figure in metric.tabled]
        task = _TASKS.get(name, ("", name))[1]
        tables.append({"title": task, "titles": titles, "rows": rows, "signatures": signatures})
    return tables
