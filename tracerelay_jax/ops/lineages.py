"""Sums along the W interleaved lineages, Eq. (7)."""

import jax
import jax.numpy as jnp


def lineage_sum(u: jax.Array, tail: jax.Array) -> jax.Array:
    """Returns s with s_t = s_{t-W} + u_t, where `tail` holds s of the W positions before the first.

    A reshape to (n, W) and a cumulative sum, Eq. (7).

    Args:
      u: (B, T, ...) increments in order of arrival, of any T, any number type.
      tail: (B, W, ...) sums of the W positions before, of the same type.

    Returns:
      (B, T, ...) sums, of the type of `u`; integers wrap around.
    """
    length, stride = u.shape[1], tail.shape[1]
    rows = -(-length // stride)
    padding = [(0, 0), (0, rows * stride - length)] + [(0, 0)] * (u.ndim - 2)
    u_rows = jnp.pad(u, padding).reshape(u.shape[0], rows, stride, *u.shape[2:])
    sums = _sums(u_rows) + tail[:, None]
    return sums.reshape(u.shape[0], rows * stride, *u.shape[2:])[:, :length]


def lineage_any(q: jax.Array, tail: jax.Array) -> jax.Array:
    """Returns v with v_t = v_{t-W} or q_t (Section 2.4); q (B, T) bool, tail (B, W) bool, v (B, T) bool."""
    return lineage_sum(q.astype(jnp.int32), tail.astype(jnp.int32)) > 0


def _sums(rows: jax.Array) -> jax.Array:
    """Cumulative sums along axis 1; XLA:CPU takes eight times as long over `jnp.cumsum` as over an associative scan."""
    return jax.lax.platform_dependent(
        rows,
        cpu=lambda x: jax.lax.associative_scan(jnp.add, x, axis=1),
        default=lambda x: jnp.cumsum(x, axis=1, dtype=x.dtype),
    )
