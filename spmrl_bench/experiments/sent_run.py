"""A run that is trained where nothing is shared: what it takes along, and what it leaves there.

The training and dev sentences go with it; treebanks that not anybody may have only if the user
says so. It is trained in a folder of the other machine's user, and goes on there when it was broken
off. What comes back is the folder of the run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from rich.console import Console

from spmrl_bench.errors import RecipeError
from spmrl_bench.executors.parcel import Parcel, there
from spmrl_bench.executors.unit import Unit
from spmrl_bench.experiments.clean import clean_runs
from spmrl_bench.experiments.one_run import Run, train_run
from spmrl_bench.experiments.ownership import owned
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.experiments.run_folder import begun_afresh, finished
from spmrl_bench.living import this_machine
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.treebanks.manifest import Manifest
from spmrl_bench.treebanks.travelling import FREE, TravellingTreebank, packed
from spmrl_bench.trees.parse import Layer


@dataclass(frozen=True)
class _Sent:
    """A run on its way: a treebank without files, and the name of its folder."""

    manifest: Manifest
    fingerprints: dict[Layer, str]
    files: dict[tuple[str, Layer], str]
    config: RunConfig
    folder: str


def parcel_of(unit: Unit, licensed: bool) -> Parcel:
    """What is sent of a run's training.

    Args:
        unit: of a function :func:`~spmrl_bench.experiments.one_run.train_run`.
        licensed: whether treebanks may be sent that not anybody may have.

    Raises:
        RecipeError: they may not, or the run needs pre-trained files.
    """
    run, fresh, note = unit.arguments
    assert isinstance(run, Run)
    config, bank = run.config, run.treebank
    if bank.track not in FREE and not licensed:
        raise RecipeError(
            f"{run.title}: {bank.name} is of the track {bank.track}, whose licence may not let its "
            "sentences go to other machines; if yours does, say send=all, or use a folder that all "
            "machines share"
        )
    if config.files:
        raise RecipeError(
            f"{run.title}: reads pre-trained files ({', '.join(config.files)}), which are not "
            "sent; use a folder that all machines share"
        )
    metrics = config.criterion.metrics
    wanted = {*kind_named(config.kind).layers}
    wanted |= {layer for name in metrics for layer in metric_named(name).layers}
    layers = [layer for layer in bank.layers if layer in wanted]
    contents: dict[tuple[str, Layer], bytes] = {}
    for layer in layers:
        contents |= packed(bank, ("train", "dev"), layer)
    digests = {key: hashlib.sha256(data).hexdigest() for key, data in contents.items()}
    name = [this_machine(), str(run.folder), config.model_dump(mode="json")]
    away = hashlib.sha256(json.dumps(name, sort_keys=True).encode()).hexdigest()[:32]
    sent = _Sent(
        manifest=bank.manifest,
        fingerprints={
            layer: bank.fingerprint_of(layer) for layer in bank.layers if layer in wanted
        },
        files=digests,
        config=config,
        folder=away,
    )
    return Parcel(
        unit=Unit(unit.title, train_there, (sent, fresh, note), cost=unit.cost),
        files={digests[key]: data for key, data in contents.items()},
        home=run.folder,
        lock=owned(run.folder),
        away=away,
        keep=bank.track in FREE,
    )


def train_there(
    sent: _Sent, fresh: str, note: str | None, *, device: str, console: Console | None = None
) -> None:
    """Train a run that was sent; what only going on needs is dropped when it has ended."""
    folder = there("runs") / sent.folder
    if finished(folder, sent.config) and (not fresh or begun_afresh(folder, fresh)):
        return  # it has not arrived
    bank = TravellingTreebank(sent.manifest, sent.fingerprints, sent.files, there("files"))
    train_run(Run(bank, sent.config, folder), fresh, note, device=device, console=console)
    for _ in clean_runs(folder):
        pass
