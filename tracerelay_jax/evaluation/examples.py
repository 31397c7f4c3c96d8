"""Evaluation sets: functions of (seed, length), with a fingerprint."""

import hashlib
from typing import NamedTuple

import jax
import numpy as np

from tracerelay_jax.tasks import Batch, Task, draw_key


class Examples(NamedTuple):
    """Examples of one length, on the host.

    Attributes:
      length: source length.
      batch: NumPy arrays, all rows.
      fingerprint: SHA-256 over tokens and targets, so that equal fingerprints mean equal examples.
    """

    length: int
    batch: Batch
    fingerprint: str


def make_examples(task: Task, seed: int, length: int, count: int) -> Examples:
    """Draws `count` examples in one call, so that class counts are those of the whole set."""
    sample = jax.jit(task.sample, static_argnums=(1, 2))
    batch = jax.tree.map(np.asarray, sample(draw_key(seed, length), count, length))
    digest = hashlib.sha256()
    for array in (batch.tokens, np.where(batch.scored, batch.targets, -1), batch.scored):
        digest.update(np.ascontiguousarray(array, dtype="<i4").tobytes())
    return Examples(length, batch, digest.hexdigest())
