"""Saved parsers of others are loaded, or refused in one message, within bounds of time and memory.

Each change of the list is loaded here and asked for the parses of a few sentences. ``make attack``
does the same by the command line.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.process.pools import peak_memory_bytes
from spmrl_bench.trees.parse import Parse
from tests.damage import forget_digest
from tests.reliability.hostile_models import HARMS, MODELS, Harm, save_models
from tests.reliability.tally import Tally

SENTENCES = [["the", "dog", "sees", "zebras", "."], ["dogs"]]
TAGS = [["D", "N", "V", "N", "P"], ["N"]]
SECONDS, MEGABYTES = 2.0, 500

# Building these takes a second or two each; attacks by the command line have them.
SLOW = ("million", "32 MB", "33 MB")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return folder


def harmed(harm: Harm, models: Path, folder: Path) -> Path:
    copy = folder / "model"
    shutil.copytree(models / harm.model, copy)
    harm.do(copy)
    return copy


def parsed(folder: Path) -> list[Parse]:
    return list(load_parser(folder, "cpu").parse(SENTENCES, TAGS))


def test_the_list_is_long_and_says_why() -> None:
    names = Counter(map(str, HARMS))
    assert names.most_common(1)[0][1] == 1
    assert len(HARMS) >= 150
    assert {harm.model for harm in HARMS} == set(MODELS)
    assert all((harm.refused is None) == bool(harm.harmless) for harm in HARMS)


@pytest.mark.parametrize("model", MODELS)
def test_models_of_an_earlier_release_parse_alike(
    model: str, models: Path, tmp_path: Path, tally: Tally
) -> None:
    held = tally("R20", "saved parsers without a digest")
    folder = tmp_path / "model"
    shutil.copytree(models / model, folder)
    if (folder / "weights.safetensors").exists():
        forget_digest(folder)
    held.add()
    assert parsed(folder) == parsed(models / model)


@pytest.mark.parametrize("model", MODELS)
def test_harmed_models_are_refused_or_harmless(
    model: str, models: Path, tmp_path: Path, tally: Tally
) -> None:
    held = tally("R17", "harmed folders of saved parsers")
    parsed(models / model)  # what is imported or built once
    own = [
        harm
        for harm in HARMS
        if harm.model == model and not any(word in harm.name for word in SLOW)
    ]
    problems = []
    for number, harm in enumerate(own):
        folder = harmed(harm, models, tmp_path / str(number))
        before, begun = peak_megabytes(), time.process_time()
        held.add()
        message = None
        try:
            parsed(folder)
        except SpmrlError as error:
            message = str(error)
        except Exception as error:
            problems.append(f"{harm}: {type(error).__name__}: {error}"[:300])
            continue
        took, grown = time.process_time() - begun, peak_megabytes() - before
        if took > SECONDS or grown > MEGABYTES:
            problems.append(f"{harm}: took {took:.1f} s and {grown} MB")
        if (found := problem_of(harm, message)) is not None:
            problems.append(f"{harm}: {found}"[:500])
        shutil.rmtree(folder)
    assert not problems, "\n".join(problems)


def problem_of(harm: Harm, message: str | None) -> str | None:
    """What is wrong with the answer to a change: the message that refused it, or None."""
    if message is not None and len(message) > 3000:
        return f"a message of {len(message)} letters"
    if harm.harmless:
        return None
    return "accepted" if message is None else None if harm.refused in message else message


def peak_megabytes() -> int:
    """The largest memory of the process so far."""
    return (peak_memory_bytes() or 0) >> 20
