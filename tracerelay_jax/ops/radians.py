"""Phases as float32 radians, Eq. (3) to the letter; sums round, so that cuts of a sequence agree to rounding only."""

import math

import jax
import jax.numpy as jnp

from tracerelay_jax.ops.lineages import lineage_sum


def zeros(shape: tuple[int, ...]) -> jax.Array:
    """Returns phases of zero."""
    return jnp.zeros(shape, jnp.float32)


def increments(delta: jax.Array) -> jax.Array:
    """Returns float32 increments in radians as they are."""
    return delta


def wrap(u: jax.Array) -> jax.Array:
    """Returns increments as phases in [0, 2 pi)."""
    return jnp.mod(u, 2 * math.pi)


def accumulate(u: jax.Array, tail: jax.Array) -> jax.Array:
    """Returns theta_t = wrap(theta_{t-W} + u_t), Eq. (3); u (B, T, D) and tail (B, W, D) in float32 radians."""
    return wrap(lineage_sum(u, tail))


def cos_sin(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns float32 (cos, sin) of the phases, each of their shape."""
    return jnp.cos(theta), jnp.sin(theta)
