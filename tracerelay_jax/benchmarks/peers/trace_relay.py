"""TraceRelay as the others are run: its own prefill and the step of its cache."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp

from tracerelay_jax.benchmarks.peers.peer import PIECES, Peer
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.generation import prefill
from tracerelay_jax.model.cache import init_cache
from tracerelay_jax.model.network import TraceRelay

NAME = "tracerelay"


def trace_relay(config: TraceRelayConfig) -> Peer:
    """The network of this package."""
    model = TraceRelay(config)

    def forward(params, tokens, last):
        return model.apply(params, tokens, last=last)[0]

    def step(params, tokens, position, state):
        logits, state = model.apply(params, tokens, cache=state)
        return logits[:, -1], state

    def read(params, tokens, room, piece):
        return prefill(model, params, tokens, jnp.ones(tokens.shape, bool), piece)

    return Peer(
        name=NAME,
        settings=dataclasses.asdict(config),
        init=lambda key: model.init(key, jnp.zeros((1, 1), jnp.int32)),
        forward={"as it is": forward},
        prefill={f"pieces of {piece}": partial(read, piece=piece) for piece in PIECES},
        step={"cache": step},
        state=lambda batch, context, room: jax.tree.map(jnp.copy, init_cache(config, batch)),
    )
