"""A whole site over generated records: its links, tables, licences, numbers and folder."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.leaderboard.record import write_record
from spmrl_bench.site.building import site_pages
from spmrl_bench.site.writing import LIST, write_site
from spmrl_bench.trees.tree import Tree
from tests.builders import cli
from tests.laboratory import make_trees
from tests.site.generated import (
    NASTY,
    run_record,
    run_with_parses,
    system_record,
    write_all,
)
from tests.site.reading_pages import Structure, structure

SECRET = "Geheimwort"


def secret_trees() -> list[Tree]:
    return [
        Tree.build([SECRET] * len(tree), tree.tags, tree.constituents())
        for tree in make_trees(12, 6)
    ]


def fill(results: Path) -> None:
    """Records of all sorts, of open, generated, licensed and unknown treebanks."""
    for seed in (1, 2):
        run_with_parses("german-mini", "charlstm", seed, 0.4, results)
        run_with_parses("german-mini", "bilstm", seed, 0.1, results)
    fewer = {"settings": {"train.sentences": 500, "train.max_epochs": 50}}
    run_with_parses("german-mini", "bilstm", 1, 0.5, results, recipe=fewer)
    for variant, share in (("biaffine", 0.2), ("stack", 0.5)):
        run_with_parses("basque-mini", variant, 1, share, results, layer="dependencies")
    for variant, share in (("charlstm", 0.4), ("bilstm", 0.1)):
        run_with_parses("german-spmrl", variant, 1, share, results, gold=secret_trees())
    write_all(
        [
            run_record("polish-mini", "charlstm", 1, 0.90),
            run_record("polish-mini", "charlstm", 2, 0.90),
            run_record("polish-mini", "bilstm", 1, 0.895),
            run_record("polish-mini", "word-charlstm", 1, 0.5),
            run_record("polish-mini", "charlstm", 1, 0.3, moment=-60),
            system_record("polish-mini", NASTY, 0.8),
            run_record("klingon-qo'noS/../x", "charlstm", 1, 0.6, language="klingon", track="open"),
        ],
        results,
    )
    shipped = run_record("polish-mini", "charlstm", 1, 0.85, moment=5)
    write_record(shipped, results / "shipped" / "runs")


def build(results: Path, folder: Path) -> None:
    write_site(folder, site_pages(load_results([results])))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def folder(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "site"
    build(results, place)
    return place


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, Structure]:
    return {str(path.relative_to(folder)): structure(path) for path in folder.rglob("*.html")}


# ---- Every page ----


def test_all_kinds_of_pages_are_there(pages: dict[str, Structure]) -> None:
    kinds = {name.partition("/")[0] for name in pages}
    assert kinds == {
        "index.html", "systems.html", "published.html", "reading.html", "treebanks", "entries",
        "runs", "systems", "compare", "published",
    }  # fmt: skip


def test_every_link_leads_to_a_file_of_the_site(folder: Path, pages: dict[str, Structure]) -> None:
    ids = {name: [one["id"] for _, one, _ in page.elements if "id" in one]
           for name, page in pages.items()}  # fmt: skip
    followed = 0
    for name, page in pages.items():
        for tag in ("a", "link", "script"):
            for attributes in page.of(tag):
                address = attributes.get("href") or attributes.get("src")
                if tag == "a" and re.match("https?://", address):
                    continue
                path, _, anchor = address.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(name), path or "."))
                target = name if not path else target
                assert (folder / target).is_file(), (name, address)
                assert not target.startswith("..")
                assert not anchor or anchor in ids[target], (name, address)
                followed += 1
    assert followed > 500


def test_every_page_can_be_reached_from_the_first(pages: dict[str, Structure]) -> None:
    seen, waiting = {"index.html"}, ["index.html"]
    while waiting:
        name = waiting.pop()
        for attributes in pages[name].of("a"):
            path = (attributes["href"] or "").partition("#")[0]
            target = os.path.normpath(os.path.join(os.path.dirname(name), path))
            if target in pages and target not in seen:
                seen.add(target)
                waiting.append(target)
    assert seen == set(pages)


def test_every_page_has_its_landmarks_and_every_table_its_heads(
    pages: dict[str, Structure],
) -> None:
    for name, page in pages.items():
        assert page.of("html") == [{"lang": "en"}], name
        for tag in ("h1", "main", "header", "footer"):
            assert len(page.of(tag)) == 1, (name, tag)
        assert page.of("a")[0] == {"class": "skip", "href": "#main"}
        assert len(page.of("caption")) == len(page.of("table")), name
        assert all(one.get("scope") in ("col", "row") for one in page.of("th")), name
        ids = [one["id"] for _, one, _ in page.elements if "id" in one]
        assert len(ids) == len(set(ids)), name
        for tag in ("div", "section", "nav"):
            for one in page.of(tag):
                label = one.get("aria-labelledby")
                assert label is None or label in ids, (name, label)
        assert len(page.of("svg")) == sum(
            one.get("role") == "img" or page.inside("svg", "ul") > 0 for one in page.of("svg")
        )


def test_nothing_is_loaded_from_elsewhere(folder: Path, pages: dict[str, Structure]) -> None:
    for name, page in pages.items():
        for tag in ("link", "script", "img", "iframe", "source", "image", "use"):
            for attributes in page.of(tag):
                address = attributes.get("src") or attributes.get("href") or ""
                assert not re.match(r"[a-z]+:|//", address), (name, address)
    style = (folder / "assets/site.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style
    script = (folder / "assets/site.js").read_text(encoding="utf-8")
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|https?:", script)


def test_what_records_say_is_text(pages: dict[str, Structure], folder: Path) -> None:
    whole = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.html"))
    assert "Pars<er>" not in whole
    assert "<b>note</b>" not in whole
    assert not re.search(r'href="(?!https?:)[a-z]+:', whole)  # such as javascript:
    (system,) = (page for name, page in pages.items() if name.startswith("systems/Pars"))
    assert f"{NASTY} 2" in system.text()
    assert "javascript:alert(1)" in system.text()


# ---- Licences ----


def test_licensed_sentences_are_absent_though_their_parses_are_at_hand(folder: Path) -> None:
    files = contents(folder)
    holding = [name for name, data in files.items() if SECRET.encode() in data]
    assert holding == []
    # They are at hand and believed: scores by label are made of them.
    assert "data/german-spmrl/label-brackets-dev.csv" in files
    assert not any(name.startswith("compare/german-spmrl/") and "trees" in name for name in files)


def test_generated_sentences_are_shown_as_trees(folder: Path, pages: dict[str, Structure]) -> None:
    entry = pages["entries/german-mini/charlstm-small.html"]
    assert {"class": "side gold", "dir": "auto"} in entry.of("div")
    assert "tower" in entry.text()
    assert "(NN tower)" in (folder / "compare/german-mini/brackets-dev-1-trees.js").read_text()
    arcs = pages["entries/basque-mini/stack-small.html"]
    assert arcs.inside("th", "details") > 12
    assert "(wrong)" in arcs.text()


def test_parses_that_are_not_those_of_the_record_are_not_believed(tmp_path: Path) -> None:
    for variant in ("one", "two"):
        run_with_parses("german-mini", variant, 1, 0.3, tmp_path)
    kept = tmp_path / "parses" / "german-mini" / "small-one-seed1.dev.mrg"
    kept.write_bytes(kept.with_name("gold.dev.mrg").read_bytes())
    build(tmp_path, tmp_path / "site")
    rows = (tmp_path / "site/data/german-mini/label-brackets-dev.csv").read_text()
    assert "two small" in rows
    assert "one small" not in rows
    assert structure(tmp_path / "site/entries/german-mini/one-small.html").of("details") == []


def test_a_record_cannot_make_a_licensed_treebank_open(tmp_path: Path) -> None:
    record = run_with_parses("german-spmrl", "charlstm", 1, 0.3, tmp_path, gold=secret_trees())
    other = run_with_parses("german-spmrl", "bilstm", 1, 0.1, tmp_path, gold=secret_trees())
    for path in (tmp_path / "runs").iterdir():
        path.unlink()
    for one in (record, other):
        bank = one.treebank.model_copy(update={"track": "open"})
        write_record(one.model_copy(update={"treebank": bank}), tmp_path / "runs")
    build(tmp_path, tmp_path / "site")
    assert not any(SECRET.encode() in data for data in contents(tmp_path / "site").values())


# ---- Numbers ----


def test_the_first_page_marks_the_best_and_who_is_not_worse(pages: dict[str, Structure]) -> None:
    text = (pages["index.html"].text()).replace(" a ", "a ")
    assert "generated sentences" in text
    grid = re.search(r"F1 on test, mini track.*?F1 on dev", text)
    marked = re.findall(r"(\S+) (?:shipped |entered )?(?:small )?[\d.]+ ?a\b", grid[0])
    assert "charlstm" in marked
    assert "bilstm" in marked
    assert "word-charlstm" not in marked


def test_published_figures_stand_apart(folder: Path, pages: dict[str, Structure]) -> None:
    for name, page in pages.items():
        apart = name.startswith("published")
        assert any(one.get("class") == "foreign" for one in page.of("div")) == apart, name
        if not apart:
            assert "K&K18" not in page.text()
    ptb = pages["published/german-spmrl.html"].text()
    assert "K&K18" in ptb
    assert "P18-1249" in ptb
    rows = list(csv.DictReader((folder / "data/german-spmrl/rows.csv").open(encoding="utf-8")))
    assert not any(any(row[key] for key in row if key.startswith("published")) for row in rows)


def test_mini_treebanks_say_that_their_sentences_are_generated(pages: dict[str, Structure]) -> None:
    for name, page in pages.items():
        if re.match("(treebanks|compare|entries|runs)/", name) and "-mini" in page.text():
            assert "generated sentences" in page.text(), name


def test_downloads_say_the_same_in_both_formats(folder: Path) -> None:
    compared = 0
    for path in (folder / "data").rglob("*.csv"):
        rows = list(csv.DictReader(path.open(encoding="utf-8")))
        found = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if isinstance(found, list):
            assert len(rows) == len(found)
            for row, other in zip(rows, found, strict=True):
                shown = {key: "" if value is None else str(value) for key, value in other.items()}
                assert row == {key: shown.get(key, "") for key in row}, path
            compared += len(rows)
        else:
            assert len(rows) == len(found["entries"][0]["right"])
    assert compared > 100


def test_the_record_itself_is_there(folder: Path, results: Path) -> None:
    for path in (folder / "runs").glob("*.json"):
        assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(path.stem)
    names = {path.name for path in (folder / "runs").glob("*.json")}
    older = {path.name for path in (results / "runs").iterdir()} - names
    assert len(older) == 1  # of a run with a newer record
    assert "1 older one is not" in structure(folder / "index.html").text()


def test_a_run_says_how_to_make_it_again(pages: dict[str, Structure]) -> None:
    texts = [page.text() for name, page in pages.items() if name.startswith("runs/")]
    assert any(
        "spmrl-bench train german --treebank german-mini --variant bilstm --size small --seed 1 "
        "--set train.max_epochs=50 --set train.sentences=500" in text
        for text in texts
    )
    assert any("spmrl-bench enter outside/test.mrg" in text for text in texts)


def test_a_learning_curve_is_drawn_of_runs_with_fewer_sentences(folder: Path) -> None:
    rows = (folder / "data/german-mini/learning-brackets-dev.csv").read_text().splitlines()
    assert [row.split(",")[3] for row in rows] == ["training_sentences", "500", "2000"]
    page = structure(folder / "treebanks/german-mini.html")
    assert "dev F1 over the number of training sentences" in page.text()


# ---- The folder ----


def test_the_same_records_give_the_same_bytes(results: Path, folder: Path, tmp_path: Path) -> None:
    build(results, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(folder)


def test_a_build_removes_what_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    results, site = tmp_path / "results", tmp_path / "site"
    for variant in ("one", "two", "three"):
        write_record(run_record("polish-mini", variant, 1, 0.8), results / "runs")
    build(results, site)
    (site / "logo.svg").write_text("mine", encoding="utf-8")
    gone = "entries/polish-mini/three-small.html"
    changed = "entries/polish-mini/two-small.html"
    assert (site / gone).exists()
    (site / changed).write_text("edited", encoding="utf-8")
    for path in (results / "runs").iterdir():
        if '"variant":"one"' not in path.read_text(encoding="utf-8"):
            path.unlink()
    before = (site / "reading.html").stat().st_mtime_ns
    written = write_site(site, site_pages(load_results([results])))
    assert not (site / gone).exists()
    assert written.removed > 0
    assert written.kept == [changed]
    assert (site / "logo.svg").read_text(encoding="utf-8") == "mine"
    assert (site / "reading.html").stat().st_mtime_ns == before
    assert not (site / "compare" / "polish-mini").exists()
    listed = json.loads((site / LIST).read_text(encoding="utf-8"))["files"]
    assert set(listed) == set(contents(site)) - {LIST, "logo.svg", changed}


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "thesis.tex").write_text("mine", encoding="utf-8")
    with pytest.raises(RecordError, match="holds other files than a site"):
        write_site(site, [{"index.html": b"ours"}])
    assert contents(site) == {"thesis.tex": b"mine"}


def test_a_file_in_the_place_of_a_page_is_left_alone(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [{"index.html": b"first"}])
    (site / "about.html").write_text("mine", encoding="utf-8")
    with pytest.raises(RecordError, match=r"about\.html: is not of a site that was built here"):
        write_site(site, [{"index.html": b"second", "about.html": b"ours"}])
    assert (site / "about.html").read_text(encoding="utf-8") == "mine"
    assert (site / "index.html").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_build_that_fails_leaves_the_site_as_it_was(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [{"index.html": b"first"}])
    before = contents(site)

    def failing() -> object:
        yield {"index.html": b"second"}
        raise RecordError("broken")

    with pytest.raises(RecordError, match="broken"):
        write_site(site, failing())
    assert contents(site) == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("text", ["{", "[]", '{"files": 3}'])
def test_a_list_of_files_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / LIST).write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match="not the list of a site's files"):
        write_site(tmp_path, [{"index.html": b"ours"}])


def test_a_list_of_files_names_none_outside(tmp_path: Path) -> None:
    outside = tmp_path / "precious.txt"
    outside.write_bytes(b"mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    site = tmp_path / "site"
    site.mkdir()
    (site / LIST).write_text(json.dumps({"files": {"../precious.txt": digest}}))
    write_site(site, [{"index.html": b"ours"}])
    assert outside.exists()


# ---- The command ----


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: cli("results", "site", *arguments)


def test_command_builds_and_says_where(command: Callable[..., Result]) -> None:
    write_record(run_record("polish-mini", "one", 1, 0.8), Path("results/runs"))
    result = command()
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"\d+ files, [\d.]+ MiB\. Open results/site/index\.html\n", result.stdout)
    assert Path("results/site/index.html").is_file()


def test_command_takes_several_folders_and_counts_a_record_once(
    command: Callable[..., Result],
) -> None:
    for place in ("one", "two"):
        write_record(run_record("polish-mini", "same", 1, 0.8), Path(place, "runs"))
    write_record(run_record("polish-mini", "other", 1, 0.8), Path("two", "runs"))
    result = command("--results", "one", "--results", "two", "--to", "public")
    assert result.exit_code == 0, result.output
    assert len(list(Path("public/runs").glob("*.json"))) == 2


def test_command_leaves_out_what_cannot_be_read(command: Callable[..., Result]) -> None:
    path = write_record(run_record("polish-mini", "one", 1, 0.8), Path("results/runs"))
    path.with_name("0123456789abcdef.json").write_text("{", encoding="utf-8")
    result = command()
    assert result.exit_code == 0
    assert "LEFT OUT: 1 file or line" in result.stderr
    assert "Left out: 1 file or line" in structure(Path("results/site/index.html")).text()
    strict = command("--strict")
    assert strict.exit_code == 1
    assert "no table (--strict)" in strict.stderr


def test_command_without_records_says_what_writes_them(command: Callable[..., Result]) -> None:
    result = command()
    assert result.exit_code == 1
    assert "no records in results/runs: 'spmrl-bench eval LANG' writes them" in result.stderr
    assert not Path("results/site").exists()
