"""The parts that a layer is made of: bias-free maps, RMSNorm, the gated FFN, and the projections of an attention."""

import functools
import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from tracerelay_jax.config import LayerConfig, TraceRelayConfig
from tracerelay_jax.ops.sums import mean_square

_NORM_EPSILON = 1e-6
_LEAST_ROWS = 8
_ROWS_OF_BFLOAT16 = 32


def initializer(config: LayerConfig | TraceRelayConfig, own_scale: float = 0.0) -> nn.initializers.Initializer:
    """The initialisation of a map (out, in): normal of `init_scale`, or uniform within 1/sqrt(in).

    For a map with a scale of its own, not 0, it is normal of that.
    """
    if own_scale or config.init == "normal":
        return nn.initializers.normal(own_scale or config.init_scale)
    return nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform", in_axis=1, out_axis=0)  # bound sqrt(3 * (1/3) / in)


def bias_initializer(config: TraceRelayConfig) -> nn.initializers.Initializer:
    """The initialisation of the head's bias: zeros, or uniform within 1/sqrt(H)."""
    if config.init == "normal":
        return nn.initializers.zeros
    bound = 1 / math.sqrt(config.hidden)
    return lambda key, shape, dtype=jnp.float32: jax.random.uniform(key, shape, dtype, -bound, bound)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(x: jax.Array, weight: jax.Array, dtype: str) -> jax.Array:
    """Applies `weight` (out, in) to each vector of `x` (..., in).

    Both are rounded to `dtype`, their products sum in float32, and what comes out is of the type of `x`.

    Rows of inputs meet rows of weights, at least eight of them in one axis and, in bfloat16, a multiple of 32: so, and not
    with the weights stored across, XLA:CPU adds up every output in the same order whatever the number of rows, and cuts of a
    sequence give the same bits. Has reverse-mode gradients only, whose products round alike.
    """
    return _product_forward(x, weight, dtype)[0]


def _product_forward(x, weight, dtype):
    rows = _rows(x, dtype)
    out = _dot(rows, 1, weight.astype(dtype), 1)
    return _unrows(out, x, weight.shape[0]), (rows, weight)


def _product_backward(dtype, residuals, g):
    rows, weight = residuals
    g_rows = _rows(g, dtype)
    dx = _dot(g_rows, 1, weight.astype(dtype), 0)
    dweight = jax.lax.platform_dependent(g_rows, rows, cpu=_outer_sum_on_cpu, default=lambda g, x: _dot(g, 0, x, 0))
    return _unrows(dx, g, weight.shape[1]), dweight.astype(weight.dtype)


product.defvjp(_product_forward, _product_backward)


def _rows(x: jax.Array, dtype: str) -> jax.Array:
    """The vectors of `x` (..., width) in `dtype`, and as many rows of zeros as make up the number of rows."""
    rows = x.reshape(-1, x.shape[-1]).astype(dtype)
    missing = -len(rows) % _ROWS_OF_BFLOAT16 if rows.dtype == jnp.bfloat16 else max(_LEAST_ROWS - len(rows), 0)
    return jnp.pad(rows, [(0, missing), (0, 0)])


def _unrows(rows: jax.Array, like: jax.Array, width: int) -> jax.Array:
    """What `_rows` laid out, of another width, in the shape and type of `like`."""
    leading = like.shape[:-1]
    return rows[: math.prod(leading)].astype(like.dtype).reshape(*leading, width)


def _dot(a: jax.Array, a_axis: int, b: jax.Array, b_axis: int) -> jax.Array:
    """The product of two matrices over these axes, in float32. A CPU with matrix units takes bfloat16 four times as fast.

    Unless told otherwise, GPUs and TPUs would round factors of float32 to fewer bits.
    """
    precision = jax.lax.Precision.HIGHEST if a.dtype == jnp.float32 else None
    axes = (((a_axis,), (b_axis,)), ((), ()))
    return jax.lax.dot_general(a, b, axes, precision=precision, preferred_element_type=jnp.float32)


def _outer_sum_on_cpu(g: jax.Array, x: jax.Array) -> jax.Array:
    """As `g.T @ x`, from a transposed copy of the narrower: XLA:CPU takes twice as long along the first axes of both."""
    if g.shape[1] <= x.shape[1]:
        return _dot(_transposed(g), 1, x, 0)
    return jax.lax.optimization_barrier(_dot(_transposed(x), 1, g, 0)).T


def _transposed(x: jax.Array) -> jax.Array:
    """A transposed copy; of bfloat16 by a product with ones, which is exact and takes a third of the time of copying."""
    if x.dtype == jnp.bfloat16:
        return _dot(jnp.eye(x.shape[1], dtype=x.dtype), 1, x, 1).astype(x.dtype)
    return jax.lax.optimization_barrier(x.T)


def product_dtype(config: LayerConfig | TraceRelayConfig, x: jax.Array) -> str:
    """The type in which `x` meets a weight."""
    return config.product_dtype or str(x.dtype)


class Linear(nn.Module):
    """A map of (..., in) to (..., out), in the dtype of its input; the weight is (out, in) as in the paper."""

    config: LayerConfig | TraceRelayConfig
    features: int
    weight_init: nn.initializers.Initializer | None = None
    bias_init: nn.initializers.Initializer | None = None

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Applies the map at each position."""
        init = self.weight_init or initializer(self.config)
        weight = self.param("weight", init, (self.features, x.shape[-1]), jnp.float32)
        out = product(x, weight, product_dtype(self.config, x))
        return out + self.param("bias", self.bias_init, (self.features,), jnp.float32) if self.bias_init else out


class RMSNorm(nn.Module):
    """RMSNorm of (..., H), computed in float32 and returned in the dtype of activations.

    Flax's own leaves the order of the sum to XLA; here cuts of a sequence give the same bits.
    """

    config: LayerConfig | TraceRelayConfig

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Normalises each position."""
        scale = self.param("scale", nn.initializers.ones, x.shape[-1:], jnp.float32)
        x = x.astype(jnp.float32)
        return (x * (jax.lax.rsqrt(mean_square(x) + _NORM_EPSILON) * scale)).astype(self.config.dtype)


class Projections(nn.Module):
    """Queries, keys and values of one attention: (B, T, H) to three of (B, T, N, K).

    Three maps, applied as one product: a third of the time for narrow traces.
    """

    config: LayerConfig
    width: int

    @nn.compact
    def __call__(self, x_BTH: jax.Array) -> tuple[jax.Array, ...]:
        """Projects a chunk."""
        c = self.config
        shape = (self.width, x_BTH.shape[-1])
        maps = [self.param(name, initializer(c), shape, jnp.float32) for name in ("query", "key", "value")]
        projected = product(x_BTH, jnp.concatenate(maps), product_dtype(c, x_BTH))
        heads = (*x_BTH.shape[:2], c.heads, self.width // c.heads)
        return tuple(part.reshape(heads) for part in jnp.split(projected, 3, axis=-1))


class GatedFFN(nn.Module):
    """SwiGLU: (B, T, H) to (B, T, H) through two maps to F and one back."""

    config: LayerConfig

    @nn.compact
    def __call__(self, x_BTH: jax.Array) -> jax.Array:
        """Applies the FFN at each position."""
        c = self.config
        gate_BTF = Linear(c, c.ffn, name="gate")(x_BTH)
        up_BTF = Linear(c, c.ffn, name="up")(x_BTH)
        return Linear(c, c.hidden, name="down")(nn.silu(gate_BTF) * up_BTF)
