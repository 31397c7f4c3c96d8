"""Local attention between blocks of queries and the stretch of keys that each block's windows cover: linear memory.

A block of queries is as long as the windows, rounded up to a power of two, and meets the keys of its own block and the
first few of the next. Positions are counted within the block, so nothing grows with the length.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.ops.attention.position import alibi_bias, rotate
from tracerelay_jax.ops.attention.softmax import masked_softmax

_LEAST_BLOCK = 16
_MULTIPLE = 8  # lengths of stretches are multiples of this


def blocked_attention(q, k, v, key_valid, left: int, right: int, position: str) -> jax.Array:
    """See `local_attention`."""
    length, heads, width = q.shape[1:]
    span = left + right
    block = max(_LEAST_BLOCK, 1 << max(span - 1, 0).bit_length())
    stretch = block + -(-span // _MULTIPLE) * _MULTIPLE  # keys that a block of queries meets
    rows = -(-length // block)

    q = _blocks(q, rows, block)
    k, v, valid = (_stretches(x, rows, block, stretch) for x in (k, v, key_valid[..., None, None]))
    if position == "rope":
        q, k = rotate(q, np.arange(block) + left), rotate(k, np.arange(stretch))
    q, k, v = (x.transpose(0, 3, 1, 2, 4) for x in (q, k, v))  # (B, N, rows, block or stretch, K)
    distance = np.arange(stretch)[None, :] - np.arange(block)[:, None] - left
    mask = ((distance >= -left) & (distance <= right)) & valid[..., 0].transpose(0, 3, 1, 2)[..., None, :]
    bias = alibi_bias(distance, heads)[:, None] if position == "alibi" else None

    out = _attend(q, k, v, mask, bias).transpose(0, 2, 3, 1, 4)
    return out.reshape(-1, rows * block, heads, width)[:, :length]


def _blocks(x: jax.Array, rows: int, block: int) -> jax.Array:
    """(B, S, ...) to (B, rows, block, ...); zeros, or False, past the end."""
    missing = max(rows * block - x.shape[1], 0)
    padding = [(0, 0), (0, missing)] + [(0, 0)] * (x.ndim - 2)
    return jnp.pad(x, padding)[:, : rows * block].reshape(x.shape[0], rows, block, *x.shape[2:])


def _stretches(x: jax.Array, rows: int, block: int, stretch: int) -> jax.Array:
    """(B, S, ...) to (B, rows, stretch, ...): each block and the beginning of the next."""
    blocks = _blocks(x, rows + 1, block)
    return jnp.concatenate([blocks[:, :-1], blocks[:, 1:, : stretch - block]], axis=2)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _attend(q, k, v, mask, bias):
    """Softmax attention over the last two axes: q (..., block, K), k and v (..., stretch, K), bias a constant."""
    return _attend_forward(q, k, v, mask, bias)[0]


def _attend_forward(q, k, v, mask, bias):
    scores = _product(q, k.swapaxes(-1, -2)) / math.sqrt(q.shape[-1])
    weights = masked_softmax(scores if bias is None else scores + bias, mask)
    return _product(weights.astype(v.dtype), v).astype(v.dtype), (q, k, v, weights)


def _attend_backward(bias, residuals, out_gradient):
    del bias
    q, k, v, weights = residuals
    dtype = q.dtype
    weight_gradient = _product(out_gradient, v.swapaxes(-1, -2))
    mean = jnp.sum(weights * weight_gradient, axis=-1, keepdims=True)
    score_gradient = (weights * (weight_gradient - mean) / math.sqrt(q.shape[-1])).astype(dtype)
    q_gradient = _product(score_gradient, k)
    k_gradient = _product(_transposed(score_gradient), q)
    v_gradient = _product(_transposed(weights.astype(dtype)), out_gradient)
    return q_gradient.astype(dtype), k_gradient.astype(dtype), v_gradient.astype(dtype), None


_attend.defvjp(_attend_forward, _attend_backward)


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.matmul(a, b, preferred_element_type=jnp.float32)


def _transposed(x: jax.Array) -> jax.Array:
    """Transposes the last two axes in memory: XLA:CPU takes three times as long for a product that reads x across.

    Measured for the blocks of the paper's network; it is why the gradient is written out and not left to autodiff, which
    is otherwise as good.
    """
    return jax.lax.optimization_barrier(x.swapaxes(-1, -2))
