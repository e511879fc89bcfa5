"""A whole site over generated records: its links, tables, licences, numbers and folder."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.leaderboard.documents import write_document
from spmrl_bench.site.pages import build_site
from spmrl_bench.site.standings import TreebankResults
from spmrl_bench.treebanks.catalogue import load_manifest
from tests.builders import cli, refused, signed, works
from tests.documents.command_line import parsed
from tests.site.generated import (
    NASTY,
    Structure,
    random_counts,
    run_record,
    run_with_parses,
    system_record,
)

SECRET = "Geheimwort"


def fill(results: Path) -> None:
    """Records of all sorts, of open, generated, licensed and unknown treebanks."""
    for seed in (1, 2):
        run_with_parses("german-mini", "charlstm", seed, 0.4, results)
        run_with_parses("german-mini", "bilstm", seed, 0.1, results)
    for variant, share in (("biaffine", 0.2), ("stack", 0.5)):
        run_with_parses("basque-mini", variant, 1, share, results, metric="attachment")
    for variant, share in (("charlstm", 0.4), ("bilstm", 0.1)):
        record = run_with_parses("german-spmrl", variant, 1, share, results, word=SECRET)
        bank = record.treebank.model_copy(update={"track": "open"})  # which it is not
        write_document(record.model_copy(update={"treebank": bank}), results / "runs")
    reading = {
        split: signed(random_counts(0.95, 40, 1), split, "german-squoia", encoder="e5-small")
        for split in ("dev", "test")
    }
    changed = {"settings": {"train.sentences": 500, "train.max_epochs": 50}}
    for record in (
        run_record("polish-mini", "charlstm", 1, 0.90),
        run_record("polish-mini", "charlstm", 2, 0.90),
        run_record("polish-mini", "bilstm", 1, 0.895),
        run_record("polish-mini", "word-charlstm", 1, 0.5, recipe=changed),
        run_record("polish-mini", "charlstm", 1, 0.3, moment=-60),
        system_record("polish-mini", NASTY, 0.8).model_copy(update={"dev": None}),
        run_record("klingon-qo'noS/../x", "charlstm", 1, 0.6, language="klingon", track="open"),
        run_record("german-squoia", "charlstm", 1, 0.9, track="open"),
        run_record("german-squoia", "e5", 1, 0.95, track="open", **reading),
        system_record("german-squoia", "Other", 0.5, track="open"),
    ):
        write_document(record, results / "runs")
    shipped = run_record("polish-mini", "charlstm", 1, 0.85, moment=5)
    write_document(shipped, results / "shipped" / "runs")


def build(results: Path, folder: Path, extra: Path | None = None) -> int:
    return build_site(load_results([results]), folder, extra)


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    fill(results)
    build(results, results / "site")
    return results / "site"


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, Structure]:
    return {str(path.relative_to(folder)): Structure(path) for path in folder.rglob("*.html")}


def test_every_link_leads_to_a_file_and_every_page_is_linked(
    folder: Path, pages: dict[str, Structure]
) -> None:
    ids = {name: {one.get("id") for _, one in page.elements} for name, page in pages.items()}
    reached: dict[str, set[str]] = {name: set() for name in pages}
    for name, page in pages.items():
        for tag, attributes in page.elements:
            address = attributes.get("href", attributes.get("src"))
            if address is None or (tag == "a" and re.match("https?://", address)):
                continue
            path, _, anchor = address.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            assert (folder / target).is_file(), (name, address)
            assert not target.startswith("..")
            assert not anchor or anchor in ids[target], (name, address)
            reached[name].add(target)
    seen, waiting = {"index.html"}, ["index.html"]
    while waiting:
        new = reached.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    assert seen >= set(pages)


def test_pages_are_sound_and_load_nothing_from_elsewhere(
    folder: Path, pages: dict[str, Structure]
) -> None:
    for name, page in pages.items():
        ids = [one["id"] for _, one in page.elements if "id" in one]
        assert len(ids) == len(set(ids)), name
        assert all(len(page.of(tag)) == 1 for tag in ("h1", "main", "header", "footer")), name
        assert [one.get("defer") for one in page.of("script")] == [""], name
        assert not any("hidden" in one for _, one in page.elements), name
        assert len(page.of("caption")) == len(page.of("table")), name
        assert all(one.get("scope") in ("col", "row") for one in page.of("th")), name
        pictures = [one for one in page.of("div") if one.get("role") == "img"]
        assert len(page.of("svg")) == sum(bool(one["aria-label"]) for one in pictures), name
        for _, attributes in page.elements:
            values = (attributes.get(key, "") for key in ("src", "xlink:href", "style"))
            assert not any("//" in value for value in values), (name, attributes)
            assert not any(key.startswith("on") for key in attributes), (name, attributes)
        if re.match("(treebanks|compare|runs)/", name) and "-mini" in page.text():
            assert "generated sentences" in page.text(), name
    assert not re.search(r"url\(|@import", (folder / "assets/site.css").read_text())
    script = (folder / "assets/site.js").read_text()
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|https?:|innerHTML", script)


def test_what_records_say_is_text(pages: dict[str, Structure], folder: Path) -> None:
    whole = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.html"))
    assert "Pars<er>" not in whole
    assert "#1c2430" not in whole  # colours of pictures are those of the page
    assert "<b>note</b>" not in whole
    assert not re.search(r'href="(?!https?:)[a-z]+:', whole)  # such as javascript:
    (system,) = (page for name, page in pages.items() if name.startswith("systems/Pars"))
    assert f"{NASTY} 2" in system.text()
    assert "javascript:alert(1)" in system.text()


def test_licensed_sentences_are_absent_though_their_parses_are_at_hand(
    folder: Path, pages: dict[str, Structure]
) -> None:
    assert [name for name, data in contents(folder).items() if SECRET.encode() in data] == []
    # They are at hand and believed, as scores by label are made of them, but for the records that
    # say they are of an open treebank.
    shown = {name for name in pages if "dev F1 by label" in pages[name].text()}
    assert shown == {"treebanks/german-spmrl~2.html", "treebanks/german-mini.html"}
    told = pages["compare/german-spmrl~2/charlstm_small.html"]
    assert "errors against" in told.text()
    assert told.of("details") == []


def test_a_licence_has_to_allow_that_sentences_are_shown() -> None:
    """Not the track: an open treebank may be bound to somebody's permission."""
    names = ("german-mini", "german-squoia", "english-wsj-sample", "english-ptb")
    banks = [TreebankResults("open", name, name, (), load_manifest(name)) for name in names]
    assert [bank.shows_sentences for bank in banks] == [True, True, False, False]


