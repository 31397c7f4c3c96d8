"""What the verdicts on all candidates leave: nothing yet, one of them, or none."""

import itertools
import statistics
from collections.abc import Mapping, Sequence

from tracerelay_jax.report.reconstruction.rounds import TIE, cell_name
from tracerelay_jax.report.reconstruction.rule import Judged, Target, Verdict


def mean_misfit(verdicts: Sequence[Verdict]) -> float | None:
    """The weighted mean over all columns that were judged; None without any."""
    judged = [each for verdict in verdicts for each in verdict.judged]
    weights = [each.measure.weight for each in judged]
    return statistics.fmean([each.misfit for each in judged], weights) if judged else None


def conclude(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    """What the verdicts say, as one line of Markdown.

    Args:
      verdicts: those of every candidate, from the simplest, by round.
    """
    survivors = [name for name, rounds in verdicts.items() if all(verdict.survives for verdict in rounds)]
    ruled_out = [name for name, rounds in verdicts.items() if any(verdict.out for verdict in rounds)]
    open_ones = [name for name in verdicts if name not in survivors + ruled_out]
    if open_ones:
        return f"Open: too few runs for a verdict on {_listed(open_ones)}. Nothing is concluded yet."
    if survivors:
        return _choice(verdicts, survivors)
    return _closest(verdicts)


def _choice(verdicts: Mapping[str, Sequence[Verdict]], survivors: Sequence[str]) -> str:
    misfits = {name: mean_misfit(verdicts[name]) for name in survivors}
    best = min(misfits, key=misfits.get)
    tied = [name for name in survivors if misfits[name] <= misfits[best] + TIE]
    figures = ", ".join(f"`{name}` {misfit:.2f}" for name, misfit in misfits.items())
    found = f"`{tied[0]}` comes out" if len(tied) == 1 else f"{_listed(tied)} tie, and the simplest, `{tied[0]}`, comes out"
    return f"{found}. Candidates that survive every round, with their misfits: {figures}."


def _closest(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    name = min(verdicts, key=lambda name: _distance(verdicts[name]))
    out = [each for verdict in verdicts[name] for each in verdict.out]
    return (
        f"No candidate fits. Closest comes `{name}`{_without(verdicts[name])}, with a misfit of "
        f"{mean_misfit(verdicts[name]):.2f}. It differs in {describe(out)}."
    )


def _distance(rounds: Sequence[Verdict]) -> tuple[float, float, float]:
    """The less, the closer: rounds survived, then the share of columns that rule it out, then the misfit."""
    survived = len(list(itertools.takewhile(lambda verdict: verdict.survives, rounds)))
    ruling = [each for verdict in rounds for each in verdict.judged if each.measure.rules]
    return -survived, sum(each.out for each in ruling) / len(ruling), mean_misfit(rounds)


def _without(rounds: Sequence[Verdict]) -> str:
    missing = [cell_name(setting) for verdict in rounds for setting, _ in verdict.missing]
    return f" (without all runs of {'; '.join(missing)})" if missing else ""


def describe(columns: Sequence[Judged]) -> str:
    """Columns with their values, by cell."""
    cells = itertools.groupby(columns, key=lambda judged: judged.setting)
    return "; ".join(f"{cell_name(setting)}: {', '.join(map(_column, of_cell))}" for setting, of_cell in cells)


def _column(judged: Judged) -> str:
    value = f"{judged.value:,}{'†' if judged.capped else ''}" if judged.measure.length is None else f"{judged.value:.2f}"
    return f"{judged.measure.name} ({value})"


def interval(aim: Target) -> str:
    """What is allowed, as text."""
    low, high = (f"{end:,.0f}" if aim.updates else f"{end:.2f}" for end in aim.allowed)
    return f"{low} to {high}"


def _listed(found: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in found)
