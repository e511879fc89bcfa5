"""The record that somebody means: a file, the name of one, or the folder of the run it is of."""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.errors import RecordError
from spmrl_bench.experiments.run_folder import best_weights, read_config
from spmrl_bench.leaderboard.identity import is_of
from spmrl_bench.leaderboard.record import Record, read_record, read_records


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
    path = Path(wanted)
    folder = results_dir / "runs"
    if path.is_file():
        return read_record(path)
    if path.is_dir():
        return _record_of_run(path, folder)
    beginning = path.name.removesuffix(".json")
    found = sorted(folder.glob("*.json")) if beginning == wanted.removesuffix(".json") else []
    matching = [file for file in found if beginning and file.name.startswith(beginning)]
    if len(matching) == 1:
        return read_record(matching[0])
    if matching:
        names = ", ".join(file.stem for file in matching)
        raise RecordError(f"{wanted}: begins the names of several records in {folder}: {names}")
    raise RecordError(
        f"{wanted}: no record; expected the file of a record, the beginning of the name of one in "
        f"{folder}, or a run folder"
    )


def _record_of_run(run: Path, folder: Path) -> Record:
    weights = [best_weights(run)]
    records = [one for one in read_records(folder) if one.members == weights]
    # Runs may end with the same weights; a copy of one may have lost its settings.
    if (settings := run / "run.json").is_file():
        recipe = read_config(settings).model_dump(mode="json")
        records = [one for one in records if is_of(one, recipe, weights)]
    if not records:
        raise RecordError(
            f"{run}: no record of its best parser in {folder}: 'spmrl-bench eval' with the options "
            "of its training writes it"
        )
    return records[-1]
