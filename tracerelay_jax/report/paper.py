"""The paper's numbers, from paper.json, the only place that holds them."""

import functools
import json
import pathlib
from typing import Any, NamedTuple

from tracerelay_jax.report.comparison import Summary


class Setting(NamedTuple):
    """What the runs of one cell share; they differ in their seeds.

    Attributes:
      task: the task's name.
      dc: trace width of the middle layer.
      inherit_phase: False is the ablation.
    """

    task: str
    dc: int
    inherit_phase: bool

    @property
    def variant(self) -> tuple[str, bool]:
        """Task and inheritance, which settings of all widths share."""
        return self.task, self.inherit_phase


class Exposure(NamedTuple):
    """One row of Table 5.

    Attributes:
      best: update of the selected checkpoint.
      final: update at which the run stopped.
      exhausted: whether it stopped at the cap, without two passes.
      tokens_millions: physical training tokens.
      minutes: wall time of the training loop.
      parameters: of the network.
    """

    best: int
    final: int
    exhausted: bool
    tokens_millions: float
    minutes: float
    parameters: int


class Paper(NamedTuple):
    """All numbers of the paper that a report compares with; scores, gains and baselines in percent.

    Attributes:
      seeds: training seeds of every setting.
      settings: the cells of Table 1, in its order.
      trace_widths: of the layers, by d_c.
      longest_lag: positions that an output without inheritance looks back.
      device: what it was measured on.
      scores: by setting, length and metric; Tables 1, 3 and 4, and Section 4.
      paired_gains: by length and d_c.
      paired_gain_range: the range over the widths at another length.
      score_ranges: what the text gives as ranges.
      slice_counts: closing brackets of Table 3, by slice.
      baselines: of Most-Freq, by length and name.
      protocol: rows of Table 2, with the field of an `Experiment` that each is.
      exposure: Table 5, by setting and seed.
    """

    seeds: tuple[int, ...]
    settings: tuple[Setting, ...]
    trace_widths: dict[int, tuple[int, ...]]
    longest_lag: int
    device: str
    scores: dict[tuple[Setting, int, str], Summary]
    paired_gains: dict[tuple[int, int], float]
    paired_gain_range: dict[str, Any]
    score_ranges: list[dict[str, Any]]
    slice_counts: dict[str, int]
    baselines: dict[tuple[int, str], float]
    protocol: list[dict[str, Any]]
    exposure: dict[tuple[Setting, int], Exposure]

    @property
    def planned_runs(self) -> int:
        """All of its runs."""
        return len(self.exposure)

    @property
    def widths(self) -> tuple[int, ...]:
        """The d_c of every task."""
        return tuple(self.trace_widths)

    def protocol_value(self, task: str, field: str) -> Any:
        """One cell of Table 2; None where it does not apply."""
        return next((row.get(task) for row in self.protocol if row["field"] == field), None)


@functools.cache
def read_paper() -> Paper:
    """Reads paper.json."""
    values = json.loads((pathlib.Path(__file__).parent / "paper.json").read_text(encoding="utf-8"))
    widths, outer = values["widths"], values["outer_width"]
    seeds = tuple(values["seeds"])
    return Paper(
        seeds=seeds,
        settings=tuple(Setting(dc=dc, **variant) for variant in values["variants"] for dc in widths),
        trace_widths={dc: tuple([outer] + [dc] * (values["layers"] - 2) + [outer]) for dc in widths},
        longest_lag=values["longest_lag_without_inheritance"],
        device=values["device"],
        scores={
            (_setting(row), row["length"], row["metric"]): Summary(len(seeds), row["mean"], row["sd"])
            for row in values["scores"]
        },
        paired_gains={(row["length"], row["dc"]): row["points"] for row in values["paired_gains"]},
        paired_gain_range=values["paired_gain_range"],
        score_ranges=values["score_ranges"],
        slice_counts={row["slice"]: row["closes"] for row in values["slice_counts"]},
        baselines={(row["length"], row["baseline"]): row["percent"] for row in values["baselines"]},
        protocol=values["protocol"],
        exposure={
            (_setting(row), row["seed"]): Exposure(**{field: row[field] for field in Exposure._fields})
            for row in values["exposure"]
        },
    )


def _setting(row: dict[str, Any]) -> Setting:
    return Setting(row["task"], row["dc"], row["inherit_phase"])
