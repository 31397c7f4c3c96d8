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
    scores = jnp.einsum("btnk,bsnk->bnts", q, k, preferred_element_type=jnp.float32) / math.sqrt(q.shape[-1])
    if position == "alibi":
        scores = scores + alibi_bias(distance, q.shape[2])
    band = (distance >= -left) & (distance <= right)
    weights = masked_softmax(scores, band & key_valid[:, None, None, :])
    out = jnp.einsum("bnts,bsnk->btnk", weights.astype(v.dtype), v, preferred_element_type=jnp.float32)
    return out.astype(v.dtype)
