"""Symbols beside the writes that saw them, aligned with a trajectory: what arrives at t was seen from i = t - W on."""

import numpy as np

from tracerelay_jax.analysis.trajectories import Trajectory
from tracerelay_jax.errors import InputError


def one_hot(trajectory: Trajectory, tokens, symbols: int, valid=None) -> np.ndarray:
    """Returns (B, T, V) bool: which symbol stands at each position, none at padding.

    Raises:
      InputError: unless `tokens` (B, T) and `valid` fit the trajectory, and hold symbols from 0 to symbols - 1.
    """
    tokens, valid = np.asarray(tokens), _valid(trajectory, valid)
    if tokens.shape != valid.shape:
        raise InputError(f"tokens of shape {tokens.shape}: must be the trajectory's (B, T), {valid.shape}")
    for row, place in np.argwhere(valid & ((tokens < 0) | (tokens >= symbols))):
        raise InputError(f"tokens[{row}, {place}]={tokens[row, place]}: must be a symbol from 0 to {symbols - 1}")
    return (tokens[..., None] == np.arange(symbols)) & valid[..., None]


def arrivals(trajectory: Trajectory, valid=None) -> np.ndarray:
    """Returns (B, T) bool, q_t of Section 2.4: whether what arrives at t has a valid centre among these positions."""
    return shift(_valid(trajectory, valid), trajectory.layer.stride)


def window(trajectory: Trajectory, seen_BTV: np.ndarray, valid=None) -> np.ndarray:
    """Returns (B, T, R + 1, V) bool: the symbol at each place i ... i + R that the write arriving at t = i + W saw.

    Empty where nothing valid arrives.
    """
    layer = trajectory.layer
    places = [shift(seen_BTV, layer.stride - place) for place in range(layer.right_window + 1)]
    return np.stack(places, axis=2) & arrivals(trajectory, valid)[:, :, None, None]


def shift(x_BT: np.ndarray, positions: int) -> np.ndarray:
    """Returns at t what `x_BT` (B, T, ...) holds at t - positions, of at least 1; zeros before."""
    shifted = np.zeros_like(x_BT)
    shifted[:, positions:] = x_BT[:, :-positions]
    return shifted


def _valid(trajectory: Trajectory, valid) -> np.ndarray:
    shape = trajectory.lineage_valid.shape
    valid = np.ones(shape, bool) if valid is None else np.asarray(valid, bool)
    if valid.shape != shape:
        raise InputError(f"valid of shape {valid.shape}: must be the trajectory's (B, T), {shape}")
    return valid
