"""Position information relative to the query; tables are made in float64 from small integers when a program is traced."""

import jax
import jax.numpy as jnp
import numpy as np

_ROPE_BASE = 10_000.0


def rope_tables(positions: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines (T, K / 2) of the angles of rotary embedding at integer `positions` (T,), for heads of width K."""
    half = width // 2
    angles = np.asarray(positions, np.float64)[:, None] * _ROPE_BASE ** (-np.arange(half) / half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotate_halves(first: jax.Array, second: jax.Array, cos, sin) -> tuple[jax.Array, jax.Array]:
    """Rotary embedding of the two halves of a head's channels; all of one shape, or broadcast."""
    return first * cos - second * sin, second * cos + first * sin


def rotate(x: jax.Array, positions: np.ndarray) -> jax.Array:
    """Rotates (..., T, N, K) by integer `positions` (T,): rotary embedding over the whole head, halves paired, float32.

    The product of a rotated query and a rotated key depends on the difference of their positions only.
    """
    cos, sin = (table[:, None] for table in rope_tables(positions, x.shape[-1]))
    return jnp.concatenate(rotate_halves(*jnp.split(x.astype(jnp.float32), 2, axis=-1), cos, sin), axis=-1).astype(x.dtype)


def alibi_slopes(heads: int) -> np.ndarray:
    """Returns (N,) float64: 2**(-8 n / N) for heads n = 1..N."""
    return 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)


def alibi_bias(distance: np.ndarray, heads: int) -> np.ndarray:
    """Returns (N, ...) float32: -slope |distance| for each head; distance (...) in positions."""
    return (-alibi_slopes(heads).reshape(-1, *[1] * distance.ndim) * np.abs(distance)).astype(np.float32)
