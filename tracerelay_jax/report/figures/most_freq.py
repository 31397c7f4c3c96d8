"""Figure 4: Most-Freq's generation over lengths, and the shortcuts."""

from matplotlib.axes import Axes

from tracerelay_jax.report import names
from tracerelay_jax.report.figures import style
from tracerelay_jax.report.paper import Paper
from tracerelay_jax.report.runs import Study
from tracerelay_jax.report.theory.most_freq import expected_baselines
from tracerelay_jax.tasks import MostFreq

# More of Okabe and Ito's colours.
_LOOKS = (style.Look("#CC79A7", "v"), style.Look("#E69F00", "D"), style.Look("#56B4E9", "X"))


def figure4(study: Study, paper: Paper) -> style.Picture:
    """Exact rankings, the first output alone, and the shortcuts."""
    figure, (panels,) = style.new_figure(1, 3, 12, 4.4)
    for axes, metric in zip(panels[:2], ("score", "top1"), strict=True):
        style.widths_over_lengths(axes, study, paper, "most_freq", metric)
        axes.set_ylim(0, 104)
    _shortcuts(panels[2], study, paper)
    for axes, text in zip(panels, ("(a) ranking and EOS exact", "(b) first output", "(c) shortcuts, exact"), strict=True):
        style.length_axis(axes, study, paper, "most_freq")
        style.title(axes, text)
    panels[0].set_ylabel("sources, percent", fontsize=9)
    style.legend_below(figure, panels, 7)
    return style.Picture(
        "figure4",
        "Figure 4. Most-Freq: greedy generation",
        "Mean ± sample SD over seeds; filled and solid: ours, open: the paper, moved a little to the right. Shaded: longer "
        "than any training example. The shortcuts, on the same sources, have a scale of their own; black: their chances.",
        figure,
    )


def _shortcuts(axes: Axes, study: Study, paper: Paper) -> None:
    run, lengths = study.first("most_freq"), study.lengths("most_freq", paper)
    task = run.experiment.task if run else MostFreq()
    for (name, title), look in zip(names.SHORTCUTS.items(), _LOOKS, strict=True):
        label = title[0].lower() + title[1:]
        line = {"color": look.colour, "marker": look.marker, "ms": 5.5, "lw": 1.6}
        ours = [run.percent(length, f"baselines/{name}") for length in lengths] if run else []
        axes.plot(lengths[: len(ours)], ours, label=label, **line)
        points = [(1.1 * length, percent) for (length, of), percent in paper.baselines.items() if of == name]
        axes.plot(*zip(*points, strict=True), label=f"paper, {label}", **line | {"mfc": "white", "ls": "none"}, zorder=4)
    for name in names.SHORTCUTS:
        chances = [100 * expected_baselines(task, length)[name] for length in lengths]
        axes.plot(lengths, chances, color=style.INK, lw=0.9, ls="-.", label="expected", zorder=1)
    axes.set_ylim(bottom=0)
