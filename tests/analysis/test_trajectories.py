"""Phases as they are read out, against the loop over the equations."""

import dataclasses
import re

import numpy as np
import pytest

from tests import oracle
from tests.model.test_network import SMALL, float64, make, tokens_of
from tracerelay_jax import InputError
from tracerelay_jax.analysis import lineage_sums, observe, unroll
from tracerelay_jax.analysis.trajectories import nearest

LENGTH = 24
VARIANTS = {
    "paper": {},
    "without inheritance": {"inherit_phase": False, "trace_widths": (8,)},
    "radians": {"phase": "radians", "trace_widths": (8,)},
    "windows per layer": {"left_window": (3, 0), "right_window": (1, 0), "stride": (2, 1)},
}


def case(**changes):
    """A model, and three sequences with gaps and padding."""
    config = dataclasses.replace(SMALL, **changes)
    valid = np.ones((3, LENGTH), bool)
    valid[1] = np.random.default_rng(2).random(LENGTH) < 0.6
    valid[2, :9] = False
    return *make(config), tokens_of(config, 3, LENGTH), valid


def assert_same_angles(got, wanted, tolerance):
    assert np.abs(nearest(got - wanted)).max() < tolerance


@pytest.mark.parametrize("variant", VARIANTS)
def test_phases_and_increments_equal_those_of_the_loop(variant):
    model, params, tokens, valid = case(**VARIANTS[variant])
    observed = observe(model, params, tokens, valid)
    for row in range(3):
        logits, states = oracle.network(model.config, float64(params), tokens[row], valid[row])
        np.testing.assert_allclose(observed.logits[row][valid[row]], logits[valid[row]], atol=1e-4 * np.abs(logits).max())
        for trajectory, (theta, v) in zip(observed.trajectories, states, strict=True):
            stride = trajectory.layer.stride
            begun = np.asarray(v, bool)
            before = (
                np.concatenate([np.zeros((stride, theta.shape[1])), theta[:-stride]]) if model.config.inherit_phase else 0
            )
            assert_same_angles(trajectory.phase[row], theta, 1e-3)
            assert_same_angles(trajectory.increment[row], theta - before, 1e-3)
            np.testing.assert_array_equal(trajectory.lineage_valid[row], begun)
            assert trajectory.phase.min() >= 0
            assert trajectory.phase.max() < 2 * np.pi
            assert np.abs(trajectory.increment[row]).max() > 0.3  # there is something to compare


@pytest.mark.parametrize("variant", ["paper", "radians", "windows per layer"])
def test_unrolled_phases_wrap_back_and_step_by_the_increments(variant):
    model, params, tokens, valid = case(**VARIANTS[variant])
    wrapped = False
    for trajectory in observe(model, params, tokens, valid).trajectories:
        theta, stride = unroll(trajectory), trajectory.layer.stride
        assert_same_angles(theta, trajectory.phase, 1e-5)
        np.testing.assert_allclose(theta[:, stride:] - theta[:, :-stride], trajectory.increment[:, stride:], atol=1e-9)
        wrapped |= bool(np.abs(theta).max() > 2 * np.pi)
    assert wrapped


def test_without_inheritance_a_phase_is_its_increment():
    model, params, tokens, valid = case(**VARIANTS["without inheritance"])
    for trajectory in observe(model, params, tokens, valid).trajectories:
        np.testing.assert_array_equal(unroll(trajectory), trajectory.increment)
        np.testing.assert_allclose(trajectory.phase, trajectory.increment % (2 * np.pi), atol=1e-9)


def test_an_observation_in_chunks_is_one():
    """Through the cache, and so does one that goes on from another's."""
    model, params, tokens, valid = case()
    whole, chunks = observe(model, params, tokens, valid), observe(model, params, tokens, valid, chunk=12)
    np.testing.assert_allclose(chunks.logits, whole.logits, atol=1e-4)
    second = observe(
        model, params, tokens[:, 12:], valid[:, 12:], observe(model, params, tokens[:, :12], valid[:, :12]).cache
    )
    for all_at_once, joined, rest in zip(whole.trajectories, chunks.trajectories, second.trajectories, strict=True):
        assert_same_angles(joined.phase, all_at_once.phase, 1e-4)
        np.testing.assert_allclose(unroll(joined), unroll(all_at_once), atol=1e-4)
        np.testing.assert_array_equal(joined.lineage_valid, all_at_once.lineage_valid)
        np.testing.assert_array_equal(rest.phase, joined.phase[:, 12:])
        assert_same_angles(unroll(rest), rest.phase, 1e-5)


def test_a_trajectory_until_a_position():
    model, params, tokens, valid = case()
    whole = observe(model, params, tokens, valid).trajectories[0]
    first = whole.until(7)
    assert first.layer == whole.layer
    for part, field in zip(first[1:], whole[1:], strict=True):
        np.testing.assert_array_equal(part, field[:, :7])


def test_sums_along_lineages():
    x = np.arange(7)[None]
    np.testing.assert_array_equal(lineage_sums(x, 3), [[0, 1, 2, 3, 5, 7, 9]])
    assert lineage_sums(x, 9).dtype == x.dtype


def test_tokens_that_do_not_fit_are_named():
    model, params, tokens, valid = case()
    with pytest.raises(InputError, match=re.escape("valid=bool[3, 23]: must be bool[3, 24]")):
        observe(model, params, tokens, valid[:, 1:])
    with pytest.raises(InputError, match=re.escape("tokens of shape (24,): must be (B, T), both at least 1")):
        observe(model, params, tokens[0])
    with pytest.raises(InputError, match=re.escape("chunk=0: must be at least 1, or None for all positions at once")):
        observe(model, params, tokens, chunk=0)
