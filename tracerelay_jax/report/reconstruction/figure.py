"""The study's figure: a panel a column, in which every candidate is a line and the paper a band."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from tracerelay_jax.report.figures import style
from tracerelay_jax.report.paper import Setting
from tracerelay_jax.report.reconstruction.findings import Findings
from tracerelay_jax.report.reconstruction.rounds import ROUNDS, Measure, cell_name
from tracerelay_jax.report.reconstruction.rule import Target, target

_COLUMNS = 4
_PAPER, _ALLOWED = "#9ecae1", "#e3eef7"
_WITHIN, _OUT = style.Look(style.COLOURS[0], "o"), style.Look(style.COLOURS[1], "X")
_STOP_TICKS = (1_000, 2_000, 5_000, 10_000, 20_000)


def figure(findings: Findings) -> style.Picture:
    """Draws all columns of all rounds; what rules first."""
    rows = _rows()
    drawn, grid = style.new_figure(len(rows), _COLUMNS, 12, 0.7 + 1.75 * len(rows))
    for panels, (setting, measures) in zip(grid, rows, strict=True):
        for axes, measure in zip(panels, measures, strict=False):
            _panel(axes, findings, setting, measure)
            axes.tick_params(axis="y", labelleft=axes is panels[0])
        style.title(panels[0], f"{cell_name(setting).replace('d_c', style.WIDTH)}: {measures[0].name}")
        for axes in panels[len(measures) :]:
            axes.set_visible(False)
    _legend(drawn)
    return style.Picture(
        "candidates",
        "Candidates against the paper",
        "Lines: the candidates. Scores in percent. Small: single seeds; large: their mean, or of updates the middle seed, "
        "where all seeds are there; without them a hollow mark, and no verdict. Dark band: the paper's mean ± SD, the range "
        "that it prints instead, or of updates its earliest to latest seed; its line is the mean, or the middle seed. Light "
        "band: what the rule allows; a cross outside of it rules the candidate out. Columns without a light band rule no "
        "candidate out. Arrows: seeds that used up the cap.",
        drawn,
    )


def _rows() -> list[tuple[Setting, Sequence[Measure]]]:
    """The columns of every cell, what rules it out first, as rows of panels."""
    rows = []
    for round_ in ROUNDS:
        for rules in (True, False):
            for setting, measures in round_.cells.items():
                chosen = [measure for measure in measures if measure.rules is rules]
                rows += [(setting, chosen[i : i + _COLUMNS]) for i in range(0, len(chosen), _COLUMNS)]
    return rows


def _panel(axes: Axes, findings: Findings, setting: Setting, measure: Measure) -> None:
    aim = target(findings.paper, setting, measure)
    style.title(axes, measure.name)
    _bands(axes, findings, setting, measure, aim)
    for place, name in enumerate(findings.studies):
        axes.axhline(place, color=style.SHADE, lw=0.6, zorder=0.5)
        _candidate(axes, findings, name, setting, measure, place)
    axes.set_yticks(range(len(findings.studies)), list(findings.studies), fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(findings.studies) - 0.4, -0.6)
    if aim.updates:
        _update_axis(axes)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))


def _bands(axes: Axes, findings: Findings, setting: Setting, measure: Measure, aim: Target) -> None:
    if measure.rules:
        axes.axvspan(*aim.allowed, color=_ALLOWED, lw=0, zorder=0)
    if aim.updates:
        stops = [findings.paper.exposure[setting, seed].final for seed in findings.paper.seeds]
        band = min(stops), max(stops)
    elif aim.paper is None:
        band = aim.least, aim.greatest
    else:
        band = aim.paper.mean - aim.paper.sd, min(aim.paper.mean + aim.paper.sd, 100.0)
    axes.axvspan(*band, color=_PAPER, lw=0, zorder=1)
    if aim.least == aim.greatest:
        axes.axvline(aim.least, color=style.INK, lw=0.9, ls=style.PAPER_LINE, zorder=2)


def _candidate(axes: Axes, findings: Findings, name: str, setting: Setting, measure: Measure, place: int) -> None:
    runs, values = findings.studies[name].of(setting), findings.values(name, setting, measure)
    for i, (run, value) in enumerate(zip(runs, values, strict=True)):
        capped = measure.length is None and run.exposure.exhausted
        height = place + 0.28 * (i - (len(runs) - 1) / 2)  # seeds of one value stay apart
        axes.plot([value], [height], ">" if capped else ".", color=style.INK, ms=4.5, zorder=4, alpha=0.75, mew=0)
    judged = findings.judged(name, setting, measure)
    if judged:
        look = _OUT if judged.out else _WITHIN
        axes.plot([judged.value], [place], look.marker, color=look.colour, ms=8, mec="white", mew=0.6, zorder=3)
    elif runs:
        axes.plot(values, [place] * len(runs), "o", mfc="none", mec=style.GREY, ms=8, mew=0.8, zorder=3)


def _update_axis(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_STOP_TICKS))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _legend(drawn: Figure) -> None:
    mark = {"color": "white", "ls": "none", "ms": 8}
    entries = [
        Line2D([], [], marker=".", color=style.INK, ms=4.5, ls="none", label="seed"),
        Line2D([], [], marker=">", color=style.INK, ms=4.5, ls="none", label="seed that used up the cap"),
        Line2D([], [], marker=_WITHIN.marker, mfc=_WITHIN.colour, label="mean or middle seed", **mark),
        Line2D([], [], marker=_OUT.marker, mfc=_OUT.colour, label="the same, ruled out by it", **mark),
        Line2D([], [], marker="o", mfc="none", mec=style.GREY, label="too few seeds", ls="none", ms=8),
        Patch(color=_PAPER, label="the paper"),
        Patch(color=_ALLOWED, label="allowed"),
    ]
    style.legend_below(drawn, [], len(entries), entries)
