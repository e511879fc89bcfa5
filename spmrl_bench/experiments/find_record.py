"""The record that somebody means: a file, the name of one, or the folder of the run it is of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import RecordError
from spmrl_bench.experiments.run_folder import best_weights, read_config
from spmrl_bench.leaderboard.identity import is_of
from spmrl_bench.leaderboard.record import SHIPPED, Record, load_records, read_record
from spmrl_bench.leaderboard.store import files_of


def find_record(wanted: str, results_dir: Path) -> Record:
    """The record of a run.

    Args:
        wanted: path of a record; the beginning of the name of one in ``results_dir/runs``, with
            or without ``.json``; or a run folder, whose newest record with the weights of its
            best parser is taken.
        results_dir: folder of the results.

    Raises:
        RecordError: there is none or there are several, or it is broken.
        CheckpointError: the folder holds no trained parser.
    """
    return _find(wanted, results_dir)[0]


def find_records(wanted: Sequence[str], results_dir: Path) -> tuple[list[Record], list[str]]:
    """The records of several runs, and why files that could be one of them cannot be read.

    Args and errors are those of :func:`find_record`.
    """
    found = [_find(one, results_dir) for one in wanted]
    mistakes = dict.fromkeys(mistake for _, some in found for mistake in some)
    return [record for record, _ in found], list(mistakes)


def _find(wanted: str, results_dir: Path) -> tuple[Record, list[str]]:
    path = Path(wanted)
    folder = results_dir / "runs"
    if path.is_dir():
        return _record_of_run(path, folder)
    if path.exists():
        return read_record(path), []
    beginning = path.name.removesuffix(".json")
    found = []
    if beginning == wanted.removesuffix(".json"):
        found = [*files_of(folder, ".json"), *files_of(results_dir / SHIPPED / "runs", ".json")]
    matching = [file for file in found if beginning and file.name.startswith(beginning)]
    if len(matching) == 1:
        return read_record(matching[0]), []
    if matching:
        names = ", ".join(file.stem for file in matching)
        raise RecordError(f"{wanted}: begins the names of several records in {folder}: {names}")
    raise RecordError(
        f"{wanted}: no record; expected the file of a record, the beginning of the name of one in "
        f"{folder}, or a run folder"
    )


def _record_of_run(run: Path, folder: Path) -> tuple[Record, list[str]]:
    weights = [best_weights(run)]
    all_records, mistakes = load_records(folder)
    records = [one for one in all_records if one.members == weights]
    # Runs may end with the same weights; a copy of one may have lost its settings.
    if (settings := run / "run.json").is_file():
        recipe = read_config(settings).model_dump(mode="json")
        records = [one for one in records if is_of(one, recipe, weights)]
    if not records:
        broken = "".join(f"\nnot read: {mistake}" for mistake in mistakes)
        raise RecordError(
            f"{run}: no record of its best parser in {folder}: 'spmrl-bench eval' with the options "
            f"of its training writes it{broken}"
        )
    return records[-1], mistakes
