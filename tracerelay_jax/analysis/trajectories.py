"""The phases of every lineage along a sequence, read out of the model's one forward path."""

import functools
import math
from typing import NamedTuple

import jax
import numpy as np

from tracerelay_jax.config import LayerConfig
from tracerelay_jax.errors import InputError
from tracerelay_jax.model.cache import Cache, init_cache
from tracerelay_jax.model.network import TraceRelay, check_input
from tracerelay_jax.ops.turns import Turns

_RADIANS_PER_UNIT = 2 * math.pi / 2.0**32  # of `ops.turns`
_FIELDS = ("increment", "phase", "lineage_valid")  # what a layer sows


class Trajectory(NamedTuple):
    """One layer's phases over T positions; letters as in `tracerelay_jax.config`.

    Attributes:
      layer: the layer's configuration.
      increment: (B, T, D) float64 radians, u_t of Eq. (2): what arrives at t; zero where nothing valid does.
      phase: (B, T, D) float64 radians in [0, 2 pi), theta_t of Eq. (3).
      lineage_valid: (B, T) bool, v_t of Section 2.4: False until a lineage's first valid update; it is not read before.
    """

    layer: LayerConfig
    increment: np.ndarray
    phase: np.ndarray
    lineage_valid: np.ndarray

    def until(self, position: int) -> "Trajectory":
        """Returns the trajectory of the positions before this one."""
        return Trajectory(self.layer, *(x[:, :position] for x in self[1:]))


class Observation(NamedTuple):
    """What a model did over T positions.

    Attributes:
      logits: (B, T, outputs) float32, meaningless at padding.
      trajectories: one for each layer, from the input to the output.
      cache: the state after the last position, for `observe` or `model.apply` to go on from.
    """

    logits: np.ndarray
    trajectories: tuple[Trajectory, ...]
    cache: Cache


def observe(
    model: TraceRelay, params, tokens, valid=None, cache: Cache | None = None, chunk: int | None = None
) -> Observation:
    """Runs `model.apply` and keeps the increments and phases of every layer.

    Args:
      model: the network.
      params: its parameters.
      tokens: (B, T) integers in [0, inputs).
      valid: (B, T) bool, False at padding; all True if None.
      cache: the state after the positions before, by default that of a sequence's start.
      chunk: positions that are run at a time, all if None. Chunks of one length are compiled once, whatever T.

    Raises:
      InputError: as `TraceRelay` does, for tokens, valid or a cache that do not fit; and for a chunk below 1.
    """
    tokens = np.asarray(tokens)
    check_input(tokens, None if valid is None else np.asarray(valid), model.config.inputs)
    rows, length = tokens.shape
    if chunk is not None and chunk < 1:
        raise InputError(f"chunk={chunk}: must be at least 1, or None for all positions at once")
    valid = np.ones(tokens.shape, bool) if valid is None else np.asarray(valid)
    cache = init_cache(model.config, rows) if cache is None else cache
    parts = []
    for start in range(0, length, chunk or length):
        here = slice(start, start + (chunk or length))
        logits, cache, sown = _run(model, params, tokens[:, here], valid[:, here], cache)
        parts.append((np.asarray(logits), [_on_host(*values) for values in sown]))
    logits, fields = jax.tree.map(lambda *arrays: np.concatenate(arrays, axis=1), *parts)
    return Observation(logits, tuple(map(Trajectory, model.config.layers, *zip(*fields, strict=True))), cache)


def unroll(trajectory: Trajectory) -> np.ndarray:
    """Returns phases (B, T, D), float64 radians, that are not wrapped: the sums of Eq. (7) along each lineage.

    They wrap back to `phase`, and steps of W differ by the increment that arrived. With `phase="turns"` an increment is
    known up to whole turns, and taken within half a turn. Where the observation continued a cache, so is the phase before
    it. Without inheritance nothing adds up, and this is the increment.
    """
    u, stride = trajectory.increment, trajectory.layer.stride
    if not trajectory.layer.inherit_phase:
        return u.copy()
    before = nearest(trajectory.phase[:, :stride] - u[:, :stride])
    start = np.zeros_like(u)
    start[:, :stride] = before
    return lineage_sums(u + start, stride)


def lineage_sums(x_BT: np.ndarray, stride: int) -> np.ndarray:
    """Returns s with s_t = s_{t-W} + x_t, from zero, of x (B, T, ...): Eq. (7) for NumPy arrays, in their own type."""
    sums = np.empty_like(x_BT)
    for lineage in range(stride):
        sums[:, lineage::stride] = np.cumsum(x_BT[:, lineage::stride], axis=1)
    return sums


def nearest(angle: np.ndarray) -> np.ndarray:
    """Returns angles in radians as their equals in [-pi, pi)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


@functools.partial(jax.jit, static_argnums=0)
def _run(model, params, tokens, valid, cache):
    (logits, cache), variables = model.apply(params, tokens, valid, cache, mutable=["intermediates"])
    layers = (variables["intermediates"][f"layer_{index}"] for index in range(len(model.config.layers)))
    return logits, cache, [[sown[field][0] for field in _FIELDS] for sown in layers]


def _on_host(increment, phase, lineage_valid) -> tuple[np.ndarray, ...]:
    lineage_valid = np.asarray(lineage_valid)
    if isinstance(phase, Turns):  # unsigned, the same 32 bits run from 0 to a whole turn
        phases = np.asarray(phase.turns).view(np.uint32)
        return np.asarray(increment.turns) * _RADIANS_PER_UNIT, phases * _RADIANS_PER_UNIT, lineage_valid
    increment, phase = (np.asarray(x, np.float64) for x in (increment, phase))
    return increment, phase % (2 * math.pi), lineage_valid  # float32's 2 pi is above float64's
