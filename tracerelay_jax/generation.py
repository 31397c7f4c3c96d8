"""Greedy generation through the one forward path: prefill, then one position at a time from the cache."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from tracerelay_jax.model.network import TraceRelay


def generate_greedily(
    model: TraceRelay,
    params,
    prompt: jax.Array,
    steps: int,
    feed_back: Callable[[jax.Array], jax.Array] = lambda output: output,
) -> jax.Array:
    """Continues each prompt with the likeliest output, fed back as the next input.

    Args:
      model: the network.
      params: its parameters.
      prompt: (B, T) int inputs, all valid.
      steps: outputs to generate.
      feed_back: the input symbol for an output symbol, elementwise.

    Returns:
      (B, steps) int32 outputs.
    """
    logits, cache = model.apply(params, prompt)
    first = jnp.argmax(logits[:, -1], axis=-1).astype(jnp.int32)

    def step(carry, _):
        output, cache = carry
        logits, cache = model.apply(params, feed_back(output)[:, None], cache=cache)
        following = jnp.argmax(logits[:, -1], axis=-1).astype(jnp.int32)
        return (following, cache), following

    _, rest = jax.lax.scan(step, (first, cache), length=steps - 1)
    return jnp.concatenate([first[None], rest]).T
