"""What stands beside Tables 1, 3 and 4: paired gains, and measured figures against those that arithmetic expects."""

import math

import numpy as np

from tracerelay_jax.report import ceilings, names
from tracerelay_jax.report.comparison import Pair, paired_gains, summarize
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.runs import Study
from tracerelay_jax.report.tables.table import Column, Table
from tracerelay_jax.report.theory.dyck import Expected, expected_closes
from tracerelay_jax.report.theory.most_freq import expected_baselines
from tracerelay_jax.tasks import Dyck, MostFreq


def gains(study: Study, paper: Paper) -> Table:
    """Equal Repeats: what inheritance adds, seed by seed."""
    rows = []
    for length in study.lengths(ceilings.TASK, paper):
        for dc in paper.widths:
            on, off = (study.percents(Setting(ceilings.TASK, dc, inherit), length) for inherit in (True, False))
            ours, theirs = summarize(paired_gains(on, off).values()), paper.paired_gains.get((length, dc))
            difference = None if theirs is None or ours.mean is None else ours.mean - theirs
            rows.append((str(length), dc, ours, theirs, difference))
    text = paper.paired_gain_range
    return Table(
        "paired_gains",
        "Equal Repeats. Paired gains of inheritance, points",
        (Column("Length"), Column("d_c"), Column("ours"), Column("paper"), Column("difference, points")),
        tuple(rows),
        (
            "The gain of a seed is its score with inheritance less that without; mean ± sample SD over the seeds that have "
            "both. The paper gives no SD of its gains.",
            f"At length {text['length']} the paper gives only their range over {text['over']}: {text['least']} to "
            f"{text['greatest']}.",
        ),
    )


def ceiling_table(study: Study, paper: Paper) -> Table:
    """Equal Repeats without inheritance, against its ceiling at every length."""
    settings = [setting for setting in paper.settings if setting.task == ceilings.TASK and not setting.inherit_phase]
    rows = []
    for length in study.lengths(ceilings.TASK, paper):
        ceiling = ceilings.ceiling_at(study, paper, length)
        summaries = [summarize(study.percents(setting, length).values()) for setting in settings]
        scores = {run.name: run.percent(length) for setting in settings for run in study.of(setting)}
        highest = max((name for name in scores if scores[name] is not None), key=scores.get, default=None)
        excess = ceiling.excess(scores[highest]) if highest else None
        rows.append((str(length), ceiling.percent, ceiling.error, *summaries, highest, highest and scores[highest], excess,
                     _verdict(highest, excess)))  # fmt: skip
    headings = ("Length", "ceiling", "standard error", *(f"d_c = {setting.dc}" for setting in settings), "highest run",
             "its score", "above the ceiling, standard errors", "verdict")  # fmt: skip
    return Table(
        "ceilings",
        f"Equal Repeats without inheritance, against the ceiling of a reader of {ceilings.window(study, paper)} tokens",
        tuple(map(Column, headings)),
        tuple(rows),
        (
            "The ceiling enumerates all words: after each suffix, the best guess is the likeliest class. The standard error "
            f"is that of such a reader over {study.examples(ceilings.TASK, paper):,} examples; more than "
            f"{ceilings.LIMIT:g} of them above the ceiling would be no accident.",
        ),
    )


def _verdict(highest: str | None, excess: float | None) -> str | None:
    if highest is None:
        return None
    return "ABOVE THE CEILING" if excess is not None and excess > ceilings.LIMIT else "within it"


def slice_counts(study: Study, paper: Paper) -> Table:
    """Table 3's second column: how many brackets the slices hold, and how many are expected."""
    run, length = study.first("dyck"), 4096
    task, words = run.experiment.task if run else Dyck(), study.examples("dyck", paper)
    rows = []
    for name, theirs in paper.slice_counts.items():
        expected = _expected_closes(task, length, words, name)
        ours = run.closes(length, name) if run else None
        from_expected = Pair(*(_in_sds(count, expected) for count in (ours, theirs)))
        rows.append((names.slice_name(name), Pair(ours, theirs), expected.mean, expected.sd, from_expected))
    return Table(
        "table3_counts",
        f"Table 3. Closing brackets in each slice at length {length}, over {words:,} words",
        (Column("Slice"), Column("closes"), Column("expected", 1), Column("SD", 1), Column("less expected, SDs")),
        tuple(rows),
        ("Expected and SD are exact, for words drawn uniformly.",),
    )


def _expected_closes(task: Dyck, length: int, words: int, name: str) -> Expected:
    kind, _, bounds = name.partition("/")
    if kind == "depth":
        return expected_closes(task, length, words, lambda depth, distances: np.full(distances.shape, depth == int(bounds)))
    low, high = (int(bounds[1:]) + 1, math.inf) if bounds.startswith(">") else map(int, bounds.split("-"))
    return expected_closes(task, length, words, lambda _, distances: (distances >= low) & (distances <= high))


def _in_sds(count: int | None, expected: Expected) -> float | None:
    return None if count is None else (count - expected.mean) / expected.sd


def baselines(study: Study, paper: Paper) -> Table:
    """Most-Freq's shortcuts on the final examples, and their chances."""
    run, examples = study.first("most_freq"), study.examples("most_freq", paper)
    task = run.experiment.task if run else MostFreq()
    rows = []
    for length in study.lengths("most_freq", paper):
        expected = expected_baselines(task, length)
        for name, title in names.SHORTCUTS.items():
            ours = run.percent(length, f"baselines/{name}") if run else None
            error = 100 * math.sqrt(expected[name] * (1 - expected[name]) / examples)
            rows.append((str(length), title, Pair(ours, paper.baselines.get((length, name))), 100 * expected[name], error))
    return Table(
        "table4_baselines",
        "Table 4. Shortcuts on Most-Freq, percent of rankings exact",
        (Column("Length"), Column("shortcut"), Column("exact"), Column("expected"), Column("standard error")),
        tuple(rows),
        (
            f"Expected from the law of the symbols' counts; the standard error is that of {examples:,} examples. Shortcuts "
            "depend on the examples alone, and are the same for every run.",
        ),
    )
