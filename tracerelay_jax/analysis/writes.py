"""Which symbols write how much: the increments of Eq. (1) by the symbols that the writer saw."""

from typing import NamedTuple

import numpy as np

from tracerelay_jax.analysis.regression import regress
from tracerelay_jax.analysis.symbols import arrivals, one_hot, shift, window
from tracerelay_jax.analysis.trajectories import Trajectory


class Writes(NamedTuple):
    """Increments by the symbol at their centre.

    Attributes:
      mean: (V, D) float64 radians, the mean increment; NaN for a symbol that is at no centre.
      spread: (V, D) float64 radians, its standard deviation: what else decides.
      count: (V,) int, writes of each symbol.
    """

    mean: np.ndarray
    spread: np.ndarray
    count: np.ndarray


class PlacedWrites(NamedTuple):
    """Increments as sums over the places of the writer's window, by least squares.

    Attributes:
      share: (R + 1, V, D) float64 radians that a symbol adds to a write from each place i ... i + R. What all symbols add
        alike cannot be told apart between places, and is spread evenly over them.
      explained: (D,) float64, the fraction of the increments' variance that such a sum explains, 1 at best.
    """

    share: np.ndarray
    explained: np.ndarray


def writes_by_centre(trajectory: Trajectory, tokens, symbols: int, valid=None) -> Writes:
    """Returns mean and spread of delta_i, Eq. (1), over the writes whose centre i holds each symbol.

    Args:
      trajectory: one layer's, from the start of the sequence.
      tokens: (B, T) integers in [0, symbols), those observed.
      symbols: V.
      valid: (B, T) bool, as observed.

    Raises:
      InputError: for tokens that do not fit.
    """
    centre_BTV = shift(one_hot(trajectory, tokens, symbols, valid), trajectory.layer.stride)
    mean, spread = np.full((2, symbols, trajectory.increment.shape[-1]), np.nan)
    for symbol in range(symbols):
        written = trajectory.increment[centre_BTV[..., symbol]]
        if len(written):
            mean[symbol], spread[symbol] = written.mean(axis=0), written.std(axis=0)
    return Writes(mean, spread, centre_BTV.sum(axis=(0, 1)))


def writes_by_place(trajectory: Trajectory, tokens, symbols: int, valid=None) -> PlacedWrites:
    """Returns what each symbol at each place of the window i ... i + R adds to the increment delta_i, Eq. (1).

    The writer's attention may weigh its window by content; `explained` says how far a plain sum over places goes.

    Args:
      trajectory: one layer's, from the start of the sequence.
      tokens: (B, T) integers in [0, symbols), those observed.
      symbols: V.
      valid: (B, T) bool, as observed.

    Raises:
      InputError: for tokens that do not fit, or fewer writes than the (R + 1) V shares that are sought.
    """
    arrives_BT = arrivals(trajectory, valid)
    places = window(trajectory, one_hot(trajectory, tokens, symbols, valid), valid)[arrives_BT]  # (writes, R + 1, V)
    fit = regress(places.reshape(len(places), -1), trajectory.increment[arrives_BT])
    return PlacedWrites(fit.rate.reshape(*places.shape[1:], -1), fit.explained)
