"""Draws one TraceRelay layer, for launch/draw_layer.py.

Time runs to the right in columns, 0 ... NOW; the computation runs upwards. Only the column t = NOW is drawn in full.
"""

from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Wedge

W, R, L = 4, 3, 7
NOW, SOURCE = 2 * W, W  # the columns of t, and of i = t - W, whose write arrives at t

# Okabe and Ito's colours, which the colour-blind can tell apart; shades of grey for what other positions do.
INK, GREY, FAINT = "#000000", "#767676", "#bdbdbd"
ORANGE, BLUE, GREEN = "#D55E00", "#0072B2", "#009E73"
TINT = {ORANGE: "#fbe3d0", BLUE: "#d6e8f5", GREEN: "#d3efe6"}

# Heights of the rows, from the lower-layer stream to the output.
H, ATTN_R, WRITE, PHASE, COS_SIN, P_PHI, MERGE, M, ATTN_L, P_L, POST, FFN, SUM, OUT = (
    0.0, 1.6, 2.7, 4.25, 5.6, 6.35, 7.05, 7.75, 9.5, 10.45, 11.15, 12.05, 12.75, 13.45,
)  # fmt: skip

# Of each row: height, colour, name, and what it does.
CAPTIONS = (
    (-1.4, GREY, "Time →", "positions of the sequence"),
    (H, INK, "Lower-layer stream", "the layer's input\n$h_t = h_t^{\\ell-1}$"),
    (1.55, ORANGE, "Right-looking writer", "sees $i$ and the $R$ positions\nafter it; writes a bounded\nincrement"),
    (WRITE, ORANGE, "Delayed delivery", "$W > R$ positions later;\nnothing while $t < W$"),
    (PHASE, GREEN, "Phase lineages", "$W$ of them, A to D in turn;\n$u_t$ turns the hand"),
    (6.2, GREEN, "Readout and merge", "adds the phase to the\nstream; zero before the\nlineage's first write"),
    (8.45, BLUE, "Left-looking reader", "sees $t$ and the $L$ positions\nbefore it"),
    (11.4, INK, "Residuals and FFN", "as in a Transformer"),
    (OUT, INK, "Output stream", "the layer's output; input\nof layer $\\ell + 1$"),
)
EQUATIONS = (
    (1.35, r"$o_i^{\mathrm{R}} = \mathrm{Attn}_R(h_i,\, h_{i{:}i+R})$", "(1)"),
    (1.9, r"$\delta_i = \alpha\,\tanh(P_\delta(o_i^{\mathrm{R}}))$", "(1)"),
    (WRITE, r"$u_t = \delta_{t-W}$", "(2)"),
    (PHASE, r"$\theta_t = \mathrm{wrap}(\theta_{t-W} + u_t)$", "(3)"),
    (6.2, r"$m_t = h_t + P_\phi[\cos\theta_t;\, \sin\theta_t]$", "(4)"),
    (8.45, r"$o_t^{\mathrm{L}} = \mathrm{Attn}_L(m_t,\, m_{t-L{:}t})$", "(5)"),
    (11.15, r"$\tilde{h}_t = m_t + P_L(o_t^{\mathrm{L}})$", "(6)"),
    (11.7, r"$h_t^{\ell} = \tilde{h}_t + \mathrm{FFN}(\tilde{h}_t)$", "(6)"),
)
NOTE = f"""The column of $t$ is drawn in full; every position does the same.
Causal: $u_t$ saw no input later than $t - W + R < t$.
Drawn with $W = {W}$, $R = {R}$, $L = {L}$; normalisation is left out."""


def draw_layer() -> Figure:
    """The picture, 1600 pixels wide when saved as a bitmap."""
    figure = Figure(figsize=(8, 7.66), dpi=200, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-3.75, 12.95), ylim=(-2, 14), aspect="equal")
    axes.set_axis_off()
    for part in (_captions, _writer, _lineages, _reader):
        part(axes)
    return figure


