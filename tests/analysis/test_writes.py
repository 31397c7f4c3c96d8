"""Which symbols write how much, on writes that are known."""

import re

import numpy as np
import pytest

from tests.analysis.examples import LAYER, VISIBLE, counting, tokens_of
from tests.model.test_network import SMALL, make
from tracerelay_jax import InputError
from tracerelay_jax.analysis import observe, writes_by_centre, writes_by_place
from tracerelay_jax.analysis.symbols import arrivals, window


def test_the_mean_and_spread_of_each_symbol_at_the_centre():
    share = np.zeros((VISIBLE, 3, 2))
    share[0, :, 0] = (0.5, -0.25, 2.0)  # the centre decides
    share[1, :, 1] = (1.0, 0.0, -1.0)  # its neighbour does
    tokens = tokens_of(3, rows=40)
    writes = writes_by_centre(counting(tokens, share), tokens, 3)
    np.testing.assert_allclose(writes.mean[:, 0], (0.5, -0.25, 2.0))
    np.testing.assert_allclose(writes.spread[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(writes.spread[:, 1], np.sqrt(2 / 3), atol=0.1)
    np.testing.assert_array_equal(writes.count, np.bincount(tokens[:, : -LAYER.stride].ravel()))


def test_a_symbol_at_no_centre_has_no_mean():
    tokens = tokens_of(2)
    writes = writes_by_centre(counting(tokens, np.ones((VISIBLE, 2, 1))), tokens, 4)
    np.testing.assert_array_equal(np.isnan(writes.mean[:, 0]), [False, False, True, True])
    np.testing.assert_array_equal(writes.count[2:], 0)


def test_shares_of_each_place_are_found_through_gaps():
    share = np.random.default_rng(1).normal(size=(VISIBLE, 3, 5))
    tokens = tokens_of(3, rows=20)
    valid = np.random.default_rng(2).random(tokens.shape) < 0.7
    tokens[~valid] = 99
    got = writes_by_place(counting(tokens, share, valid), tokens, 3, valid)
    np.testing.assert_allclose(got.share, share, atol=1e-9)
    np.testing.assert_allclose(got.explained, 1)


def test_writes_that_are_no_sum_are_not_explained():
    tokens = tokens_of(3, rows=20)
    trajectory = counting(tokens, np.ones((VISIBLE, 3, 5)))
    noise = np.random.default_rng(3).normal(size=trajectory.increment.shape) * trajectory.lineage_valid[..., None]
    assert writes_by_place(trajectory._replace(increment=noise), tokens, 3).explained.max() < 0.2


def test_the_window_is_what_the_writer_sees():
    """A changed symbol changes the first layer's increments where its window says and no others; gaps deliver nothing."""
    model, params = make(SMALL)
    rng = np.random.default_rng(5)
    tokens, valid = rng.integers(0, SMALL.inputs, (3, 24)), rng.random((3, 24)) < 0.7
    plain = observe(model, params, tokens, valid).trajectories[0]
    np.testing.assert_array_equal((plain.increment != 0).all(axis=-1), arrivals(plain, valid))
    np.testing.assert_array_equal((plain.increment == 0).all(axis=-1), ~arrivals(plain, valid))
    for place in (0, 9, 17):
        changed = tokens.copy()
        changed[:, place] = (tokens[:, place] + 1) % SMALL.inputs
        moved = (
            np.abs(observe(model, params, changed, valid).trajectories[0].increment - plain.increment).max(axis=-1) > 1e-6
        )
        marked = (np.arange(24) == place)[None, :, None] & valid[..., None]
        np.testing.assert_array_equal(moved, window(plain, marked, valid).any(axis=(2, 3)))


def test_what_does_not_fit_is_named():
    tokens = tokens_of(3)
    trajectory = counting(tokens, np.ones((VISIBLE, 3, 1)))
    row, place = np.argwhere(tokens == 2)[0]
    with pytest.raises(InputError, match=re.escape(f"tokens[{row}, {place}]=2: must be a symbol from 0 to 1")):
        writes_by_centre(trajectory, tokens, 2)
    with pytest.raises(InputError, match=re.escape("tokens of shape (6, 30): must be the trajectory's (B, T), (6, 31)")):
        writes_by_centre(trajectory, tokens[:, 1:], 3)
    with pytest.raises(InputError, match=re.escape("valid of shape (31,): must be the trajectory's (B, T), (6, 31)")):
        writes_by_place(trajectory, tokens, 3, np.ones(31, bool))
    few = tokens[:1, :9]
    with pytest.raises(InputError, match=re.escape("writes=5: must be at least 9, one for each rate that is sought")):
        writes_by_place(counting(few, np.ones((VISIBLE, 3, 1))), few, 3)
