"""What happens if: the same parameters without inheritance, with silent layers, slower phases, or hands turned by hand."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.errors import InputError
from tracerelay_jax.model.cache import PHASE_OPS, Cache
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.tasks import Batch


def without_inheritance(model: TraceRelay) -> TraceRelay:
    """Returns the model with theta_t = wrap(u_t) and v_t = q_t, the ablation of Section 3, for the same parameters.

    The paper trains this variant afresh; with parameters that were trained to inherit, it shows what they rely on.
    """
    return TraceRelay(dataclasses.replace(model.config, inherit_phase=False))


def scale_alpha(model: TraceRelay, factor: float) -> TraceRelay:
    """Returns the model with `factor` times the alpha of Eq. (1), for the same parameters: every phase turns so much faster.

    Raises:
      InputError: unless the factor is a positive number.
    """
    if not 0 < factor < math.inf:
        raise InputError(f"factor={factor}: must be a positive number")
    return TraceRelay(dataclasses.replace(model.config, alpha=model.config.alpha * factor))


def silence(params, *layers: int):
    """Returns the parameters with P_phi = 0 in these layers, so that m_t = h_t there: their phases turn, and nobody sees it.

    Raises:
      InputError: for a layer that is not there.
    """
    named = dict(params["params"])
    for layer in layers:
        name = f"layer_{layer}"
        if name not in named:
            raise InputError(f"layer={layer!r}: must be a layer from 0 to {sum('layer_' in name for name in named) - 1}")
        named[name] = {**named[name], "P_phi": jax.tree.map(jnp.zeros_like, named[name]["P_phi"])}
    return {**params, "params": named}


def turn(config: TraceRelayConfig, cache: Cache, layer: int, angle) -> Cache:
    """Returns the cache with every lineage of one layer turned by an angle, as Eq. (3) would by an increment.

    Lineages without a valid update stay unread. What the Left reader has cached was computed before the turn: it takes L
    more positions until it sees turned phases only. Without inheritance no later phase knows of it.

    Args:
      config: the network's.
      cache: from `observe`, or `model.apply`.
      layer: index of the layer.
      angle: (D,) or (B, D) radians.

    Raises:
      InputError: for a layer that is not there, or an angle of another shape.
    """
    if not 0 <= layer < len(cache):
        raise InputError(f"layer={layer!r}: must be a layer from 0 to {len(cache) - 1}")
    old = cache[layer]
    rows, lineages = old.lineage_valid.shape
    width = config.trace_widths[layer]
    angle = jnp.asarray(angle, jnp.float32)
    if angle.shape not in ((width,), (rows, width)):
        raise InputError(f"angle of shape {angle.shape}: must be (D,) or (B, D), {(width,)} or {(rows, width)}")
    every_lineage = jnp.broadcast_to(angle.reshape(-1, 1, width), (rows, lineages, width))
    turned = old._replace(phase=_turn(config.phase, every_lineage, old.phase))
    return (*cache[:layer], turned, *cache[layer + 1 :])


@functools.partial(jax.jit, static_argnums=0)
def _turn(phase, angle, before):
    ops = PHASE_OPS[phase]
    return ops.accumulate(ops.increments(angle), before)


def rows_right(logits, batch: Batch) -> np.ndarray:
    """Returns (B,) bool: whether the likeliest output is the target at every scored position, right answers fed in.

    For Equal Repeats and Most-Freq, its mean is the task's score.

    Args:
      logits: (B, T, outputs), of the batch's tokens.
      batch: (B, T) examples.

    Raises:
      InputError: for logits of other positions.
    """
    logits, targets, scored = np.asarray(logits), np.asarray(batch.targets), np.asarray(batch.scored)
    if logits.shape[:-1] != targets.shape:
        raise InputError(f"logits of shape {logits.shape}: must be {targets.shape}, the batch's, and outputs")
    return ((logits.argmax(axis=-1) == targets) | ~scored).all(axis=1)
