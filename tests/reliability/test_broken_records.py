"""One broken file among results: every table is made without it, names it, and counts it.

What lies in a folder of results may have been cut by a full disk, copied by hand, written by a
newer release or by somebody who means harm. A part of a record is replaced by what does not belong
there, or its whole file by something else; the hash in its name is right each time, so that it is
the content that has to be refused. Then tables are those of the other records, or, where the change
is one that a record may have, include it.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.board import groups_of
from spmrl_bench.leaderboard.documents import MOST_BYTES, document_name, write_document
from spmrl_bench.leaderboard.frame import by_age, records_frame
from spmrl_bench.leaderboard.multilingual import write_track
from spmrl_bench.leaderboard.published import load_published
from spmrl_bench.leaderboard.record import Record, load_records
from spmrl_bench.leaderboard.tables import results_csv, results_document
from spmrl_bench.leaderboard.writing import to_latex, to_markdown
from tests.builders import cli, make_record
from tests.damage import Damage, raw, sparse, special
from tests.reliability.tally import Tally


def whole() -> dict[str, Any]:
    """The content of a record that is one."""
    return make_record(seed=9).model_dump(mode="json")


def changed(**changes: object) -> bytes:
    return json.dumps(whole() | changes).encode()


CONTENTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not a record: (expected value|EOF)"),
    "truncated": (changed()[:1000], "not a record: "),
    "cut by a kill": (changed()[:-1], "not a record: EOF"),
    "zeros of a crashed disk": (bytes(5000), "not a record: "),
    "no JSON": (b"<html><body>404</body></html>", "not a record: (expected value|EOF)"),
    "not UTF-8": (b'{"variant": "\xe9"}', "not a record: invalid unicode code point"),
    "a list": (b"[1, 2]", "not a record: document: Input should be"),
    "a number": (b"7", "not a record: document: Input should be"),
    "null": (b"null", "not a record: document: Input should be"),
    "a score that is infinite": (changed().replace(b"900.0", b"1e999"), "too large"),
    "of the next release": (changed(schema_version=6, novelty=1), "newer version .* update"),
    "of a far release": (changed(schema_version=10**40), "newer version|a whole number beyond"),
    "of version 1": (changed(schema_version=1), "schema_version is 1, and no version"),
    "of no version": (changed(schema_version=None), "schema_version is null, and no version"),
    "a seed that no table holds": (changed(seed=2**53), "seed: Input should be less than"),
    "a date to come": (changed(finished="2100-01-01T00:00:00Z"), "is yet to come"),
    "minutes below 0": (changed(recipe={"train": {"max_minutes": -1}}), "no number of minutes"),
    "NaN as text": (changed().replace(b"900.0", b'"nan"'), "finite number"),
    "more right than gold": (changed().replace(b'"matched": [2,', b'"matched": [3,'), "holds no"),
    "another figure": (changed().replace(b'"f1": 75.0', b'"f1": 95.0'), "but the counts give 75"),
    "one left out": (changed().replace(b'"skipped": 0', b'"skipped": 1'), "counts give 0"),
    "more sentences": (changed().replace(b'"sentences": 2', b'"sentences": 3'), "2 entries for 3"),
    "a key of nobody": (changed(novelty=1), "Extra inputs"),
    "scored on test unselected": (changed(selected=False), "did not select"),
    "baselines alone": (changed(test=None), "baselines without test"),
    "an ensemble of one": (changed(ensemble=["ab" * 32]), "an ensemble of one member"),
    "signed for dev": (changed().replace(b"split:test", b"split:dev"), "is of another split"),
    "signed for others": (changed().replace(b"k:german-mini", b"k:x"), "is of another treebank"),
    "signed for more": (changed().replace(b"sentences:2", b"sentences:3"), "of another sentences"),
    "signed by another": (changed().replace(b"|split", b"|match:attachment|split"), "other match"),
    "a seed of 10^40": (changed(seed=10**40), "a whole number beyond"),
    "half a surrogate pair": (changed(variant="\ud800"), "hex escape"),
    "a null label": (changed(variant=None), "variant: Input should be a valid string"),
    "a null score": (changed(dev=None), "without dev, which every run has"),
    "a deep recipe": (changed(recipe=json.loads('{"a":' * 250 + "1" + "}" * 250)), "recursion"),
    "settings that are none": (changed(recipe={"settings": ["a"]}), "settings"),
    "files that are none": (changed(recipe={"files": 3}), "files"),
    "100,000 problems": (changed(ensemble=[None] * 100_000), "and 99,980 more$"),
    "counts of another length": (changed().replace(b'"words": [3, 4]', b'"words": [3]'), "entries"),
}  # fmt: skip


def make_file(folder: Path, name: str) -> None:
    data, _ = CONTENTS[name]
    (folder / document_name(data)).write_bytes(data)


def unreadable(folder: Path) -> None:
    path = folder / "locked.json"
    path.write_bytes(changed())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")


def huge(folder: Path) -> None:
    (folder / "huge.json").touch()
    sparse("huge.json", 50 * MOST_BYTES)(folder)


OTHERS: dict[str, tuple[Damage, str]] = {
    "a folder": (special("folder.json", "folder"), "Is a directory"),
    "a named pipe": (special("pipe.json", "pipe"), "a named pipe, expected a file"),
    "a link to nothing": (special("gone.json", "dangling"), "No such file"),
    "a link to itself": (special("loop.json", "loop"), "[Ss]ymbolic links"),
    "a device": (special("zero.json", "device"), "a device, expected a file"),
    "a huge file": (huge, "more than 268435456 bytes"),
    "another name": (raw("renamed.json", changed()), "the content has the name"),
    "no permission": (unreadable, "Permission denied"),
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder of results with two records."""
    for seed in (1, 2):
        write_document(make_record(seed=seed), tmp_path / "runs")
    return tmp_path


