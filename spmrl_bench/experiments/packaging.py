"""A run's best parser as a package: a folder to share, in the layout of a repository of the hub.

All that the package and its card say comes from the record of the run, so a run has to be scored
first. The same run gives the same bytes. The order of words in the training sentences and folders
of this machine are taken out; the packaged parser parses as the saved one.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from spmrl_bench import __version__
from spmrl_bench.errors import PackageError, SpmrlError, remedy
from spmrl_bench.experiments.evaluation import encoders_of
from spmrl_bench.experiments.recipe import LANGUAGES
from spmrl_bench.experiments.run_folder import read_config
from spmrl_bench.leaderboard.compare import find_record
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.writing import templates
from spmrl_bench.nn.inputs.pretrained import encoder_paths, read_encoder_description
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.legacy import short
from spmrl_bench.parsing.models import (
    CARD,
    FORMAT,
    PACKAGE,
    PARSER,
    StoredFile,
    is_model_file,
    load_parser,
)
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import read_regular, write_folder, write_new, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.training import best_weights
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.manifest import SPLITS, Manifest

#: How the program is cited, as the README has it.
SOFTWARE = """\
@software{{spmrl_bench,
  author  = {{{{spmrl_bench contributors}}}},
  title   = {{{{spmrl_bench: a benchmark suite for neural parsers over many treebanks}}}},
  version = {{{version}}},
  year    = {{2026}}
}}"""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")  # the hub's rule
# What the hub calls licences (docs/hub/repositories-licenses).
_LICENCE = re.compile(
    r"cc0-1\.0|cc-by(-nc)?(-sa|-nd)?-(2\.0|2\.5|3\.0|4\.0)|[al]?gpl-[23]\.[01]|mit|apache-2\.0"
    r"|bsd-[23]-clause|lgpl-lr|odc-by|odbl|pddl|etalab-2\.0|unlicense|isc"
)
# Beside the listed files; large files of a repository are kept apart by git.
_ATTRIBUTES = ".gitattributes", b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
# Where an encoder's settings and tokenizer were read from, as its library notes it.
_PLACES = ("_name_or_path", "name_or_path")
_LARGEST_NOTES = 1 << 20  # bytes; a whole vocabulary is larger, and has no notes
_TASKS = {"brackets": "constituency-parsing", "attachment": "dependency-parsing"}
# What the hub calls figures; others are left out there, and stand in the table all the same.
_FIGURES = {name: name for name in ("f1", "precision", "recall")}
_FIGURES |= {"las": "accuracy", "uas": "accuracy"}
_LABEL_ATTENTION = (
    "Mrini, Dernoncourt, Tran, Bui, Chang & Nakashole (2020). Rethinking Self-Attention: Towards "
    "Interpretability in Neural Parsing. Findings of EMNLP."
)


def package_run(
    run: Path,
    to: Path,
    *,
    results: Path = Path("results"),
    name: str | None = None,
    licence: str | None = None,
    bf16: bool = False,
) -> tuple[Path, list[str]]:
    """Package the best parser of a run as a new folder below ``to``, with weights that are rounded
    to bfloat16 or as they are; return it, and what whoever shares it has to know, a sentence each.
    By default the name is ``spmrl_bench_``, the treebank, and the encoder that the parser reads;
    the licence a well-known open one of the treebank. A SpmrlError says why there is no package."""
    config = read_config(run / "run.json")
    record = find_record(str(run), results)
    manifest = load_manifest(config.treebank)
    own_name = "_".join([manifest.name, *sorted(encoders_of(config.model))]).lower()
    name = name or "spmrl_bench_" + re.sub("[^a-z0-9]+", "_", own_name).strip("_")
    if not _NAME.fullmatch(name):
        raise PackageError(
            f"--name {name[:100]}: expected up to 96 letters, digits, '-', '_' and '.', which "
            "stands neither first nor last"
        )
    licence = licence or _own_licence(manifest)
    known = encoder_paths()  # which whoever loads the parser can fetch
    outside = {key: one for key, one in config.model.outside().items() if one not in known}
    if outside:
        places = ", ".join(f"model.{key} = {place}" for key, place in short(outside).items())
        raise PackageError(
            f"{run}: its parser reads weights that are not its own, and not packaged ({places}). "
            "Only a parser whose weights are all its own can be shared: one that fine-tunes an "
            f"encoder, has one of the hub or of {', '.join(known)}, or begins with word vectors "
            "(model.word_vectors)"
        )
    if os.path.lexists(to / name):
        raise PackageError(f"{to / name}: is there; move it away, or choose another --to or --name")
    warnings: list[str] = []

    def fill(new: Path) -> None:
        parser: Any = load_parser(run, "cpu")
        if best_weights(run) != record.weights:
            raise PackageError(f"{run}: is being trained; package it when training has ended")
        if type(parser).prepare_for_sharing is Parser.prepare_for_sharing:
            warnings.append(
                f"the kind {parser.kind} has no prepare_for_sharing: its files may tell of the "
                "sentences it was trained on, and of this machine. Look at them"
            )
        if bf16:
            parser.bfloat16()
        files = write_parser(parser, new)
        package = _description(name, licence, record, manifest) | {
            "rounded": "bfloat16" if bf16 else None,
            "files": {path: file.model_dump() for path, file in files.items()},
        }
        write_new(new / PACKAGE, f"{json.dumps(package, ensure_ascii=False, indent=1)}\n".encode())
        parser = load_parser(new, "cpu")
        weights = record.training.parameters if record.training is not None else None
        write_new(new / CARD, write_card(package, parser, weights).encode())
        write_new(new / _ATTRIBUTES[0], _ATTRIBUTES[1])
        if not manifest.redistributable:
            words = len(parser.vocabulary.words)
            warnings.append(
                f"{manifest.name} is licensed ({manifest.licence}). The package has no sentence of "
                f"it, but the {words:,} words of its training split with their frequencies: make "
                "sure that you may share them"
            )
        if record.test is None:
            warnings.append("the card has scores on dev alone: dev selected another variant")

    try:
        write_folder(to / name, fill)
    except OSError as error:
        raise PackageError(
            f"{error.filename or to}: cannot be written: {error.strerror or error}. "
            f"{remedy(error)}, or choose another --to folder"
        ) from None
    return to / name, warnings


def best_of(runs: Iterable[Path], results: Path) -> tuple[list[Path], list[SpmrlError]]:
    """The best on dev of each treebank's runs with an encoder and without, and errors of others."""
    scored: list[tuple[float, Path, tuple[str, bool]]] = []
    errors: list[SpmrlError] = []
    for run in runs:
        try:
            config, record = read_config(run / "run.json"), find_record(str(run), results)
        except SpmrlError as error:
            errors.append(error)
            continue
        key = config.treebank, bool(encoders_of(config.model))
        scored.append((record.dev_score or 0.0, run, key))
    return [*{key: run for _, run, key in sorted(scored)}.values()], errors