def _captions(axes: Axes) -> None:
    """What the rows are, the names of positions, the spans R and W, and a stripe behind the column of t."""
    for y, color, name, meaning in CAPTIONS:
        _text(axes, -3.6, y + 0.1, name, color, ha="left", va="bottom", weight="bold")
        _text(axes, -3.6, y + 0.02, meaning, ha="left", va="top", size=7.5)
    for y, equation, number in EQUATIONS:
        _text(axes, NOW + 0.95, y, equation, ha="left", size=9)
        _text(axes, 12.8, y, number, ha="right", size=9)
    _text(axes, -0.4, 11.4, NOTE, ha="left", size=8, linespacing=1.45)
    for column, name in ((0, "t-2W"), (NOW - L, "t-L"), (SOURCE, "i=t-W"), (SOURCE + R, "i+R"), (NOW, "t")):
        _text(axes, column, -0.66, f"${name}$")
    for end, y, color, name in ((SOURCE + R, -1.15, ORANGE, "$R$"), (NOW, -1.65, INK, "$W$")):
        _arrow(axes, color, (SOURCE, y), (end, y), style="<|-|>")
        _text(axes, (SOURCE + end) / 2, y, name, backgroundcolor="white")
    _box(axes, NOW, (H + OUT) / 2 - 0.25, "", "none", width=0.94, height=14.7, fill="#f3f3f3", zorder=0)


def _writer(axes: Axes) -> None:
    """Eqs. (1) and (2): the window over i ... i+R, the increment and its way to t."""
    _row(axes, H, {SOURCE: "$h_i$", SOURCE + R: "$h_{i+R}$", NOW: "$h_t$"})
    _attention(axes, ORANGE, range(SOURCE, SOURCE + R + 1), SOURCE, H, ATTN_R, r"$\mathrm{Attn}_R$")
    _climb(axes, ORANGE, SOURCE, ATTN_R, WRITE)
    _text(axes, SOURCE - 0.15, (ATTN_R + WRITE) / 2, r"$o_i^{\mathrm{R}}$", ha="right")
    _box(axes, SOURCE, WRITE, r"$\alpha\,\tanh P_\delta$", ORANGE, width=1.6)
    _arrow(axes, ORANGE, (SOURCE, WRITE), (NOW, WRITE), (NOW, PHASE - 0.42), width=2)
    _text(axes, SOURCE + 1.1, WRITE + 0.23, r"$\delta_i$")
    _text(axes, NOW - 1.6, WRITE - 0.28, "arrives $W$ positions later", size=7.5)
    _text(axes, NOW - 0.15, WRITE + 0.55, "$u_t$", ha="right")


def _lineages(axes: Axes) -> None:
    """Eq. (3): a dial for each position, and arcs to the dial that inherits its phase."""
    phases, turns = [2.6, 0.3, 4.4, 5.6], (1.1, 1.9, -1.4, 0.8, 1.5, -1.2, 1.1, 0.9, 2.0)  # radians; an example
    for column, turn in enumerate(turns):
        color, arc = (GREEN, GREEN) if column % W == NOW % W else (GREY, FAINT)
        phases.append(phases[column] + turn)
        _dial(axes, color, column, phases[column], phases[-1])
        _text(axes, column + 0.42, PHASE - 0.4, "ABCD"[column % W], color, size=7.5)
        if column >= W:
            line = {"width": 2 if color == GREEN else 1, "ls": ("-", "--", ":", "-.")[column % W]}
            ends = (column - W + 0.1, PHASE + 0.4), (column - 0.1, PHASE + 0.4)
            _arrow(axes, arc, *ends, connectionstyle="arc3,rad=-0.22", **line)
        if column < NOW:
            _arrow(axes, FAINT, (column, PHASE - 0.85), (column, PHASE - 0.42))
            _arrow(axes, FAINT, (column, PHASE + 0.4), (column, M - 0.4))


def _dial(axes: Axes, color: str, column: int, before: float, after: float) -> None:
    """A clock whose hand went from `before` to `after`; a wedge shows the turn."""
    centre, turn = np.array([column, PHASE]), np.degrees(sorted((before, after)))
    tip = centre + 0.31 * np.array([np.cos(after), np.sin(after)])
    axes.add_patch(Circle(centre, 0.36, fc=TINT.get(color, "white"), ec=color, lw=1.4, zorder=4))
    axes.add_patch(Wedge(centre, 0.24, *turn, fc=ORANGE if color == GREEN else FAINT, alpha=0.65, lw=0, zorder=5))
    axes.plot(*zip(centre, tip, strict=True), color=INK if color == GREEN else GREY, lw=1.8, zorder=6)


