"""Tables as Markdown and as CSV."""

import csv
import io
import re

from tracerelay_jax.report.comparison import PAPERS, Comparison, Pair, Summary
from tracerelay_jax.report.tables.table import Column, Table

MISSING = "–"
# What a cell of several columns is called when written, after the column's own name.
_MARKDOWN = {Comparison: ("ours", "paper", "difference"), Pair: ("ours", "paper"), Summary: ("",)}
_CSV = {
    Comparison: ("n", "mean", "sd", "paper_n", "paper_mean", "paper_sd", "difference", "difference_unit"),
    Summary: ("n", "mean", "sd"),
}


def to_markdown(table: Table, planned: int) -> str:
    """The table as GitHub shows it, its notes below.

    Args:
      table: what to write.
      planned: runs of a complete cell; cells of other numbers say theirs.
    """
    kinds = [type(cell) for cell in table.rows[0]]
    names = [name for column, kind in zip(table.columns, kinds, strict=True) for name in _headings(column, kind)]
    lines = [_row(names), _row(["---"] * len(names))]
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        lines.append(_row([text for cell, column in cells for text in _texts(cell, column.digits, planned)]))
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)]) + "\n"


def to_csv(table: Table) -> str:
    """The table with full precision; an empty cell is a missing one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    kinds = [type(cell) for cell in table.rows[0]]
    writer.writerow(name for column, kind in zip(table.columns, kinds, strict=True) for name in _csv_headings(column, kind))
    for row in table.rows:
        writer.writerow(value for cell in row for value in _csv_values(cell))
    return text.getvalue()


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _headings(column: Column, kind: type) -> list[str]:
    return [f"{column.name}, {part}".removesuffix(", ") for part in _MARKDOWN.get(kind, ("",))]


def _texts(cell, digits: int, planned: int) -> list[str]:
    if isinstance(cell, Comparison):
        difference = MISSING if cell.difference is None else f"{cell.difference:+.2f}"
        difference += " (paper's SD)" if cell.unit == PAPERS else ""
        return [_summary(cell.ours, digits, planned), _summary(cell.paper, digits, planned), difference]
    if isinstance(cell, Pair):
        return [_texts(value, digits, planned)[0] for value in cell]
    return [_summary(cell, digits, planned) if isinstance(cell, Summary) else _plain(cell, digits)]


def _summary(summary: Summary | None, digits: int, planned: int) -> str:
    if summary is None or summary.mean is None:
        return MISSING
    spread = "" if summary.sd is None else f" ± {summary.sd:,.{digits}f}"
    count = "" if summary.n == planned else f" (n = {summary.n})"
    return f"{summary.mean:,.{digits}f}{spread}{count}"


def _plain(value, digits: int) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _csv_headings(column: Column, kind: type) -> list[str]:
    name = re.sub(r"\W+", "_", column.name).strip("_").lower()
    parts = ("ours", "paper") if kind is Pair else _CSV.get(kind, ("",))
    return [f"{name}_{part}".removesuffix("_") for part in parts]


def _csv_values(cell) -> list:
    if isinstance(cell, Comparison):
        return [
            *_csv_values(cell.ours),
            *_csv_values(cell.paper or Summary(0, None, None)),
            _exact(cell.difference),
            cell.unit,
        ]
    if isinstance(cell, Summary | Pair):
        return [_exact(value) for value in cell]
    return [_exact(cell)]


def _exact(value):
    """Ten digits are more than any figure has, and hide what percent add in the last bits."""
    return float(f"{value:.10g}") if isinstance(value, float) else value
