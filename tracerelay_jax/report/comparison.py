"""Means and sample SDs over seeds, and how far ours are from the paper's."""

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

POOLED = "pooled SD"
PAPERS = "paper's SD"


class Summary(NamedTuple):
    """Of one metric of the runs of one cell.

    Attributes:
      n: runs.
      mean: None without runs.
      sd: sample standard deviation (n - 1); None with fewer than two runs.
    """

    n: int
    mean: float | None
    sd: float | None


class Comparison(NamedTuple):
    """Ours beside the paper's.

    Attributes:
      ours: over our runs.
      paper: the paper's; None where it gives none.
      difference: ours - paper's in units of `unit`; None where that is undefined.
      unit: `POOLED`, or `PAPERS` where ours is a single run, which has no SD.
    """

    ours: Summary
    paper: Summary | None
    difference: float | None
    unit: str | None


class Pair(NamedTuple):
    """A single value of ours beside the paper's; None where there is none."""

    ours: object
    paper: object


def summarize(values: Iterable[float]) -> Summary:
    """The mean and the sample SD of seed-level values."""
    values = list(values)
    return Summary(
        len(values),
        statistics.fmean(values) if values else None,
        statistics.stdev(values) if len(values) > 1 else None,
    )


def compare(values: Iterable[float], paper: Summary | None) -> Comparison:
    """Our seed-level values against the paper's mean and SD.

    The pooled SD is the root of ((n₁ - 1) s₁² + (n₂ - 1) s₂²) / (n₁ + n₂ - 2).
    """
    ours = summarize(values)
    if paper is None or paper.sd is None or ours.mean is None:
        return Comparison(ours, paper, None, None)
    unit, sd = (PAPERS, paper.sd) if ours.sd is None else (POOLED, _pooled_sd(ours, paper))
    return Comparison(ours, paper, (ours.mean - paper.mean) / sd, unit) if sd else Comparison(ours, paper, None, None)


def _pooled_sd(one: Summary, other: Summary) -> float:
    squares = (one.n - 1) * one.sd**2 + (other.n - 1) * other.sd**2
    return math.sqrt(squares / (one.n + other.n - 2))


def paired_gains(treated: Mapping[int, float], control: Mapping[int, float]) -> dict[int, float]:
    """The difference of every seed that both hold, {seed: treated - control}."""
    return {seed: treated[seed] - control[seed] for seed in sorted(treated.keys() & control.keys())}