def break_it(folder: Path, how: str) -> str:
    """Put a broken file into a folder; returns the reason that is to be given."""
    if how in CONTENTS:
        make_file(folder, how)
        return CONTENTS[how][1]
    make, message = OTHERS[how]
    make(folder)
    return message


@pytest.mark.parametrize("how", [*CONTENTS, *OTHERS])
def test_a_broken_record_is_refused_with_the_reason(results: Path, how: str, tally: Tally) -> None:
    held = tally("R11", "broken files among results")
    sound, _ = load_records(results / "runs")
    before = set((results / "runs").iterdir())
    message = break_it(results / "runs", how)
    (path,) = {*(results / "runs").iterdir()} - before
    held.add()
    records, mistakes = load_records(results / "runs")
    assert records == sound
    (mistake,) = mistakes
    assert mistake.startswith(f"{path}: ")
    assert re.search(message, mistake)
    assert len(mistake) < 2000


def test_a_table_goes_without_broken_records_and_names_each(results: Path) -> None:
    arguments = ("results", "table", "--results", str(results), "--format", "csv")
    sound = cli(*arguments, "--strict")
    assert sound.exit_code == 0
    before = set((results / "runs").iterdir())
    for how in (*CONTENTS, *OTHERS):
        if how != "no permission":
            break_it(results / "runs", how)
    broken = {*(results / "runs").iterdir()} - before
    found = cli(*arguments)
    assert (found.exit_code, found.stdout) == (0, sound.stdout)
    for path in broken:
        assert f"{path}: " in found.stderr
    assert f"LEFT OUT: {len(broken)} files or lines that cannot be read" in found.stderr
    (results / "table.md").unlink()
    strict = cli(*arguments, "--strict")
    assert (strict.exit_code, strict.stdout) == (1, "")
    assert f"\n{len(broken)} files or lines cannot be read, so there is no" in strict.stderr
    assert not (results / "table.md").exists()


def test_without_any_sound_record_there_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    make_file(tmp_path / "runs", "empty")
    found = cli("results", "table", "--results", str(tmp_path))
    assert (found.exit_code, found.stdout) == (1, "")
    assert "no records that can be read in" in found.stderr


