"""Models and caches changed in one thing, against what the equations say of it."""

import dataclasses
import re

import chex
import numpy as np
import pytest

from tests import oracle
from tests.model.test_network import SMALL, float64, make, tokens_of
from tracerelay_jax import InputError
from tracerelay_jax.analysis import (
    observe,
    rows_right,
    scale_alpha,
    silence,
    turn,
    unroll,
    without_inheritance,
)
from tracerelay_jax.analysis.trajectories import nearest
from tracerelay_jax.tasks import Batch

LENGTH = 21
MODEL, PARAMS = make(SMALL)
TOKENS = tokens_of(SMALL, 2, LENGTH)


def test_without_inheritance_the_first_layers_phases_are_the_increments_it_had():
    on, off = (observe(model, PARAMS, TOKENS).trajectories for model in (MODEL, without_inheritance(MODEL)))
    np.testing.assert_allclose(off[0].increment, on[0].increment, atol=1e-5)
    assert np.abs(nearest(off[0].phase - on[0].increment)).max() < 1e-5
    bound = np.abs(on[0].increment).max()
    assert np.abs(unroll(off[0])).max() <= bound + 1e-5
    assert np.abs(unroll(on[0])).max() > 1.5 * bound
    assert np.abs(off[1].increment - on[1].increment).max() > 0.01  # the layer above is told otherwise


def test_scaled_alpha_scales_the_increments_of_the_first_layer():
    slow, normal = (observe(model, PARAMS, TOKENS).trajectories[0] for model in (scale_alpha(MODEL, 0.25), MODEL))
    np.testing.assert_allclose(slow.increment, 0.25 * normal.increment, atol=1e-5)
    assert np.abs(normal.increment).max() > 1


def test_a_silent_layer_merges_nothing():
    silent = silence(PARAMS, 0)
    wanted, _ = oracle.network(SMALL, float64(silent), TOKENS[0], np.ones(LENGTH, bool))
    got = observe(MODEL, silent, TOKENS)
    np.testing.assert_allclose(got.logits[0], wanted, atol=1e-4)
    assert np.abs(got.logits - observe(MODEL, PARAMS, TOKENS).logits).max() > 0.1
    mute = observe(MODEL, silence(PARAMS, 0, 1), TOKENS)  # no readout at all: the same without inheritance, and at any speed
    for other in (without_inheritance(MODEL), scale_alpha(MODEL, 0.25)):
        np.testing.assert_allclose(observe(other, silence(PARAMS, 0, 1), TOKENS).logits, mute.logits, atol=1e-4)
    chex.assert_trees_all_equal(PARAMS, make(SMALL)[1])  # changed in a copy


@pytest.mark.parametrize("phase", ["turns", "radians"])
def test_a_turn_stays_in_the_lineages(phase):
    """Every later phase of the layer is turned by the angle; its increments are those of the layer below."""
    config = dataclasses.replace(SMALL, phase=phase, trace_widths=(8,))
    model, params = make(config)
    cache = observe(model, params, TOKENS).cache
    angle = np.random.default_rng(7).uniform(-20, 20, (2, 8))
    plain, turned, same = (
        observe(model, params, TOKENS, cache=c)
        for c in (cache, turn(config, cache, 0, angle), turn(config, cache, 0, np.full(8, 2 * np.pi)))
    )
    np.testing.assert_array_equal(turned.trajectories[0].increment, plain.trajectories[0].increment)
    difference = turned.trajectories[0].phase - plain.trajectories[0].phase - angle[:, None]
    assert np.abs(nearest(difference)).max() < 1e-4
    assert np.abs(turned.logits - plain.logits).max() > 0.1
    np.testing.assert_allclose(same.logits, plain.logits, atol=1e-4)


def test_a_row_is_right_where_all_that_is_scored_is():
    rng = np.random.default_rng(8)
    logits, scored = rng.normal(size=(2, 9, 3)), rng.random((2, 9)) < 0.5
    wrong = np.zeros((2, 9), bool)
    wrong[0], wrong[1, np.argmax(scored[1])] = ~scored[0], True  # row 0 where nobody looks
    targets = (logits.argmax(axis=-1) + wrong) % 3
    batch = Batch(targets, np.ones((2, 9), bool), targets, scored)
    np.testing.assert_array_equal(rows_right(logits, batch), [True, False])
    with pytest.raises(InputError, match=re.escape("logits of shape (2, 8, 3): must be (2, 9), the batch's, and outputs")):
        rows_right(logits[:, 1:], batch)


def test_what_is_not_there_is_named():
    cache = observe(MODEL, PARAMS, TOKENS).cache
    for attempt, message in (
        (lambda: silence(PARAMS, 2), "layer=2: must be a layer from 0 to 1"),
        (lambda: turn(SMALL, cache, -1, 0), "layer=-1: must be a layer from 0 to 1"),
        (lambda: turn(SMALL, cache, 1, np.zeros(8)), "angle of shape (8,): must be (D,) or (B, D), (4,) or (2, 4)"),
        (lambda: scale_alpha(MODEL, 0), "factor=0: must be a positive number"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            attempt()
