"""The peers by name; those of other packages are imported when they are asked for."""

import importlib
from collections.abc import Callable, Sequence

from tracerelay_jax.benchmarks.peers import transformer
from tracerelay_jax.benchmarks.peers.peer import Peer, parameter_count
from tracerelay_jax.benchmarks.peers.trace_relay import trace_relay
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.errors import InputError

NAMES = ("griffin", "mamba2", "full_attention", "sliding_window")


def make_peers(names: Sequence[str], config: TraceRelayConfig, windows: Sequence[int]) -> list[Peer]:
    """TraceRelay, and peers with as many parameters, within 2%.

    Args:
      names: of NAMES.
      config: of TraceRelay.
      windows: positions that a sliding window holds, with a peer for each: up to 32, or multiples of it.

    Raises:
      InputError: for a name that is none of these, another window, a package that is not installed, and numbers of
        parameters that a peer cannot have.
    """
    for name in names:
        if name not in NAMES:
            raise InputError(f"peers={name!r}: must be of {', '.join(NAMES)}")
    for window in windows:
        if window > 32 and window % 32:
            raise InputError(f"windows={window}: must be up to 32, or a multiple of it")
    ours = trace_relay(config)
    inputs, outputs, parameters = config.inputs, config.outputs, parameter_count(ours)
    makers = {
        "griffin": lambda: [_of_package("griffin")(inputs, parameters)],
        "mamba2": lambda: [_of_package("mamba2")(inputs, parameters)],
        "full_attention": lambda: [transformer.full_attention(inputs, outputs, parameters)],
        "sliding_window": lambda: [transformer.sliding_window(inputs, outputs, parameters, width) for width in windows],
    }
    return [ours, *(peer for name in names for peer in makers[name]())]


def _of_package(name: str) -> Callable[..., Peer]:
    try:
        module = importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        raise InputError(f"peers={name!r}: {error.name} is not installed; pip install '.[peers]'") from error
    return getattr(module, name)
