"""How all figures look: colours, markers and lines that stay apart in print and to the colour-blind."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, StrMethodFormatter

from tracerelay_jax.report.comparison import Summary, summarize
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.runs import Study

INK, GREY, SHADE = "#000000", "#767676", "#f0f0f0"
# Okabe and Ito's colours, with a marker of its own for each.
COLOURS = ("#0072B2", "#D55E00", "#009E73")
MARKERS = ("o", "s", "^")
PAPER_LINE = (0, (4, 2))
DPI = 200
WIDTH = "$d_c$"


class Picture(NamedTuple):
    """A figure with the words around it.

    Attributes:
      name: of its files, without the suffix.
      title: one line.
      caption: what it shows.
      figure: to be saved.
    """

    name: str
    title: str
    caption: str
    figure: Figure


class Look(NamedTuple):
    """Of one line of ours; the paper's is dashed, with open markers."""

    colour: str
    marker: str


def looks(keys: Sequence) -> dict:
    """A look for each key, the same in all figures."""
    return {key: Look(COLOURS[i % 3], MARKERS[i % 3]) for i, key in enumerate(keys)}


def new_figure(rows: int, columns: int, width: float, height: float, **grid) -> tuple[Figure, list[list[Axes]]]:
    """A figure of panels; sizes in inches."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    axes = figure.subplots(rows, columns, squeeze=False, **grid)
    for panel in axes.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, axes.tolist()


def length_axis(axes: Axes, study: Study, paper: Paper, task: str) -> None:
    """Lengths on a logarithmic axis; a shade over those beyond the longest that the paper trains on."""
    lengths, trained = study.lengths(task, paper), paper.protocol_value(task, "training.lengths")[1]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(lengths))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = lengths[0] / 1.25, lengths[-1] * 1.25
    axes.set_xlim(low, high)
    axes.axvspan(trained * 2**0.5, high, color=SHADE, zorder=0)
    axes.set_xlabel("length", fontsize=9)


def draw_ours(axes: Axes, places: Sequence[float], summaries: Sequence[Summary], look: Look, label: str, **line) -> None:
    """Means with bars of one SD where there is one; an empty line where there is no run."""
    _draw(axes, places, summaries, {"color": look.colour, "marker": look.marker, "ms": 4.5, "lw": 1.6, "ls": "-",
                                    "label": label, "zorder": 3} | line)  # fmt: skip


def draw_paper(
    axes: Axes, places: Sequence[float], summaries: Sequence[Summary | None], look: Look, label: str, **line
) -> None:
    """The paper's means and SDs, in the same colour."""
    _draw(axes, places, summaries, {"color": look.colour, "marker": look.marker, "ms": 5.5, "mfc": "white", "lw": 1.0,
                                    "ls": PAPER_LINE, "label": label, "zorder": 4} | line)  # fmt: skip


def _draw(axes: Axes, places, summaries, line) -> None:
    points = [
        (x, s.mean, s.sd or 0.0) for x, s in zip(places, summaries, strict=True) if s is not None and s.mean is not None
    ]
    x, mean, sd = zip(*points, strict=True) if points else ((), (), ())
    axes.errorbar(x, mean, yerr=sd if any(sd) else None, capsize=2, elinewidth=0.9, **line)


def reference_line(axes: Axes, percent: float, label: str) -> None:
    """A dotted level such as that of chance."""
    axes.axhline(percent, color=GREY, ls=":", lw=1.2, zorder=1, label=label)


def legend_below(figure: Figure, panels: Sequence[Axes], columns: int, extra: Sequence[Line2D] = ()) -> None:
    """One legend for all panels, each label once."""
    entries = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entries |= {line.get_label(): line for line in extra}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def title(axes: Axes, text: str) -> None:
    """Of a panel, at its left."""
    axes.set_title(text, fontsize=9, loc="left")


def count_note(runs: int, paper: Paper) -> str:
    """` (n = 1)` after the name of a cell that has another number of runs than the paper's; it may be 0."""
    return "" if runs == len(paper.seeds) else f" (n = {runs})"


def over_lengths(
    axes: Axes, study: Study, paper: Paper, setting: Setting, look: Look, name: str, metric: str = "score", **paper_line
) -> None:
    """Our runs at every length, and what the paper prints a little to the right; `name` is ours in the legend."""
    lengths = study.lengths(setting.task, paper)
    ours = [summarize(study.percents(setting, length, metric).values()) for length in lengths]
    theirs = [paper.scores.get((setting, length, metric)) for length in lengths]
    draw_ours(axes, lengths, ours, look, name)
    draw_paper(axes, [1.1 * length for length in lengths], theirs, look, f"paper, {name.partition(' (')[0]}", **paper_line)


def widths_over_lengths(axes: Axes, study: Study, paper: Paper, task: str, metric: str = "score") -> None:
    """`over_lengths` of every width, with inheritance."""
    for dc, look in looks(paper.widths).items():
        setting = Setting(task, dc, True)
        over_lengths(axes, study, paper, setting, look, width_name(study, paper, setting), metric)


def width_name(study: Study, paper: Paper, setting: Setting) -> str:
    """The width, with the number of runs where it is not the paper's."""
    return f"{WIDTH} = {setting.dc}{count_note(len(study.of(setting)), paper)}"
