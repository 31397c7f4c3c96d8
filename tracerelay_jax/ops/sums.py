"""Sums whose order is part of the program. XLA picks the order of a reduction by the shapes around it, and so its bits."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp


def tree_sum(terms: Sequence[jax.Array]) -> jax.Array:
    """The sum of arrays of one shape, neighbours first, then neighbouring sums."""
    terms = list(terms)
    while len(terms) > 1:
        odd = terms[-1:] if len(terms) % 2 else []
        terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + odd
    return terms[0]


@jax.custom_jvp
def mean_square(x: jax.Array) -> jax.Array:
    """The mean of x**2 over the last axis, which is kept: (..., H) to (..., 1)."""
    total = jnp.maximum(x * x, 0.0)  # not a bare square: a multiply-add would take up one square of a sum or the other
    while (width := total.shape[-1]) > 1:
        half = width // 2
        odd = total[..., 2 * half :]
        total = total[..., :half] + total[..., half : 2 * half]
        total = jnp.concatenate([total, odd], axis=-1) if odd.size else total
    return total / x.shape[-1]


@mean_square.defjvp
def _mean_square_jvp(primals, tangents):
    return mean_square(*primals), 2 * jnp.mean(primals[0] * tangents[0], axis=-1, keepdims=True)
