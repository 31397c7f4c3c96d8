"""Sources as a person writes them, a line each, and the answers that a model gives to them."""

from collections.abc import Iterable

import jax
import numpy as np

from tracerelay_jax.errors import InputError
from tracerelay_jax.generation import Sampling, generate, left_pad
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.tasks import Task
from tracerelay_jax.tasks.base import row_keys


def read_sources(lines: Iterable[str], task: Task) -> list[list[int]]:
    """Reads sources: on each line symbols of the task as whole numbers, separated by spaces.

    Raises:
      InputError: with the number of the line, for the first that is no source of the task.
    """
    sources = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        for word in words:
            if not (word.isascii() and word.isdigit()):
                raise InputError(f"line {number}: {word!r}: must be symbols as whole numbers, separated by spaces")
        source = [int(word) for word in words]
        try:
            task.prompt(source)
        except InputError as error:
            raise InputError(f"line {number}: {error}") from error
        sources.append(source)
    return sources


def answer(model: TraceRelay, params, task: Task, sources: list[list[int]], batch_size: int, chunk: int, seed: int,
           sampling: Sampling) -> Iterable[list[int]]:  # fmt: skip
    """Yields the outputs for each source, up to and with the task's stop symbol; a source's answer depends on no other.

    Args:
      model: the network.
      params: its parameters.
      task: the task it was trained on.
      sources: from `read_sources`.
      batch_size: sources that are run together.
      chunk: positions that are run at a time.
      seed: of the sampling.
      sampling: temperature and top-k.
    """

    @jax.jit
    def run(params, tokens, valid, keys):
        return generate(model, params, tokens, valid, steps=task.answer_limit, key=keys, sampling=sampling, stop=task.stop,
                        feed_back=task.feed_back, chunk=chunk)  # fmt: skip

    all_keys = row_keys(jax.random.key(seed), len(sources))
    for start in range(0, len(sources), batch_size):
        rows = range(start, min(start + batch_size, len(sources)))
        filled = [*rows, *[start] * (batch_size - len(rows))]  # one shape for every batch
        tokens, valid = left_pad([task.prompt(sources[row]) for row in filled])
        outputs, lengths = jax.tree.map(np.asarray, run(params, tokens, valid, all_keys[np.array(filled)]))
        for row, output, length in zip(rows, outputs, lengths, strict=False):
            yield output[: min(int(length), task.answer_length(sources[row]))].tolist()
