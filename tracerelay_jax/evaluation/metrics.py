"""Each task's metrics over one evaluation set. All are fractions, not percent; cross-entropy is in nats."""

from typing import Any

import numpy as np

from tracerelay_jax.evaluation.baselines import most_freq_baselines
from tracerelay_jax.evaluation.examples import Examples
from tracerelay_jax.evaluation.predictor import Predictions, Predictor
from tracerelay_jax.tasks import Dyck, EqualRepeats, MostFreq, Task
from tracerelay_jax.tasks.dyck import matching_distances_and_depths

# Matching distances of Table 3: 1-8, 9-16, ..., 1025-2048, and beyond.
DISTANCE_EDGES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def evaluate(predictor: Predictor, params, task: Task, examples: Examples, details: bool = True) -> dict[str, Any]:
    """Returns the task's metrics of `params` on `examples`.

    Every task gives `score`, by which checkpoints are selected, `cross_entropy`, `examples` and `fingerprint`. Equal
    Repeats and Dyck are read from one teacher-forced pass; Most-Freq scores free greedy generation, and compares.

    Args:
      predictor: runs the model.
      params: its parameters.
      task: the task that the examples are of.
      examples: from `make_examples`.
      details: also slices, diagnostics' baselines and class counts, which training does not need.
    """
    if isinstance(task, MostFreq):
        return _most_freq(predictor, params, task, examples, details)
    batch = examples.batch
    predictions = predictor.predict(params, batch, task.scored_last)
    asked = slice(-predictions.outputs.shape[1], None)
    correct = predictions.outputs == batch.targets[:, asked]
    metrics = {"score": float(correct[batch.scored[:, asked]].mean())} | _common(examples, predictions)
    if details and isinstance(task, Dyck):
        return metrics | _dyck_slices(task, batch.tokens, correct)
    if details and isinstance(task, EqualRepeats):
        counts = np.bincount(batch.targets[:, -1], minlength=task.outputs)
        return metrics | {"class_counts": counts.tolist(), "majority_baseline": float(counts.max() / counts.sum())}
    return metrics


def _common(examples: Examples, predictions: Predictions) -> dict[str, Any]:
    return {
        "cross_entropy": float(predictions.cross_entropy.sum(dtype=np.float64) / examples.batch.scored.sum()),
        "examples": len(examples.batch.tokens),
        "fingerprint": examples.fingerprint,
    }


def _dyck_slices(task: Dyck, tokens: np.ndarray, correct: np.ndarray) -> dict[str, Any]:
    distances, depths = matching_distances_and_depths(tokens, task.types, task.depth)
    closes = tokens[:, 1:] >= task.types  # the target at t is the token at t + 1
    distances, depths, correct = distances[:, 1:][closes], depths[:, 1:][closes], correct[:, :-1][closes]
    bounds = list(zip((0, *DISTANCE_EDGES), (*DISTANCE_EDGES, np.inf), strict=True))
    by_distance = {
        f"{low + 1}-{high}" if high < np.inf else f">{low}": _slice(correct, (distances > low) & (distances <= high))
        for low, high in bounds
    }
    by_depth = {str(depth): _slice(correct, depths == depth) for depth in range(1, task.depth + 1)}
    return {"distance": by_distance, "depth": by_depth}


def _slice(correct: np.ndarray, members: np.ndarray) -> dict[str, Any]:
    """Accuracy over the members; None, not zero, where there are none."""
    count = int(members.sum())
    return {"closes": count, "accuracy": float(correct[members].mean()) if count else None}


def _most_freq(predictor: Predictor, params, task: MostFreq, examples: Examples, details: bool) -> dict[str, Any]:
    batch, length = examples.batch, examples.length
    predictions, outputs = predictor.predict_answers(params, task, batch)
    sources, answers = batch.tokens[:, :length], batch.targets[:, length:]
    ranking = answers[:, : task.symbols]
    teacher_forced = (predictions.outputs == answers).all(axis=1)
    exact = most_freq_exact(task, outputs, ranking)
    metrics = {
        **_common(examples, predictions),
        **most_freq_diagnostics(task, outputs, ranking),
        "teacher_forced_exact": float(teacher_forced.mean()),
        "disagreements": int((teacher_forced != exact).sum()),
    }
    if details:
        metrics["baselines"] = most_freq_baselines(task, sources, ranking)
    return metrics


def most_freq_exact(task: MostFreq, outputs: np.ndarray, ranking: np.ndarray) -> np.ndarray:
    """(B,) bool: the complete ranking (B, V), then EOS, in outputs (B, V + 1)."""
    return (outputs[:, :-1] == ranking).all(axis=1) & (outputs[:, -1] == task.end)


def most_freq_diagnostics(task: MostFreq, outputs: np.ndarray, ranking: np.ndarray) -> dict[str, float]:
    """Table 4, of free greedy outputs (B, V + 1); what follows the first EOS does not count.

    `score`: the ranking and EOS, exactly. `top1`, `top2_prefix`: the first one, the first two outputs. `set_exact`: every
    symbol exactly once before the end, in any order. `termination`: an EOS within the limit of V + 1 outputs.
    """
    ended = np.cumsum(outputs == task.end, axis=1) > 0
    before_end = np.where(ended, -1, outputs)
    times = (before_end[:, :, None] == np.arange(task.symbols)).sum(axis=1)
    return {
        "score": float(most_freq_exact(task, outputs, ranking).mean()),
        "top1": float((before_end[:, 0] == ranking[:, 0]).mean()),
        "top2_prefix": float((before_end[:, :2] == ranking[:, :2]).all(axis=1).mean()),
        "set_exact": float((times == 1).all(axis=1).mean()),
        "termination": float(ended.any(axis=1).mean()),
    }
