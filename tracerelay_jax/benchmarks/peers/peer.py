"""What is asked of every model that takes part, TraceRelay included; and how a model is given its number of parameters."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from tracerelay_jax.errors import InputError

_TOLERANCE = 0.02
_STEP = 8  # sizes are multiples of it
PIECES = (512, 2048)  # positions of a prompt that are read at a time, where it can be read in pieces


class Peer(NamedTuple):
    """A model of float32 parameters over `inputs` symbols, and the ways in which it can be run.

    Where there are several ways to run it, each has a name: all are tried, and the fastest counts.

    Attributes:
      name: its name in the figures.
      settings: what was chosen for it, for the figures.
      init: key -> parameters.
      forward: ways to train: (parameters, tokens (B, T), last) -> logits (B, n, V), each of them of the tokens up to it, of
        all positions if `last` is None, else of the n = last ones; what these do not need need not be computed.
      prefill: ways to read a prompt: (parameters, tokens (B, T), room) -> logits (B, V) after the last, and the state there,
        with room for as many positions more.
      step: ways to decode: (parameters, tokens (B, 1), position, state) -> logits (B, V), state; the token is at `position`,
        counted from 0.
      state: (B, context, room) -> a state as after `context` positions, with zeros in it: no time depends on what it holds.
    """

    name: str
    settings: dict[str, Any]
    init: Callable
    forward: dict[str, Callable]
    prefill: dict[str, Callable]
    step: dict[str, Callable]
    state: Callable


def parameter_count(peer: Peer) -> int:
    """The number of its parameters, counted without making them."""
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(peer.init, jax.random.key(0))))


def fit(make: Callable[[int], Peer], parameters: int) -> Peer:
    """The model of which one size, in which its parameters grow linearly, is the multiple of 8 that comes closest.

    Args:
      make: size -> model.
      parameters: how many it is to have.

    Raises:
      InputError: if that is not within 2%.
    """
    first, second = (parameter_count(make(size)) for size in (_STEP, 2 * _STEP))
    steps = max(round((parameters - first) / (second - first)), 0)
    peer = make(_STEP * (1 + steps))
    if abs(parameter_count(peer) / parameters - 1) > _TOLERANCE:
        raise InputError(f"{peer.name}: cannot have {parameters} parameters within {_TOLERANCE:.0%}; choose another dc")
    return peer


def read_in_pieces(extend: Callable, params, tokens: jax.Array, state, piece: int):
    """Reads a prompt a piece at a time, so that memory does not grow with it, and its last token by itself.

    Before that token nobody asks for logits, so the compiler leaves out what of the last layer goes into no state.

    Args:
      extend: (parameters, tokens (B, n), position, state) -> logits (B, n, V), state; the first token is at `position`.
      params: the parameters.
      tokens: (B, T) int32.
      state: the one at a sequence's start.
      piece: positions at a time; what is left over comes before the last token.

    Returns:
      logits (B, V) after the last token, and the state there.
    """
    batch, length = tokens.shape
    count, rest = divmod(length - 1, piece)
    if count:
        parts = tokens[:, : count * piece].reshape(batch, count, piece).swapaxes(0, 1)
        numbered = jnp.arange(count) * piece, parts
        state, _ = jax.lax.scan(lambda state, part: (extend(params, part[1], part[0], state)[1], None), state, numbered)
    if rest:
        _, state = extend(params, tokens[:, count * piece : -1], count * piece, state)
    logits, state = extend(params, tokens[:, -1:], length - 1, state)
    return logits[:, -1], state
