"""Charts of what launch/benchmark.py measured, drawn from its figures alone."""

from collections.abc import Callable
from itertools import cycle, groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS = {"reference": "#767676", "windowed": "#0072B2", "pallas": "#D55E00"}
_PARTS = {"products": "#0072B2", "attention": "#E69F00", "phases": "#009E73", "batch": "#CC79A7", "rest": "#bdbdbd"}
_LINE = "#0072B2"
_PEERS = ("#D55E00", "#0072B2", "#009E73", "#767676", "#E69F00", "#CC79A7", "#56B4E9")
_MARKERS = "os^DvPX"
_HATCHES = (None, "/////", ".....", "xxxxx")
_TITLES = {"tracerelay": "TraceRelay", "griffin": "Griffin", "mamba2": "Mamba-2"}


def training_chart(rows: list[dict[str, Any]]) -> Figure:
    """Updates with their parts; and, where one case is measured over several lengths, time and memory over the length."""
    whole, longer = ([row for row in rows if row["series"] == series] for series in ("tasks", "lengths"))
    figure = Figure(figsize=(11 if longer else 6, max(3.6, 0.45 * len(whole))), dpi=150, layout="constrained")
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
        f"{row['task'].replace('_', ' ')}, {w}\n{row['batch_size']} × {row['positions']}, {row['product_dtype']} products"
        for row, w in zip(rows, widths, strict=True)
    ]
    places = range(len(rows))
    done = [0.0] * len(rows)
    for part, colour in _PARTS.items():
        milliseconds = [max(row["parts_seconds"][part], 0.0) * 1e3 for row in rows]
        axes.barh(places, milliseconds, 0.6, left=done, color=colour, label=part)
        done = [before + part_ms for before, part_ms in zip(done, milliseconds, strict=True)]
    for place, row, end in zip(places, rows, done, strict=True):
        axes.text(end, place, f" {row['ratio_to_floor']:.1f}× floor\n {row['updates_per_second']:.1f}/s", va="center",
                  fontsize="small")  # fmt: skip
    axes.set_yticks(places, names, fontsize="small")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.4 * max(done))
    axes.set_xlabel("ms an update; its parts as measured alone")
    axes.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1, 1), ncols=len(_PARTS))
    axes.spines[["top", "right"]].set_visible(False)


def attention_chart(rows: list[dict[str, Any]]) -> Figure:
    """Time a position over the length: a panel for each width and pass, a line for each implementation."""
    panels = [(key, list(group)) for key, group in groupby(sorted(rows, key=_panel), key=_panel)]
    figure = Figure(figsize=(2.9 * len(panels), 3.2), dpi=150, layout="constrained")
    for axes, ((width, pass_), cases) in zip(
        figure.subplots(1, len(panels), squeeze=False, sharey=True)[0], panels, strict=True
    ):
        for name, colour in _COLOURS.items():
            served = [row for row in cases if name in row["implementations"]]
            if served:
                times = [
                    row["implementations"][name]["seconds"] / (row["batch_size"] * row["length"]) * 1e6 for row in served
                ]
                _over_length(axes, [row["length"] for row in served], times, "µs a position", color=colour, label=name)
        axes.set_yscale("log")
        axes.set_title(f"width {width}, {pass_}", fontsize="medium")
        axes.label_outer()
    axes.legend(frameon=False, fontsize="small")
    return figure


def _panel(row: dict[str, Any]) -> tuple[int, str]:
    return row["width"], row["pass"]


def peers_chart(figures: dict[str, Any]) -> Figure:
    """TraceRelay and its peers: bars for an update, lines over the length of a prompt and of a context."""
    figure = Figure(figsize=(11, 6.2), dpi=150, layout="constrained")
    bars, times, sizes = figure.subplots(2, 3).T
    colours = dict(zip(figures["peers"], cycle(_PEERS), strict=False))
    training, prefill, decode = (figures[kind] for kind in ("training", "prefill", "decode"))
    _peer_bars(bars[0], training, colours, "training, thousand tokens a second", lambda r: r["tokens_per_second"] / 1e3)
    _peer_bars(bars[1], training, colours, "training, MiB of the compiled update", lambda r: r["memory_bytes"] / 2**20)
    _peer_lines(times[0], prefill, "length", colours, "prefill, µs a token", lambda r: 1e6 / r["tokens_per_second"])
    _peer_lines(times[1], prefill, "length", colours, "prefill, MiB of the program", lambda r: r["memory_bytes"] / 2**20)
    _peer_lines(sizes[0], decode, "context", colours, "decode, µs a token", lambda r: 1e6 / r["tokens_per_second"])
    _peer_lines(sizes[1], decode, "context", colours, "KiB of state", lambda r: r["state_bytes"] / 2**10)
    figure.legend(*times[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(colours), frameon=False)
    return figure


def _peer_bars(axes: Axes, cases: list[dict[str, Any]], colours: dict[str, str], quantity: str, value: Callable) -> None:
    """For each peer a bar for each case, which hatching tells apart."""
    greatest, height, legend = 0.0, 0.8 / len(cases), []
    for number, case in enumerate(cases):
        look = {"hatch": _HATCHES[number % len(_HATCHES)], "edgecolor": "white", "linewidth": 0}
        name = f"{case['batch_size']} × {case['positions']}, logits of {case['logits']}"
        legend.append(Patch(facecolor="#404040", label=name, **look))
        for place, (peer, colour) in enumerate(colours.items()):
            if "seconds" in case["results"][peer]:
                width, middle = value(case["results"][peer]), place + (number - (len(cases) - 1) / 2) * height
                axes.barh([middle], [width], height, facecolor=colour, **look)
                axes.text(width, middle, f" {width:.3g}", va="center", fontsize="small")
                greatest = max(greatest, width)
    axes.set_yticks(range(len(colours)), [_title(peer) for peer in colours])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.2 * greatest or 1)
    axes.set_xlabel(quantity)
    axes.legend(handles=legend, frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.4, 1))
    axes.spines[["top", "right"]].set_visible(False)


def _peer_lines(
    axes: Axes, cases: list[dict[str, Any]], over: str, colours: dict[str, str], quantity: str, value: Callable
) -> None:
    for (peer, colour), marker in zip(colours.items(), cycle(_MARKERS), strict=False):
        run = [case for case in cases if "seconds" in case["results"][peer]]
        if run:
            values = [value(case["results"][peer]) for case in run]
            _over_length(axes, [case[over] for case in run], values, quantity, colour, marker=marker, label=_title(peer))
    axes.set_yscale("log")


def _title(peer: str) -> str:
    return _TITLES.get(peer, peer.replace("_", " "))


def _over_length(axes: Axes, positions, values, quantity: str, color: str = _LINE, marker: str = "o", **line) -> None:
    axes.plot(positions, values, marker=marker, color=color, **line)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("positions")
    axes.set_ylabel(quantity)
    axes.spines[["top", "right"]].set_visible(False)


CHARTS = {"train": training_chart, "attention": attention_chart, "peers": peers_chart}
