"""Tables 1, 3 and 4, and the scores at every length, as means and run by run."""

from tracerelay_jax.report import ceilings, names
from tracerelay_jax.report.comparison import Comparison, compare, summarize
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.runs import Study
from tracerelay_jax.report.tables.table import Column, Table, setting_cells, setting_columns
from tracerelay_jax.tasks import Dyck

_LENGTHS = {256: "ID: 256", 1024: "OOD: 1024"}  # of Table 1


def compare_cell(study: Study, paper: Paper, setting: Setting, length: int, metric: str = "score") -> Comparison:
    """Our runs of a cell against the paper's mean and SD."""
    return compare(study.percents(setting, length, metric).values(), paper.scores.get((setting, length, metric)))


def table1(study: Study, paper: Paper) -> Table:
    """Table 1, with the ceiling of Equal Repeats without inheritance."""
    bounds = {length: ceilings.ceiling_at(study, paper, length).percent for length in _LENGTHS}
    rows = []
    for setting in paper.settings:
        bounded = setting.task == ceilings.TASK and not setting.inherit_phase
        cells = []
        for length in _LENGTHS:
            cells += [compare_cell(study, paper, setting, length), bounds[length] if bounded else None]
        rows.append((*setting_cells(setting), *cells))
    columns = [column for name in _LENGTHS.values() for column in (Column(name), Column(f"{name}, ceiling"))]
    return Table(
        "table1",
        "Table 1. Test results of the selected checkpoints, percent",
        (*setting_columns(), *columns),
        tuple(rows),
        (
            "Metrics: class of the sequence (Equal Repeats), type of each closing bracket (Dyck), whole ranking with EOS, "
            "generated greedily (Most-Freq).",
            f"Ceiling: the best expected accuracy of a reader of the last {ceilings.window(study, paper)} tokens, all that "
            "an output without inheritance depends on.",
        ),
    )


def table3(study: Study, paper: Paper) -> Table:
    """Table 3: Dyck by distance and by depth."""
    return Table(
        "table3",
        "Table 3. Dyck at length 4096 by distance to the opener and by depth, percent of closing brackets",
        (Column("Slice"), *_width_columns(paper)),
        tuple((names.slice_name(name), *_width_cells(study, paper, "dyck", 4096, name)) for name in paper.slice_counts),
        (
            f"Chance is {100 / Dyck().types:g}%. An empty slice has no accuracy. The next table counts the brackets of each "
            "slice.",
        ),
    )


def table4(study: Study, paper: Paper) -> Table:
    """Table 4: Most-Freq's diagnostics."""
    return Table(
        "table4",
        "Table 4. Most-Freq at length 1024, percent of sources",
        (Column("Metric"), *_width_columns(paper)),
        tuple((title, *_width_cells(study, paper, "most_freq", 1024, name)) for name, title in names.DIAGNOSTICS.items()),
        (
            "Top-2 prefix: the first two outputs in order. Set exact: every symbol once, in any order. Termination: EOS "
            "within six outputs.",
        ),
    )


def other_lengths(study: Study, paper: Paper) -> Table:
    """What Section 4 gives at lengths that Table 1 does not have."""
    cells = [(setting, length) for setting, length, metric in paper.scores if metric == "score" and length not in _LENGTHS]
    return Table(
        "section4",
        "Section 4. Lengths beside those of Table 1, percent",
        (*setting_columns(), Column("Length"), Column("score")),
        tuple(
            (*setting_cells(setting), str(length), compare_cell(study, paper, setting, length)) for setting, length in cells
        ),
    )


def every_length(study: Study, paper: Paper) -> Table:
    """The score at every length, the data of Figures 2, 3a and 4a."""
    lengths = _every_length(study, paper)
    rows = [
        (*setting_cells(setting), *(summarize(study.percents(setting, length).values()) for length in lengths))
        for setting in paper.settings
    ]
    ranges = (
        f"{names.TASKS[row['task']]} at {row['length']}, {row['least']:.2f} to {row['greatest']:.2f} over {row['over']}"
        for row in paper.score_ranges
    )
    return Table(
        "every_length",
        "Scores at every length, percent",
        (*setting_columns(), *(Column(str(length)) for length in lengths)),
        tuple(rows),
        (f"Besides those of the tables above, the paper prints ranges: {'; '.join(ranges)}.",),
    )


def every_run(study: Study, paper: Paper) -> Table:
    """The score of each run at every length, with the update of its checkpoint: what the means are of."""
    lengths = _every_length(study, paper)
    rows = [
        (*setting_cells(run.setting), run.seed, run.exposure.best, *(run.percent(length) for length in lengths))
        for run in study.runs
    ]
    return Table(
        "every_run",
        "Scores of every run, percent",
        (*setting_columns(), Column("seed"), Column("best"), *(Column(str(length)) for length in lengths)),
        tuple(rows),
        ("Best: the update of the selected checkpoint. The paper prints no scores of single runs.",),
    )


def _every_length(study: Study, paper: Paper) -> list[int]:
    return sorted({length for task in names.TASKS for length in study.lengths(task, paper)})


def _width_columns(paper: Paper) -> tuple[Column, ...]:
    return tuple(Column(f"d_c = {dc}") for dc in paper.widths)


def _width_cells(study: Study, paper: Paper, task: str, length: int, metric: str) -> tuple[Comparison, ...]:
    return tuple(compare_cell(study, paper, Setting(task, dc, True), length, metric) for dc in paper.widths)
