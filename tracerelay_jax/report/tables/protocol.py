"""Table 2: what was executed, beside the paper's protocol."""

import operator
from typing import Any

from tracerelay_jax.report import names
from tracerelay_jax.report.comparison import Pair
from tracerelay_jax.report.paper import Paper
from tracerelay_jax.report.runs import Run, Study
from tracerelay_jax.report.tables.table import Column, Table

# What the paper does not say, and results depend on.
_LEFT_OPEN = {
    "initialisation": "model.init",
    "its standard deviation": "model.init_scale",
    "that of P_δ, 0 for the same": "model.increment_init_scale",
    "that of P_φ, 0 for the same": "model.readout_init_scale",
    "that of input and head, empty for the same": "model.adapter_init",
    "precision of products' factors": "model.product_dtype",
    "position information in attention": "model.position",
    "arithmetic of phases": "model.phase",
}


def table2(study: Study, paper: Paper) -> Table:
    """Table 2, with the geometry and the optimiser of Section 3 and Appendix A, and what the paper leaves open."""
    rows = [("runs", *(_runs(study, paper, task) for task in names.TASKS))]
    rows.append(("training seeds", *(_seeds(study, paper, task) for task in names.TASKS)))
    for row in paper.protocol:
        rows.append((row["name"], *(_setting_of(study, task, row["field"], row.get(task)) for task in names.TASKS)))
    rows.append(("executed updates", *(_updates(study, paper, task) for task in names.TASKS)))
    rows.append(("device", *(_devices(study, paper, task) for task in names.TASKS)))
    for name, field in _LEFT_OPEN.items():
        rows.append((name, *(_setting_of(study, task, field, None) for task in names.TASKS)))
    return Table(
        "table2",
        "Table 2. Executed protocols",
        (Column("Field"), *(Column(name) for name in names.TASKS.values()), Column("differs")),
        tuple((*row, _differing(row)) for row in rows),
        (
            "Where the paper has no value, it leaves the choice open or has none to make. The runs of a task share their "
            "configuration. The selected checkpoint is that of the best mean score over the ID validation lengths; of ties, "
            "that of the lower cross-entropy.",
        ),
    )


def _differing(row: tuple) -> str | None:
    """The tasks whose two values there are, and differ."""
    tasks = zip(names.TASKS.values(), row[1:], strict=True)
    differing = [name for name, pair in tasks if None not in pair and pair.ours != pair.paper]
    return ", ".join(differing) or None


def _setting_of(study: Study, task: str, field: str, theirs: Any) -> Pair:
    run = study.first(task)
    ours = None if run is None else _field(run, field)
    return Pair(*(None if value is None else _text(value) for value in (ours, theirs)))


def _field(run: Run, field: str) -> Any:
    """The value of `model.left_window` and the like; None for an option that the task does not have."""
    section, _, name = field.partition(".")
    return getattr(operator.attrgetter(section)(run.experiment), name, None)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        # One number that holds for all layers, or a list.
        return _text(value[0]) if len(value) == 1 else ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value) or "that of activations"


def _runs(study: Study, paper: Paper, task: str) -> Pair:
    planned = [setting for setting, _ in paper.exposure if setting.task == task]
    ours = [run.setting for run in study.runs if run.setting.task == task]
    variants = {"on": True, "off": False} if any(not setting.inherit_phase for setting in planned) else {"on": True}
    return Pair(
        *(
            ", ".join(f"{sum(s.inherit_phase is inherit for s in settings)} {name}" for name, inherit in variants.items())
            for settings in (ours, planned)
        )
    )


def _seeds(study: Study, paper: Paper, task: str) -> Pair:
    seeds = sorted({run.seed for run in study.runs if run.setting.task == task})
    return Pair(", ".join(map(str, seeds)) or None, ", ".join(map(str, paper.seeds)))


def _updates(study: Study, paper: Paper, task: str) -> Pair:
    ours = [run.exposure.final for run in study.runs if run.setting.task == task]
    theirs = [exposure.final for (setting, _), exposure in paper.exposure.items() if setting.task == task]
    return Pair(*(_span(updates) for updates in (ours, theirs)))


def _span(updates: list[int]) -> str | None:
    ends = sorted({min(updates), max(updates)}) if updates else []
    return "–".join(f"{end:,}" for end in ends) or None


def _devices(study: Study, paper: Paper, task: str) -> Pair:
    devices = {f"{run.result['device']['count']} × {run.result['device']['kind']}" for run in study.runs
               if run.setting.task == task}  # fmt: skip
    return Pair(", ".join(sorted(devices)) or None, paper.device)
