"""The rule: what a candidate is allowed in each column, and which candidates that rules out."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from tracerelay_jax.report.comparison import Summary, summarize
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.reconstruction.rounds import FACTOR, SPREAD, Measure, Round
from tracerelay_jax.report.runs import Run, Study


class Target(NamedTuple):
    """What the paper prints in one column of one cell, and how far from it is too far. Known without any run.

    Attributes:
      paper: mean and SD over its seeds; None where it prints a range instead.
      least: of what it prints: its mean, the lower end of its range, or the middle one of its stopping updates.
      greatest: as `least`; another number for a range only.
      tolerance: how far beyond these is allowed; of updates, a factor.
      updates: whether this is the update at which a run stopped, and not a score.
    """

    paper: Summary | None
    least: float
    greatest: float
    tolerance: float
    updates: bool

    @property
    def allowed(self) -> tuple[float, float]:
        """The least and the greatest value that does not rule a candidate out."""
        if self.updates:
            return self.least / self.tolerance, self.greatest * self.tolerance
        return max(self.least - self.tolerance, 0.0), min(self.greatest + self.tolerance, 100.0)

    def misfit(self, value: float) -> float:
        """How far off a value is, in tolerances: 0 is on the paper's value, more than 1 is too far."""
        if self.updates:
            return abs(math.log(value / self.least, self.tolerance))
        return max(self.least - value, value - self.greatest, 0.0) / self.tolerance


class Judged(NamedTuple):
    """A column of a candidate all of whose seeds are there.

    Attributes:
      setting: the cell.
      measure: the column.
      value: the mean over the seeds; of updates, the middle one.
      misfit: see `Target.misfit`.
      capped: whether `value` is that of a run that used up its updates, and so may be anything later.
    """

    setting: Setting
    measure: Measure
    value: float
    misfit: float
    capped: bool

    @property
    def out(self) -> bool:
        """Whether this rules the candidate out."""
        return self.measure.rules and (self.capped or self.misfit > 1)


class Verdict(NamedTuple):
    """On one candidate in one round.

    Attributes:
      judged: every column of the cells that have all their seeds.
      missing: the other cells, with the number of their runs.
    """

    judged: tuple[Judged, ...]
    missing: tuple[tuple[Setting, int], ...]

    @property
    def out(self) -> tuple[Judged, ...]:
        """The columns that rule it out."""
        return tuple(judged for judged in self.judged if judged.out)

    @property
    def survives(self) -> bool:
        """Whether all there is to see was seen, and nothing rules it out."""
        return not self.out and not self.missing


def target(paper: Paper, setting: Setting, measure: Measure) -> Target:
    """What a column is held against."""
    if measure.length is None:
        stops = [paper.exposure[setting, seed].final for seed in paper.seeds]
        middle = statistics.median(stops)
        return Target(summarize(stops), middle, middle, FACTOR, True)
    printed = paper.scores.get((setting, measure.length, measure.metric))
    if printed is None:
        row = next(row for row in paper.score_ranges if _is_of(row, setting, measure))
        return Target(None, row["least"], row["greatest"], measure.floor, False)
    tolerance = max(SPREAD * _typical_sd(paper, setting, measure), measure.floor)
    return Target(printed, printed.mean, printed.mean, tolerance, False)


def _is_of(row: dict, setting: Setting, measure: Measure) -> bool:
    wanted = (setting.task, setting.inherit_phase, measure.length)
    return (row["task"], row["inherit_phase"], row["length"]) == wanted


def _typical_sd(paper: Paper, setting: Setting, measure: Measure) -> float:
    """The root mean square of the SDs of all widths: three seeds alone tell an SD to a factor of two."""
    keys = [(setting._replace(dc=dc), measure.length, measure.metric) for dc in paper.widths]
    return math.sqrt(statistics.fmean(paper.scores[key].sd ** 2 for key in keys))


def judge(study: Study, paper: Paper, round_: Round) -> Verdict:
    """Judges one candidate's runs in one round; cells that lack a seed are not judged."""
    judged, missing = [], []
    for setting, measures in round_.cells.items():
        runs = study.of(setting)
        if {run.seed for run in runs} == set(paper.seeds):
            judged += [_judge(runs, target(paper, setting, measure), setting, measure) for measure in measures]
        else:
            missing.append((setting, len(runs)))
    return Verdict(tuple(judged), tuple(missing))


def _judge(runs: Sequence[Run], aim: Target, setting: Setting, measure: Measure) -> Judged:
    if measure.length is not None:
        value = statistics.fmean(run.percent(measure.length, measure.metric) for run in runs)
        return Judged(setting, measure, value, aim.misfit(value), False)
    value, capped = middle_stop(runs)
    return Judged(setting, measure, value, max(aim.misfit(value), float(capped)), capped)


def middle_stop(runs: Sequence[Run]) -> tuple[int, bool]:
    """The middle one of the updates at which runs stopped, of two the later; and whether that one was stopped by the cap.

    A run that was stopped by the cap counts as later than any other.
    """
    stops = sorted((run.exposure.exhausted, run.exposure.final) for run in runs)
    capped, update = stops[len(stops) // 2]
    return update, capped
