"""What the figures share: colours that colour-blind readers tell apart, captions, files.

Figures are made without pyplot, which keeps a state and looks for a screen.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.writing import Document, to_latex, to_markdown, write_file

if TYPE_CHECKING:
    import pandas as pd

# Of the palette of Okabe & Ito, which those who cannot tell red from green tell apart.
BLUE, ORANGE, GREEN, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#595959", "#D9D9D9"

LARGEST = 70.0  # inches; a larger figure cannot be read as one, and takes gigabytes to draw

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "svg.hashsalt": "spmrl-bench",  # else names inside the file are drawn at random
    "svg.fonttype": "none",  # words stay words
    "text.parse_math": False,  # the dollar is a word too
}
_CAPTION_SIZE = 7.5
_ABOVE = 0.42


class Figure:
    """A figure with a title above it and a caption below; lengths are in inches."""

    def __init__(self, width: float, height: float, title: str, caption: str) -> None:
        """Make room; raise a SpmrlError if it would be too large."""
        if max(width, height) > LARGEST:
            raise SpmrlError(
                f"the figure would be {width:.0f} by {height:.0f} inches; choose fewer layers or "
                "heads, or a shorter sentence"
            )
        matplotlib = load_matplotlib()
        # About 0.55 of a font size is the mean width of a character.
        lines = textwrap.wrap(caption, int((width - 0.3) / (0.55 * _CAPTION_SIZE / 72)))
        below = len(lines) * 1.3 * _CAPTION_SIZE / 72 + 0.25
        total = height + below + _ABOVE
        rectangle = (0.01, below / total, 0.98, 1 - (below + _ABOVE) / total)
        layout = matplotlib.layout_engine.ConstrainedLayoutEngine(rect=rectangle)
        left = 0.15 / width
        with matplotlib.rc_context(STYLE):
            self.figure = matplotlib.figure.Figure(figsize=(width, total), layout=layout)
        self.figure.text(left, 1 - 0.12 / total, title, size=11, va="top", weight="bold")
        style = {"size": _CAPTION_SIZE, "va": "bottom", "color": GREY, "linespacing": 1.3}
        self.figure.text(left, 0.1 / total, "\n".join(lines), **style)

    def axes(self, rows: int, columns: int, **options: Any) -> Any:
        """As ``matplotlib.figure.Figure.subplots``."""
        with load_matplotlib().rc_context(STYLE):
            return self.figure.subplots(rows, columns, **options)

    def colours(self, image: Any, axes: Any, label: str, **options: Any) -> None:
        """A bar that says what the colours of an image mean."""
        bar = self.figure.colorbar(image, ax=axes, fraction=0.025, pad=0.01, aspect=30, **options)
        bar.set_label(label, fontsize=7.5)
        bar.ax.tick_params(labelsize=6.5)

    def save(self, path: Path) -> None:
        """Write the figure in the format that the name ends with; a SpmrlError where it cannot."""
        form = check_format(path)
        from matplotlib.text import Text

        for text in self.figure.findobj(Text):  # those that were made without the style, too
            text.set_parse_math(False)
        buffer = io.BytesIO()
        # The same figure gives the same bytes, whenever it is drawn.
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
        # Dots to the inch; fewer where a figure would take gigabytes.
        dots = 200 if max(self.figure.get_size_inches()) <= 30 else 120
        with load_matplotlib().rc_context(STYLE):
            self.figure.savefig(buffer, format=form, dpi=dots, metadata=dates)
        write_file(path, buffer.getvalue())


def write_all(
    place: Path, document: Document, numbers: pd.DataFrame, draw: Callable[[], Figure]
) -> str:
    """Write ``place.csv``, ``.md``, ``.tex``, ``.png`` and ``.svg``; return why there is no figure,
    or ''. The tables wait for nothing that only the figure needs."""
    texts = {
        "csv": numbers.to_csv(index=False, lineterminator="\n"),
        "md": to_markdown(document),
        "tex": to_latex(document),
    }
    for ending, text in texts.items():
        write_file(place.with_name(f"{place.name}.{ending}"), text.encode())
    try:
        figure = draw()
    except SpmrlError as problem:
        return str(problem)
    for ending in ("png", "svg"):
        figure.save(place.with_name(f"{place.name}.{ending}"))
    return ""


def plain(axes: Any) -> None:
    """Leave out frame and marks."""
    axes.tick_params(length=0, pad=2, labelsize=6.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def check_format(path: Path) -> str:
    """The format of a figure by the ending of its name; SpmrlError if there is none."""
    form = path.suffix.removeprefix(".").lower()
    if form not in ("pdf", "png", "svg"):
        raise SpmrlError(f"{path}: a figure's name ends with one of .pdf, .png, .svg")
    return form


def load_matplotlib() -> Any:
    """The library, with its figures; a SpmrlError where it is not installed."""
    try:
        import matplotlib
        import matplotlib.colors
        import matplotlib.figure
        import matplotlib.layout_engine
    except ImportError:
        raise SpmrlError(
            "figures need matplotlib: install it with pip install 'spmrl-bench[report]'"
        ) from None
    return matplotlib
