"""The rounds of the study, what is measured in each, and the numbers of the rule.

They were fixed when the only runs were the default's first seeds of Most-Freq and of Equal Repeats at width 16. Widths of
the second round are those at which the paper's seeds spread least.
"""

from typing import NamedTuple

from tracerelay_jax.report import names
from tracerelay_jax.report.paper import Setting

SPREAD = 3.0  # SDs
ID_FLOOR, OOD_FLOOR = 1.0, 5.0  # points
FACTOR = 2.0  # of updates
TIE = 0.25  # of misfit


class Measure(NamedTuple):
    """One column in which candidates are held against the paper.

    Attributes:
      name: its heading.
      length: of the sources; None for the update at which a run stopped.
      floor: points that are always allowed.
      metric: as in `Run.percent`.
      rules: whether it can rule a candidate out.
      weight: in the misfit.
    """

    name: str
    length: int | None
    floor: float = OOD_FLOOR
    metric: str = "score"
    rules: bool = True
    weight: float = 1.0


class Round(NamedTuple):
    """Cells of the paper, each with its columns."""

    number: int
    cells: dict[Setting, tuple[Measure, ...]]


_STOP = Measure("updates", None)
_DIAGNOSTICS = [name for name in names.DIAGNOSTICS if name != "score"]
_MOST_FREQ = (
    _STOP,
    Measure("ID T = 256", 256, ID_FLOOR),
    Measure("T = 512", 512),
    Measure("T = 1024", 1024),
    # Of the same outputs as the score at this length: together they weigh as much as one column.
    *(
        Measure(f"{names.DIAGNOSTICS[name]}, T = 1024", 1024, metric=name, rules=False, weight=1 / len(_DIAGNOSTICS))
        for name in _DIAGNOSTICS
    ),
)
_DYCK = (_STOP, Measure("T = 1024", 1024), Measure("T = 4096", 4096))
_EQUAL_REPEATS = (_STOP, Measure("ID T = 256", 256, ID_FLOOR), Measure("T = 512", 512))

ROUNDS = (
    Round(1, {Setting("most_freq", 16, True): _MOST_FREQ, Setting("most_freq", 64, True): _MOST_FREQ}),
    Round(2, {Setting("dyck", 64, True): _DYCK, Setting("equal_repeats", 16, True): _EQUAL_REPEATS}),
)


def cell_name(setting: Setting) -> str:
    """Task and width."""
    return f"{names.TASKS[setting.task]}, d_c = {setting.dc}"