def test_a_folder_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("no folder")
    found = cli("results", "table", "--results", str(tmp_path))
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr == f"spmrl-bench: {tmp_path}/runs: cannot be read: Not a directory\n"


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    for recipe in ({"a": "\ud800"}, {"a": 10**40}, {"a": float("inf")}):
        with pytest.raises(RecordError, match=r"cannot write the record: "):
            write_document(make_record(recipe=recipe), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_hidden_files_are_no_records(results: Path) -> None:
    (results / "runs" / "._5f3a.json").write_bytes(b"what some systems keep of a file")
    assert cli("results", "table", "--results", str(results), "--strict").exit_code == 0


def test_comparisons_go_without_broken_records(results: Path) -> None:
    one, other = (path.stem for path in sorted((results / "runs").glob("*.json")))
    make_file(results / "runs", "empty")
    found = cli("compare", one, other, "--results", str(results), "--trials", "10")
    assert found.exit_code == 0, found.output
    path = results / "runs" / document_name(b"")
    broken = cli("compare", one, str(path), "--results", str(results))
    assert (broken.exit_code, broken.stdout) == (1, "")
    assert "not a record" in broken.stderr


BAD: tuple[object, ...] = (
    None, True, -1, 0, 2**63 - 1, 10**40, 1e308, -0.5, "", "x", "a|b:c", "\ud83d", "1" * 5000, [],
    [[]], ["x"], {}, {"a": None}, {"skipped": "x"},
)  # fmt: skip


def places(content: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the parts of a record are; of lists only the first two."""
    if at:
        yield at
    if isinstance(content, dict):
        for key, part in content.items():
            yield from places(part, (*at, key))
    elif isinstance(content, list):
        for number, part in enumerate(content[:2]):
            yield from places(part, (*at, number))


def replaced(content: Any, place: tuple[str | int, ...], value: object) -> Any:
    new = copy.deepcopy(content)
    part = new
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return new


PUBLISHED = load_published()[0]


def make_tables(records: list[Record], folder: Path) -> None:
    """Everything that is made of records."""
    records_frame(by_age(records))
    groups = groups_of(by_age(records))
    document = results_document(groups, PUBLISHED)
    for text in (to_markdown(document), to_latex(document)):
        text.encode()
    results_csv(groups, PUBLISHED).encode()
    for track in {group.track for group in groups}:
        write_track(groups, track, folder, PUBLISHED)


def tried_parts() -> list[bytes]:
    """Records with one part replaced, in every way."""
    recipe = {
        "kind": "chart", "variant": "charlstm", "size": "small", "seed": 9, "select": "brackets.f1",
        "settings": {"train.max_epochs": 5}, "files": {"model.vectors": "ab"},
        "fingerprints": {"constituents": "ab"}, "model": {"layers": 2}, "train": {"max_epochs": 5},
    }  # fmt: skip
    content = json.loads(changed(recipe=recipe, commit="ab", ensemble=["ab" * 32, "cd" * 32]))
    listed = list(places(content))
    return [json.dumps(replaced(content, at, value)).encode() for at in listed for value in BAD]


@pytest.mark.parametrize(
    ("cases", "at_once"), [(200, 200), pytest.param(None, 1, marks=pytest.mark.campaign)]
)
def test_any_part_of_a_record_may_be_wrong(
    tmp_path: Path, cases: int | None, at_once: int, tally: Tally
) -> None:
    held = tally("R11", "records with a part replaced, and tables of those that may be so")
    sound = [make_record(seed=1), make_record(seed=2)]
    tried = tried_parts()
    tried = tried if cases is None else random.Random(5).sample(tried, cases)
    refused = 0
    for start in range(0, len(tried), at_once):
        some = {document_name(data): data for data in tried[start : start + at_once]}
        folder = tmp_path / str(start)
        folder.mkdir()
        for name, data in some.items():
            held.add()
            (folder / name).write_bytes(data)
        records, mistakes = load_records(folder)
        assert len(records) + len(mistakes) == len(some)
        refused += len(mistakes)
        if records:
            make_tables([*sound, *records], tmp_path / "tables")
    assert 0.4 < refused / len(tried) < 0.9
