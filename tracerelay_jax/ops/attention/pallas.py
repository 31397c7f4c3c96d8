"""Local attention as GPU kernels: the walk over the window of `windowed`, a tile of rows at a time, in Pallas.

A row is one head at one position, n of N heads at t, numbered t * N + n as it lies in memory; in step j of the walk the
queries of a tile meet the keys j * N rows further on. So a tile reads whole stretches of memory, keeps its sums in registers
and writes once; neither scores nor windows are ever stored. The backward pass computes the weights again, from the logarithm
of their sum: one kernel walks from queries to keys for the gradient of q, one from keys to queries for those of k and v.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from tracerelay_jax.ops.attention.position import alibi_slopes, rope_tables, rotate_halves
from tracerelay_jax.ops.attention.softmax import MASKED

_HEAD_WIDTHS = (4, 8, 16, 32, 64)  # Triton's loads are powers of two, and a tile's sums must fit the registers
_TILE_ENTRIES = 2048


def pallas_attention(q, k, v, key_valid, left: int, right: int, position: str, interpret: bool = False) -> jax.Array:
    """See `local_attention`; `interpret` runs the kernels step by step on any device.

    Raises:
      NotImplementedError: for a head width that the kernels do not serve.
    """
    batch, length, heads, width = q.shape
    if width not in _HEAD_WIDTHS:
        raise NotImplementedError(
            f"the Pallas kernels serve heads of width {', '.join(map(str, _HEAD_WIDTHS))}, not {width}"
        )
    walk = _Walk(length, heads, left, right, width, position, interpret)
    q, k, v = (x.reshape(batch, -1, width) for x in (q, k, v))
    return _attend(q, k, v, key_valid.astype(jnp.int32), walk).reshape(batch, length, heads, width)


class _Walk(NamedTuple):
    """What is fixed when a kernel is compiled."""

    length: int
    heads: int
    left: int
    right: int
    width: int
    position: str
    interpret: bool

    @property
    def window(self) -> int:
        return self.left + 1 + self.right

    @property
    def queries(self) -> int:
        """Rows of queries."""
        return self.length * self.heads

    @property
    def keys(self) -> int:
        """Rows of keys."""
        return (self.length + self.window - 1) * self.heads

    @property
    def tile(self) -> int:
        """Rows that a program works on."""
        return _TILE_ENTRIES // self.width


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _attend(q, k, v, valid, walk: _Walk):
    """Takes q (B, queries, K), k and v (B, keys, K), valid (B, S) int32; returns (B, queries, K)."""
    return _attend_forward(q, k, v, valid, walk)[0]


def _attend_forward(q, k, v, valid, walk):
    shapes = [jax.ShapeDtypeStruct(q.shape, v.dtype), jax.ShapeDtypeStruct(q.shape[:2], jnp.float32)]
    out, logsum = _call(_forward_kernel, shapes, walk.queries, walk, q, k, v, valid, *_tables(walk))
    return out, (q, k, v, valid, out, logsum)


def _attend_backward(walk, residuals, g):
    q, k, v, valid, out, logsum = residuals
    mean = jnp.sum(g.astype(jnp.float32) * out.astype(jnp.float32), axis=-1)  # of the weights' gradients, by the weights
    inputs = (q, k, v, valid, *_tables(walk), g, logsum, mean)
    (dq,) = _call(_query_gradient_kernel, [jax.ShapeDtypeStruct(q.shape, q.dtype)], walk.queries, walk, *inputs)
    dk, dv = _call(_key_gradient_kernel, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (k, v)], walk.keys, walk, *inputs)
    return dq, dk, dv, None


_attend.defvjp(_attend_forward, _attend_backward)


def _call(kernel, shapes, rows: int, walk: _Walk, *inputs):
    """Runs a kernel over all tiles of `rows` rows of all sequences; the choice of Pallas' backend stands here alone."""
    programs = inputs[0].shape[0] * -(-rows // walk.tile)  # one axis: vmap adds another, and a GPU has three
    parameters = None if walk.interpret else triton.CompilerParams(num_warps=4)
    call = pl.pallas_call(
        functools.partial(kernel, walk=walk),
        out_shape=shapes,
        grid=(programs,),
        interpret=walk.interpret,
        compiler_params=parameters,
        name=kernel.__name__.strip("_"),
    )
    return call(*inputs)


def _tables(walk: _Walk) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cosines and sines (window, K / 2) of RoPE and ALiBi's bias for head n (window, N), of use where they are asked for."""
    distances = np.arange(-walk.left, walk.right + 1)
    bias = -np.abs(distances)[:, None] * alibi_slopes(walk.heads)
    return *rope_tables(distances, walk.width), bias.astype(np.float32)


def _rows_of_tile(rows: int, walk: _Walk):
    """This program's sequence, its rows of `rows`, and which of them exist."""
    tiles = -(-rows // walk.tile)
    sequence, tile = pl.program_id(0) // tiles, pl.program_id(0) % tiles
    numbers = tile * walk.tile + jnp.arange(walk.tile)
    return sequence, numbers, numbers < rows


def _read(ref, sequence, rows, inside, walk: _Walk):
    """The two halves (tile, K / 2) of rows of q, k, v or g, in float32; zeros where not inside."""
    half, channels = walk.width // 2, jnp.arange(walk.width // 2)[None, :]
    return tuple(
        triton.load(ref.at[sequence, rows[:, None], channels + start], mask=inside[:, None], other=0.0).astype(jnp.float32)
        for start in (0, half)
    )


def _read_scalars(ref, sequence, rows, inside):
    return triton.load(ref.at[sequence, rows], mask=inside, other=0)


def _write(ref, sequence, rows, inside, halves, walk: _Walk):
    half = walk.width // 2
    for start, values in zip((0, half), halves, strict=True):
        index = (sequence, rows[:, None], jnp.arange(half)[None, :] + start)
        triton.store(ref.at[index], values.astype(ref.dtype), mask=inside[:, None])


def _turned(halves, cos_ref, sin_ref, j, walk: _Walk, direction: int):
    """Halves rotated by RoPE's angle of step j: keys forwards, queries backwards."""
    if walk.position != "rope":
        return halves
    channels = jnp.arange(walk.width // 2)
    cos, sin = (triton.load(ref.at[j, channels])[None, :] for ref in (cos_ref, sin_ref))
    return rotate_halves(*halves, cos, direction * sin)


def _scores(q, k, bias_ref, rows, j, walk: _Walk):
    """Scores (tile,) of query rows, one of the two sides already turned."""
    score = _dot(q, k) / math.sqrt(walk.width)
    if walk.position == "alibi":
        score += triton.load(bias_ref.at[j, rows % walk.heads])
    return score


def _dot(a, b):
    return jnp.sum(a[0] * b[0], axis=1) + jnp.sum(a[1] * b[1], axis=1)


def _forward_kernel(q_ref, k_ref, v_ref, valid_ref, cos_ref, sin_ref, bias_ref, out_ref, logsum_ref, *, walk: _Walk):
    sequence, rows, inside = _rows_of_tile(walk.queries, walk)
    q = _read(q_ref, sequence, rows, inside, walk)

    def step(j, carry):
        top, total, first, second = carry
        met = rows + j * walk.heads
        k, v = (_read(ref, sequence, met, inside, walk) for ref in (k_ref, v_ref))
        seen = inside & (_read_scalars(valid_ref, sequence, met // walk.heads, inside) != 0)
        score = jnp.where(seen, _scores(_turned(q, cos_ref, sin_ref, j, walk, -1), k, bias_ref, rows, j, walk), MASKED)
        new_top = jnp.maximum(top, score)
        kept, weight = jnp.exp(top - new_top), jnp.where(seen, jnp.exp(score - new_top), 0.0)
        first, second = (x * kept[:, None] + weight[:, None] * y for x, y in zip((first, second), v, strict=True))
        return new_top, total * kept + weight, first, second

    zeros = jnp.zeros((walk.tile, walk.width // 2), jnp.float32)
    start = (jnp.full((walk.tile,), MASKED, jnp.float32), jnp.zeros((walk.tile,), jnp.float32), zeros, zeros)
    top, total, *halves = jax.lax.fori_loop(0, walk.window, step, start)
    any_seen = total > 0.0
    total = jnp.where(any_seen, total, 1.0)
    _write(out_ref, sequence, rows, inside, [x / total[:, None] for x in halves], walk)
    logsum = jnp.where(any_seen, top + jnp.log(total), 0.0)
    triton.store(logsum_ref.at[sequence, rows], logsum, mask=inside)


def _query_gradient_kernel(q_ref, k_ref, v_ref, valid_ref, cos_ref, sin_ref, bias_ref, g_ref, logsum_ref, mean_ref, dq_ref,
                           *, walk: _Walk):  # fmt: skip
    sequence, rows, inside = _rows_of_tile(walk.queries, walk)
    q, g = (_read(ref, sequence, rows, inside, walk) for ref in (q_ref, g_ref))
    logsum, mean = (_read_scalars(ref, sequence, rows, inside) for ref in (logsum_ref, mean_ref))

    def step(j, totals):
        met = rows + j * walk.heads
        k, v = (_read(ref, sequence, met, inside, walk) for ref in (k_ref, v_ref))
        k = _turned(k, cos_ref, sin_ref, j, walk, 1)
        seen = inside & (_read_scalars(valid_ref, sequence, met // walk.heads, inside) != 0)
        weight = jnp.where(seen, jnp.exp(_scores(q, k, bias_ref, rows, j, walk) - logsum), 0.0)
        dscore = weight * (_dot(g, v) - mean) / math.sqrt(walk.width)
        return tuple(total + dscore[:, None] * x for total, x in zip(totals, k, strict=True))

    zeros = jnp.zeros((walk.tile, walk.width // 2), jnp.float32)
    _write(dq_ref, sequence, rows, inside, jax.lax.fori_loop(0, walk.window, step, (zeros, zeros)), walk)


def _key_gradient_kernel(q_ref, k_ref, v_ref, valid_ref, cos_ref, sin_ref, bias_ref, g_ref, logsum_ref, mean_ref, dk_ref,
                         dv_ref, *, walk: _Walk):  # fmt: skip
    sequence, rows, inside = _rows_of_tile(walk.keys, walk)
    k, v = (_read(ref, sequence, rows, inside, walk) for ref in (k_ref, v_ref))
    valid = inside & (_read_scalars(valid_ref, sequence, rows // walk.heads, inside) != 0)

    def step(j, totals):
        meeting = rows - j * walk.heads  # the queries that meet these keys in step j
        seen = valid & (meeting >= 0) & (meeting < walk.queries)
        q, g = (_read(ref, sequence, meeting, seen, walk) for ref in (q_ref, g_ref))
        logsum, mean = (_read_scalars(ref, sequence, meeting, seen) for ref in (logsum_ref, mean_ref))
        q = _turned(q, cos_ref, sin_ref, j, walk, -1)
        weight = jnp.where(seen, jnp.exp(_scores(q, k, bias_ref, rows, j, walk) - logsum), 0.0)
        dscore = weight * (_dot(g, v) - mean) / math.sqrt(walk.width)
        sums = (*(dscore[:, None] * x for x in q), *(weight[:, None] * x for x in g))
        return tuple(total + x for total, x in zip(totals, sums, strict=True))

    zeros = jnp.zeros((walk.tile, walk.width // 2), jnp.float32)
    dk_first, dk_second, dv_first, dv_second = jax.lax.fori_loop(0, walk.window, step, (zeros,) * 4)
    _write(dk_ref, sequence, rows, inside, (dk_first, dk_second), walk)
    _write(dv_ref, sequence, rows, inside, (dv_first, dv_second), walk)
