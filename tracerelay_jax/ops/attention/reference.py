"""The banded mask over all pairs of queries and keys: quadratic in memory, plain to read, the oracle of the others."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.ops.attention.position import alibi_bias, rotate
from tracerelay_jax.ops.attention.softmax import masked_softmax


def reference_attention(q, k, v, key_valid, left: int, right: int, position: str) -> jax.Array:
    """See `local_attention`."""
    centre = np.arange(q.shape[1]) + left
    key = np.arange(k.shape[1])
    distance = key[None, :] - centre[:, None]
    if position == "rope":
        q, k = rotate(q, centre), rotate(k, key)
    scores = _einsum("btnk,bsnk->bnts", q, k) / math.sqrt(q.shape[-1])
    if position == "alibi":
        scores = scores + alibi_bias(distance, q.shape[2])
    band = (distance >= -left) & (distance <= right)
    weights = masked_softmax(scores, band & key_valid[:, None, None, :])
    return _einsum("bnts,bsnk->btnk", weights.astype(v.dtype), v).astype(v.dtype)


def _einsum(axes: str, a: jax.Array, b: jax.Array) -> jax.Array:
    """In float32: unless told otherwise, GPUs and TPUs would round factors of float32 to fewer bits."""
    return jnp.einsum(axes, a, b, precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)