def test_sentences_are_drawn_beside_those_of_the_best(pages: dict[str, Structure]) -> None:
    page = pages["compare/german-mini/charlstm_small.html"]
    assert {"class": "side gold", "dir": "auto"} in page.of("div")
    assert len(page.of("details")) == 10
    assert "tower" in page.text()
    arcs = pages["compare/basque-mini/stack_small.html"]
    assert len(arcs.of("details")) == 10
    assert ("small", "wrong") in arcs.texts


def test_parses_that_are_not_those_of_the_record_are_not_believed(tmp_path: Path) -> None:
    for variant in ("one", "two"):
        run_with_parses("german-mini", variant, 1, 0.3, tmp_path)
    kept = tmp_path / "parses" / "german-mini" / "small-one-seed1.dev.mrg"
    kept.write_bytes(kept.with_name("gold.dev.mrg").read_bytes())
    build(tmp_path, tmp_path / "site")
    pictures = Structure(tmp_path / "site/treebanks/german-mini.html").of("div")
    (words,) = (one["aria-label"] for one in pictures if "by label." in (one.get("aria-label", "")))
    assert "two small: " in words
    assert "one small: " not in words
    assert Structure(tmp_path / "site/compare/german-mini/one_small.html").of("details") == []


def test_the_first_page_has_the_open_board_first_and_generated_sentences_last(
    folder: Path, pages: dict[str, Structure]
) -> None:
    page = pages["index.html"]
    sections = [one["id"] for one in page.of("h2")]
    assert sections == ["track-open", "track-spmrl", "track-mini", "all-treebanks"]
    text = page.text()
    assert text.index("Our best parser") < text.index("Ours and others") < text.index("F1 on test")
    assert "mini treebanks, generated sentences" in text.lower()
    for ground in ("light", "dark"):
        picture = (folder / f"board-{ground}.svg").read_text(encoding="utf-8")
        assert "german-squoia F1" in picture
        assert "var(" not in picture
    (grid,) = re.findall("F1 on test, mini track.*?F1 on dev", text)
    marked = re.findall(r"(\S+) (?:shipped |entered )?small [\d.]+ a ", grid)
    assert {"charlstm", "bilstm"} <= set(marked)
    assert "word-charlstm" not in marked
    assert "0.0001 ours" in text
    assert ("caption", "F1 on test, open track, with e5-small") in page.texts
    assert "german-squoia, table" not in text


