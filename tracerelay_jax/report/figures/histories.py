"""Figure 5: every validation of every run."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, StrMethodFormatter

from tracerelay_jax.report import ceilings, names
from tracerelay_jax.report.figures import style
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.runs import Run, Study

_TICKS = (0, 20, 40, 60, 80, 90, 95, 99, 100)
_LINES = ("-", (0, (5, 1.5)), (0, (1, 1)))  # by seed


def figure5(study: Study, paper: Paper) -> style.Picture:
    """A row for each task and variant, a column for each width."""
    variants = list(dict.fromkeys(setting.variant for setting in paper.settings))
    figure, rows = style.new_figure(
        len(variants), len(paper.widths), 10, 2.1 * len(variants) + 0.8, sharex="row", sharey="row"
    )
    for (task, inherit), panels in zip(variants, rows, strict=True):
        _limits(panels[0], study, paper, (task, inherit))
        for axes, (dc, look) in zip(panels, style.looks(paper.widths).items(), strict=True):
            _panel(axes, study, paper, Setting(task, dc, inherit), look)
        panels[0].set_ylabel("ID validation, percent", fontsize=8)
    for axes in rows[-1]:
        axes.set_xlabel("updates", fontsize=9)
    style.legend_below(figure, [], 7, _legend(paper))
    return style.Picture(
        "figure5",
        "Figure 5. Validation histories",
        "Every logged mean over the ID lengths, unsmoothed, up to the last update of each run, on a scale of the square "
        "root of what is missing to 100. Stars: the selected checkpoints. Dashed: the threshold, which two validations in a "
        "row must reach. Dash-dotted: the ceiling without inheritance (off). Ticks below: where the paper's runs stopped.",
        figure,
    )


def _panel(axes: Axes, study: Study, paper: Paper, setting: Setting, look: style.Look) -> None:
    for run in study.of(setting):
        _history(axes, run, _line(paper, run.seed), look.colour)
    axes.axhline(
        100 * paper.protocol_value(setting.task, "validation.threshold"), color=style.GREY, ls="--", lw=0.9, zorder=1
    )
    stops = [paper.exposure[setting, seed].final for seed in paper.seeds]
    axes.plot(stops, [0.03] * len(stops), "|", color=style.INK, ms=9, mew=1.4, transform=axes.get_xaxis_transform())
    if setting.task == ceilings.TASK and not setting.inherit_phase:
        axes.axhline(ceilings.validation_ceiling(study, paper), color=style.INK, ls="-.", lw=1.1, zorder=3)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    switch = (", on" if setting.inherit_phase else ", off") if setting.task == ceilings.TASK else ""
    style.title(axes, f"{names.TASKS[setting.task]}{switch}, {style.width_name(study, paper, setting)}")


def _limits(axes: Axes, study: Study, paper: Paper, variant: tuple[str, bool]) -> None:
    """Of a whole row: all updates of ours and the paper's, all scores."""
    runs = [run for run in study.runs if run.setting.variant == variant]
    stops = [exposure.final for (setting, _), exposure in paper.exposure.items() if setting.variant == variant]
    lowest = min((score for run in runs for _, score in run.history), default=50.0)
    axes.set_xlim(0, 1.03 * max([*stops, *(run.exposure.final for run in runs)]))
    axes.set_yscale("function", functions=(lambda score: -np.sqrt(np.maximum(100 - score, 0)), lambda root: 100 - root**2))
    axes.set_ylim(lowest - 0.15 * (100 - lowest), 100)
    axes.yaxis.set_major_locator(FixedLocator(_TICKS))


def _history(axes: Axes, run: Run, line, colour: str) -> None:
    updates, scores = zip(*run.history, strict=True)
    axes.plot(updates, scores, color=colour, ls=line, lw=1.2, zorder=2)
    best = run.exposure.best
    axes.plot([best], [dict(run.history)[best]], "*", color=colour, mec=style.INK, mew=0.7, ms=10, zorder=4, clip_on=False)


def _line(paper: Paper, seed: int):
    return _LINES[paper.seeds.index(seed) % len(_LINES) if seed in paper.seeds else 0]


def _legend(paper: Paper) -> list[Line2D]:
    seeds = [Line2D([], [], color=style.INK, ls=_line(paper, seed), lw=1.2, label=f"seed {seed}") for seed in paper.seeds]
    star = Line2D([], [], color="white", marker="*", mec=style.INK, ms=10, ls="none", label="selected checkpoint")
    threshold = Line2D([], [], color=style.GREY, ls="--", lw=0.9, label="threshold")
    stop = Line2D([], [], color=style.INK, marker="|", ms=9, mew=1.4, ls="none", label="the paper's run stopped")
    ceiling = Line2D([], [], color=style.INK, ls="-.", lw=1.1, label="ceiling")
    return [*seeds, star, threshold, ceiling, stop]
