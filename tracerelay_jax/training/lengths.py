"""The length of each batch, and the few padded lengths that batches are compiled for."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.tasks import Task, draw_key

_MOST_BUCKETS = 8
_LENGTH_STREAM = 2**32 - 1  # in the place of a step that no run reaches, apart from the keys of all examples


def length_buckets(task: Task, lengths: tuple[int, int]) -> tuple[int, ...]:
    """Padded lengths, at most eight, for batches of sources between `lengths`: evenly spaced down from the longest."""
    shortest, longest = (task.positions(length) for length in lengths)
    step = -(-(longest - shortest + 1) // _MOST_BUCKETS)
    return tuple(range(longest, shortest - 1, -step))[::-1]


def bucket_of(buckets: tuple[int, ...], positions: int) -> int:
    """The smallest bucket that holds `positions`."""
    return next(bucket for bucket in buckets if bucket >= positions)


def most_padding(buckets: tuple[int, ...]) -> int:
    """The most positions that a batch is padded by, that is by one less than from bucket to bucket."""
    return max((longer - shorter - 1 for shorter, longer in itertools.pairwise(buckets)), default=0)


def batch_lengths(task: Task, lengths: tuple[int, int], seed: int, start: int, count: int) -> np.ndarray:
    """Source lengths (count,) of the batches at steps start, start + 1, ...: uniform, functions of (seed, step) alone."""
    choices = np.arange(lengths[0], lengths[1] + 1, task.length_step)
    return choices[np.asarray(_draw_indices(seed, start, count, len(choices)))]


@functools.partial(jax.jit, static_argnums=(2, 3))
def _draw_indices(seed, start, count: int, choices: int):
    def draw(step):
        return jax.random.randint(jax.random.fold_in(draw_key(seed, _LENGTH_STREAM), step), (), 0, choices)

    return jax.vmap(draw)(start + jnp.arange(count))
