"""The model over an evaluation set: batch by batch, over all devices, compiled once a length."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tracerelay_jax.generation import generate
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.parallel import data_mesh, map_over_rows
from tracerelay_jax.progress import Reporter
from tracerelay_jax.tasks import Batch, MostFreq


class Predictions(NamedTuple):
    """Of every row, on the host.

    Attributes:
      outputs: (B, T) int32, the likeliest class at each position that was asked for.
      cross_entropy: (B,) float32 nats, summed over the row's scored positions.
    """

    outputs: np.ndarray
    cross_entropy: np.ndarray


class Predictor:
    """Runs a model over example sets of any size in batches of `batch_size`; no result depends on it but for rounding."""

    def __init__(self, model: TraceRelay, batch_size: int, reporter: Reporter):
        self._model, self._batch_size, self._reporter = model, batch_size, reporter
        self._mesh = data_mesh(batch_size)
        self._compiled = {}

    def predict(self, params, batch: Batch, last: int | None = None) -> Predictions:
        """Teacher-forced predictions at every position, or at the `last`; all that is scored must be there."""

        def forward(params, rows: Batch):
            logits, _ = self._model.apply(params, rows.tokens, rows.valid, last=last)
            return _predictions(logits, jax.tree.map(lambda x: x[:, -logits.shape[1] :], rows))

        return self._run("evaluation", last, forward, params, batch)

    def predict_answers(self, params, task: MostFreq, batch: Batch) -> tuple[Predictions, np.ndarray]:
        """Teacher-forced predictions (B, V + 1) after the source, and free greedy outputs (B, V + 1), no answer fed in.

        Both go on from one cache after the source, and so compare a chunk with single steps.
        """
        source = slice(None, batch.tokens.shape[1] - task.answer_limit)
        answer = slice(source.stop, None)

        def forward(params, rows: Batch):
            _, cache = self._model.apply(params, rows.tokens[:, source], last=1)
            answers = jax.tree.map(lambda x: x[:, answer], rows)
            logits, _ = self._model.apply(params, answers.tokens, cache=cache)
            separators = answers.tokens[:, :1]
            free = generate(self._model, params, separators, steps=task.answer_limit, feed_back=task.feed_back, cache=cache)
            return _predictions(logits, answers), free.outputs

        return self._run("generation", task, forward, params, batch)

    def _run(self, name: str, option, forward, params, rows):
        """Runs `forward`, which the name, what it closes over (`option`) and the number of positions determine."""
        count, positions = jax.tree.leaves(rows)[0].shape
        parts = []
        for start in range(0, count, self._batch_size):
            part = jax.tree.map(lambda x, start=start: self._take(x, start), rows)
            run = self._compile((name, positions, option), forward, params, part)
            parts.append(jax.tree.map(np.asarray, run(params, part)))
        return jax.tree.map(lambda *arrays: np.concatenate(arrays)[:count], *parts)

    def _take(self, x: np.ndarray, start: int) -> np.ndarray:
        """A whole batch: the last one is filled up with copies of its first row."""
        part = x[start : start + self._batch_size]
        missing = self._batch_size - len(part)
        return np.concatenate([part, np.repeat(part[:1], missing, axis=0)]) if missing else part

    def _compile(self, key: tuple, forward, params, part):
        if key not in self._compiled:
            with self._reporter.compiling(f"{key[0]}, {key[1]} positions"):
                mapped = jax.jit(map_over_rows(forward, self._mesh))
                self._compiled[key] = mapped.lower(params, part).compile()
        return self._compiled[key]


def _predictions(logits: jax.Array, rows: Batch) -> Predictions:
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, rows.targets)
    return Predictions(jnp.argmax(logits, axis=-1).astype(jnp.int32), jnp.sum(losses, axis=1, where=rows.scored))
