"""The evaluation of a checkpoint over several lengths, and its table."""

from collections.abc import Sequence
from typing import Any

from tracerelay_jax.evaluation.examples import make_examples
from tracerelay_jax.evaluation.metrics import evaluate
from tracerelay_jax.evaluation.predictor import Predictor
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.progress import Reporter

_COLUMNS = ("score", "top1", "set_exact", "termination", "teacher_forced_exact", "disagreements", "cross_entropy")


def evaluate_lengths(
    experiment: Experiment, params, lengths: Sequence[int], examples: int, reporter: Reporter
) -> dict[str, dict[str, Any]]:
    """Returns {length: metrics}, printing a line for each length as it is done."""
    predictor = Predictor(TraceRelay(experiment.model), experiment.evaluation.batch_size, reporter)
    results = {}
    for length in lengths:
        example_set = make_examples(experiment.task, experiment.evaluation.seed, length, examples)
        metrics = evaluate(predictor, params, experiment.task, example_set)
        results[str(length)] = metrics
        reporter.line(describe(experiment, length, metrics))
    return results


def describe(experiment: Experiment, length: int, metrics: dict[str, Any]) -> str:
    """One line: where the length stands, the score in percent, and the task's other figures."""
    known = "ID " if experiment.training.lengths[0] <= length <= experiment.training.lengths[1] else "OOD"
    parts = [f"{known} length {length:5d}"]
    for name in _COLUMNS:
        value = metrics.get(name)
        if value is not None:
            parts.append(
                f"{name} {value:7.2%}" if isinstance(value, float) and name != "cross_entropy" else f"{name} {value:.4g}"
            )
    return "  ".join([*parts, f"({metrics['examples']} examples)"])
