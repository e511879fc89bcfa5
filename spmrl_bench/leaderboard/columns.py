"""The columns of figures that tables have: which number stands in each, and its heading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spmrl_bench.scoring.metric import SelectionMetric, metric_named

Key = tuple[str, str, str]
"""A split, a metric and one of its figures."""


class Column(NamedTuple):
    """A figure of a split, of any system or of one variant or baseline.

    What dev selects by may be a sum of figures, whose names are then joined. A figure that is no
    metric's has an empty metric.
    """

    title: str
    split: str
    metric: str
    figure: str
    variant: str = ""
    baseline: str = ""

    @property
    def key(self) -> Key:
        """Split, metric and figure."""
        return self.split, self.metric, self.figure

    @property
    def system(self) -> str:
        """The variant or baseline; empty for any."""
        return self.variant or self.baseline

    @property
    def is_headline(self) -> bool:
        """Whether its metric puts systems in order by it."""
        return self.metric != "" and self.figure == metric_named(self.metric).headline


def brief_columns(metrics: Iterable[str]) -> list[Column]:
    """The headline of each metric on dev, then the tabled figures of test up to the headline."""
    dev, test = [], []
    for name in metrics:
        metric = metric_named(name)
        dev.append(Column(f"dev {metric.title(metric.headline)}", "dev", name, metric.headline))
        listed = metric.tabled if metric.headline in metric.tabled else (metric.headline,)
        for figure in listed[: listed.index(metric.headline) + 1]:
            test.append(Column(f"test {metric.title(figure)}", "test", name, figure))
    return dev + test


def selecting_column(criterion: SelectionMetric) -> Column:
    """What a criterion makes of dev."""
    metric, figure = (" + ".join(names) for names in zip(*criterion.terms, strict=True))
    return Column(f"dev {criterion.title}", "dev", metric, figure)


def named_columns(metrics: Sequence[str]) -> dict[str, Column]:
    """The columns of tables of these metrics by their names in CSV.

    They are the headlines of dev, all tabled figures of test, and the tags of both.
    """
    brief = brief_columns(metrics)
    columns = [column for column in brief if column.split == "dev"]
    tested = {column.key: column for column in brief}
    for name in metrics:
        metric = metric_named(name)
        for figure in metric.tabled:
            # What follows the headline is not shown of dev, so "test" tells nothing apart.
            plain = Column(metric.title(figure), "test", name, figure)
            columns.append(tested.get(plain.key, plain))
    figures = Counter((column.split, column.figure) for column in columns)
    titles = Counter(column.title for column in columns)
    named = {}
    for column in columns:
        split, metric_name, figure = column.key
        several = figures[split, figure] > 1
        name = f"{split}_{metric_name}_{figure}" if several else f"{split}_{figure}"
        title = f"{column.title} ({metric_name})" if titles[column.title] > 1 else column.title
        named[name] = column._replace(title=title)
    for split in ("dev", "test"):
        named[f"{split}_tags"] = Column(f"{split} tags", split, "", "tag_accuracy")
    return named