def write_parser(parser: Parser, folder: Path) -> dict[str, StoredFile]:
    """Write a parser, which changes, into an empty folder; return the files as packages list them,
    or raise a PackageError for one that no package can have."""
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
            content = parse_json(read_regular(path), wide=True)
            if isinstance(content, dict) and any(key in content for key in _PLACES):
                kept = {key: value for key, value in content.items() if key not in _PLACES}
                write_text(path, json.dumps(kept, ensure_ascii=False, indent=2) + "\n")
        found[name] = StoredFile(sha256=file_digest(path), size=path.stat().st_size)
    return found


def _description(name: str, licence: str, record: Record, manifest: Manifest) -> dict[str, Any]:
    """What the package says of itself but for its files, as JSON has it."""
    day = record.finished.astimezone(datetime.UTC)
    results = {"dev": record.dev, "test": record.test}
    scored = {split: result for split, result in results.items() if result is not None}
    declared = {split: list(manifest.splits[split].sentences or ()) for split in SPLITS}
    as_declared = {"name", "title", "language", "track", "licence", "redistributable"}
    as_declared |= {"source", "citation", "commit"}
    as_recorded = {"kind", "variant", "size", "seed", "finished", "commit"}
    return {
        "format": FORMAT,
        "name": name,
        "version": f"{day.year}.{day.month}.{day.day}",
        "license": licence,
        "program": __version__,
        **record.model_dump(mode="json", include=as_recorded),
        "settings": {  # no folder of this machine
            key: Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
            for key, value in record.settings.items()
        },
        "treebank": {
            **manifest.model_dump(include=as_declared),
            "fingerprints": record.treebank.fingerprints,
            "transforms": list(manifest.transforms),
            "escapes": manifest.options.get("escapes") or "brackets",
            "sentences": declared | {split: [one.sentences] for split, one in scored.items()},
            "learnt": record.recipe.get("train", {}).get("sentences"),
        },
        "scores": {
            split: {
                metric: {
                    "figures": {key: one.figures.get(key) for key in metric_named(metric).tabled},
                    "signature": one.signature_long,
                }
                for metric, one in result.metrics.items()
            }
            for split, result in scored.items()
        },
    }


