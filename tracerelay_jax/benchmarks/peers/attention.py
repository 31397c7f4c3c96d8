"""Causal attention with one key and value for all heads: over everything before, and over a window.

Sequences of a batch go through it together from their start, and one at a time where they go on from a cache: XLA for CPUs
updates a cache in place only if it has no axis for the batch.

B batch · T queries · N heads · K head width · S cached positions · W window
"""

from functools import partial

import jax
import jax.numpy as jnp

_MASKED = -1e30
_KEY_BLOCK = 256  # cached positions that a piece of a prompt is held against at a time
_QUERY_BLOCK = 32  # queries that share one band of keys

Cache = tuple[jax.Array, jax.Array]  # of one sequence: keys (K, S), values (S, K)


def full(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Attention (B, T, N, K) of the last T positions, q (B, T, N, K), to everything up to them, k, v (B, S, K)."""
    mask = _distances(q.shape[1], k.shape[1]) >= 0
    return jax.nn.dot_product_attention(q, k[:, :, None], v[:, :, None], mask=mask[None, None])


def full_rows(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """As `full`, each head's query a row of one matrix, since all of them meet the same keys."""
    batch, length, heads, width = q.shape
    rows = (q * width**-0.5).reshape(batch, length * heads, width)
    seen = jnp.repeat(_distances(length, k.shape[1]) >= 0, heads, axis=0)
    scores = jnp.where(seen, jnp.einsum("brk,bsk->brs", rows, k), _MASKED)
    return jnp.einsum("brs,bsk->brk", jax.nn.softmax(scores, axis=-1), v).reshape(q.shape)


def full_cache(positions: int, width: int) -> Cache:
    """Room for the positions of a sequence: S is a multiple of the blocks that they are read in."""
    length = -(-positions // _KEY_BLOCK) * _KEY_BLOCK
    return jnp.zeros((width, length)), jnp.zeros((length, width))


def full_cached(q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array, cache: Cache) -> tuple[jax.Array, Cache]:
    """Attention (T, N, K) of q (T, N, K), the positions from `position` on, to everything up to them; k, v (T, K)."""
    keys, values = cache = _write(cache, k, v, position)
    if q.shape[0] == 1:
        return _look_up(q, keys, values, jnp.arange(len(values)) <= position), cache
    return _over_blocks(q, keys, values, position), cache


def window(q: jax.Array, k: jax.Array, v: jax.Array, width: int) -> jax.Array:
    """As `full`, to the last W positions, the query's own among them: O(T W)."""
    length = q.shape[1]
    position = k.shape[1] - length
    k, v = (jnp.pad(x, ((0, 0), (width, 0), (0, 0)))[:, position:] for x in (k, v))
    return jax.vmap(partial(_band, position=position, width=width))(q, k, v)


def window_dense(q: jax.Array, k: jax.Array, v: jax.Array, width: int) -> jax.Array:
    """As `window`, with scores T x S."""
    distances = _distances(q.shape[1], k.shape[1])
    mask = (distances >= 0) & (distances < width)
    return jax.nn.dot_product_attention(q, k[:, :, None], v[:, :, None], mask=mask[None, None])


def window_cache(width: int, head_width: int) -> Cache:
    """Room for the W last positions of a sequence: position p is in place p modulo W."""
    return jnp.zeros((head_width, width)), jnp.zeros((width, head_width))


def window_cached(q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array, cache: Cache) -> tuple[jax.Array, Cache]:
    """As `full_cached`, to the last W positions."""
    width, length = len(cache[1]), q.shape[0]
    if length == 1:
        keys, values = cache = _write(cache, k, v, position % width)
        return _look_up(q, keys, values, jnp.arange(width) <= position), cache
    before = (jnp.roll(x, -(position % width), axis=0) for x in (cache[0].T, cache[1]))  # in the order of positions
    k, v = (jnp.concatenate([old, new]) for old, new in zip(before, (k, v), strict=True))
    last = (jnp.roll(x[-width:], (position + length) % width, axis=0) for x in (k, v))
    return _band(q, k, v, position, width), (next(last).T, next(last))


def _distances(queries: int, keys: int) -> jax.Array:
    """Positions (T, S) from a query, one of the last, back to a key."""
    return keys - queries + jnp.arange(queries)[:, None] - jnp.arange(keys)


def _write(cache: Cache, k: jax.Array, v: jax.Array, place: jax.Array) -> Cache:
    keys, values = cache
    return (
        jax.lax.dynamic_update_slice_in_dim(keys, k.T, place, axis=1),
        jax.lax.dynamic_update_slice_in_dim(values, v, place, axis=0),
    )


def _look_up(q: jax.Array, keys: jax.Array, values: jax.Array, seen: jax.Array) -> jax.Array:
    """One position's q (1, N, K) over a whole cache, where `seen` (S,) holds."""
    scores = jnp.where(seen, (q[0] * q.shape[-1] ** -0.5) @ keys, _MASKED)
    return (jax.nn.softmax(scores, axis=-1) @ values)[None]


def _over_blocks(q: jax.Array, keys: jax.Array, values: jax.Array, position: jax.Array) -> jax.Array:
    """Attention to a cache block by block, up to the last query's: neither T x S scores, nor work for later positions."""
    length, heads, width = q.shape
    rows = (q * width**-0.5).reshape(length * heads, width)
    query_positions = jnp.repeat(position + jnp.arange(length), heads)[:, None]

    def add_block(index, sums):
        largest, total, mixed = sums
        start = index * _KEY_BLOCK
        k = jax.lax.dynamic_slice_in_dim(keys, start, _KEY_BLOCK, axis=1)
        v = jax.lax.dynamic_slice_in_dim(values, start, _KEY_BLOCK, axis=0)
        scores = jnp.where(query_positions >= start + jnp.arange(_KEY_BLOCK), rows @ k, _MASKED)
        new_largest = jnp.maximum(largest, scores.max(axis=-1, keepdims=True))
        old_share, weights = jnp.exp(largest - new_largest), jnp.exp(scores - new_largest)
        return new_largest, total * old_share + weights.sum(axis=-1, keepdims=True), mixed * old_share + weights @ v

    start = jnp.full((len(rows), 1), _MASKED), jnp.zeros((len(rows), 1)), jnp.zeros(rows.shape)
    _, total, mixed = jax.lax.fori_loop(0, (position + length - 1) // _KEY_BLOCK + 1, add_block, start)
    return (mixed / total).reshape(q.shape)


def _band(q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array | int, width: int) -> jax.Array:
    """Of q (T, N, K) from `position` on to k, v (W + T, K), W of them before: blocks of queries, bands of keys."""
    length, heads, head_width = q.shape
    block = min(_QUERY_BLOCK, width)
    blocks, reach = -(-length // block), width // block
    rest = blocks * block - length
    q = jnp.pad(q * head_width**-0.5, ((0, rest), (0, 0), (0, 0))).reshape(blocks, block, heads, head_width)
    k, v = (jnp.pad(x, ((0, rest), (0, 0))).reshape(blocks + reach, block, head_width) for x in (k, v))
    k, v = (jnp.concatenate([x[i : i + blocks] for i in range(reach + 1)], axis=1) for x in (k, v))
    distance = width + jnp.arange(block)[:, None] - jnp.arange(width + block)  # from a query back to a key
    first = position + jnp.arange(blocks) * block - width  # the position of each band's first key
    exists = first[:, None, None] + jnp.arange(width + block) >= 0
    mask = ((distance >= 0) & (distance < width) & exists)[:, :, None]  # (blocks, block, 1, keys)
    scores = jnp.where(mask, jnp.einsum("cqnk,csk->cqns", q, k), _MASKED)
    mixed = jnp.einsum("cqns,csk->cqnk", jax.nn.softmax(scores, axis=-1), v)
    return mixed.reshape(blocks * block, heads, head_width)[:length]
