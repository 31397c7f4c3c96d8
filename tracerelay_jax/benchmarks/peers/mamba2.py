"""Mamba-2 of the package mamba2-jax."""

import contextlib
import dataclasses
import importlib.metadata
from functools import partial

import jax
from flax import nnx
from mamba2_jax import Mamba2Config, Mamba2ForCausalLM, create_empty_cache

from tracerelay_jax.benchmarks.peers.peer import PIECES, Peer, fit, read_in_pieces
from tracerelay_jax.errors import InputError

# As deep as TraceRelay here: shallow and wide is fastest. Four heads, of about the default width of 64.
_LAYERS, _HEADS = 3, 4
_WIDTHS = range(128, 0, -8)
_LEAST_STATE = 32
_CHUNKS = (32, 64, 256)  # positions that the package holds against each other at once; 256 is its default
_STEP_CHUNKS = (1, 32)  # a step, too, takes as long as a chunk


def mamba2(symbols: int, parameters: int) -> Peer:
    """The widest model with states of 32 or more; its embeddings, of the input symbols, are its head as well."""
    for width in _WIDTHS:
        with contextlib.suppress(InputError):  # too wide
            peer = fit(partial(_peer, symbols, width), parameters)
            if peer.settings["state_size"] >= _LEAST_STATE:
                return peer
    raise InputError(f"mamba2: cannot have {parameters} parameters; choose another dc")


def _peer(symbols: int, width: int, state_size: int) -> Peer:
    config = Mamba2Config(
        vocab_size=symbols,
        hidden_size=width,
        state_size=state_size,
        head_dim=2 * width // _HEADS,
        num_hidden_layers=_LAYERS,
    )

    def init(key):
        return nnx.state(Mamba2ForCausalLM(config, rngs=nnx.Rngs(key)), nnx.Param)

    def state(batch, context, room):
        return create_empty_cache(config, batch)

    def extend(graph, params, tokens, position, state):
        out = nnx.merge(graph, params)(tokens, cache=state)
        return out["logits"], out["cache"]

    def step(graph, params, tokens, position, state):
        logits, state = extend(graph, params, tokens, position, state)
        return logits[:, -1], state

    def prefill(graph, params, tokens, room, piece=None):
        start = state(len(tokens), 0, room)
        return read_in_pieces(partial(extend, graph), params, tokens, start, piece or tokens.shape[1])

    sizes = {*_CHUNKS, *_STEP_CHUNKS, config.chunk_size}
    graphs = {chunk: _graph(dataclasses.replace(config, chunk_size=chunk)) for chunk in sizes}
    piece = max(PIECES)
    return Peer(
        name="mamba2",
        settings={
            "package": f"mamba2-jax {importlib.metadata.version('mamba2-jax')}",
            "layers": _LAYERS,
            "width": width,
            "expand": config.expand,
            "head_dim": config.head_dim,
            "state_size": state_size,
            "conv_kernel": config.conv_kernel,
        },
        init=init,
        forward={f"chunks of {chunk}": partial(_logits, graphs[chunk]) for chunk in _CHUNKS},
        prefill={
            **{f"pieces of {piece}, chunks of {chunk}": partial(prefill, graphs[chunk], piece=piece) for chunk in _CHUNKS},
            f"at once, chunks of {config.chunk_size}": partial(prefill, graphs[config.chunk_size]),
        },
        step={f"chunks of {chunk}": partial(step, graphs[chunk]) for chunk in _STEP_CHUNKS},
        state=state,
    )


def _graph(config: Mamba2Config):
    """The model without its parameters, which do not depend on the size of a chunk."""
    return nnx.split(nnx.eval_shape(lambda: Mamba2ForCausalLM(config, rngs=nnx.Rngs(0))))[0]


def _logits(graph, params, tokens: jax.Array, last: int | None) -> jax.Array:
    logits = nnx.merge(graph, params)(tokens)["logits"]
    return logits if last is None else logits[:, -last:]
