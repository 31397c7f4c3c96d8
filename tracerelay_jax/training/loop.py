"""The training loop: updates, validation, checkpoints, and the stop rule."""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from tracerelay_jax.errors import InputError
from tracerelay_jax.evaluation.examples import make_examples
from tracerelay_jax.evaluation.metrics import evaluate
from tracerelay_jax.evaluation.predictor import Predictor
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.parallel import data_mesh, replicated
from tracerelay_jax.progress import Pace, Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.checkpoints import Checkpoints
from tracerelay_jax.training.lengths import batch_lengths, bucket_of, length_buckets
from tracerelay_jax.training.optimizer import make_optimizer
from tracerelay_jax.training.step import TrainState, compile_train_step, init_state, make_train_step
from tracerelay_jax.training.stopping import Progress, Validation

EventHook = Callable[[dict[str, Any]], None]  # is given each event of metrics.jsonl


class Trainer:
    """Trains one run in its folder, from its latest checkpoint if there is one, until it has stopped."""

    def __init__(self, experiment: Experiment, folder: RunFolder, reporter: Reporter, on_event: EventHook | None = None):
        self._experiment, self._folder, self._reporter = experiment, folder, reporter
        self._on_event = on_event or (lambda event: None)
        self._model = TraceRelay(experiment.model)
        self._optimizer = make_optimizer(experiment.training)
        self._mesh = data_mesh(experiment.training.batch_size)
        self._buckets = length_buckets(experiment.task, experiment.training.lengths)
        self._steps = {}  # compiled, by padded length
        self._pace = Pace()

    def run(self) -> Progress:
        """Trains until the stop rule or the cap, and returns what the run has become."""
        checkpoints = Checkpoints(self._folder.checkpoints)
        try:
            state, progress = self._start(checkpoints)
            with self._reporter.updates(progress.updates, self._experiment.training.updates):
                while not stop_reason(self._experiment, progress):
                    state = self._train_and_validate(state, progress, checkpoints)
        finally:
            checkpoints.close()
        return progress

    def _start(self, checkpoints: Checkpoints) -> tuple[TrainState, Progress]:
        make_state = jax.jit(
            functools.partial(init_state, self._model, self._optimizer), out_shardings=replicated(self._mesh)
        )
        state = make_state(jnp.uint32(self._experiment.seed))
        restored = checkpoints.restore_latest(state)
        state, progress = restored or (state, Progress())
        self._folder.drop_metrics_after(progress.updates)
        if progress.updates:
            self._reporter.line(f"continuing {self._folder.path} from update {progress.updates}")
        return state, progress

    def _train_and_validate(self, state: TrainState, progress: Progress, checkpoints: Checkpoints) -> TrainState:
        """Trains to the next validation, validates, and saves."""
        config = self._experiment.validation
        begin = time.perf_counter()
        seconds_before = progress.seconds
        goal = min((progress.updates // config.every + 1) * config.every, self._experiment.training.updates)
        state = self._train(state, progress, goal)

        validation = self._validate(state, progress)
        progress.record(validation, config.threshold)
        progress.seconds = seconds_before + time.perf_counter() - begin
        event = {"event": "validation", "update": progress.updates, "score": validation.score,
                 "cross_entropy": validation.cross_entropy, "lengths": validation.lengths,
                 "tokens": progress.tokens, "seconds": round(progress.seconds, 3)}  # fmt: skip
        self._emit(event)
        checkpoints.save(state, progress, validation)
        self._reporter.line(self._describe(validation))
        return state

    def _train(self, state: TrainState, progress: Progress, goal: int) -> TrainState:
        """Makes updates up to `goal`, logging every few."""
        experiment = self._experiment
        start = progress.updates
        lengths = batch_lengths(experiment.task, experiment.training.lengths, experiment.seed, start, goal - start)
        metrics = []
        for length in lengths:
            positions = experiment.task.positions(int(length))
            step = self._compiled_step(state, bucket_of(self._buckets, positions))
            begin = time.perf_counter()
            state, step_metrics = step(state, jnp.uint32(experiment.seed), jnp.int32(length))
            metrics.append(jax.block_until_ready(step_metrics))
            self._pace.step(time.perf_counter() - begin)
            progress.updates += 1
            progress.tokens += experiment.training.batch_size * positions
            self._reporter.update(progress.updates, self._note(progress, metrics[-1].loss))
            if progress.updates % experiment.training.log_every == 0 or progress.updates == goal:
                self._log(progress, metrics)
                metrics = []
        return state

    def _compiled_step(self, state: TrainState, padded: int):
        """The step for one padded length, compiled once."""
        if padded not in self._steps:
            batch_size = self._experiment.training.batch_size
            step = make_train_step(self._model, self._experiment.task, self._optimizer, batch_size, self._mesh)
            with self._reporter.compiling(f"training step, {padded} positions"):
                self._steps[padded] = compile_train_step(step, state, padded, self._mesh)
        return self._steps[padded]

    def _log(self, progress: Progress, metrics) -> None:
        losses = [float(entry.loss) for entry in metrics]
        loss = math.fsum(losses) / len(losses)
        norm = math.fsum(float(entry.gradient_norm) for entry in metrics) / len(metrics)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise FloatingPointError(
                f"loss {loss} and gradient norm {norm} by update {progress.updates}: not finite; the checkpoints before "
                "are kept"
            )
        event = {"event": "train", "update": progress.updates, "loss": loss, "gradient_norm": norm,
                 "updates_per_second": round(self._pace.updates_per_second, 2)}  # fmt: skip
        self._emit(event)

    def _emit(self, event: dict[str, Any]) -> None:
        self._folder.append_metrics(event)
        self._on_event(event)

    @functools.cached_property
    def _validation_sets(self):
        experiment, config = self._experiment, self._experiment.validation
        return [make_examples(experiment.task, config.seed, length, config.examples) for length in config.lengths]

    @functools.cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self._model, self._experiment.evaluation.batch_size, self._reporter)

    def _validate(self, state: TrainState, progress: Progress) -> Validation:
        begin, compiled_before = time.perf_counter(), self._reporter.compile_seconds
        self._reporter.update(progress.updates, "validating")
        lengths = {
            str(examples.length): evaluate(self._predictor, state.params, self._experiment.task, examples, details=False)
            for examples in self._validation_sets
        }
        compiling = self._reporter.compile_seconds - compiled_before
        self._pace.validation(time.perf_counter() - begin - compiling)
        score, cross_entropy = (
            math.fsum(metrics[name] for metrics in lengths.values()) / len(lengths) for name in ("score", "cross_entropy")
        )
        return Validation(progress.updates, score, cross_entropy, lengths)

    def _note(self, progress: Progress, loss) -> str:
        last = f"validation {progress.history[-1].score:.2%}  " if progress.history else ""
        left = self._pace.time_left(self._experiment.training.updates - progress.updates)
        return f"loss {float(loss):.4f}  {last}{self._pace.updates_per_second:.1f} updates/s  {left} left at most"

    def _describe(self, validation: Validation) -> str:
        updates = self._experiment.training.updates
        per_length = ", ".join(f"{length}: {metrics['score']:.2%}" for length, metrics in validation.lengths.items())
        return (
            f"update {validation.update}/{updates}  validation {validation.score:.2%} ({per_length})  cross-entropy "
            f"{validation.cross_entropy:.4f}  {self._pace.updates_per_second:.1f} updates/s  "
            f"{self._pace.time_left(updates - validation.update)} left at most"
        )


def stop_reason(experiment: Experiment, progress: Progress) -> str | None:
    """`threshold` after enough consecutive passes, `cap` when the updates are used up, else None."""
    if progress.streak >= experiment.validation.passes:
        return "threshold"
    return "cap" if progress.updates >= experiment.training.updates else None


def load_best(folder: RunFolder):
    """The selected checkpoint of a run: (update, parameters).

    Raises:
      InputError: if there is none.
    """
    if not folder.checkpoints.is_dir():
        raise InputError(f"workdir={folder.path}: holds no checkpoint; train a run there first")
    checkpoints = Checkpoints(folder.checkpoints)
    try:
        return checkpoints.restore_best()
    finally:
        checkpoints.close()
