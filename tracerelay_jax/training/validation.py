"""Validation on fixed sets, over all devices (Section 3, "Selection and reporting")."""

import functools
import math
import time

from tracerelay_jax.evaluation.examples import make_examples
from tracerelay_jax.evaluation.metrics import evaluate
from tracerelay_jax.evaluation.predictor import Predictor
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.progress import Pace, Reporter
from tracerelay_jax.training.stopping import Validation


class Validator:
    """Validates the parameters of runs that share task, model and validation sets; these are made and compiled once.

    What a validation takes, without compilation, counts in the `pace`.
    """

    def __init__(self, experiment: Experiment, reporter: Reporter, pace: Pace):
        self._experiment, self._reporter, self._pace = experiment, reporter, pace
        self._predictor = Predictor(TraceRelay(experiment.model), experiment.evaluation.batch_size, reporter)

    @functools.cached_property
    def _sets(self):
        config = self._experiment.validation
        return [make_examples(self._experiment.task, config.seed, length, config.examples) for length in config.lengths]

    def validate(self, params, update: int) -> Validation:
        """Score and cross-entropy of the parameters after `update`, averaged over the lengths."""
        begin, compiled_before = time.perf_counter(), self._reporter.compile_seconds
        lengths = {
            str(examples.length): evaluate(self._predictor, params, self._experiment.task, examples, details=False)
            for examples in self._sets
        }
        compiling = self._reporter.compile_seconds - compiled_before
        self._pace.validation(time.perf_counter() - begin - compiling)
        score, cross_entropy = (
            math.fsum(metrics[name] for metrics in lengths.values()) / len(lengths) for name in ("score", "cross_entropy")
        )
        return Validation(update, score, cross_entropy, lengths)
