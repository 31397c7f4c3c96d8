"""TraceRelay in JAX: attention-aligned recurrence over rolling traces."""

from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.errors import InputError
from tracerelay_jax.generation import Sampling, generate, left_pad
from tracerelay_jax.model.cache import init_cache
from tracerelay_jax.model.network import TraceRelay, parameter_count
from tracerelay_jax.trained import load

__all__ = [
    "InputError",
    "Sampling",
    "TraceRelay",
    "TraceRelayConfig",
    "generate",
    "init_cache",
    "left_pad",
    "load",
    "parameter_count",
]
