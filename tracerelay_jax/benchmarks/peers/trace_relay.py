"""TraceRelay as the others are run: its own prefill and the step of its cache."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from tracerelay_jax.benchmarks.peers.peer import PIECES, Peer, read_in_pieces
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.generation import prefill
from tracerelay_jax.model.cache import init_cache
from tracerelay_jax.model.network import TraceRelay

NAME = "tracerelay"


def trace_relay(config: TraceRelayConfig) -> Peer:
    """The network of this package."""
    model = TraceRelay(config)

    def forward(params, tokens):
        return model.apply(params, tokens)[0]

    def extend(params, tokens, position, state):
        return model.apply(params, tokens, cache=state)

    def step(params, tokens, position, state):
        logits, state = extend(params, tokens, position, state)
        return logits[:, -1], state

    def read(params, tokens, room, piece):
        return prefill(model, params, tokens, jnp.ones(tokens.shape, bool), piece)

    def read_states(params, tokens, room, piece):
        return read_in_pieces(extend, params, tokens, init_cache(config, len(tokens)), piece)

    return Peer(
        name=NAME,
        settings=dataclasses.asdict(config),
        init=lambda key: model.init(key, jnp.zeros((1, 1), jnp.int32)),
        forward={"as it is": forward},
        prefill={
            f"{name} of {piece}": functools.partial(way, piece=piece)
            for piece in PIECES
            for name, way in (("states of pieces", read_states), ("generate's pieces", read))
        },
        step={"as it is": step},
        state=lambda batch, context, room: jax.tree.map(jnp.copy, init_cache(config, batch)),
    )
