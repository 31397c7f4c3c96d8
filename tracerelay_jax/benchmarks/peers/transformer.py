"""Transformers as they are built today: RMSNorm, rotary positions, one key and value for all heads, a gated FFN."""

import dataclasses
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn

from tracerelay_jax.benchmarks.peers import attention
from tracerelay_jax.benchmarks.peers.peer import PIECES, Peer, fit, read_in_pieces

# As deep as TraceRelay here: shallow and wide is fastest. Heads of 24 fill vector registers; the FFN is about 3 times wider.
_LAYERS, _WIDTH, _HEADS = 3, 96, 4
_WAVELENGTH = 10_000.0


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Sizes; `heads` of `width / heads` each."""

    inputs: int
    outputs: int
    layers: int
    width: int
    ffn: int
    heads: int


class Transformer(nn.Module):
    """Logits of a sequence, whole or after what its caches hold.

    Attributes:
      config: its sizes.
      attend: (q, k, v) -> mixed values, for whole sequences or, with fewer queries, for the last positions of them.
      attend_cached: (q, k, v, position, cache) -> mixed values, cache, for one sequence that goes on.
    """

    config: TransformerConfig
    attend: Callable
    attend_cached: Callable

    @nn.compact
    def __call__(self, tokens: jax.Array, position: jax.Array | int = 0, caches=None, last: int | None = None):
        """Runs tokens (B, T) from `position` on, with the caches of each layer or, from the start, with none.

        Returns:
          logits (B, n, outputs) of all positions, or of the n = last ones, for which alone the last layer then attends; and
          the caches after them.
        """
        c = self.config
        batch, length = tokens.shape
        head = c.width // c.heads
        angles = _angles(position + jnp.arange(length), head)
        x = nn.Embed(c.inputs, c.width)(tokens).reshape(-1, c.width)  # products of rows are faster than those of sequences
        new_caches = []
        for index, cache in enumerate(caches or [None] * c.layers):
            y = nn.RMSNorm()(x)
            k, v = jnp.split(nn.Dense(2 * head, use_bias=False)(y).reshape(batch, length, -1), 2, axis=-1)
            k = _rotate(k, angles)
            if last is not None and index == c.layers - 1:
                x, y = (rows.reshape(batch, length, -1)[:, -last:].reshape(-1, c.width) for rows in (x, y))
                angles = angles[-last:]
            q = nn.Dense(c.width, use_bias=False)(y).reshape(batch, -1, c.heads, head)
            mixed, cache = self._attend(_rotate(q, angles[:, None]), k, v, position, cache)
            new_caches.append(cache)
            x += nn.Dense(c.width, use_bias=False)(mixed.reshape(x.shape))
            gate, up = jnp.split(nn.Dense(2 * c.ffn, use_bias=False)(nn.RMSNorm()(x)), 2, axis=-1)
            x += nn.Dense(c.width, use_bias=False)(nn.silu(gate) * up)
        logits = nn.Dense(c.outputs, use_bias=False)(nn.RMSNorm()(x))
        return logits.reshape(batch, -1, c.outputs), tuple(new_caches)

    def _attend(self, q, k, v, position, cache):
        if cache is None:
            return self.attend(q, k, v), None
        rows = [self.attend_cached(q[i], k[i], v[i], position, row) for i, row in enumerate(cache)]
        return jnp.stack([mixed for mixed, _ in rows]), tuple(row for _, row in rows)


def _angles(positions: jax.Array, width: int) -> jax.Array:
    return positions[:, None] * _WAVELENGTH ** (-2 * jnp.arange(width // 2) / width)


def _rotate(x: jax.Array, angles: jax.Array) -> jax.Array:
    first, second = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def full_attention(inputs: int, outputs: int, parameters: int) -> Peer:
    """Attention to everything before, from a cache that grows."""
    ways = {"jax.nn.dot_product_attention": attention.full, "rows": attention.full_rows}
    return fit(partial(_peer, "full_attention", inputs, outputs, ways, attention.full_cached, None), parameters)


def sliding_window(inputs: int, outputs: int, parameters: int, window: int) -> Peer:
    """Attention to the last `window` positions, in bands, from a ring of as many."""
    ways = {
        "bands": partial(attention.window, width=window),
        "jax.nn.dot_product_attention": partial(attention.window_dense, width=window),
    }
    name = f"sliding_window_{window}"
    return fit(partial(_peer, name, inputs, outputs, ways, attention.window_cached, window), parameters)


def _peer(name: str, inputs: int, outputs: int, ways: dict, attend_cached: Callable, window: int | None, ffn: int) -> Peer:
    config = TransformerConfig(inputs, outputs, _LAYERS, _WIDTH, ffn, _HEADS)
    head = config.width // config.heads
    models = {way: Transformer(config, attend, attend_cached) for way, attend in ways.items()}
    model = next(iter(models.values()))

    def state(batch, context, room):
        row = partial(attention.full_cache, context + room) if window is None else partial(attention.window_cache, window)
        return tuple(tuple(row(head) for _ in range(batch)) for _ in range(config.layers))

    def extend(params, tokens, position, state):
        return model.apply(params, tokens, position, state)

    def step(params, tokens, position, state):
        logits, state = extend(params, tokens, position, state)
        return logits[:, -1], state

    def prefill(params, tokens, room, piece):
        start = state(len(tokens), tokens.shape[1], room)
        return read_in_pieces(extend, params, tokens, start, piece)

    return Peer(
        name=name,
        settings={**dataclasses.asdict(config), "key_value_heads": 1, "window": window},
        init=lambda key: model.init(key, jnp.zeros((1, 1), jnp.int32)),
        forward={way: partial(_logits, model) for way, model in models.items()},
        prefill={f"pieces of {piece}": partial(prefill, piece=piece) for piece in PIECES},
        step={"cache": step},
        state=state,
    )


def _logits(model: Transformer, params, tokens: jax.Array, last: int | None) -> jax.Array:
    return model.apply(params, tokens, last=last)[0]
