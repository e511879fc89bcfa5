"""What the figures share: colours that colour-blind readers tell apart, captions, files.

Figures are made without pyplot, which keeps a state and looks for a screen.
"""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import RecordError, SpmrlError
from spmrl_bench.storage.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of the palette of Okabe & Ito, which those who cannot tell red from green tell apart.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
GREY = "#595959"
PALE = "#D9D9D9"

FORMATS = ("pdf", "png", "svg")

_STYLE: dict[str, Any] = {
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
_POINT = 1 / 72  # inches
_CAPTION_SIZE = 7.5
_LINE = 1.3 * _CAPTION_SIZE * _POINT


class Sheet:
    """A figure with a title above it and a caption below; lengths are in inches.

    Attributes:
        figure: to draw into, between the two.
    """

    def __init__(
        self, width: float, height: float, title: str, caption: str, between: float = 0.02
    ) -> None:
        """Make room; ``between`` is the space between columns, as a share of their width."""
        matplotlib = load_matplotlib()
        lines = [
            line
            for paragraph in caption.splitlines()
            # About 0.55 of a font size is the mean width of a character.
            for line in textwrap.wrap(
                paragraph, int((width - 0.3) / (0.55 * _CAPTION_SIZE * _POINT))
            )
        ]
        below = len(lines) * _LINE + 0.25 if lines else 0.1
        above = 0.42
        total = height + below + above
        self._above = above
        layout = matplotlib.layout_engine.ConstrainedLayoutEngine(
            rect=(0.01, below / total, 0.98, 1 - (below + above) / total), wspace=between
        )
        with matplotlib.rc_context(_STYLE):
            self.figure: Figure = matplotlib.figure.Figure(figsize=(width, total), layout=layout)
        self.figure.text(
            0.15 / width, 1 - 0.12 / total, title, fontsize=11, va="top", fontweight="bold"
        )
        self.figure.text(
            0.15 / width,
            0.1 / total,
            "\n".join(lines),
            fontsize=_CAPTION_SIZE,
            va="bottom",
            color=GREY,
            linespacing=1.3,
        )

    def axes(self, rows: int, columns: int, **options: Any) -> Any:
        """Axes in rows and columns, as ``Figure.subplots`` gives them."""
        with load_matplotlib().rc_context(_STYLE):
            return self.figure.subplots(rows, columns, **options)

    def place(self, left: float, top: float, width: float, height: float) -> Any:
        """Axes at a place of their own, ``left`` and ``top`` from the corner below the title.

        Whoever knows where they go is spared the search for a layout, which takes seconds where
        there are dozens.
        """
        self.figure.set_layout_engine("none")
        whole_width, total = self.figure.get_size_inches()
        bottom = total - self._above - top - height
        place = (left / whole_width, bottom / total, width / whole_width, height / total)
        with load_matplotlib().rc_context(_STYLE):
            return self.figure.add_axes(place)

    def save(self, path: Path) -> None:
        """Write the figure; the ending of the name decides the format.

        Raises:
            SpmrlError: there is no such format.
            RecordError: the file cannot be written.
        """
        form = check_format(path)
        from matplotlib.text import Text

        for text in self.figure.findobj(Text):  # those that were made without the style, too
            text.set_parse_math(False)
        buffer = io.BytesIO()
        # The same figure gives the same bytes, whenever it is drawn.
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
        # Dots to the inch; fewer where a figure would take gigabytes.
        dots = 200 if max(self.figure.get_size_inches()) <= 30 else 120
        with load_matplotlib().rc_context(_STYLE):
            self.figure.savefig(buffer, format=form, dpi=dots, metadata=dates)
        write_file(path, buffer.getvalue())


def write_file(path: Path, data: bytes) -> None:
    """Write a table or a picture; a RecordError where it cannot be written."""
    try:
        write_bytes(path, data)
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror}") from None


def check_format(path: Path) -> str:
    """The format of a figure by the ending of its name, which has to be one of FORMATS."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise SpmrlError(
            f"{path}: a figure's name ends with one of {', '.join('.' + name for name in FORMATS)}"
        )
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
