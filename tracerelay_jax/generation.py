"""Generation through the one forward path: prefill in chunks, then one position at a time from the cache."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.errors import InputError
from tracerelay_jax.model.cache import Cache, check_cache, init_cache
from tracerelay_jax.model.network import TraceRelay, check_input
from tracerelay_jax.tasks.base import row_keys

_LEAST_BUCKET = 32


class Generated(NamedTuple):
    """What was generated.

    Attributes:
      outputs: (B, steps) int32 output symbols; after a stop symbol, that symbol again.
      lengths: (B,) int32, outputs up to and with the first stop symbol; `steps` where none came.
    """

    outputs: jax.Array
    lengths: jax.Array


class Sampling(NamedTuple):
    """How an output is chosen from its logits.

    Attributes:
      temperature: divides the logits; 0 takes the likeliest output.
      top_k: samples among the k likeliest only, of equals the lower symbols; 0 is no limit.
    """

    temperature: float = 0.0
    top_k: int = 0


GREEDY = Sampling()


def generate(
    model: TraceRelay,
    params,
    prompt: jax.Array,
    valid: jax.Array | None = None,
    *,
    steps: int,
    key: jax.Array | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    feed_back: Callable[[jax.Array], jax.Array] = lambda output: output,
    chunk: int = 512,
    cache: Cache | None = None,
) -> Generated:
    """Continues each prompt; best called under `jax.jit`, with all that is not an array static.

    Args:
      model: the network.
      params: its parameters.
      prompt: (B, T) int inputs, T of at least 1, see `left_pad` for prompts of several lengths.
      valid: (B, T) bool, False at the padding that stands before a shorter prompt; all True if None.
      steps: outputs to generate at most; it ends earlier when every row has come to a stop symbol.
      key: a typed PRNG key, or (B,) keys, one for each row; needed where the temperature is not 0. A row's outputs depend on
        its own key only; a single key is folded with the row's index.
      sampling: temperature and top-k.
      stop: output symbols that end a row.
      feed_back: the input symbol for an output symbol, elementwise.
      chunk: positions of the prompt that are run at a time; it bounds the memory of the prefill.
      cache: the state after what came before the prompts, by default that of a sequence's start; padding then stands
        between the two and takes up positions there.

    Returns:
      The outputs and how many of them count.

    Raises:
      InputError: for a sampling, steps, stop symbol, chunk or cache that cannot be, before anything is compiled.
    """
    check_input(prompt, valid, model.config.inputs)
    _check(model, prompt, steps, key, sampling, stop, chunk)
    rows = prompt.shape[0]
    valid = jnp.ones(prompt.shape, bool) if valid is None else valid
    if cache is not None:
        check_cache(model.config, rows, cache)
    logits, cache = prefill(model, params, prompt, valid, chunk, cache)
    keys = _row_keys(key, rows)
    stops = jnp.asarray(tuple(stop), jnp.int32)

    def choose(logits, step, before, stopped):
        output = jnp.where(stopped, before, choose_outputs(logits, keys, step, sampling))
        return output, stopped | (output[:, None] == stops).any(axis=1)

    def unfinished(state):
        step, _, stopped, *_ = state
        return (step < steps) & ~stopped.all()

    def advance(state):
        step, output, stopped, outputs, lengths, cache = state
        logits, cache = model.apply(params, feed_back(output)[:, None], cache=cache)
        lengths = lengths + ~stopped
        output, stopped = choose(logits[:, -1], step, output, stopped)
        return step + 1, output, stopped, outputs.at[:, step].set(output), lengths, cache

    output, stopped = choose(logits, 0, jnp.zeros(rows, jnp.int32), jnp.zeros(rows, bool))
    outputs = jnp.broadcast_to(output[:, None], (rows, steps))
    state = (1, output, stopped, outputs, jnp.ones(rows, jnp.int32), cache)
    step, output, _, outputs, lengths, _ = jax.lax.while_loop(unfinished, advance, state)
    outputs = jnp.where(jnp.arange(steps) < step, outputs, output[:, None])
    return Generated(outputs, lengths)


def prefill(
    model: TraceRelay, params, prompt: jax.Array, valid: jax.Array, chunk: int, cache: Cache | None = None
) -> tuple[jax.Array, Cache]:
    """Runs prompts (B, T) from a cache, by default an empty one, at most `chunk` positions at a time.

    From an empty cache, chunks that are padding in all rows cost nothing.

    Returns:
      logits (B, outputs) after the last position, and the cache there.
    """
    rows, length = prompt.shape
    remainder = length % chunk

    def run(tokens, valid, _, cache):
        logits, cache = model.apply(params, tokens, valid, cache, last=1)
        return logits[:, -1], cache

    def skip(tokens, valid, logits, cache):
        return logits, cache

    def step(carry, part):
        begun, *state = carry
        begun = begun | part[1].any()
        return (begun, *jax.lax.cond(begun, run, skip, *part, *state)), None

    def chunks(x):
        return x[:, remainder:].reshape(rows, -1, chunk).swapaxes(0, 1)

    begun, logits = jnp.array(cache is not None), jnp.zeros((rows, model.config.outputs), jnp.float32)
    carry = begun, logits, init_cache(model.config, rows) if cache is None else cache
    if remainder:
        carry, _ = step(carry, (prompt[:, :remainder], valid[:, :remainder]))
    if length > remainder:
        carry, _ = jax.lax.scan(step, carry, (chunks(prompt), chunks(valid)))
    return carry[1:]


def left_pad(prompts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns tokens (B, T) int32 and valid (B, T) of prompts of several lengths, padding before the shorter ones.

    T is a power of two, at least 32, so that prompts of all lengths come in few shapes to compile for.

    Raises:
      InputError: for no prompts, or an empty one, which leaves nothing to continue.
    """
    if len(prompts) == 0:
        raise InputError("prompts=[]: must hold at least one prompt")
    for index, prompt in enumerate(prompts):
        if len(prompt) == 0:
            raise InputError(f"prompts[{index}]=[]: must hold at least one symbol")
    longest = max(map(len, prompts))
    length = max(_LEAST_BUCKET, 1 << (longest - 1).bit_length())
    tokens, valid = np.zeros((len(prompts), length), np.int32), np.zeros((len(prompts), length), bool)
    for row, prompt in enumerate(prompts):
        tokens[row, length - len(prompt) :] = prompt
        valid[row, length - len(prompt) :] = True
    return tokens, valid