def _own_licence(manifest: Manifest) -> str:
    """The licence of a model of which nobody has said one."""
    if manifest.track == "mini":
        return "MIT"
    if found := licence_identifier(manifest.licence):
        return found
    raise PackageError(
        f"{manifest.name} is under '{manifest.licence}': whether, and under which licence, a "
        "model with its words may be shared is yours to find out. Say it with --license: an "
        "identifier such as cc-by-nc-4.0, or a sentence"
    )


def licence_identifier(text: str) -> str | None:
    """Return what the hub calls a licence, such as ``cc-by-4.0`` for ``CC BY 4.0 or later``."""
    found = "-".join(text.lower().removesuffix(" or later").split())
    return found if _LICENCE.fullmatch(found) else None


def write_card(package: Mapping[str, Any], parser: Any, weights: int | None) -> str:
    """The card of a described package: Markdown, behind what the hub reads of it, as YAML."""
    forms = templates(Path(__file__).parent, escape=False)
    forms.filters["json"] = partial(json.dumps, ensure_ascii=False)
    forms.filters["cents"] = lambda value: "" if value is None else f"{value:.2f}"
    forms.filters["line"] = lambda text: " ".join(text.split())
    forms.filters["cell"] = lambda text: " ".join(text.split()).replace("|", "\\|")
    own = getattr(parser.config, "label_attention", None)
    treebank, scores = package["treebank"], package["scores"]
    card = forms.get_template("card.md.jinja").render(
        package=package,
        treebank=treebank,
        parser=parser,
        weights=weights,
        encoders={
            name: read_encoder_description(name)
            for name in parser.config.files().values()
            if name in encoder_paths()
        },
        longest=getattr(getattr(parser, "encoder", None), "max_tokens", None),
        front=_front(package),
        layers=kind_named(package["kind"]).layers,
        papers=[*parser.citations, *([_LABEL_ATTENTION] if own else [])],
        software=SOFTWARE.format(version=package["program"]),
        tasks={name: task.replace("-", " ").capitalize() for name, task in _TASKS.items()},
        scored={name: metric_named(name) for one in scores.values() for name in one},
        sizes={
            name: " or ".join(map("{:,}".format, found)) or "not stated"
            for name, found in treebank["sentences"].items()
        },
    )
    return f"{card}\n"


def _front(package: Mapping[str, Any]) -> dict[str, Any]:
    """What the hub reads of a card; of the scores those on test, or on dev where there are none."""
    treebank, scores, licence = package["treebank"], package["scores"], package["license"]
    identifier = licence_identifier(licence)
    language = LANGUAGES.get(treebank["language"].lower(), "").split()[-1:]
    tasks = [_TASKS[name] for name in kind_named(package["kind"]).metrics if name in _TASKS]
    split = "test" if "test" in scores else "dev"
    dataset = {"type": treebank["name"], "name": treebank["title"], "split": split}
    results: list[dict[str, Any]] = [
        {
            "task": {"type": "token-classification", "name": _TASKS.get(name, name)},
            "dataset": dataset | {"args": {"signature": score["signature"]}},
            "metrics": [
                {
                    "type": _FIGURES[key],
                    "name": metric_named(name).title(key),
                    "value": round(value, 2),
                }
                for key, value in score["figures"].items()
                if key in _FIGURES and value is not None
            ],
        }
        for name, score in scores.get(split, {}).items()
    ]
    front = {
        "language": language or None,
        "license": identifier or "other",
        "license_name": None if identifier else " ".join(licence.split()),
        "library_name": "spmrl_bench",
        "tags": ["spmrl_bench", *tasks, "parsing", "treebank", package["kind"]],
        "datasets": [treebank["name"]],
        "metrics": sorted({each["type"] for one in results for each in one["metrics"]}) or None,
        "model-index": [{"name": package["name"], "results": results}],
    }
    return {key: value for key, value in front.items() if value is not None}
