"""Counting as rotation: the unrolled phase of a lineage against how often it has seen each symbol."""

import numpy as np

from tracerelay_jax.analysis.regression import Regression, regress
from tracerelay_jax.analysis.symbols import one_hot, window
from tracerelay_jax.analysis.trajectories import Trajectory, lineage_sums, unroll
from tracerelay_jax.errors import InputError


def window_counts(trajectory: Trajectory, tokens, symbols: int, valid=None) -> np.ndarray:
    """Returns (B, T, V) ints: how often each symbol is in the window i ... i + R of the write that arrives at t = i + W.

    Args:
      trajectory: one layer's, from the start of the sequence.
      tokens: (B, T) integers in [0, symbols), those observed.
      symbols: V.
      valid: (B, T) bool, as observed.

    Raises:
      InputError: for tokens that do not fit.
    """
    return window(trajectory, one_hot(trajectory, tokens, symbols, valid), valid).sum(axis=2)


def lineage_counts(trajectory: Trajectory, tokens, symbols: int, valid=None) -> np.ndarray:
    """Returns (B, T, V) ints: how often each symbol was in a window that has arrived in t's lineage, up to t.

    With W = R + 1, as in the paper, the windows of a lineage tile the sequence: lineage r counts every symbol from
    position r to t - 1 once. Arguments and errors are those of `window_counts`.
    """
    return lineage_sums(window_counts(trajectory, tokens, symbols, valid), trajectory.layer.stride)


def fit_counts(trajectory: Trajectory, tokens, symbols: int, valid=None) -> Regression:
    """Fits the unrolled phases of Eq. (7) by counts: theta_t = sum over v of count_v(t) rate_v, where lineages have begun.

    With all tokens 0 and one symbol, it tells how much the position alone explains.

    Args:
      trajectory: one layer's, from the start of the sequence.
      tokens: (B, T) integers in [0, symbols), those observed.
      symbols: V.
      valid: (B, T) bool, as observed.

    Returns:
      Rates in radians an occurrence, (V, D).

    Raises:
      InputError: for tokens that do not fit, or fewer phases than symbols.
    """
    begun_BT = trajectory.lineage_valid
    return regress(lineage_counts(trajectory, tokens, symbols, valid)[begun_BT], unroll(trajectory)[begun_BT])


def best_dimensions(fit: Regression, number: int) -> np.ndarray:
    """Returns the dimensions (number,) whose phases count best, by the explained fraction of variance, the best first.

    Raises:
      InputError: unless there are as many.
    """
    if not 1 <= number <= len(fit.explained):
        raise InputError(f"number={number}: must be from 1 to the {len(fit.explained)} dimensions")
    return np.argsort(-np.nan_to_num(fit.explained, nan=-np.inf), kind="stable")[:number]


def decode_counts(rate: np.ndarray, phase: np.ndarray, least: float = 0.01) -> np.ndarray:
    """Returns counts (B, T, V), float64, read back from unrolled phases: the least-squares solution of theta = counts rate.

    Combinations of counts that turn the phases less than `least` times the strongest cannot be read, and come out as
    zero: where the rates of all symbols add up to none, counts come out about their mean.

    Args:
      rate: (V, D) radians an occurrence, from `fit_counts`.
      phase: (B, T, D) radians, from `unroll`.
      least: fraction of the largest singular value of `rate`.

    Raises:
      InputError: unless both have D dimensions.
    """
    if rate.shape[-1] != phase.shape[-1]:
        raise InputError(f"phase of {phase.shape[-1]} dimensions: must have the {rate.shape[-1]} of rate")
    return phase @ np.linalg.pinv(rate, rcond=least)


def drift(rate: np.ndarray, frequency) -> float:
    """Returns the mean rotation a symbol, relative to their size: |sum p_v rate_v| / sqrt(sum p_v |rate_v|^2).

    At 0 a sequence of the usual mixture turns nothing, however long; at 1 all symbols turn the phases alike.

    Args:
      rate: (V, D) radians an occurrence.
      frequency: V numbers, how often each symbol occurs, in any unit.

    Raises:
      InputError: unless there is a frequency for each symbol, none negative, and not all zero.
    """
    p = np.asarray(frequency, np.float64)
    if p.shape != rate.shape[:1] or (p < 0).any() or not p.any():
        raise InputError(f"frequency={frequency}: must hold {len(rate)} numbers of at least 0, not all 0")
    p = p / p.sum()
    return float(np.linalg.norm(p @ rate) / np.sqrt(p @ np.sum(rate**2, axis=1)))