def test_published_figures_stand_apart(folder: Path, pages: dict[str, Structure]) -> None:
    assert "P18-1249" in pages["published.html"].text()
    assert [name for name, page in pages.items() if "K&K18" in page.text()] == ["published.html"]


def test_the_record_itself_is_there_with_what_makes_it_again(
    folder: Path, pages: dict[str, Structure]
) -> None:
    names = {path.name for path in (folder / "runs").glob("*.json")}
    for path in (folder / "runs").glob("*.json"):
        assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(path.stem)
    older = {path.name for path in (folder.parent / "runs").iterdir()} - names
    assert len(older) == 1  # of a run with a newer record
    assert "1 older one is not" in pages["index.html"].text()
    texts = "".join(page.text() for name, page in pages.items() if name.startswith("runs/"))
    # The tags of scored parses are the treebank's.
    assert not re.search("tagging.accuracy", texts + (folder / "data/scores.csv").read_text())
    assert (
        "spmrl-bench train polish --treebank polish-mini --variant word-charlstm --size small "
        "--seed 1 --set train.max_epochs=50 --set train.sentences=500"
    ) in texts
    assert "spmrl-bench systems enter --treebank polish-mini " in texts
    commands = {
        line
        for name, page in pages.items()
        if name.startswith("runs/")
        for _, text in page.texts
        for line in text.splitlines()
        if line.startswith("spmrl-bench ")
    }
    assert len(commands) > 5
    for line in commands:
        parsed(shlex.split(line)[1:])  # an error where the program does not take it
    assert ",polish-mini," in (folder / "data/scores.csv").read_text(encoding="utf-8")


def test_the_same_records_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    assert build(folder.parent, tmp_path / "again") == len(contents(folder))
    assert contents(tmp_path / "again") == contents(folder)


def test_a_site_is_replaced_as_a_whole_and_nothing_else_is(tmp_path: Path) -> None:
    results, site, extra = tmp_path / "results", tmp_path / "site", tmp_path / "extra"
    extra.mkdir()
    (extra / "logo.svg").write_text("mine", encoding="utf-8")
    gone = write_document(run_record("polish-mini", "two", 1, 0.8), results / "runs")
    write_document(run_record("polish-mini", "one", 1, 0.8), results / "runs")
    build(results, site, extra)
    assert (site / "logo.svg").read_text(encoding="utf-8") == "mine"
    gone.unlink()
    build(results, site)
    assert {path.name for path in site.glob("compare/*/*")} == {"one_small.html"}
    assert {path.name for path in tmp_path.iterdir()} == {"results", "site", "extra"}
    (extra / "site.json").write_text("{}", encoding="utf-8")
    for other in (extra, extra / "logo.svg"):
        with pytest.raises(RecordError, match="holds other files than a site"):
            build(results, other)
    assert len(contents(extra)) == 2


def test_command_takes_several_folders_and_leaves_out_what_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no records in results/runs: 'spmrl-bench eval LANG' writes them" in refused(
        "results", "site"
    )
    for place in ("one", "two"):
        path = write_document(run_record("polish-mini", "same", 1, 0.8), Path(place, "runs"))
    path.with_name("0123456789abcdef.json").write_text("{", encoding="utf-8")
    result = works("results", "site", "--results", "one", "--results", "two")
    assert re.fullmatch(r"\d+ files\. Open one/site/index\.html\n", result.stdout)
    assert "LEFT OUT: 1 file or line" in result.stderr
    assert "Left out: 1 file or line" in Structure(Path("one/site/index.html")).text()
    assert len(list(Path("one/site/runs").glob("*.json"))) == 1
    strict = cli("results", "site", "--results", "two", "--strict")
    assert strict.exit_code == 1
    assert "no table (--strict)" in strict.stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'spmrl-bench[report]'" in refused("results", "site", "--results", "one")
