"""Table 5: how long each run trained, and the means over seeds."""

import statistics

from tracerelay_jax.report.comparison import Comparison, Pair, Summary, compare
from tracerelay_jax.report.paper import Exposure, Paper, Setting
from tracerelay_jax.report.runs import Study
from tracerelay_jax.report.tables.table import Column, Table, setting_cells, setting_columns


def table5(study: Study, paper: Paper) -> Table:
    """Table 5, a row for each run of the paper or of ours."""
    ours = {(run.setting, run.seed): run.exposure for run in study.runs}
    code = {(run.setting, run.seed): run.result.get("code") for run in study.runs}
    keys = sorted(ours.keys() | paper.exposure.keys(), key=lambda key: (paper.settings.index(key[0]), key[1]))
    columns = (
        Column("seed"), Column("best"), Column("final"), Column("exhausted"), Column("tokens (M)"), Column("minutes", 1),
        Column("parameters"), Column("updates/s", 1), Column("our code"),
    )  # fmt: skip
    rows = tuple(
        (*setting_cells(key[0]), key[1], *_pairs(ours.get(key), paper.exposure.get(key)), code.get(key)) for key in keys
    )
    return Table(
        "table5",
        "Table 5. Training exposure of every run",
        (*setting_columns(), *columns),
        rows,
        (
            "Best: the update of the selected checkpoint. Final: the last update. Exhausted: the cap was used up without "
            "two passes in a row. Minutes, and updates/s over them: the training loop with its validations and, in ours, "
            "its compilations, on the devices of Table 2. Ours shared their machine with other work, some more than others: "
            "speeds are compared in ../benchmarks. Code: digits that stand for the package's Python files; the runs without "
            "are older, and of several versions.",
        ),
    )


def _pairs(ours: Exposure | None, theirs: Exposure | None) -> tuple[Pair, ...]:
    return tuple(Pair(*cell) for cell in zip(_cells(ours), _cells(theirs), strict=True))


def _cells(exposure: Exposure | None) -> tuple[float | None, ...]:
    if exposure is None:
        return (None,) * (len(Exposure._fields) + 1)
    seconds = 60 * exposure.minutes
    return *exposure, exposure.final / seconds if seconds else None


def exposure_means(study: Study, paper: Paper) -> Table:
    """Table 5 as means over seeds, which can be compared: single runs of one seed are not the same run."""
    fields = {"best": Column("best", 0), "final": Column("final", 0), "tokens_millions": Column("tokens (M)")}
    rows = tuple(
        (*setting_cells(setting), *(_mean(study, paper, setting, field) for field in fields)) for setting in paper.settings
    )
    return Table(
        "table5_means",
        "Table 5. Means over seeds",
        (*setting_columns(), *fields.values()),
        rows,
        ("The paper's means and SDs are those of its own rows.",),
    )


def _mean(study: Study, paper: Paper, setting: Setting, field: str) -> Comparison:
    theirs = [getattr(exposure, field) for (of, _), exposure in paper.exposure.items() if of == setting]
    reference = Summary(len(theirs), statistics.fmean(theirs), statistics.stdev(theirs))
    return compare([getattr(run.exposure, field) for run in study.of(setting)], reference)
