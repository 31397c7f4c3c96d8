"""The network of the paper: a one-hot projection, TraceRelay layers, a final norm and a head."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from tracerelay_jax.config import TraceRelayConfig, check_config
from tracerelay_jax.errors import InputError
from tracerelay_jax.model.cache import Cache, check_cache, check_valid
from tracerelay_jax.model.layer import TraceRelayLayer
from tracerelay_jax.model.modules import Linear, RMSNorm, bias_initializer


class TraceRelay(nn.Module):
    """Causal sequence model: logits at t depend on tokens up to t.

    One forward path serves training, prefill, chunks and decode: without a cache a sequence starts, with the returned
    cache it goes on, by one position or more.

        model = TraceRelay(TraceRelayConfig(inputs=8, outputs=6))
        params = model.init(jax.random.key(0), tokens)
        logits, cache = model.apply(params, tokens)
        logits, cache = model.apply(params, more_tokens, cache=cache)
    """

    config: TraceRelayConfig

    @nn.compact
    def __call__(
        self, tokens: jax.Array, valid: jax.Array | None = None, cache: Cache | None = None, last: int | None = None
    ) -> tuple[jax.Array, Cache]:
        """Runs the next T positions.

        Args:
          tokens: (B, T) integers in [0, inputs). Others are refused in a NumPy array; in JAX's, which may be traced, they
            read as no symbol at all.
          valid: (B, T) bool, False at padding; all True if None. Padding takes up positions but is never seen.
          cache: the state after the positions before, by default that of a sequence's start.
          last: gives the logits of as many of the last positions only, all if there are fewer or it is None, and saves the
            last layer the reading elsewhere; neither these logits nor the cache depend on it.

        Returns:
          logits (B, T or last, outputs) in float32, meaningless at padding, and the cache after the last position.

        Raises:
          InputError: for tokens that are no integers (B, T), valid of another shape or not bool, a cache of another
            configuration, batch size or dtype, and last below 1.
        """
        c = self.config
        check_config(c, TraceRelayConfig)
        check_input(tokens, valid, c.inputs)
        if last is not None and last < 1:
            raise InputError(f"last={last}: must be at least 1, or None for all positions")
        valid = jnp.ones(tokens.shape, bool) if valid is None else valid
        if cache is not None:
            check_cache(c, tokens.shape[0], cache)

        one_hot = jax.nn.one_hot(tokens, c.inputs, dtype=jnp.dtype(c.dtype)) * valid[..., None]
        adapter = dataclasses.replace(c, init=c.adapter_init or c.init)
        h_BTH = Linear(adapter, c.hidden, name="input")(one_hot)
        new_cache = []
        for index, (layer, layer_cache) in enumerate(zip(c.layers, cache or [None] * len(c.layers), strict=True)):
            positions = last if index == len(c.layers) - 1 else None  # all are seen by the layer after
            h_BTH, layer_cache = TraceRelayLayer(layer, name=f"layer_{index}")(h_BTH, valid, layer_cache, positions)
            new_cache.append(layer_cache)
        h_BTH = RMSNorm(c, name="final_norm")(h_BTH)
        logits = Linear(adapter, c.outputs, bias_init=bias_initializer(adapter), name="head")(h_BTH.astype(jnp.float32))
        return logits, tuple(new_cache)


def check_input(tokens: jax.Array, valid: jax.Array | None, inputs: int) -> None:
    """Raises InputError unless `tokens` are integers (B, T), both at least 1, and `valid` is bool of that shape or None.

    Of a NumPy array the values must be in [0, inputs) too.
    """
    if not isinstance(tokens, jax.Array | np.ndarray):
        raise InputError(f"tokens of type {type(tokens).__name__}: must be an array")
    if len(tokens.shape) != 2 or 0 in tokens.shape:
        raise InputError(f"tokens of shape {tokens.shape}: must be (B, T), both at least 1")
    if not jnp.issubdtype(tokens.dtype, jnp.integer):
        raise InputError(f"tokens of type {tokens.dtype}: must be integers")
    if isinstance(tokens, np.ndarray) and not (tokens.min() >= 0 and tokens.max() < inputs):
        raise InputError(f"tokens from {tokens.min()} to {tokens.max()}: must be from 0 to {inputs - 1}")
    if valid is not None:
        check_valid(valid, tokens.shape)


def parameter_count(config: TraceRelayConfig) -> int:
    """The number of trainable parameters of `TraceRelay(config)`, Table 5, counted without making them."""
    shapes = jax.eval_shape(TraceRelay(config).init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))
