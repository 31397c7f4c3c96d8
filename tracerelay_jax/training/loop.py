"""The training loop of one run: updates spread over the devices, validation, checkpoints, and the stop rule."""

import dataclasses
import functools
import time
from collections.abc import Sequence

import jax
import numpy as np

from tracerelay_jax.experiment import Experiment
from tracerelay_jax.hosts import of_first_process
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.parallel import data_mesh, replicated
from tracerelay_jax.progress import Pace, Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.lengths import batch_lengths, bucket_of, length_buckets, most_padding
from tracerelay_jax.training.optimizer import make_optimizer
from tracerelay_jax.training.record import EventHook, RunRecord
from tracerelay_jax.training.step import TrainState, compile_train_step, init_state, make_train_step
from tracerelay_jax.training.stopping import Progress, Validation
from tracerelay_jax.training.validation import Validator


class Trainer:
    """Trains one run in its folder, from its latest checkpoint if there is one, until it has stopped.

    `devices` share the work, by default the local ones; where they belong to several processes, all of these do the same.
    """

    def __init__(
        self,
        experiment: Experiment,
        folder: RunFolder,
        reporter: Reporter,
        on_event: EventHook | None = None,
        devices: Sequence[jax.Device] = (),
    ):
        self._experiment, self._folder, self._reporter = experiment, folder, reporter
        self._on_event = on_event
        self._model = TraceRelay(experiment.model)
        self._optimizer = make_optimizer(experiment.training)
        self._mesh = data_mesh(experiment.training.batch_size, devices)
        self._buckets = length_buckets(experiment.task, experiment.training.lengths)
        self._steps = {}  # compiled, by padded length
        self._pace = Pace()
        self._validator = Validator(experiment, reporter, self._pace)

    def run(self) -> Progress:
        """Trains until the stop rule or the cap, and returns what the run has become."""
        record = RunRecord(self._experiment, self._folder, self._on_event)
        try:
            state = self._start(record)
            with self._reporter.updates(record.progress.updates, self._experiment.training.updates):
                while not record.stop_reason:
                    state = self._train_and_validate(state, record)
        finally:
            record.close()
        return record.progress

    def _start(self, record: RunRecord) -> TrainState:
        make_state = jax.jit(
            functools.partial(init_state, self._model, self._optimizer), out_shardings=replicated(self._mesh)
        )
        state = record.restore(make_state(np.uint32(self._experiment.seed)))
        if record.progress.updates:
            self._reporter.line(f"continuing {self._folder.path} from update {record.progress.updates}")
        return state

    def _train_and_validate(self, state: TrainState, record: RunRecord) -> TrainState:
        """Trains to the next validation, validates, and saves."""
        begin = time.perf_counter()
        state = self._train(state, record)
        self._reporter.update(record.progress.updates, "validating")
        validation = self._agree(self._validator.validate(jax.device_get(state.params), record.progress.updates))
        record.validated(state, validation, time.perf_counter() - begin)
        self._reporter.line(describe_validation(record, self._pace))
        return state

    def _agree(self, validation: Validation) -> Validation:
        """Decides by process 0's validation where several share the run: apart by a rounding, one would stop alone."""
        if len({device.process_index for device in self._mesh.devices.flat}) == 1:
            return validation
        score, cross_entropy = of_first_process([validation.score, validation.cross_entropy])
        return dataclasses.replace(validation, score=score, cross_entropy=cross_entropy)

    def _train(self, state: TrainState, record: RunRecord) -> TrainState:
        """Makes the updates up to the next validation."""
        experiment, start = self._experiment, record.progress.updates
        count = record.next_validation - start
        for length in batch_lengths(experiment.task, experiment.training.lengths, experiment.seed, start, count):
            positions = experiment.task.positions(int(length))
            step = self._compiled_step(state, bucket_of(self._buckets, positions))
            begin = time.perf_counter()
            state, metrics = step(state, np.uint32(experiment.seed), np.int32(length))
            jax.block_until_ready(metrics)
            self._pace.step(time.perf_counter() - begin)
            record.updated(positions, metrics, self._pace.updates_per_second)
            self._reporter.update(record.progress.updates, self._note(record, metrics.loss))
        return state

    def _compiled_step(self, state: TrainState, padded: int):
        """The step for one padded length, compiled once."""
        if padded not in self._steps:
            task, rows, padding = self._experiment.task, self._experiment.training.batch_size, most_padding(self._buckets)
            step = make_train_step(self._model, task, self._optimizer, rows, self._mesh, padding)
            with self._reporter.compiling(f"training step, {padded} positions"):
                self._steps[padded] = compile_train_step(step, state, padded, self._mesh)
        return self._steps[padded]

    def _note(self, record: RunRecord, loss) -> str:
        progress = record.progress
        last = f"validation {progress.history[-1].score:.2%}  " if progress.history else ""
        left = self._pace.time_left(self._experiment.training.updates - progress.updates)
        return f"loss {float(loss):.4f}  {last}{self._pace.updates_per_second:.1f} updates/s  {left} left at most"


def describe_validation(record: RunRecord, pace: Pace) -> str:
    """The line of a run's last validation."""
    updates, validation = record.experiment.training.updates, record.progress.history[-1]
    per_length = ", ".join(f"{length}: {metrics['score']:.2%}" for length, metrics in validation.lengths.items())
    return (
        f"update {validation.update}/{updates}  validation {validation.score:.2%} ({per_length})  cross-entropy "
        f"{validation.cross_entropy:.4f}  {pace.updates_per_second:.1f} updates/s  "
        f"{pace.time_left(updates - validation.update)} left at most"
    )
