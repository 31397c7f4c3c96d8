"""Least squares for angles: rotations as sums over what causes them."""

from typing import NamedTuple

import numpy as np

from tracerelay_jax.errors import InputError


class Regression(NamedTuple):
    """The fit of angles (n, D) by causes (n, c), without an intercept: no cause, no rotation.

    Attributes:
      rate: (c, D) float64 radians a unit of each cause; where the causes leave it open, the smallest.
      residual: (D,) float64 radians, the root mean square of what is left over.
      explained: (D,) float64, the fraction of the variance about the mean that is explained: 1 at best, negative where the
        mean alone does better, NaN where nothing varies.
    """

    rate: np.ndarray
    residual: np.ndarray
    explained: np.ndarray


def regress(causes: np.ndarray, angles: np.ndarray) -> Regression:
    """Fits angles (n, D), in radians, by causes (n, c).

    Raises:
      InputError: with fewer rows than causes.
    """
    rows, number = causes.shape
    if rows < number:
        raise InputError(f"writes={rows}: must be at least {number}, one for each rate that is sought")
    rate, *_ = np.linalg.lstsq(causes.astype(np.float64), angles)
    left = np.mean((angles - causes @ rate) ** 2, axis=0)
    variance = angles.var(axis=0)
    explained = 1 - np.divide(left, variance, out=np.full_like(left, np.nan), where=variance > 0)
    return Regression(rate, np.sqrt(left), explained)
