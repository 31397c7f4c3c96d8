"""Phases drawn into matplotlib axes: circles, unrolled curves, maps; nothing is shown or saved here.

The colour-blind can tell the colours apart: Okabe and Ito's for symbols, `viridis` for order, `twilight` for angles.
"""

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.image import AxesImage

from tracerelay_jax.analysis.regression import Regression
from tracerelay_jax.analysis.trajectories import Trajectory, unroll
from tracerelay_jax.errors import InputError

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
GREY = "#767676"
_ARC_STEP = 0.05  # radians between the points that an arc is drawn with
_RIM, _HUB = 1.0, 0.2  # radii of the last and the first position on a circle


def circles(axes: Sequence[Axes], trajectory: Trajectory, row: int = 0, dimension: int = 0) -> None:
    """Draws the phase of one dimension as a hand on a circle for each lineage, its way spiralling outwards with time.

    Args:
      axes: W of them.
      trajectory: one layer's.
      row: of the batch.
      dimension: of the trace.

    Raises:
      InputError: for another number of axes, or a row or dimension that is not there.
    """
    stride = trajectory.layer.stride
    if len(axes) != stride:
        raise InputError(f"axes={len(axes)}: must be one for each of {stride} lineages")
    theta_T = _curve(trajectory, row, dimension)
    for lineage, panel in enumerate(axes):
        _circle(panel, theta_T[lineage::stride], trajectory.lineage_valid[row, lineage::stride])
        panel.set_title(f"lineage {lineage}", fontsize="small")


def unrolled_curves(axes: Axes, trajectory: Trajectory, row: int = 0, dimension: int = 0, **line) -> None:
    """Draws the unrolled phase of one dimension over the position, a curve for each lineage, from dark to bright.

    Args:
      axes: to draw into.
      trajectory: one layer's.
      row: of the batch.
      dimension: of the trace.
      **line: for `axes.plot`.

    Raises:
      InputError: for a row or dimension that is not there.
    """
    theta_T, stride = _curve(trajectory, row, dimension), trajectory.layer.stride
    positions = np.arange(len(theta_T))
    for lineage, color in enumerate(_ordered_colours(stride)):
        label = f"lineage {lineage}" if lineage in (0, stride - 1) else None
        axes.plot(positions[lineage::stride], theta_T[lineage::stride], **{"color": color, "lw": 1, "label": label} | line)
    axes.set(xlabel="position t", ylabel="unrolled phase (rad)")
    _plain(axes)


def phase_map(axes: Axes, trajectory: Trajectory, row: int = 0, dimensions: Sequence[int] | None = None) -> AxesImage:
    """Draws phases as colours, dimensions downwards and positions to the right; white until a lineage has begun.

    Args:
      axes: to draw into.
      trajectory: one layer's.
      row: of the batch.
      dimensions: which, and in which order; by default all.

    Returns:
      The image, in radians from 0 to 2 pi, for `angle_bar`.
    """
    phase_TD = np.where(trajectory.lineage_valid[row][:, None], trajectory.phase[row], np.nan)
    phase_TD = phase_TD if dimensions is None else phase_TD[:, list(dimensions)]
    image = axes.imshow(phase_TD.T, cmap="twilight", vmin=0, vmax=2 * math.pi, aspect="auto", interpolation="none")
    axes.set(xlabel="position t", ylabel="dimension")
    return image


def angle_bar(image: AxesImage, axes: Axes | Sequence[Axes]) -> None:
    """Draws the colour bar of a `phase_map` beside its axes."""
    bar = image.figure.colorbar(image, ax=axes, ticks=[0, math.pi, 2 * math.pi], pad=0.02)
    bar.ax.set_yticklabels(["0", "π", "2π"])
    bar.set_label("phase (rad)")


def rate_map(axes: Axes, rate: np.ndarray, label: str = "rad an occurrence") -> None:
    """Draws rotations by symbol (downwards) and dimension (to the right), with a colour bar about zero.

    Args:
      axes: to draw into.
      rate: (V, D) radians.
      label: of the colour bar.
    """
    bound = np.nanmax(np.abs(rate))
    image = axes.imshow(rate, cmap="PuOr", vmin=-bound, vmax=bound, aspect="auto", interpolation="none")
    axes.set(xlabel="dimension", ylabel="symbol", yticks=range(len(rate)))
    axes.figure.colorbar(image, ax=axes, label=label, pad=0.02)


def symbol_curves(axes: Axes, x: np.ndarray, curves_TV: np.ndarray, **line) -> None:
    """Draws a curve for each symbol in its colour, over x (T,); further arguments are those of `axes.plot`.

    Raises:
      InputError: for more symbols than there are colours.
    """
    for symbol, color in enumerate(symbol_colours(curves_TV.shape[1])):
        axes.plot(x, curves_TV[:, symbol], **{"color": color, "label": f"symbol {symbol}"} | line)
    _plain(axes)


