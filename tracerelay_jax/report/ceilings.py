"""Equal Repeats without inheritance against the most that its 70 tokens allow (Section 4; `theory.equal_repeats`)."""

import math
import statistics
from typing import NamedTuple

from tracerelay_jax.report.paper import Paper
from tracerelay_jax.report.runs import Run, Study
from tracerelay_jax.report.theory.equal_repeats import ceiling, reader_window

TASK = "equal_repeats"
LIMIT = 3.0  # standard errors; more is no accident


class Ceiling(NamedTuple):
    """At one length, in percent.

    Attributes:
      percent: the best expected accuracy of a reader of the window.
      error: standard error of that over a set of this many examples.
    """

    percent: float
    error: float

    def excess(self, percent: float) -> float | None:
        """How far a score is above, in standard errors; None where nothing can be above."""
        return (percent - self.percent) / self.error if self.error else None


class Breach(NamedTuple):
    """A run without inheritance that scores more than its window allows.

    Attributes:
      run: which one.
      length: where.
      excess: in standard errors.
    """

    run: Run
    length: int
    excess: float


def window(study: Study, paper: Paper) -> int:
    """Tokens that an output without inheritance depends on: of the runs' geometry, or the paper's if there is none."""
    run = study.first(TASK)
    return reader_window(run.experiment.model) if run else paper.longest_lag + 1


def ceiling_at(study: Study, paper: Paper, length: int) -> Ceiling:
    """The ceiling of accuracy at one length, for the examples of these runs."""
    examples = study.examples(TASK, paper)
    best = ceiling(length, window(study, paper), examples)
    return Ceiling(100 * best, 100 * math.sqrt(best * (1 - best) / examples))


def validation_ceiling(study: Study, paper: Paper) -> float:
    """The ceiling, in percent, of the mean over the validation's lengths."""
    run = study.first(TASK)
    field = run.experiment.validation if run else None
    lengths = field.lengths if field else paper.protocol_value(TASK, "validation.lengths")
    examples = field.examples if field else paper.protocol_value(TASK, "validation.examples")
    return 100 * statistics.fmean(ceiling(length, window(study, paper), examples) for length in lengths)


def breaches(study: Study, paper: Paper) -> list[Breach]:
    """The runs above their ceiling beyond sampling error, at any length."""
    runs = [run for run in study.runs if run.setting.task == TASK and not run.setting.inherit_phase]
    found = []
    for run in runs:
        for length in study.lengths(TASK, paper):
            percent = run.percent(length)
            excess = None if percent is None else ceiling_at(study, paper, length).excess(percent)
            if excess is not None and excess > LIMIT:
                found.append(Breach(run, length, excess))
    return found
