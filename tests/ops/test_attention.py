"""One suite that every implementation of local attention passes, against the banded mask in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from tracerelay_jax.ops.attention import local_attention
from tracerelay_jax.ops.attention.position import alibi_bias
from tracerelay_jax.parallel import data_mesh

IMPLEMENTATIONS = ["reference", "windowed", "pallas_interpret"]


def literal(q, k, v, key_valid, left, right, position, g=None):
    """Query by query, in float64: the output, and the gradients of sum(g * output) by q, k and v where g is given."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    batch, length, heads, width = q.shape
    half = width // 2
    out, dq, dk, dv = (np.zeros(x.shape) for x in (q, q, k, v))
    for b, t, n in np.ndindex(batch, length, heads):
        seen = [s for s in range(t, t + left + right + 1) if key_valid[b, s]]
        if not seen:
            continue
        distance = np.array(seen) - t - left
        angle = (position == "rope") * distance[:, None] * 10_000.0 ** (-np.arange(half) / half)
        keys = turned(k[b, seen, n], angle)
        scores = keys @ q[b, t, n] / np.sqrt(width)
        if position == "alibi":
            scores -= 2.0 ** (-8 * (n + 1) / heads) * np.abs(distance)
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        out[b, t, n] = weights @ v[b, seen, n]
        if g is not None:
            dweights = v[b, seen, n] @ g[b, t, n]
            dscores = weights * (dweights - weights @ dweights) / np.sqrt(width)
            dq[b, t, n] = dscores @ keys
            dk[b, seen, n] += turned(dscores[:, None] * q[b, t, n], -angle)
            dv[b, seen, n] += weights[:, None] * g[b, t, n]
    return out if g is None else (dq, dk, dv)


def turned(x, angle):
    first, second = np.split(x, 2, axis=1)
    return np.concatenate([first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)],
                          axis=1)  # fmt: skip


def inputs(length, left, right, width=8, heads=2, batch=2, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    keys = left + length + right
    q = rng.normal(size=(batch, length, heads, width))
    k, v = rng.normal(size=(2, batch, keys, heads, width))
    valid = rng.random((batch, keys)) < 0.7
    return jnp.asarray(q, dtype), jnp.asarray(k, dtype), jnp.asarray(v, dtype), valid


# Length, left, right, head width: windows from 1 to 65, all head widths, lengths to beyond every tile of the kernels.
CASES = [
    (1, 0, 0, 4),
    (1, 15, 0, 16),
    (5, 0, 7, 8),
    (40, 15, 0, 64),
    (33, 0, 7, 32),
    (300, 3, 2, 4),
    (70, 64, 0, 8),
]
# The longest sum, over a window or the queries of a key, has 65 terms of order one; float32 rounds each to 6e-8.
TOLERANCE = 5e-6


@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize(("length", "left", "right", "width"), CASES)
def test_output_and_gradients(implementation, length, left, right, width, position):
    q, k, v, valid = inputs(length, left, right, width)
    g = np.random.default_rng(1).normal(size=q.shape)

    @jax.jit
    def run(q, k, v):
        out, pull = jax.vjp(lambda *x: local_attention(*x, valid, left, right, position, implementation), q, k, v)
        return out, pull(jnp.asarray(g, jnp.float32))

    out, gradients = run(q, k, v)
    np.testing.assert_allclose(out, literal(q, k, v, valid, left, right, position), atol=TOLERANCE)
    wanted = literal(q, k, v, valid, left, right, position, g)
    for got, exact in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(got, exact, atol=TOLERANCE * max(1, np.abs(exact).max()))
    assert np.abs(wanted[2]).max() > 0.1


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
def test_a_nan_is_not_hidden(implementation):
    q, k, v, valid = inputs(8, 3, 0)
    out = jax.jit(lambda q: local_attention(q, k, v, np.ones_like(valid), 3, 0, "rope", implementation))(
        q.at[0, 2].set(np.nan)
    )
    assert np.isnan(out[0, 2]).all()
    assert np.isfinite(out[1]).all()


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
    got = jax.jit(jax.vmap(attend))(*stacked)
    np.testing.assert_allclose(got[1], jax.jit(attend)(*(x[1] for x in stacked)), atol=1e-5)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_sharded_over_devices(implementation):
    q, k, v, valid = inputs(18, 5, 1)

    def attend(q, k, v, valid):
        return local_attention(q, k, v, valid, 5, 1, "rope", implementation)

    rows = PartitionSpec("data")
    sharded = jax.shard_map(attend, mesh=data_mesh(2), in_specs=(rows,) * 4, out_specs=rows, check_vma=False)
    assert len(jax.local_devices()) == 2
    np.testing.assert_allclose(jax.jit(sharded)(q, k, v, valid), jax.jit(attend)(q, k, v, valid), atol=1e-6)


def test_the_kernels_say_which_heads_they_serve():
    q, k, v, valid = inputs(8, 3, 0, width=6)
    with pytest.raises(NotImplementedError, match="serve heads of width 4, 8, 16, 32, 64, not 6"):
        local_attention(q, k, v, valid, 3, 0, implementation="pallas")
    assert local_attention(q, k, v, valid, 3, 0).shape == q.shape


def test_automatic_choice_on_a_gpu(monkeypatch):
    """The kernels where they serve the case, and otherwise the walk in plain JAX."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for width, kernels in ((8, True), (6, False)):
        q, k, v, valid = inputs(8, 3, 0, width=width)
        program = str(jax.make_jaxpr(lambda q, k, v, valid=valid: local_attention(q, k, v, valid, 3, 0))(q, k, v))
        assert ("pallas_call" in program) == kernels
    with jax.default_device(jax.devices("cpu")[0]):  # whatever else the machine has
        program = str(
            jax.make_jaxpr(lambda q, k, v, valid=valid: local_attention(q, k, v, valid, 3, 0))(*inputs(8, 3, 0)[:3])
        )
    assert "pallas_call" not in program


def test_memory_of_windowed_attention_is_linear():
    def temporaries(length):
        shapes = [jax.ShapeDtypeStruct((1, n, 2, 8), jnp.float32) for n in (length, length + 15, length + 15)]
        valid = jax.ShapeDtypeStruct((1, length + 15), bool)
        call = jax.jit(lambda *x: local_attention(*x, 15, 0, "rope", "windowed"))
        return call.lower(*shapes, valid).compile().memory_analysis().temp_size_in_bytes

    assert temporaries(2**14) < 4.4 * temporaries(2**12)


def test_shapes_that_do_not_fit_are_refused():
    q, k, v, valid = inputs(8, 3, 0)
    with pytest.raises(ValueError, match="8 queries with left=4 and right=0 need 12 keys"):
        local_attention(q, k, v, valid, 4, 0)


def test_alibi_slopes():
    np.testing.assert_allclose(alibi_bias(np.array([-2, 0, 1]), 4)[:, 0], -2 * 2.0 ** np.array([-2.0, -4, -6, -8]))
