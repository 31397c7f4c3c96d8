"""Charts of what launch/benchmark.py measured, drawn from its figures alone."""

from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS = {"reference": "#767676", "windowed": "#0072B2", "pallas": "#D55E00"}
_STEP, _FLOOR = "#0072B2", "#bdbdbd"


def training_chart(rows: list[dict[str, Any]]) -> Figure:
    """Updates beside their floors; and, where one case is measured over several lengths, time and memory over the length."""
    whole = [row for row in rows if row["batch_size"] == rows[0]["batch_size"]]
    longer = [row for row in rows if row["batch_size"] != rows[0]["batch_size"]]
    figure = Figure(figsize=(11 if longer else 6, 3.6), dpi=150, layout="constrained")
    panels = figure.subplots(1, 3 if longer else 1, squeeze=False, width_ratios=[2, 1.2, 1.2] if longer else [1])[0]
    _updates(panels[0], whole)
    if longer:
        positions = [row["positions"] for row in longer]
        seconds = [1e6 / row["tokens_per_second"] for row in longer]
        _over_length(panels[1], positions, seconds, "µs a token")
        panels[1].set_ylim(0, 1.3 * max(seconds))
        _over_length(panels[2], positions, [row["memory_bytes"] / 2**20 for row in longer], "MiB of the compiled step")
        panels[2].set_yscale("log", base=2)
        figure.supxlabel(f"right: {longer[0]['task']}, batch of {longer[0]['batch_size']}", fontsize="small", ha="left")
    return figure


def _updates(axes: Axes, rows: list[dict[str, Any]]) -> None:
    widths = ["/".join(map(str, row["trace_widths"])) for row in rows]
    names = [
        f"{row['task'].replace('_', ' ')}, {w}\n{row['batch_size']} × {row['positions']}"
        for row, w in zip(rows, widths, strict=True)
    ]
    places = range(len(rows))
    step = [row["step_seconds"] * 1e3 for row in rows]
    axes.barh([place - 0.2 for place in places], step, 0.4, color=_STEP, label="update")
    axes.barh([place + 0.2 for place in places], [row["floor_seconds"] * 1e3 for row in rows], 0.4, color=_FLOOR,
              label="its matrix products alone")  # fmt: skip
    for place, row, width in zip(places, rows, step, strict=True):
        axes.text(width, place - 0.2, f" {row['ratio_to_floor']:.1f}×  {row['updates_per_second']:.1f}/s", va="center",
                  fontsize="small")  # fmt: skip
    axes.set_yticks(places, names, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.35 * max(step))
    axes.set_xlabel("ms")
    axes.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    axes.spines[["top", "right"]].set_visible(False)


def attention_chart(rows: list[dict[str, Any]]) -> Figure:
    """Time a position over the length: a panel for each width and pass, a line for each implementation."""
    panels = [(key, list(group)) for key, group in groupby(sorted(rows, key=_panel), key=_panel)]
    figure = Figure(figsize=(2.9 * len(panels), 3.2), dpi=150, layout="constrained")
    for axes, ((width, pass_), cases) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, colour in _COLOURS.items():
            served = [row for row in cases if name in row["implementations"]]
            if served:
                times = [row["implementations"][name]["seconds"] / row["positions"] * 1e9 for row in served]
                _over_length(axes, [row["length"] for row in served], times, "ns a position", color=colour, label=name)
        axes.set_yscale("log")
        axes.set_title(f"width {width}, {pass_}", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")
    return figure


def _panel(row: dict[str, Any]) -> tuple[int, str]:
    return row["width"], row["pass"]


def _over_length(axes: Axes, positions, values, quantity: str, color: str = _STEP, **line) -> None:
    axes.plot(positions, values, marker="o", color=color, **line)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("positions")
    axes.set_ylabel(quantity)
    axes.spines[["top", "right"]].set_visible(False)


CHARTS = {"train": training_chart, "attention": attention_chart}
