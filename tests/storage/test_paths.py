"""Where data files are found, and the one rule for paths that manifests and archives name."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError, TreebankError
from spmrl_bench.storage.paths import (
    check_name,
    check_path,
    data_dir,
    list_folder,
    listed_folders,
    path_fault,
    require_inside,
)


@pytest.mark.parametrize(
    "text",
    [
        "a", "a/b.mrg", "./", "./a", "a/", "a b/ü+x.mrg", ".hidden", "a..b", "...a", "xx:y",
        "bert-base-cased", "org/name", "control", "auxiliary.mrg", "com10", "é" * 127,
    ],
)  # fmt: skip
def test_paths_that_lead_downwards(text: str) -> None:
    assert path_fault(text) is None
    assert check_path(text) == text


FAULTS = {
    "is empty": [""],
    "is absolute": ["/", "/a", "//a"],
    r"part '\.\.'": ["..", "../a", "a/../b", "a/..", "./../a"],
    r"part '\.'": [".", "././a"],
    "part ''": ["a//b"],
    "backslash": ["a\\b", "\\\\server\\share"],
    "drive": ["c:", "C:a", "a/c:b"],
    "control": ["a\0b", "a\nb"],
    "device": ["nul", "a/CON.txt", "com1 .x", "LPT¹"],
    "ends with": ["a.", "a /b", "... "],
    "no text": ["\ud800"],
    "256 bytes": ["é" * 128],
    "1,200 bytes": ["a/" * 600],
}


@pytest.mark.parametrize(
    ("text", "fault"), [(text, fault) for fault, texts in FAULTS.items() for text in texts]
)
def test_paths_that_do_not(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=rf"{fault}.*expected a relative path"):
        check_path(text)


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "-a", "a b", "*", "nul", "a."])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="expected a name"):
        check_name(text)


@pytest.mark.usefixtures("home")
def test_links_may_lead_readers_out_but_no_writers(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "root-beside"
    for folder in (root / "in", outside):
        folder.mkdir(parents=True)
    (root / "good").symlink_to("in")
    (root / "bad").symlink_to(outside)
    (tmp_path / "alias").symlink_to(root)
    for path in (root, root / "in", root / "good" / "new", tmp_path / "alias" / "in"):
        assert require_inside(root, path, TreebankError) == path
    assert require_inside(tmp_path / "alias", root / "in", TreebankError)
    for path in (outside, root / ".." / "x"):
        for to in ("read", "write"):
            with pytest.raises(TreebankError, match="outside of"):
                require_inside(root, path, TreebankError, to=to)
    for path in (root / "bad", root / "bad" / "new"):
        assert require_inside(root, path, TreebankError) == path
        with pytest.raises(TreebankError, match=r"leads to .* outside of .*Nothing is written"):
            require_inside(root, path, TreebankError, to="write")
    with pytest.raises(TreebankError, match="in no folder that was named"):
        require_inside(None, outside, TreebankError)


def test_the_user_may_list_folders_to_be_read(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    assert listed_folders(TreebankError) == []
    for _ in range(2):
        list_folder(outside, TreebankError)
    assert listed_folders(TreebankError) == [outside]
    assert require_inside(tmp_path / "root", outside / "a", TreebankError)
    with pytest.raises(TreebankError, match="Nothing is written there"):
        require_inside(tmp_path / "root", outside / "a", TreebankError, to="write")
    (home / "folders.txt").write_text("# mine\n\n~/corpora\n/a\nrelative\n")
    with pytest.raises(TreebankError, match=r"folders\.txt:5: found 'relative', expected an abs"):
        listed_folders(TreebankError)


def test_data_files_are_in_the_package_or_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "spmrl_bench"
    monkeypatch.setattr("spmrl_bench.storage.paths._PACKAGE", package)
    with pytest.raises(SpmrlError, match=r"no folder of recipes: looked in .*_data/recipes and "):
        data_dir("recipes")
    for folder in (tmp_path / "recipes", package / "_data" / "recipes"):
        folder.mkdir(parents=True)
        assert data_dir("recipes") == folder
