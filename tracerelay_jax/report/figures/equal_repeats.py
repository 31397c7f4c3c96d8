"""Figure 2: Equal Repeats with and without phase inheritance."""

from tracerelay_jax.report.ceilings import TASK, ceiling_at, window
from tracerelay_jax.report.figures import style
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.runs import Study
from tracerelay_jax.tasks import EqualRepeats


def figure2(study: Study, paper: Paper) -> style.Picture:
    """A panel for each width."""
    lengths = study.lengths(TASK, paper)
    ceilings = [ceiling_at(study, paper, length).percent for length in lengths]
    figure, (panels,) = style.new_figure(1, len(paper.widths), 10, 4, sharey=True)
    variants = style.looks(("with inheritance", "without inheritance"))
    for axes, dc in zip(panels, paper.widths, strict=True):
        style.reference_line(axes, 100 / EqualRepeats.outputs, "chance")
        bound = f"ceiling of a reader of {window(study, paper)} tokens"
        axes.plot(lengths, ceilings, color=style.INK, lw=1.1, ls="-.", label=bound, zorder=5)
        counts = {}
        for (label, look), inherit in zip(variants.items(), (True, False), strict=True):
            setting = Setting(TASK, dc, inherit)
            counts[label.split()[0]] = len(study.of(setting))
            style.over_lengths(axes, study, paper, setting, look, label, ls="none")
        short = [f"n = {n} {name}" for name, n in counts.items() if n != len(paper.seeds)]
        style.title(axes, f"{style.WIDTH} = {dc}" + (f" ({', '.join(short)})" if short else ""))
        style.length_axis(axes, study, paper, TASK)
    panels[0].set(ylabel="accuracy, percent", ylim=(0, 104))
    style.legend_below(figure, panels, 3)
    return style.Picture(
        "figure2",
        "Figure 2. Equal Repeats with and without phase inheritance",
        "Mean ± sample SD over seeds. Open markers: what the paper prints, moved a little to the right. Shaded: longer "
        "than any training example. Dash-dotted: the most that a reader of the last tokens alone can score, which bounds "
        "the runs without inheritance.",
        figure,
    )
