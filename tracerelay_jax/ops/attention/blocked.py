"""Local attention between blocks of queries and the few blocks of keys that their windows touch: linear memory.

Queries and keys are cut into blocks of the window's size, rounded up to a power of two. Block i of the queries meets
blocks i, i+1, ... of the keys, so that scores are (blocks, block, window blocks x block). Every rotation is by a position
within these blocks, so nothing grows with the length.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.ops.attention.position import alibi_bias, rotate
from tracerelay_jax.ops.attention.softmax import masked_softmax

_LEAST_BLOCK = 8


def blocked_attention(q, k, v, key_valid, left: int, right: int, position: str) -> jax.Array:
    """See `local_attention`."""
    batch, length, heads, width = q.shape
    block = _block_size(left + right)
    rows = -(-length // block)
    pieces = -(-(left + right) // block) + 1  # key blocks that a block of queries can see

    q_blocks = _blocks(q, rows, block)
    k_blocks, v_blocks, valid_blocks = (_blocks(x, rows + pieces - 1, block) for x in (k, v, key_valid))
    distance = np.arange(pieces * block)[None, :] - np.arange(block)[:, None] - left

    scores = _scores(q_blocks, k_blocks, pieces, left, position)
    if position == "alibi":
        scores = scores + alibi_bias(distance, heads)
    band = (distance >= -left) & (distance <= right)
    valid = jnp.concatenate([valid_blocks[:, i : i + rows] for i in range(pieces)], axis=-1)
    weights = masked_softmax(scores, band & valid[:, :, None, None, :]).astype(v.dtype)
    out = _weighted_values(weights, v_blocks, pieces)
    return out.reshape(batch, rows * block, heads, width)[:, :length].astype(v.dtype)


def _block_size(span: int) -> int:
    return max(_LEAST_BLOCK, 1 << max(span - 1, 0).bit_length())


def _blocks(x: jax.Array, rows: int, block: int) -> jax.Array:
    """(B, S, ...) to (B, rows, block, ...), zeros, or False, past the end."""
    missing = max(rows * block - x.shape[1], 0)
    padding = [(0, 0), (0, missing)] + [(0, 0)] * (x.ndim - 2)
    return jnp.pad(x, padding)[:, : rows * block].reshape(x.shape[0], rows, block, *x.shape[2:])


def _scores(q_blocks, k_blocks, pieces: int, left: int, position: str) -> jax.Array:
    """(B, rows, N, block, pieces x block), scaled, in float32."""
    rows, block, width = q_blocks.shape[1], q_blocks.shape[2], q_blocks.shape[-1]
    within = np.arange(block)
    if position == "rope":
        k_blocks = rotate(k_blocks, within)
    scores = []
    for piece in range(pieces):
        # A key's rotation is that of its place within its block, so the query turns by its distance from that block.
        q_piece = rotate(q_blocks, within + left - piece * block) if position == "rope" else q_blocks
        k_piece = k_blocks[:, piece : piece + rows]
        scores.append(jnp.einsum("brqnk,brsnk->brnqs", q_piece, k_piece, preferred_element_type=jnp.float32))
    return jnp.concatenate(scores, axis=-1) / math.sqrt(width)


def _weighted_values(weights, v_blocks, pieces: int) -> jax.Array:
    """(B, rows, block, N, K) in float32."""
    rows, block = weights.shape[1], weights.shape[3]
    return sum(
        jnp.einsum(
            "brnqs,brsnk->brqnk",
            weights[..., piece * block : (piece + 1) * block],
            v_blocks[:, piece : piece + rows],
            preferred_element_type=jnp.float32,
        )
        for piece in range(pieces)
    )