def symbol_strip(axes: Axes, tokens: np.ndarray, symbols: int) -> None:
    """Draws the sequence itself, tokens (T,), as a strip along the top of the axes, each symbol in its colour.

    Raises:
      InputError: for more symbols than there are colours.
    """
    colours = ListedColormap(symbol_colours(symbols))
    strip = axes.inset_axes((0, 1, 1, 0.05), sharex=axes)
    extent = (-0.5, len(tokens) - 0.5, 0, 1)
    strip.imshow(np.asarray(tokens)[None], cmap=colours, vmin=-0.5, vmax=symbols - 0.5, aspect="auto", extent=extent,
                 interpolation="none")  # fmt: skip
    strip.set_axis_off()
    axes.set_xlim(extent[:2])


def symbol_colours(symbols: int) -> tuple[str, ...]:
    """Returns a colour for each symbol.

    Raises:
      InputError: for more symbols than there are colours.
    """
    if not 0 < symbols <= len(OKABE_ITO):
        raise InputError(f"symbols={symbols}: must be from 1 to {len(OKABE_ITO)}, the colours that can be told apart")
    return OKABE_ITO[:symbols]


def explained_curves(axes: Axes, fits: dict[str, Regression]) -> None:
    """Draws the fraction of variance that each fit explains, its dimensions from the best to the worst.

    Raises:
      InputError: for more fits than there are colours.
    """
    for (name, fit), color in zip(fits.items(), symbol_colours(len(fits)), strict=True):
        explained = np.sort(fit.explained)[::-1]
        axes.plot(np.linspace(0, 1, len(explained)), explained, color=color, label=name)
    axes.set(xlabel="dimensions, the best first (fraction)", ylabel="variance explained (fraction)", ylim=(0, 1.03))
    _plain(axes)


def share_bars(axes: Axes, shares: dict[str, float], color: str = OKABE_ITO[0]) -> None:
    """Draws fractions of one as horizontal bars with their percentages, the first on top."""
    bars = axes.barh(range(len(shares)), list(shares.values()), 0.6, color=color)
    axes.bar_label(bars, [f" {share:.0%}" for share in shares.values()], fontsize="small")
    axes.set_yticks(range(len(shares)), list(shares), fontsize="small")
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.15), xticks=[0, 0.5, 1])
    _plain(axes)


def share_curve(axes: Axes, x: np.ndarray, yes: np.ndarray, **line) -> None:
    """Draws how often `yes` holds at each value of x, with the standard error of that fraction.

    Args:
      axes: to draw into.
      x: (n,) numbers, of few different values.
      yes: (n,) bool.
      **line: for `axes.errorbar`.
    """
    values, members, counts = np.unique(x, return_inverse=True, return_counts=True)
    share = np.bincount(members, weights=yes, minlength=len(values)) / counts
    error = np.sqrt(share * (1 - share) / counts)
    axes.errorbar(values, share, error, **{"marker": "o", "ms": 4, "capsize": 2, "lw": 1.2} | line)
    axes.set_ylim(-0.03, 1.05)
    _plain(axes)


def _circle(axes: Axes, theta: np.ndarray, begun: np.ndarray) -> None:
    """One lineage: theta unrolled, of its successive positions; `begun` marks those that are read."""
    full = np.linspace(0, 2 * math.pi, 200)
    axes.plot(np.cos(full), np.sin(full), color="#bdbdbd", lw=0.8)
    axes.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), frame_on=False)
    for angle, name in ((0, "0"), (math.pi / 2, "π/2"), (math.pi, "π"), (3 * math.pi / 2, "3π/2")):
        axes.text(1.18 * math.cos(angle), 1.18 * math.sin(angle), name, ha="center", va="center", fontsize=6, color=GREY)
    theta = theta[begun]
    if not len(theta):
        return
    radius = np.linspace(_HUB, _RIM, len(theta))
    points = 1 + int(np.abs(np.diff(theta)).max(initial=0) / _ARC_STEP)  # arcs, not chords, between successive phases
    fine = np.linspace(0, len(theta) - 1, 1 + points * (len(theta) - 1))
    angle, spiral = (np.interp(fine, np.arange(len(theta)), values) for values in (theta, radius))
    axes.plot(spiral * np.cos(angle), spiral * np.sin(angle), color="#bdbdbd", lw=0.6, zorder=1)
    axes.scatter(radius * np.cos(theta), radius * np.sin(theta), 6, np.arange(len(theta)), cmap="viridis", zorder=2)
    axes.annotate("", (math.cos(theta[-1]), math.sin(theta[-1])), (0, 0),
                  arrowprops={"arrowstyle": "-|>", "color": "#D55E00", "lw": 1.4, "shrinkA": 0, "shrinkB": 0})  # fmt: skip


def _curve(trajectory: Trajectory, row: int, dimension: int) -> np.ndarray:
    """The unrolled phase (T,) of a row and dimension, NaN until its lineage has begun."""
    rows, _, width = trajectory.phase.shape
    for name, value, number in (("row", row, rows), ("dimension", dimension, width)):
        if not 0 <= value < number:
            raise InputError(f"{name}={value}: must be from 0 to {number - 1}")
    return np.where(trajectory.lineage_valid[row], unroll(trajectory)[row, :, dimension], np.nan)


def _ordered_colours(number: int) -> np.ndarray:
    return matplotlib.colormaps["viridis"](np.linspace(0, 0.9, number))


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
