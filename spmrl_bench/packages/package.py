"""A run's best parser as a package: a folder for the hub or a colleague, a zip file, a wheel.

Everything that the package says of itself comes from the record of the run, so a run has to be
scored first; and the parser is loaded once more from what was written before anybody sees it. The
same run gives the same bytes, whenever and wherever it is packaged with the same releases.

What is handed on of the parser, and what is not, is in :mod:`spmrl_bench.packages.contents`.
"""

from __future__ import annotations

import datetime
import json
import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from spmrl_bench import __version__
from spmrl_bench.errors import PackageError, remedy
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, read_config
from spmrl_bench.leaderboard.compare import find_record
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.packages.card import LICENSED, Nature, summary, write_card
from spmrl_bench.packages.contents import check_outside, without_folder, write_parser
from spmrl_bench.packages.description import (
    CARD,
    FORMAT,
    PACKAGE,
    Package,
    Score,
    StoredFile,
    Trained,
    read_package,
)
from spmrl_bench.packages.hub_names import licence_identifier
from spmrl_bench.packages.stable_zip import write_zip
from spmrl_bench.packages.wheel import wheel_name, write_wheel
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.storage.files import put, write_folder
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.manifest import SPLITS, Manifest

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST_NAME = 80
_VERSION = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*))*((a|b|rc)\d+)?(\.post\d+)?")
# Beside the listed files; large files of a repository are kept apart by git.
_ATTRIBUTES = ".gitattributes"
_LARGE_FILES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True)
class Packaged:
    """What was written.

    Attributes:
        folder: of the package.
        archives: a zip file, a wheel, as far as they were asked for.
        warnings: what whoever shares it has to know, a sentence each.
    """

    folder: Path
    archives: list[Path] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def package_run(
    run: Path,
    to: Path,
    *,
    results: Path = Path("results"),
    name: str | None = None,
    version: str | None = None,
    licence: str | None = None,
    as_zip: bool = False,
    as_wheel: bool = False,
) -> Packaged:
    """Package the best parser of a run.

    Args:
        run: its folder.
        to: the folder in which the package, a folder of its name, and its archives are written;
            what an earlier call has written there is replaced.
        results: folder of the results, with the record of the run.
        name: of the package: small letters, digits and ``_``. By default ``spmrl_bench_`` and the
            treebank.
        version: of the package, such as ``1.2``; by default the day on which the run was scored.
        licence: under which the model is shared. By default that of the treebank, if it is an
            open one under a licence that everybody knows.
        as_zip, as_wheel: whether to write these too.

    Raises:
        PackageError: name or version will not do, the licence is missing, the parser reads files
            that cannot be packaged, something else is in the way, or it cannot be written.
        CheckpointError: the folder holds no run, or its parser cannot be loaded.
        RecordError: the run was not scored.
        TreebankError: its treebank is not known here.
    """
    config = read_config(run / "run.json")
    record = find_record(str(run), results)
    manifest = load_manifest(config.treebank)
    name = _checked_name(name or f"spmrl_bench_{_identifier(config.treebank)}")
    version = _checked_version(version or _day(record))
    licence = licence or _own_licence(manifest)
    check_outside(run, config.model)
    folder = to / name
    _check_place(folder)
    describe = partial(_description, name, version, licence, config, record, manifest)
    try:
        nature = _written(folder, run, record, describe)
        package = read_package(folder)
        if package is None:
            raise PackageError(f"{folder}: was removed while it was written")
        archives = []
        if as_zip:
            archives.append(to / f"{name}-{version}.zip")
            files = (CARD, PACKAGE, *sorted(package.files))
            write_zip(archives[-1], {f"{name}/{file}": folder / file for file in files})
        if as_wheel:
            archives.append(to / wheel_name(package))
            write_wheel(archives[-1], package, summary(package), folder)
    except OSError as error:
        raise PackageError(
            f"{error.filename or to}: cannot be written: {error.strerror or error}. "
            f"{remedy(error)}, or choose another --to folder"
        ) from None
    return Packaged(folder, archives, _warnings(package, nature))


def _written(folder: Path, run: Path, record: Record, describe: Any) -> Nature:
    """Write the folder of the package; what the parser in it is like."""
    natures: list[Nature] = []

    def fill(new: Path) -> None:
        parser = load_parser(run, "cpu")
        if best_weights(run) != record.weights:
            raise PackageError(f"{run}: is being trained; package it when training has ended")
        package = describe(files=write_parser(parser, new))
        put(new / PACKAGE, [_json(package)])
        natures.append(_nature(load_parser(new, "cpu"), record))
        put(new / CARD, [write_card(package, natures[-1]).encode()])
        put(new / _ATTRIBUTES, [_LARGE_FILES])

    write_folder(folder, fill)
    return natures[-1]


def _nature(parser: Parser, record: Record) -> Nature:
    bound = getattr(getattr(parser, "encoder", None), "max_tokens", None)
    vocabulary = getattr(parser, "vocabulary", None)
    return Nature(
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
    version: str,
    licence: str,
    config: RunConfig,
    record: Record,
    manifest: Manifest,
    files: Mapping[str, StoredFile],
) -> Package:
    return Package(
        format=FORMAT,
        name=name,
        version=version,
        license=licence,
        program=__version__,
        kind=config.kind,
        variant=config.variant,
        size=config.size,
        seed=config.seed,
        settings={key: without_folder(value) for key, value in config.settings.items()},
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


def _json(package: Package) -> bytes:
    text = json.dumps(package.model_dump(mode="json"), ensure_ascii=False, indent=1)
    return f"{text}\n".encode()


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


def _identifier(name: str) -> str:
    """A treebank's name as part of that of a module."""
    return re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")


def _checked_name(name: str) -> str:
    reserved = {*sys.stdlib_module_names, *keyword.kwlist, "spmrl_bench"}
    if not _NAME.fullmatch(name) or name in reserved or len(name) > _LONGEST_NAME:
        raise PackageError(
            f"--name {name[:100]}: expected up to {_LONGEST_NAME} small letters, digits and single "
            "'_' between them, beginning with a letter, and no name that Python or this program "
            "has: a wheel is imported by it. For instance spmrl_bench_german"
        )
    return name


def _day(record: Record) -> str:
    """The day of a record as a version."""
    day = record.finished.astimezone(datetime.UTC)
    return f"{day.year}.{day.month}.{day.day}"


def _checked_version(version: str) -> str:
    if not _VERSION.fullmatch(version):
        raise PackageError(
            f"--version {version[:100]}: expected numbers with dots between them, such as 1.2 or "
            "2026.11.23 (PEP 440), without zeros in front"
        )
    return version


def _own_licence(manifest: Manifest) -> str:
    """The licence of a model of which nobody has said one."""
    if manifest.track == "mini":
        return "MIT"
    found = licence_identifier(manifest.licence) if manifest.track not in LICENSED else None
    if found is None:
        raise PackageError(
            f"{manifest.name} is under '{manifest.licence}': whether, and under which licence, a "
            "model with its words may be shared is yours to find out. Say it with --license: an "
            "identifier such as cc-by-nc-4.0, or a sentence"
        )
    return found


def _warnings(package: Package, nature: Nature) -> list[str]:
    found = []
    treebank = package.treebank
    if treebank.track in LICENSED:
        found.append(
            f"{treebank.name} is licensed ({treebank.licence}). The package has no sentence of it, "
            f"but the {nature.words:,} words of its training split with their frequencies: make "
            "sure that you may share them"
        )
    if "test" not in package.scores:
        found.append(
            "the run was not scored on test, because dev selected another variant; the card has "
            "its scores on dev alone"
        )
    return found
