"""Local attention as a walk over the window, one distance between query and key at a time: memory linear in T.

Channels lead, and positions with their heads run along the last axis, so that every step is elementwise over long rows.
What enters the output at t is a function of its window alone, added up in an order that the program fixes: the same bits
come out however a sequence is cut. A product of matrices would choose its order by its shape, and a rotation by positions
counted from the start of a chunk would round differently in each chunk.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.ops.attention.position import alibi_bias, rope_tables, rotate_halves
from tracerelay_jax.ops.attention.softmax import MASKED
from tracerelay_jax.ops.sums import tree_sum

_LANES = 16  # rows are a multiple of this: XLA:CPU computes the odd end of a row not in vectors, and rounds otherwise


def windowed_attention(q, k, v, key_valid, left: int, right: int, position: str) -> jax.Array:
    """See `local_attention`."""
    batch, length, heads, width = q.shape
    row = -(-length * heads // _LANES) * _LANES
    key_row = row + (left + right) * heads
    distances = np.arange(-left, right + 1)

    tables = rope_tables(distances, width) if position == "rope" else None
    masked = _padded(jnp.repeat(jnp.where(key_valid, 0.0, MASKED), heads, axis=1), key_row)
    bias = np.zeros((distances.size, 1), np.float32)
    if position == "alibi":
        bias = np.tile(alibi_bias(distances, heads).T, row)[:, :row]

    q = _channels_first(q, row) / math.sqrt(width)
    out = _attend(q, _channels_first(k, key_row), _channels_first(v, key_row), masked, heads, tables, bias)
    return out[..., : length * heads].reshape(width, batch, length, heads).transpose(1, 2, 3, 0).astype(v.dtype)


def _channels_first(x: jax.Array, row: int) -> jax.Array:
    """(B, T, N, K) to float32 (K, B, row): the T * N entries of a sequence and zeros after them."""
    return _padded(x.astype(jnp.float32).transpose(3, 0, 1, 2).reshape(x.shape[3], x.shape[0], x.shape[1] * x.shape[2]), row)


def _padded(x: jax.Array, row: int) -> jax.Array:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, row - x.shape[-1])])


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5, 6))
def _attend(q, k, v, masked, heads, tables, bias):
    """Attention between rows.

    Args:
      q: (K, B, row) queries, scaled.
      k: (K, B, key_row) keys; in step j of the walk a row of queries meets the keys from entry j * heads on.
      v: (K, B, key_row) values.
      masked: (B, key_row), added to scores: very low at an invalid key.
      heads: heads a position.
      tables: cosines and sines (window, K / 2) of RoPE, or None.
      bias: (window, row), or (window, 1), added to scores.
    """
    return _attend_forward(q, k, v, masked, heads, tables, bias)[0]


def _attend_forward(q, k, v, masked, heads, tables, bias):
    row, window = q.shape[1:], bias.shape[0]
    bias, halves = jnp.asarray(bias), _halves(q, tables)

    def score(j, scores):
        products = [a * b for a, b in zip(_channels(_turned(halves, tables, j, -1)), _met(k, j, heads, row), strict=True)]
        return scores.at[j].set(tree_sum(products) + bias[j] + _met(masked, j, heads, row))

    scores = jax.lax.fori_loop(0, window, score, jnp.zeros((window, *row), q.dtype))
    top = functools.reduce(jnp.maximum, scores)  # not `scores.max`: what XLA:CPU fuses with a reduction rounds by its shape
    weights = jnp.where(scores < 0.5 * MASKED, 0.0, jnp.exp(scores - top))  # a NaN stays one
    total = tree_sum(weights)
    weights = weights * (1.0 / jnp.where(total == 0.0, 1.0, total))

    out = jax.lax.fori_loop(0, window, lambda j, out: out + weights[j] * _met(v, j, heads, row), jnp.zeros_like(q))
    return out, (q, k, v, weights)


def _attend_backward(heads, tables, bias, residuals, g):
    q, k, v, weights = residuals
    row, window = q.shape[1:], bias.shape[0]

    def weight_gradient(j, gradients):
        return gradients.at[j].set(tree_sum([a * b for a, b in zip(g, _met(v, j, heads, row), strict=True)]))

    gradients = jax.lax.fori_loop(0, window, weight_gradient, jnp.zeros_like(weights))
    dscores = weights * (gradients - tree_sum(weights * gradients))
    q, k = _halves(q, tables), _halves(k, tables)

    def add(j, carry):
        dq, dk, dv = carry
        met = _turned([_met(x, j, heads, row) for x in k], tables, j, 1)
        dq = [total + dscores[j] * x for total, x in zip(dq, met, strict=True)]
        meeting = _turned(q, tables, j, -1)
        dk = [_add_to_met(total, j, heads, dscores[j] * x) for total, x in zip(dk, meeting, strict=True)]
        return dq, dk, _add_to_met(dv, j, heads, weights[j] * g)

    dq, dk, dv = jax.lax.fori_loop(0, window, add, jax.tree.map(jnp.zeros_like, (q, k, v)))
    return jnp.concatenate(dq), jnp.concatenate(dk), dv, None


_attend.defvjp(_attend_forward, _attend_backward)


def _met(x: jax.Array, j, heads: int, row: tuple[int, int]) -> jax.Array:
    """The part of a row of keys, values or validities (..., key_row) that the queries meet in step j."""
    return jax.lax.dynamic_slice_in_dim(x, j * heads, row[-1], axis=-1)


def _add_to_met(x: jax.Array, j, heads: int, update: jax.Array) -> jax.Array:
    total = _met(x, j, heads, update.shape) + update
    return jax.lax.dynamic_update_slice_in_dim(x, total, j * heads, axis=-1)


def _halves(x: jax.Array, tables) -> list[jax.Array]:
    """The two halves of the channels, which RoPE pairs; all of them in one without RoPE."""
    return [x] if tables is None else list(jnp.split(x, 2))


def _channels(halves: list[jax.Array]) -> list[jax.Array]:
    return [channel for half in halves for channel in half]


def _turned(halves: list[jax.Array], tables, j, direction: int) -> list[jax.Array]:
    """Halves (K / 2, B, row) rotated by the angles of step j: keys forwards, or queries backwards, for the same product."""
    if tables is None:
        return halves
    cos, sin = (jnp.asarray(table)[j][:, None, None] for table in tables)
    return list(rotate_halves(*halves, cos, direction * sin))
