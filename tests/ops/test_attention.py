"""One suite that every implementation of local attention passes, against the banded mask in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tracerelay_jax.ops.attention import local_attention
from tracerelay_jax.ops.attention.position import alibi_bias

IMPLEMENTATIONS = ["reference", "blocked"]


def literal(q, k, v, key_valid, left, right, position):
    """Query by query, in float64."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    batch, length, heads, width = q.shape
    half = width // 2
    out = np.zeros(q.shape)
    for b, t, n in np.ndindex(batch, length, heads):
        seen = [s for s in range(t, t + left + right + 1) if key_valid[b, s]]
        if not seen:
            continue
        keys = k[b, seen, n]
        distance = np.array(seen) - t - left
        if position == "rope":
            angle = distance[:, None] * 10_000.0 ** (-np.arange(half) / half)
            first, second = keys[:, :half], keys[:, half:]
            keys = np.concatenate([first * np.cos(angle) - second * np.sin(angle),
                                   second * np.cos(angle) + first * np.sin(angle)], axis=1)  # fmt: skip
        scores = keys @ q[b, t, n] / np.sqrt(width)
        if position == "alibi":
            scores -= 2.0 ** (-8 * (n + 1) / heads) * np.abs(distance)
        weights = np.exp(scores - scores.max())
        out[b, t, n] = weights / weights.sum() @ v[b, seen, n]
    return out


def inputs(length, left, right, width=8, heads=2, batch=2, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    keys = left + length + right
    q = rng.normal(size=(batch, length, heads, width))
    k, v = rng.normal(size=(2, batch, keys, heads, width))
    valid = rng.random((batch, keys)) < 0.7
    return jnp.asarray(q, dtype), jnp.asarray(k, dtype), jnp.asarray(v, dtype), valid


CASES = [
    # length, left, right, head width
    (1, 0, 0, 4),
    (1, 15, 0, 16),
    (5, 0, 7, 8),
    (16, 15, 0, 4),
    (33, 0, 7, 4),
    (40, 3, 2, 8),
    (70, 64, 0, 8),
    (70, 0, 17, 8),
]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize(("length", "left", "right", "width"), CASES)
def test_forward(implementation, length, left, right, width):
    for position in ("none", "rope", "alibi"):
        q, k, v, valid = inputs(length, left, right, width)
        got = jax.jit(local_attention, static_argnums=(4, 5, 6, 7))(q, k, v, valid, left, right, position, implementation)
        np.testing.assert_allclose(got, literal(q, k, v, valid, left, right, position), atol=3e-6)


@pytest.mark.parametrize("position", ["rope", "alibi"])
@pytest.mark.parametrize(("length", "left", "right", "width"), CASES[2:6])
def test_gradients_equal_those_of_the_reference(length, left, right, width, position):
    q, k, v, valid = inputs(length, left, right, width)
    weights = np.random.default_rng(1).normal(size=q.shape)

    def gradients(implementation):
        def loss(q, k, v):
            return jnp.sum(local_attention(q, k, v, valid, left, right, position, implementation) * weights)

        return jax.jit(jax.grad(loss, (0, 1, 2)))(q, k, v)

    for got, wanted in zip(gradients("blocked"), gradients("reference"), strict=True):
        assert np.abs(wanted).max() > 0.1 or length == 1
        np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_query_without_a_valid_key_gives_zeros_and_no_gradient(implementation):
    q, k, v, _ = inputs(20, 3, 2)
    valid = np.zeros((2, 25), bool)
    valid[1] = True
    v = v.at[0].set(1e30)  # what stands in padding must not matter

    def loss(q, k, v):
        out = local_attention(q, k, v, valid, 3, 2, "rope", implementation)
        return jnp.sum(jnp.sin(out)), out

    gradients, out = jax.jit(jax.grad(loss, (0, 1, 2), has_aux=True))(q, k, v)
    np.testing.assert_array_equal(out[0], 0)
    for gradient in gradients:
        np.testing.assert_array_equal(gradient[0], 0)
        assert np.isfinite(gradient).all()
        assert np.abs(gradient[1]).max() > 0


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_bfloat16_sums_in_float32(implementation):
    q, k, v, valid = inputs(40, 15, 0, dtype=jnp.bfloat16)
    out = jax.jit(local_attention, static_argnums=(4, 5, 6, 7))(q, k, v, valid, 15, 0, "rope", implementation)
    assert out.dtype == jnp.bfloat16
    # Two roundings to eight bits, of the rotated queries and keys and of the weights.
    np.testing.assert_allclose(np.float32(out), literal(q, k, v, valid, 15, 0, "rope"), atol=0.05)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_vmap_over_a_leading_axis(implementation):
    q, k, v, valid = inputs(18, 5, 1)

    def attend(q, k, v):
        return local_attention(q, k, v, valid, 5, 1, "rope", implementation)

    stacked = [jnp.stack([x, 2 * x]) for x in (q, k, v)]
    got = jax.vmap(attend)(*stacked)
    np.testing.assert_allclose(got[1], attend(*(x[1] for x in stacked)), atol=1e-5)


def test_memory_of_blocked_attention_is_linear():
    def temporaries(length):
        shapes = [jax.ShapeDtypeStruct((1, n, 2, 8), jnp.float32) for n in (length, length + 15, length + 15)]
        valid = jax.ShapeDtypeStruct((1, length + 15), bool)
        call = jax.jit(lambda *x: local_attention(*x, 15, 0, "rope", "blocked"))
        return call.lower(*shapes, valid).compile().memory_analysis().temp_size_in_bytes

    assert temporaries(2**14) < 4.4 * temporaries(2**12)


def test_shapes_that_do_not_fit_are_refused():
    q, k, v, valid = inputs(8, 3, 0)
    with pytest.raises(ValueError, match="8 queries with left=4 and right=0 need 12 keys"):
        local_attention(q, k, v, valid, 4, 0)


def test_alibi_slopes():
    np.testing.assert_allclose(alibi_bias(np.array([-2, 0, 1]), 4)[:, 0], -2 * 2.0 ** np.array([-2.0, -4, -6, -8]))
