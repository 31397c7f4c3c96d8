"""Local multi-head attention over banded windows: one call, several implementations.

Keys and values bring their context with them: for T queries there are S = left + T + right keys, and the query of row t
is centred at key t + left. So the Left reader (left=L, right=0) takes the L positions before its chunk, and the Right
writer (left=0, right=R) takes queries whose centres lie W positions back, and nothing here depends on where in a stream
the chunk stands.
"""

import functools

import jax

from tracerelay_jax.ops.attention.pallas import pallas_attention
from tracerelay_jax.ops.attention.reference import reference_attention
from tracerelay_jax.ops.attention.windowed import windowed_attention

_IMPLEMENTATIONS = {
    "reference": reference_attention,
    "windowed": windowed_attention,
    "pallas": pallas_attention,
    "pallas_interpret": functools.partial(pallas_attention, interpret=True),
}


def local_attention(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    key_valid: jax.Array,
    left: int,
    right: int,
    position: str = "none",
    implementation: str = "auto",
) -> jax.Array:
    """Attends from each query to the `left` keys before its centre, the centre, and the `right` keys after it.

    Scores are scaled by 1/sqrt(K); scores, softmax and sums are float32 whatever the inputs are.

    Args:
      q: (B, T, N, K) queries.
      k: (B, S, N, K) keys, S = left + T + right, the centre of query t at key t + left.
      v: (B, S, N, K) values.
      key_valid: (B, S) bool; an invalid key is not seen.
      left: keys before the centre in the window.
      right: keys after the centre in the window.
      position: `none`; `rope`, rotary over the whole head, base 10,000, halves paired; `alibi`, a linear bias by distance.
      implementation: one of

        - `reference`: builds the (T, S) scores and masks the band; memory quadratic in T, any device.
        - `windowed`: walks over the window in plain JAX; memory linear in T with a float32 copy of the inputs and `window`
          weights a query; any device. On a CPU it gives the same bits however a sequence is cut.
        - `pallas`: the same walk as GPU kernels; stores one number a query besides the output. Heads of width
          4, 8, 16, 32, 64.
        - `pallas_interpret`: those kernels step by step on any device, slowly, for tests.
        - `auto`: `pallas` where JAX's default device is a GPU and the kernels serve the case, else `windowed`.

        All but `reference` have reverse-mode gradients only.

    Returns:
      (B, T, N, K) in the type of `v`; zeros, with zero gradients, where a query sees no valid key.

    Raises:
      ValueError: for shapes that do not fit together.
      NotImplementedError: where the implementation asked for does not serve the case, with the reason.
      KeyError: for an unknown implementation.
    """
    length, keys = q.shape[1], left + q.shape[1] + right
    if k.shape != (q.shape[0], keys, *q.shape[2:]) or v.shape != k.shape or key_valid.shape != k.shape[:2]:
        raise ValueError(
            f"{length} queries with left={left} and right={right} need {keys} keys: got q {q.shape}, k {k.shape}, "
            f"v {v.shape}, key_valid {key_valid.shape}"
        )
    arguments = (q, k, v, key_valid, left, right, position)
    if implementation == "auto":
        return _automatic(*arguments)
    return _IMPLEMENTATIONS[implementation](*arguments)


def _default_platform() -> str:
    device = jax.config.jax_default_device  # a Device, the name of a platform, or None
    return getattr(device, "platform", device) or jax.default_backend()


def _automatic(*arguments) -> jax.Array:
    if _default_platform() == "gpu":
        try:
            return pallas_attention(*arguments)
        except NotImplementedError:
            pass
    return windowed_attention(*arguments)