def choose_outputs(logits: jax.Array, keys: jax.Array | None, step: int | jax.Array, sampling: Sampling) -> jax.Array:
    """Returns outputs (B,) int32 for logits (B, outputs); keys (B,) are folded with the step, None for the likeliest."""
    if sampling.temperature == 0:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    logits, outputs = jax.lax.top_k(logits, sampling.top_k or logits.shape[-1])
    step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, step)
    places = jax.vmap(jax.random.categorical)(step_keys, logits / sampling.temperature)
    return jnp.take_along_axis(outputs, places[:, None], axis=1)[:, 0].astype(jnp.int32)


def _row_keys(key, rows: int):
    return key if key is None or key.ndim == 1 else row_keys(key, rows)


def _is_key(key, rows: int) -> bool:
    return key is not None and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape in ((), (rows,))


def _check(model, prompt, steps, key, sampling, stop, chunk):
    outputs = model.config.outputs
    checks = (
        (steps >= 1, "steps", steps, "must be at least 1"),
        (chunk >= 1, "chunk", chunk, "must be at least 1"),
        (sampling.temperature >= 0, "temperature", sampling.temperature, "must be 0, for the likeliest output, or positive"),
        (0 <= sampling.top_k <= outputs, "top_k", sampling.top_k, f"must be 0, for no limit, or up to {outputs} outputs"),
        (sampling.temperature > 0 or sampling.top_k == 0, "top_k", sampling.top_k, "needs a temperature above 0"),
        (
            sampling.temperature == 0 or _is_key(key, prompt.shape[0]),
            "key",
            key,
            "must be a typed PRNG key, or one for each row, where temperature is not 0",
        ),
        (all(0 <= symbol < outputs for symbol in stop), "stop", stop, f"must hold outputs from 0 to {outputs - 1}"),
    )
    for holds, field, value, allowed in checks:
        if not holds:
            raise InputError(f"{field}={value!r}: {allowed}")
