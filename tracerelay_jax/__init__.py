"""TraceRelay in JAX: attention-aligned recurrence over rolling traces."""

from tracerelay_jax.config import LayerConfig, TraceRelayConfig
from tracerelay_jax.errors import InputError
from tracerelay_jax.generation import Sampling, generate, left_pad
from tracerelay_jax.model.cache import init_cache, init_layer_cache
from tracerelay_jax.model.layer import TraceRelayLayer
from tracerelay_jax.model.network import TraceRelay, parameter_count
from tracerelay_jax.trained import load

__all__ = [
    "InputError",
    "LayerConfig",
    "Sampling",
    "TraceRelay",
    "TraceRelayConfig",
    "TraceRelayLayer",
    "generate",
    "init_cache",
    "init_layer_cache",
    "left_pad",
    "load",
    "parameter_count",
]
