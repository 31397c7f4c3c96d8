"""Counts and rotations, on lineages that are known to count."""

import dataclasses
import re

import numpy as np
import pytest

from tests.analysis.examples import LAYER, VISIBLE, counting, tokens_of
from tests.model.test_network import SMALL
from tracerelay_jax import InputError, load
from tracerelay_jax.analysis import (
    best_dimensions,
    decode_counts,
    drift,
    fit_counts,
    lineage_counts,
    observe,
    unroll,
    window_counts,
    writes_by_place,
)

RATE = np.random.default_rng(4).normal(size=(4, 6))
TILING = dataclasses.replace(SMALL, right_window=3).layers[0]  # W = R + 1


def counted(tokens, valid=None, rate=RATE, layer=LAYER):
    """A layer whose writes turn by `rate` for every occurrence in their window."""
    return counting(tokens, np.repeat(rate[None], layer.right_window + 1, axis=0), valid, layer)


def test_counts_of_a_window_and_of_a_lineage():
    """W = 4, R = 2: what arrives at 4 saw 0, 1, 2; at 8, in the same lineage, 4, 5, 6."""
    tokens = np.array([[0, 1, 1, 2, 0, 0, 1, 2, 2]])
    got = window_counts(counted(tokens), tokens, 3)
    np.testing.assert_array_equal(got[0, :4], 0)
    np.testing.assert_array_equal(got[0, [4, 5, 8]], [[1, 2, 0], [0, 2, 1], [2, 1, 0]])
    np.testing.assert_array_equal(lineage_counts(counted(tokens), tokens, 3)[0, 8], [3, 3, 0])


def test_windows_as_wide_as_the_stride_count_everything_once():
    tokens = tokens_of(4)
    got = lineage_counts(counted(tokens, layer=TILING), tokens, 4)
    for t in range(TILING.stride, tokens.shape[1]):
        for row in range(len(tokens)):
            np.testing.assert_array_equal(got[row, t], np.bincount(tokens[row, t % TILING.stride : t], minlength=4))


@pytest.mark.parametrize("layer", [LAYER, TILING])
def test_a_known_rotation_is_recovered(layer):
    tokens = tokens_of(4, rows=20)
    valid = np.random.default_rng(5).random(tokens.shape) < 0.8
    trajectory = counted(tokens, valid, layer=layer)
    fit = fit_counts(trajectory, tokens, 4, valid)
    np.testing.assert_allclose(fit.rate, RATE, atol=1e-9)
    np.testing.assert_allclose(fit.explained, 1)
    np.testing.assert_allclose(fit.residual, 0, atol=1e-9)
    decoded = decode_counts(fit.rate, unroll(trajectory))
    np.testing.assert_allclose(decoded, lineage_counts(trajectory, tokens, 4, valid), atol=1e-8)


def test_noise_is_left_over_and_the_best_dimensions_are_those_with_least():
    tokens = tokens_of(4, rows=20, length=60)
    trajectory = counted(tokens)
    size = np.array([0.5, 0.0, 3.0, 0.1, 9.0, 2.0])
    noise = np.random.default_rng(6).normal(size=trajectory.increment.shape) * size * trajectory.lineage_valid[..., None]
    fit = fit_counts(trajectory._replace(increment=trajectory.increment + noise), tokens, 4)
    np.testing.assert_array_equal(best_dimensions(fit, 3), [1, 3, 0])
    np.testing.assert_array_equal(np.argsort(fit.residual), np.argsort(size))
    assert fit.explained[4] < 0.5


def test_position_alone_explains_only_what_all_symbols_turn_alike():
    tokens, nothing = tokens_of(4, rows=20), np.zeros((20, 31), int)
    together, apart = np.ones((4, 1)), np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert fit_counts(counted(tokens, rate=together), nothing, 1).explained[0] == pytest.approx(1)
    assert fit_counts(counted(tokens, rate=apart), nothing, 1).explained[0] < 0.1


def test_rates_that_add_up_to_nothing_show_counts_about_their_mean_and_do_not_drift():
    rate, tokens = RATE - RATE.mean(axis=0), tokens_of(4, rows=20)
    trajectory = counted(tokens, rate=rate)
    wanted = lineage_counts(trajectory, tokens, 4)
    decoded = decode_counts(rate, unroll(trajectory))
    np.testing.assert_allclose(decoded, wanted - wanted.mean(axis=-1, keepdims=True), atol=1e-8)
    assert drift(rate, np.ones(4)) < 1e-12
    assert drift(rate, (3, 1, 1, 1)) > 0.1
    assert drift(np.ones((4, 6)), (3, 1, 1, 1)) == pytest.approx(1)
    assert drift(np.array([[1.0], [-2.0]]), (2, 1)) == pytest.approx(0)


def test_what_does_not_fit_is_named():
    tokens = tokens_of(4)
    trajectory = counted(tokens)
    with pytest.raises(InputError, match=re.escape("number=7: must be from 1 to the 6 dimensions")):
        best_dimensions(fit_counts(trajectory, tokens, 4), 7)
    with pytest.raises(InputError, match=re.escape("phase of 5 dimensions: must have the 6 of rate")):
        decode_counts(RATE, np.zeros((1, 1, 5)))
    for frequency in ((1, 2, 3), (0, 0, 0, 0), (1, 2, 3, -1)):
        with pytest.raises(
            InputError, match=re.escape(f"frequency={frequency}: must hold 4 numbers of at least 0, not all 0")
        ):
            drift(RATE, frequency)


def test_the_shipped_model_counts_in_its_first_layer():
    """A write is a sum over its window, places alike; a phase a sum over all symbols seen; the mean symbol turns nothing."""
    model, params, task = load("most_freq", dc=16)
    tokens = tokens_of(task.symbols, rows=8, length=64)
    trajectory = observe(model, params, tokens).trajectories[0]
    assert VISIBLE < trajectory.layer.right_window + 1 == trajectory.layer.stride
    placed = writes_by_place(trajectory, tokens, task.symbols)
    assert np.median(placed.explained) > 0.99
    assert np.abs(placed.share - placed.share.mean(axis=0)).max() < 0.1 * np.abs(placed.share).max()
    fit = fit_counts(trajectory, tokens, task.symbols)
    assert np.median(fit.explained) > 0.99
    assert drift(fit.rate, np.ones(task.symbols)) < 0.05
