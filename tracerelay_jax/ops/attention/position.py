"""Position information relative to the query; tables are made in float64 from small integers when a program is traced."""

import jax
import jax.numpy as jnp
import numpy as np

_ROPE_BASE = 10_000.0


def rotate(x: jax.Array, positions: np.ndarray) -> jax.Array:
    """Rotates (..., T, N, K) by integer `positions` (T,): rotary embedding over the whole head, halves paired, float32.

    The product of a rotated query and a rotated key depends on the difference of their positions only.
    """
    half = x.shape[-1] // 2
    frequencies = _ROPE_BASE ** (-np.arange(half) / half)
    angles = np.asarray(positions, np.float64)[:, None, None] * frequencies
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    rotated = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return rotated.astype(x.dtype)


def alibi_bias(distance: np.ndarray, heads: int) -> np.ndarray:
    """Returns (N, ...) float32: -2**(-8 n / N) |distance| for heads n = 1..N; distance (...) in positions."""
    slopes = 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)
    return (-slopes.reshape(-1, *[1] * distance.ndim) * np.abs(distance)).astype(np.float32)
