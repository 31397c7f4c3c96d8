import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tracerelay_jax.ops import lineages, radians, turns

TURN = 2**32


def loop(u, tail):
    """s_t = s_{t-W} + u_t, position by position."""
    stride = tail.shape[1]
    stream = [tail[:, i] for i in range(stride)]
    for t in range(u.shape[1]):
        stream.append(stream[-stride] + u[:, t])
    return np.stack(stream[stride:], axis=1)


@pytest.mark.parametrize("stride", [1, 3, 8])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 21])
def test_lineage_sum_is_the_loop(length, stride):
    rng = np.random.default_rng(0)
    u = rng.integers(-(2**31), 2**31, (2, length, 3)).astype(np.int32)
    tail = rng.integers(-(2**31), 2**31, (2, stride, 3)).astype(np.int32)
    with np.errstate(over="ignore"):
        wanted = loop(u, tail)
    np.testing.assert_array_equal(jax.jit(lineages.lineage_sum)(u, tail), wanted)  # overflow wraps, to the bit


def test_lineage_any_never_clears_a_flag():
    q = np.array([[False, True, False, False, False, False, True]])
    tail = np.array([[True, False, False]])
    wanted = [[True, True, False, True, True, False, True]]
    np.testing.assert_array_equal(lineages.lineage_any(q, tail), wanted)


def test_cos_and_sin_of_turns():
    phase = np.random.default_rng(1).integers(-(2**31), 2**31, 200_000).astype(np.int32)
    eighths = (np.arange(-4, 4) * 2**29).astype(np.int32)  # where quadrants meet
    phase = np.concatenate([phase, eighths, eighths + 1, eighths - 1, np.int32([2**31 - 1])])
    cos, sin = jax.jit(turns.cos_sin)(turns.Turns(phase, jnp.zeros(phase.shape)))
    angle = phase.astype(np.float64) * 2 * np.pi / TURN
    np.testing.assert_allclose(cos, np.cos(angle), atol=2e-7)
    np.testing.assert_allclose(sin, np.sin(angle), atol=2e-7)


@pytest.mark.parametrize("alpha", [0.1, math.pi, 5.0, 100.0])
def test_increments_in_turns_at_any_alpha(alpha):
    delta = (alpha * np.tanh(np.linspace(-9, 9, 2001))).astype(np.float32)[None, :, None]
    got = np.asarray(turns.increments(delta).turns, np.float64)
    wanted = delta.astype(np.float64) / (2 * np.pi) * TURN
    error = np.abs((got - wanted + TURN / 2) % TURN - TURN / 2)
    # One rounding of delta / 2 pi in float32, half an ulp of the number of turns, and one to an integer.
    assert error.max() <= 0.5 + 2**-24 * max(1.0, alpha / np.pi) * TURN


def test_half_a_turn_is_half_a_turn_from_either_side():
    delta = jnp.array([math.pi, -math.pi, 3 * math.pi], jnp.float32)
    np.testing.assert_array_equal(turns.increments(delta).turns, [-(2**31)] * 3)


@pytest.mark.parametrize("cut", [1, 5, 8, 13])
def test_cuts_of_turns_are_exact_to_the_bit_also_in_their_gradients(cut):
    rng = np.random.default_rng(2)
    delta = rng.normal(size=(2, 20, 3)).astype(np.float32)
    weights = rng.normal(size=(2, 2, 20, 3)).astype(np.float32)

    def read(theta):
        return jnp.stack(turns.cos_sin(theta))

    def whole(delta):
        return read(turns.accumulate(turns.increments(delta), turns.zeros((2, 8, 3))))

    def in_two(delta):
        start = turns.zeros((2, 8, 3))
        first = turns.accumulate(turns.increments(delta[:, :cut]), start)
        tail = jax.tree.map(lambda a, b: jnp.concatenate([a, b], 1)[:, -8:], start, first)
        return jnp.concatenate([read(first), read(turns.accumulate(turns.increments(delta[:, cut:]), tail))], axis=2)

    np.testing.assert_array_equal(whole(delta), in_two(delta))
    gradients = [jax.grad(lambda d, f=f: jnp.sum(f(d) * weights))(delta) for f in (whole, in_two)]
    assert np.abs(gradients[0]).max() > 1
    np.testing.assert_allclose(*gradients, atol=1e-5)


def test_the_gradient_of_turns_is_that_of_the_plain_sum():
    delta = np.random.default_rng(3).normal(size=(2, 19, 4)).astype(np.float32)

    def loss(ops, delta):
        cos, sin = ops.cos_sin(ops.accumulate(ops.increments(delta), ops.zeros((2, 8, 4))))
        return jnp.sum(cos * 1.3 + sin * jnp.arange(19)[:, None])

    exact, literal = (jax.grad(loss, 1)(ops, delta) for ops in (turns, radians))
    np.testing.assert_allclose(exact, literal, rtol=1e-4, atol=1e-4)


def test_nothing_drifts_over_a_million_positions():
    delta = jnp.full((1, 8, 1), 2.5, jnp.float32)
    step = jax.jit(lambda delta, tail: turns.accumulate(turns.increments(delta), tail))
    once = np.int64(step(delta, turns.zeros((1, 8, 1))).turns[0, 0, 0])
    stream = jnp.broadcast_to(delta[:, :1], (1, 2**20, 1))
    got = step(stream, turns.zeros((1, 8, 1))).turns[0, -1, 0]
    assert got == np.int64(once * 2**17).astype(np.int32)


def test_the_two_forms_agree():
    delta = np.random.default_rng(4).normal(size=(1, 40, 2)).astype(np.float32) * 3
    pairs = [jnp.stack(ops.cos_sin(ops.accumulate(ops.increments(delta), ops.zeros((1, 8, 2))))) for ops in (turns, radians)]
    np.testing.assert_allclose(*pairs, atol=2e-5)
    chex.assert_equal_shape(pairs)
