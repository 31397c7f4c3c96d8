"""What a table is, before it is written as Markdown or CSV."""

from typing import NamedTuple

from tracerelay_jax.report import names
from tracerelay_jax.report.paper import Setting


class Column(NamedTuple):
    """A column of cells of one kind.

    Attributes:
      name: its heading.
      digits: after the point, of its floats.
    """

    name: str
    digits: int = 2


class Table(NamedTuple):
    """Rows of cells: text, numbers, None, or a Summary, Comparison or Pair, which take up several columns when written.

    Attributes:
      name: of its CSV file, without the suffix.
      title: one line.
      columns: their headings.
      rows: a cell for each column.
      notes: sentences that stand below.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple, ...]
    notes: tuple[str, ...] = ()


def setting_columns() -> tuple[Column, ...]:
    """Headings of `setting_cells`."""
    return Column("Task"), Column("Phase inheritance"), Column("d_c")


def setting_cells(setting: Setting) -> tuple[str, str, int]:
    """Task, phase inheritance and width, as in Table 1."""
    return names.TASKS[setting.task], "On" if setting.inherit_phase else "Off", setting.dc
