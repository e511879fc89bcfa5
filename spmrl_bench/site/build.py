"""The site as a folder, replaced as a whole by each build."""

from __future__ import annotations

import shutil
from pathlib import Path

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.board import Results
from spmrl_bench.leaderboard.frame import records_frame
from spmrl_bench.site import pages
from spmrl_bench.site.standings import treebanks_of
from spmrl_bench.storage.files import write_folder

#: Says that a folder is a site, and may be replaced.
MARKER = "site.json"
_CONTENT = b'{"made_by": "spmrl-bench site"}\n'


def site_files(results: Results) -> pages.Files:
    """The files of the site of all results, of which there are some."""
    banks = treebanks_of(results)
    yield MARKER, _CONTENT
    for name in ("site.css", "site.js"):
        yield f"assets/{name}", Path(__file__).with_name(name).read_bytes()
    frame = records_frame(results.stored)
    yield "data/scores.csv", frame.to_csv(index=False, lineterminator="\n").encode()
    yield from pages.first_page(results, banks)
    for bank in banks:
        yield from pages.treebank_pages(bank)
        yield from pages.run_pages(bank)
    yield from pages.system_pages(banks)
    yield from pages.published_page(results.published)
    yield pages.page("reading", "reading.html")


def build_site(results: Results, folder: Path, extra: Path | None = None) -> int:
    """Write the site in place of an earlier one; return the number of its files.

    Args:
        extra: a folder of other files that belong to it, such as a logo, which are copied.

    Raises:
        RecordError: the folder holds something else, or cannot be written.
        SpmrlError: Matplotlib is not installed.
    """

    def fill(new: Path) -> None:
        for address, data in files.items():
            path = new / address
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if extra is not None:
            shutil.copytree(extra, new, dirs_exist_ok=True)

    try:
        marker = folder / MARKER
        is_site = marker.is_file() and marker.read_bytes() == _CONTENT
        if not is_site and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise RecordError(
                f"{folder}: holds other files than a site of this version, which is replaced as a "
                "whole; remove it, or name a new or an empty folder (--to)"
            )
        files = dict(site_files(results))
        write_folder(folder, fill)
    except OSError as error:
        place, reason = error.filename or folder, error.strerror or error
        raise RecordError(f"{place}: no site can be made: {reason}") from None
    return len(files)
