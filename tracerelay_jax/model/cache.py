"""What a layer must remember to continue a sequence: bounded, and without a position counter."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.config import LayerConfig, TraceRelayConfig
from tracerelay_jax.errors import InputError
from tracerelay_jax.ops import radians, turns

PHASE_OPS = {"turns": turns, "radians": radians}


class LayerCache(NamedTuple):
    """The state of one layer after a chunk; the last row of each array is the chunk's last position.

    Attributes:
      right_query: (B, W, N, K) queries of the Right writer, whose increments have not all arrived yet.
      right_key: (B, W, N, K) its keys.
      right_value: (B, W, N, K) its values.
      right_valid: (B, W) bool, whether each of these positions holds a valid input.
      phase: (B, W, D) phases of the last W positions, one for each lineage: `ops.turns.Turns`, or float32 radians.
      lineage_valid: (B, W) bool, v of Section 2.4: whether the lineage has received a valid update.
      left_key: (B, max(L, 1), N, K) keys of the Left reader; not empty for L = 0, since Orbax saves no empty arrays.
      left_value: (B, max(L, 1), N, K) its values.
      left_valid: (B, max(L, 1)) bool, whether each of these positions holds a valid input.
    """

    right_query: jax.Array
    right_key: jax.Array
    right_value: jax.Array
    right_valid: jax.Array
    phase: turns.Turns | jax.Array
    lineage_valid: jax.Array
    left_key: jax.Array
    left_value: jax.Array
    left_valid: jax.Array


Cache = tuple[LayerCache, ...]


def init_cache(config: TraceRelayConfig, batch_size: int) -> Cache:
    """Returns the cache before the first position: one `LayerCache` a layer, nothing valid, all phases zero."""
    return tuple(init_layer_cache(layer, batch_size) for layer in config.layers)


def init_layer_cache(config: LayerConfig, batch_size: int) -> LayerCache:
    """Returns one layer's cache before the first position."""
    dtype = jnp.dtype(config.dtype)
    right = (batch_size, config.stride, config.heads, config.writer_width // config.heads)
    left = (batch_size, max(config.left_window, 1), config.heads, config.reader_width // config.heads)
    return LayerCache(
        right_query=jnp.zeros(right, dtype),
        right_key=jnp.zeros(right, dtype),
        right_value=jnp.zeros(right, dtype),
        right_valid=jnp.zeros(right[:2], bool),
        phase=PHASE_OPS[config.phase].zeros((batch_size, config.stride, config.trace_width)),
        lineage_valid=jnp.zeros(right[:2], bool),
        left_key=jnp.zeros(left, dtype),
        left_value=jnp.zeros(left, dtype),
        left_valid=jnp.zeros(left[:2], bool),
    )


def check_cache(config: TraceRelayConfig, batch_size: int, cache: Cache) -> None:
    """Raises InputError, naming the first field that differs, unless `cache` is one of this configuration and batch size."""
    layers = len(config.layers)
    if not isinstance(cache, tuple) or len(cache) != layers:
        held = len(cache) if isinstance(cache, tuple) else type(cache).__name__
        raise InputError(f"cache={held}: must be a tuple of {layers} layers, from init_cache or an earlier apply")
    for index, (layer, held) in enumerate(zip(config.layers, cache, strict=True)):
        check_layer_cache(layer, batch_size, held, f"cache[{index}]")


def check_layer_cache(config: LayerConfig, batch_size: int, cache: LayerCache, name: str = "cache") -> None:
    """As `check_cache` for one layer; errors call it `name`."""
    if not isinstance(cache, LayerCache):
        raise InputError(f"{name}={type(cache).__name__}: must be a LayerCache")
    expected = jax.eval_shape(lambda: init_layer_cache(config, batch_size))
    for field in LayerCache._fields:
        got, want = (_describe(getattr(x, field)) for x in (cache, expected))
        if got != want:
            raise InputError(f"{name}.{field}={got}: this configuration with batch size {batch_size} has {want}")


def check_valid(valid: jax.Array, shape: tuple[int, ...]) -> None:
    """Raises InputError unless `valid` is bool and of this shape: other numbers would turn into the cache's."""
    if not isinstance(valid, jax.Array | np.ndarray):
        raise InputError(f"valid of type {type(valid).__name__}: must be an array; a cache is given as cache=")
    if valid.shape != shape or valid.dtype != bool:
        raise InputError(f"valid={valid.dtype}{list(valid.shape)}: must be bool{list(shape)}")


def _describe(tree) -> str:
    return ", ".join(f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree))
