"""Long streams through the cache: the time of a decode step after any context, exact phases, constant memory."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.benchmarks.timing import take_turns
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.machine import peak_memory
from tracerelay_jax.model.cache import Cache, init_cache
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.progress import Reporter

_CHUNK = 4096


def decode(config: TraceRelayConfig, contexts: list[int], steps: int, rounds: int, reporter: Reporter) -> dict[str, Any]:
    """Times single steps after each of the contexts, in turn, so that what disturbs the machine disturbs all of them.

    Args:
      config: the network; its parameters are random.
      contexts: tokens that were read before.
      steps: timed steps a round, run as one program.
      rounds: of which the median counts.
      reporter: tells how far it is.

    Returns:
      For each context the seconds a token, and the bytes of the cache; the ratio of the last context to the first.
    """
    model, params, tokens = _model_and_stream(config, max(contexts))
    read = jax.jit(lambda params, cache, tokens: model.apply(params, tokens, cache=cache)[1])
    caches, cache, position = {}, init_cache(config, 1), 0
    for context in sorted(contexts):
        while position < context:
            length = min(_CHUNK, context - position)
            cache = read(params, cache, tokens[:, position : position + length])
            position += length
        caches[context] = jax.block_until_ready(cache)
        reporter.line(f"read {context} tokens")

    @jax.jit
    def run(params, cache):
        def step(carry, _):
            token, cache = carry
            logits, cache = model.apply(params, token, cache=cache)
            return (jnp.argmax(logits, axis=-1).astype(jnp.int32) % config.inputs, cache), None

        return jax.lax.scan(step, (jnp.zeros((1, 1), jnp.int32), cache), length=steps)[0]

    seconds = take_turns({context: lambda cache=caches[context]: run(params, cache) for context in contexts}, rounds)
    per_token = {context: total / steps for context, total in seconds.items()}
    return {
        "contexts": [
            {"context": context, "seconds_per_token": per_token[context], "cache_bytes": cache_bytes(caches[context])}
            for context in contexts
        ],
        "ratio_of_last_to_first": per_token[contexts[-1]] / per_token[contexts[0]],
    }


def stream(config: TraceRelayConfig, length: int, single_steps: int, reporter: Reporter) -> dict[str, Any]:
    """Reads a stream in chunks and its end in single steps, beside integer sums of the increments in NumPy.

    Args:
      config: the network, with phases in turns; its parameters are random.
      length: tokens of the stream.
      single_steps: tokens at its end that are read one at a time.
      reporter: tells how far it is.

    Returns:
      The number of phases compared and of those whose bits differed, the cache's bytes at the beginning and at the end, and
      the most memory that the process had held after a tenth of the stream and after all of it.
    """
    model, params, tokens = _model_and_stream(config, length)

    @jax.jit
    def read(params, cache, tokens):
        (_, cache), variables = model.apply(params, tokens, cache=cache, mutable=["intermediates"])
        layers = [variables["intermediates"][f"layer_{index}"] for index in range(len(config.layers))]
        return cache, [(layer["increment"][0].turns, layer["phase"][0].turns) for layer in layers]

    cache = init_cache(config, 1)
    oracle = [np.zeros((layer.stride, layer.trace_width), np.uint32) for layer in config.layers]
    compared = differing = position = 0
    early_memory, early_bytes = None, cache_bytes(cache)
    chunked = length - single_steps
    while position < length:
        size = min(_CHUNK, chunked - position) if position < chunked else 1
        cache, layers = read(params, cache, tokens[:, position : position + size])
        for sums, (increments, phases) in zip(oracle, layers, strict=True):
            expected = _add_lineages(sums, np.asarray(increments)[0].astype(np.uint32), position)
            differing += int((np.asarray(phases)[0].astype(np.uint32) != expected).sum())
            compared += expected.size
        position += size
        if early_memory is None and position >= length // 10:
            early_memory = peak_memory()
            reporter.line(f"read {position} of {length} tokens")
    return {
        "tokens": length,
        "single_steps": single_steps,
        "phases_compared": compared,
        "phases_differing": differing,
        "cache_bytes": [early_bytes, cache_bytes(cache)],
        "peak_memory_bytes": {"after_a_tenth": early_memory, "at_the_end": peak_memory()},
    }


def cache_bytes(cache: Cache) -> int:
    """Bytes of all arrays of a cache."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(cache))


def _add_lineages(sums: np.ndarray, increments: np.ndarray, position: int) -> np.ndarray:
    """Adds increments (T, D) to the sums (W, D) of the lineages in place, one by one; returns the sum at each position."""
    out = np.empty_like(increments)
    for t, increment in enumerate(increments):
        lineage = (position + t) % len(sums)
        sums[lineage] += increment
        out[t] = sums[lineage]
    return out


def _model_and_stream(config: TraceRelayConfig, length: int):
    model = TraceRelay(config)
    params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    return model, params, np.random.default_rng(0).integers(0, config.inputs, (1, length), np.int32)
