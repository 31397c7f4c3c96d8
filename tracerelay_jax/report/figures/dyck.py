"""Figure 3: Dyck over lengths, distances and depths."""

from matplotlib.axes import Axes

from tracerelay_jax.report import names
from tracerelay_jax.report.comparison import summarize
from tracerelay_jax.report.figures import style
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.runs import Study
from tracerelay_jax.tasks import Dyck

_LONGEST = 4096  # that of the slices
_FEW = 100  # closing brackets; rarer slices get a star


def figure3(study: Study, paper: Paper) -> style.Picture:
    """By length; and at the longest by distance and by depth."""
    figure, (panels,) = style.new_figure(1, 3, 12, 4.4, sharey=True)
    style.widths_over_lengths(panels[0], study, paper, "dyck")
    style.length_axis(panels[0], study, paper, "dyck")
    for axes, kind in zip(panels[1:], ("distance", "depth"), strict=True):
        _slices(axes, study, paper, [name for name, n in paper.slice_counts.items() if name.startswith(kind) and n])
    style.title(panels[0], "(a) by length")
    style.title(panels[1], f"(b) by distance to the opener, length {_LONGEST}")
    style.title(panels[2], f"(c) by depth before the close, length {_LONGEST}")
    panels[0].set_ylabel("closing types, percent", fontsize=9)
    panels[0].set_ylim(0, 104)
    panels[1].set_xlabel("distance", fontsize=9)
    panels[2].set_xlabel("depth", fontsize=9)
    style.legend_below(figure, panels, 4)
    return style.Picture(
        "figure3",
        "Figure 3. Dyck: types of closing brackets",
        "Mean ± sample SD over seeds; filled and solid: ours, open and dashed: the paper. Shaded: longer than any training "
        f"example. The starred slice holds fewer than {_FEW} brackets; that beyond 2048 holds none in the paper and is left "
        "out.",
        figure,
    )


def _slices(axes: Axes, study: Study, paper: Paper, slices: list[str]) -> None:
    style.reference_line(axes, 100 / Dyck().types, "chance")
    for place, (dc, look) in enumerate(style.looks(paper.widths).items()):
        setting = Setting("dyck", dc, True)
        ours = [summarize(study.percents(setting, _LONGEST, name).values()) for name in slices]
        theirs = [paper.scores.get((setting, _LONGEST, name)) for name in slices]
        middle = [i + 0.22 * (place - 1) for i in range(len(slices))]
        style.draw_ours(axes, middle, ours, look, style.width_name(study, paper, setting))
        style.draw_paper(axes, [x + 0.08 for x in middle], theirs, look, f"paper, {style.WIDTH} = {dc}")
    ticks = [names.slice_name(name).removeprefix("Depth ") + "*" * (paper.slice_counts[name] < _FEW) for name in slices]
    axes.set_xticks(range(len(slices)), ticks)
    if max(map(len, ticks)) > 3:
        axes.tick_params(axis="x", labelrotation=45)
