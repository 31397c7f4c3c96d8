"""Phases as 32-bit integers, of which 2**32 make one turn.

Wrapping is integer overflow and sums are exact and associative, so every way of cutting a sequence gives the same phase
bits and nothing drifts over any horizon. The gradient is that of the plain sum in radians: integers have none, so each
phase carries a float32 companion whose value is always zero and through which gradients pass, also across a cut.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from tracerelay_jax.ops.lineages import lineage_sum

_TURN = 2.0**32
_QUADRANT_BITS = 30

# cos x and sin(x) / x as polynomials in x**2 on |x| <= pi/4, highest power first: least squares at 400 Chebyshev nodes,
# off by at most 6e-11 and 4e-9, below float32 rounding. XLA's own cos and sin take ten times as long on a CPU.
_COS = (2.43892034201e-05, -0.001388674800162, 0.04166662270225, -0.4999999971772, 1.0)
_SIN = (-0.0001951595280498, 0.008332165757588, -0.1666665467846, 1.0)


class Turns(NamedTuple):
    """Phases, or increments of phases.

    Attributes:
      turns: int32, in units of 2**-32 turns.
      gradient: float32 of the same shape, in radians; its value is zero, its cotangent that of the phase.
    """

    turns: jax.Array
    gradient: jax.Array


def zeros(shape: tuple[int, ...]) -> Turns:
    """Returns phases of zero."""
    return Turns(jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.float32))


def increments(delta: jax.Array) -> Turns:
    """Returns float32 increments in radians, of any size, as turns rounded to the nearest 2**-32."""
    return Turns(_to_integers(delta), _gradient_only(delta))


def wrap(u: Turns) -> Turns:
    """Returns increments as phases: integers wrap by themselves."""
    return u


def accumulate(u: Turns, tail: Turns) -> Turns:
    """Returns theta_t = wrap(theta_{t-W} + u_t), Eq. (3).

    Args:
      u: (B, T, D) increments by arrival.
      tail: (B, W, D) phases of the W positions before.
    """
    return Turns(lineage_sum(u.turns, tail.turns), _gradient_only(lineage_sum(u.gradient, tail.gradient)))


def cos_sin(theta: Turns) -> tuple[jax.Array, jax.Array]:
    """Returns float32 (cos, sin) of the phases, each of their shape."""
    return _cos_sin(theta.turns, theta.gradient)


def _to_integers(delta: jax.Array) -> jax.Array:
    turns = delta * (0.5 / math.pi)
    turns = turns - jnp.round(turns)  # within half a turn, exactly
    turns = jnp.where(turns >= 0.5, turns - 1.0, turns)  # half a turn is -2**31: 2**31 is no int32
    return jnp.round(turns * _TURN).astype(jnp.int32)


@jax.custom_jvp
def _gradient_only(x: jax.Array) -> jax.Array:
    return jnp.zeros_like(x)


@_gradient_only.defjvp
def _gradient_only_jvp(primals, tangents):
    return _gradient_only(*primals), tangents[0]


@jax.custom_jvp
def _cos_sin(turns: jax.Array, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    del gradient
    quadrant = (turns + (1 << (_QUADRANT_BITS - 1))) >> _QUADRANT_BITS
    remainder = turns - (quadrant << _QUADRANT_BITS)  # exact: within an eighth of a turn of the quadrant's axis
    x = remainder.astype(jnp.float32) * (2 * math.pi / _TURN)
    square = x * x
    cos, sin = _polynomial(_COS, square), x * _polynomial(_SIN, square)
    swapped = (quadrant & 1) == 1
    cos, sin = jnp.where(swapped, sin, cos), jnp.where(swapped, cos, sin)
    cos = jnp.where(((quadrant + 1) & 2) == 2, -cos, cos)
    sin = jnp.where((quadrant & 2) == 2, -sin, sin)
    return cos, sin


def _polynomial(coefficients: tuple[float, ...], x: jax.Array) -> jax.Array:
    return functools.reduce(lambda value, coefficient: value * x + coefficient, coefficients[1:], coefficients[0])


@_cos_sin.defjvp
def _cos_sin_jvp(primals, tangents):
    cos, sin = _cos_sin(*primals)
    return (cos, sin), (-sin * tangents[1], cos * tangents[1])
