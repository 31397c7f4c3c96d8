"""Trajectories made by hand, whose answers are known."""

import numpy as np

from tests.model.test_network import SMALL
from tracerelay_jax.analysis import Trajectory, lineage_sums
from tracerelay_jax.analysis.symbols import arrivals, one_hot, window

VISIBLE = SMALL.right_window + 1
LAYER = SMALL.layers[0]


def tokens_of(symbols, rows=6, length=31, seed=0):
    return np.random.default_rng(seed).integers(0, symbols, (rows, length))


def counting(tokens, share, valid=None, layer=LAYER):
    """A layer whose writes are plain sums: `share` (R + 1, V, D) radians for each symbol at each place of the window."""
    shape = tokens.shape
    empty = Trajectory(layer, np.zeros((*shape, 1)), np.zeros((*shape, 1)), np.zeros(shape, bool))
    seen = window(empty, one_hot(empty, tokens, share.shape[1], valid), valid)
    increment = np.einsum("btpv,pvd->btd", seen, share)
    begun = lineage_sums(arrivals(empty, valid).astype(int), layer.stride) > 0
    return Trajectory(layer, increment, lineage_sums(increment, layer.stride) % (2 * np.pi), begun)
