"""The parts that a layer is made of: bias-free maps, RMSNorm, the gated FFN, and the projections of an attention."""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from tracerelay_jax.config import LayerConfig, TraceRelayConfig


def initializer(config: LayerConfig | TraceRelayConfig) -> nn.initializers.Initializer:
    """The initialisation of a map: normal of `init_scale`, or uniform within 1/sqrt(fan in)."""
    if config.init == "normal":
        return nn.initializers.normal(config.init_scale)
    return nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")  # bound sqrt(3 * (1/3) / fan in)


def increment_initializer(config: LayerConfig) -> nn.initializers.Initializer:
    """The initialisation of P_delta."""
    if config.increment_init_scale:
        return nn.initializers.normal(config.increment_init_scale)
    return initializer(config)


def bias_initializer(config: TraceRelayConfig) -> nn.initializers.Initializer:
    """The initialisation of the head's bias: zeros, or uniform within 1/sqrt(H)."""
    if config.init == "normal":
        return nn.initializers.zeros
    bound = 1 / math.sqrt(config.hidden)
    return lambda key, shape, dtype=jnp.float32: jax.random.uniform(key, shape, dtype, -bound, bound)


def linear(config: LayerConfig | TraceRelayConfig, features: int, name: str, kernel_init=None):
    """A bias-free map of (..., d) to (..., features), parameters in float32."""
    kernel_init = kernel_init or initializer(config)
    dense = nn.Dense(features, use_bias=False, dtype=jnp.dtype(config.dtype), kernel_init=kernel_init, name=name)
    # One axis of rows: XLA:CPU takes a quarter more for a training step with the axes B and T kept apart.
    return lambda x: dense(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], features)


def rms_norm(config: LayerConfig | TraceRelayConfig, name: str) -> nn.RMSNorm:
    """RMSNorm, computed in float32 and returned in the dtype of activations."""
    return nn.RMSNorm(epsilon=1e-6, dtype=jnp.dtype(config.dtype), name=name)


class Projections(nn.Module):
    """Queries, keys and values of one attention: (B, T, H) to three of (B, T, N, K).

    Three maps, applied as one product: a third of the time for narrow traces.
    """

    config: LayerConfig
    width: int

    @nn.compact
    def __call__(self, x_BTH: jax.Array) -> tuple[jax.Array, ...]:
        """Projects a chunk."""
        c = self.config
        shape = (x_BTH.shape[-1], self.width)
        maps = [self.param(name, initializer(c), shape, jnp.float32) for name in ("query", "key", "value")]
        kernel = jnp.concatenate(maps, axis=1).astype(c.dtype)
        projected = x_BTH.reshape(-1, shape[0]) @ kernel
        heads = (*x_BTH.shape[:2], c.heads, self.width // c.heads)
        return tuple(part.reshape(heads) for part in jnp.split(projected, 3, axis=1))


class GatedFFN(nn.Module):
    """SwiGLU: (B, T, H) to (B, T, H) through two maps to F and one back."""

    config: LayerConfig

    @nn.compact
    def __call__(self, x_BTH: jax.Array) -> jax.Array:
        """Applies the FFN at each position."""
        gate_BTF = linear(self.config, self.config.ffn, "gate")(x_BTH)
        up_BTF = linear(self.config, self.config.ffn, "up")(x_BTH)
        return linear(self.config, self.config.hidden, "down")(nn.silu(gate_BTF) * up_BTF)
