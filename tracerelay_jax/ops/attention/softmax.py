"""Softmax over the keys that a query may see."""

import jax
import jax.numpy as jnp

MASKED = -1e30  # finite: a row without a valid key must give no NaN, in its gradient neither


def masked_softmax(scores: jax.Array, mask: jax.Array) -> jax.Array:
    """Softmax over the last axis where `mask`, zeros elsewhere, and zeros in rows without any; float32, shapes alike."""
    scores = jnp.where(mask, scores, MASKED)
    top = jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True))
    weights = jnp.where(mask, jnp.exp(scores - top), 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / jnp.where(total == 0.0, 1.0, total)