def _reader(axes: Axes) -> None:
    """Eqs. (4), (5) and (6): the merged stream, the window over t-L ... t, and the two residual sums."""
    _row(axes, M, {NOW - L: "$m_{t-L}$", NOW: "$m_t$"})
    _row(axes, OUT, {NOW: r"$h_t^{\ell}$"})
    _attention(axes, BLUE, range(NOW - L, NOW + 1), NOW, M, ATTN_L, r"$\mathrm{Attn}_L$")
    for y, name in ((COS_SIN, r"$\mathrm{cos,\ sin}$"), (P_PHI, r"$P_\phi$"), (P_L, "$P_L$"), (FFN, r"$\mathrm{FFN}$")):
        _box(axes, NOW, y, name, {P_L: BLUE, FFN: INK}.get(y, GREEN))
    _climb(axes, GREEN, NOW, PHASE, COS_SIN, P_PHI, MERGE)
    _climb(axes, INK, NOW, MERGE, M)
    _climb(axes, BLUE, NOW, ATTN_L, P_L, POST)
    _climb(axes, INK, NOW, POST, FFN, SUM, OUT)
    for bottom, top in ((H, MERGE), (M, POST), (POST + 0.36, SUM)):
        _residual(axes, bottom, top)
    for y, name in ((5.1, r"\theta_t"), ((ATTN_L + P_L) / 2, r"o_t^{\mathrm{L}}"), (POST + 0.4, r"\tilde{h}_t")):
        _text(axes, NOW - 0.15, y, f"${name}$", ha="right")


def _row(axes: Axes, y: float, names: dict[int, str]) -> None:
    """One cell for each position; those without a name are faint."""
    for column in range(NOW + 1):
        _box(axes, column, y, names.get(column, ""), INK if column in names else FAINT, width=0.8)


def _attention(axes: Axes, color: str, window: range, centre: int, y: float, top: float, name: str) -> None:
    """The attention of `centre` over the cells of `window`, which are gathered into one arrow."""
    _box(axes, (window[0] + window[-1]) / 2, y, "", color, width=len(window) - 0.06, height=0.76, zorder=1)
    for column in window:
        axes.plot([column, centre], [y + 0.27, top - 0.6], color=color, lw=1.1, zorder=3)
    _arrow(axes, color, (centre, top - 0.62), (centre, top - 0.27), width=1.6)
    _box(axes, centre, top, name, color)


def _residual(axes: Axes, bottom: float, top: float) -> None:
    """A path around the right of t's column, and the plus sign it ends in."""
    _arrow(axes, INK, (NOW, bottom), (NOW + 0.66, bottom), (NOW + 0.66, top), (NOW + 0.17, top), width=1.6)
    axes.add_patch(Circle((NOW, top), 0.17, fc="white", ec=INK, lw=1.2, zorder=4))
    axes.plot([NOW], [top], "+", color=INK, ms=5, zorder=5)


def _box(axes, x, y, name, color, width=1.0, height=0.54, fill=None, zorder=4) -> None:
    shape = FancyBboxPatch((x - width / 2, y - height / 2), width, height, "round,pad=0,rounding_size=0.1")
    axes.add_patch(shape)
    shape.set(facecolor=fill or TINT.get(color, "white"), edgecolor=color, linewidth=1.2, zorder=zorder)
    _text(axes, x, y, name)


def _climb(axes: Axes, color: str, x: float, *heights: float) -> None:
    """Arrows up from each of the boxes, dials and plus signs at these heights to the next."""
    for low, high in pairwise(heights):
        _arrow(axes, color, (x, low), (x, high - (0.17 if high in (MERGE, POST, SUM) else 0.28)))


def _arrow(axes: Axes, color: str, *points: tuple, width: float = 1.1, style: str = "-|>", **look) -> None:
    """A path of straight lines with a head at its end."""
    look |= {"lw": width, "color": color, "zorder": 1 if color == FAINT else 3}
    axes.plot(*zip(*points[:-1], strict=True), color=color, lw=width, zorder=look["zorder"])
    axes.add_patch(FancyArrowPatch(*points[-2:], arrowstyle=style, mutation_scale=8, shrinkA=0, shrinkB=0, **look))


def _text(axes: Axes, x: float, y: float, text: str, color: str = INK, **style) -> None:
    style = {"ha": "center", "va": "center", "size": 8.5, "math_fontfamily": "cm", "zorder": 7} | style
    axes.text(x, y, text, color=color, **style)


def write_layer(folder: Path) -> tuple[Path, Path]:
    """Writes layer.png and layer.svg into the folder, which it makes, and returns where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / "layer.png", folder / "layer.svg"
    figure = draw_layer()
    figure.savefig(png)
    with matplotlib.rc_context({"svg.hashsalt": "layer"}):  # the same bytes on every run
        figure.savefig(svg, metadata={"Date": None})
    return png, svg
