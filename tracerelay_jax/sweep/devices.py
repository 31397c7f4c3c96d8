"""Seeds of one config trained together: mapped over devices with `pmap`, and over the seeds of a device with `vmap`.

Each seed keeps its own batches, lengths, validations, checkpoints and stop. What is computed for one does not depend on
the state of the others: a device pads to the longest batch of its own seeds at that update, whether these still train or
not. So an interrupted sweep goes on to the same bits. A run alone differs from it by rounding, since it is another program.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.experiment import Experiment
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.parallel import data_mesh
from tracerelay_jax.progress import Bars, MessageReporter, Pace
from tracerelay_jax.sweep.plan import Run
from tracerelay_jax.training.lengths import batch_lengths, bucket_of, length_buckets, most_padding
from tracerelay_jax.training.loop import describe_validation
from tracerelay_jax.training.optimizer import make_optimizer
from tracerelay_jax.training.record import RunRecord
from tracerelay_jax.training.run import evaluate_best
from tracerelay_jax.training.step import StepMetrics, TrainState, init_state, make_train_step
from tracerelay_jax.training.validation import Validator


class SeedTrainer:
    """Trains runs that differ in nothing but their seed, each from its latest checkpoint until it has stopped."""

    def __init__(self, runs: Sequence[Run], devices: Sequence[jax.Device], bars: Bars):
        self._runs, self._bars = runs, bars
        self._experiment = runs[0].experiment
        self._a_device = -(-len(runs) // len(devices))
        self._devices = devices[: -(-len(runs) // self._a_device)]
        # Runs by place, (devices, seeds of a device); where seeds are missing the last one stands again, unused.
        places = np.minimum(np.arange(len(self._devices) * self._a_device), len(runs) - 1)
        self._places = places.reshape(len(self._devices), self._a_device)
        self._place_of = {run.experiment.name: divmod(index, self._a_device) for index, run in enumerate(runs)}
        self._buckets = length_buckets(self._experiment.task, self._experiment.training.lengths)
        self._reporter = MessageReporter(functools.partial(bars.receive, "sweep"))
        self._pace = Pace()
        self._validator = Validator(self._experiment, self._reporter, self._pace)
        self.failures: dict[str, str] = {}

    def run(self) -> None:
        """Trains and evaluates all; `failures` then says of each run that failed what went wrong."""
        with contextlib.ExitStack() as stack:
            records = {}
            for run in self._runs:
                if not run.done:
                    stack.enter_context(run.folder.locked())
                    records[run.experiment.name] = record = RunRecord(run.experiment, run.folder)
                    stack.callback(record.close)
            states, step = self._start(records), None
            while training := self._training(records.values()):
                begin = time.perf_counter()
                step = step or self._compile(states)
                states = self._train_and_validate(step, states, training, begin)
            for record in self._sound(records.values()):
                self._evaluate(record)

    def _start(self, records: Mapping[str, RunRecord]) -> TrainState:
        """The states by place; of finished runs, which nobody will look at, the first ones."""
        model, optimizer = TraceRelay(self._experiment.model), make_optimizer(self._experiment.training)
        make_state = jax.jit(functools.partial(init_state, model, optimizer))
        each = []
        for run in self._runs:
            state, record = make_state(np.uint32(run.experiment.seed)), records.get(run.experiment.name)
            each.append(jax.device_get(record.restore(state) if record else state))
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
        return jax.tree.map(lambda leaf: leaf[self._places], stacked)

    def _compile(self, states: TrainState) -> Callable:
        mapped = map_seeds(self._experiment, self._devices, self._buckets, self._a_device)
        scalars = np.zeros(self._places.shape, np.int32)
        examples = (states, scalars.astype(np.uint32), scalars, scalars.astype(bool), scalars[:, 0])
        count = f"{len(self._runs)} seeds on {len(self._devices)} devices"
        with self._reporter.compiling(f"training step of {count}, up to {self._buckets[-1]} positions"):
            return mapped.lower(*examples).compile()

    def _sound(self, records: Iterable[RunRecord]) -> list[RunRecord]:
        return [record for record in records if record.experiment.name not in self.failures]

    def _training(self, records: Iterable[RunRecord]) -> list[RunRecord]:
        """Those that train now: the furthest behind, until the others are caught up with."""
        left = [record for record in self._sound(records) if not record.stop_reason]
        return [record for record in left if record.progress.updates == min(one.progress.updates for one in left)]

    def _train_and_validate(self, step: Callable, states: TrainState, training: list[RunRecord], begin: float) -> TrainState:
        states = self._train(step, states, training)
        host = jax.device_get(states)
        for record in self._sound(training):
            with self._failing_alone(record):
                self._validate(self._own(host, record), record, begin)
        return states

    def _train(self, step: Callable, states: TrainState, training: list[RunRecord]) -> TrainState:
        """Makes the updates of the training runs up to their next validation; the others' states stay as they are."""
        experiment, start = self._experiment, training[0].progress.updates
        count = training[0].next_validation - start
        seeds = np.array([run.experiment.seed for run in self._runs], np.uint32)
        lengths = np.stack(
            [batch_lengths(experiment.task, experiment.training.lengths, int(seed), start, count) for seed in seeds]
        )
        names = {record.experiment.name for record in training}
        active = np.array([run.experiment.name in names for run in self._runs])[self._places]
        for update in range(count):
            begin = time.perf_counter()
            now = lengths[self._places, update].astype(np.int32)
            states, metrics = step(states, seeds[self._places], now, active, self._bucket_indices(now))
            metrics = jax.device_get(metrics)
            self._pace.step(time.perf_counter() - begin)
            for record in self._sound(training):
                self._record(record, int(now[self._place_of[record.experiment.name]]), metrics)
        return states

    def _bucket_indices(self, lengths: np.ndarray) -> np.ndarray:
        """(devices,) int32: which padded length holds the longest batch of each device."""
        positions = [self._experiment.task.positions(int(longest)) for longest in lengths.max(axis=1)]
        return np.array([self._buckets.index(bucket_of(self._buckets, count)) for count in positions], np.int32)

    def _record(self, record: RunRecord, length: int, metrics: StepMetrics) -> None:
        name, total = record.experiment.name, record.experiment.training.updates
        own = self._own(metrics, record)
        with self._failing_alone(record):
            record.updated(record.experiment.task.positions(length), own, self._pace.updates_per_second)
        note = f"loss {own.loss:.4f}  {self._pace.updates_per_second:.1f} updates/s"
        self._bars.receive(name, {"done": record.progress.updates, "total": total, "note": note})

    def _validate(self, state: TrainState, record: RunRecord, begin: float) -> None:
        validation = self._validator.validate(state.params, record.progress.updates)
        record.validated(state, validation, time.perf_counter() - begin)
        self._bars.receive(record.experiment.name, {"line": describe_validation(record, self._pace)})

    def _evaluate(self, record: RunRecord) -> None:
        name = record.experiment.name
        send = functools.partial(self._bars.receive, name)
        evaluate_best(record.experiment, record.folder, record.progress, MessageReporter(send))
        self._bars.remove(name)

    @contextlib.contextmanager
    def _failing_alone(self, record: RunRecord):
        """What makes one seed fail does not end the others."""
        try:
            yield
        except FloatingPointError as error:
            self.failures[record.experiment.name] = str(error)
            self._bars.remove(record.experiment.name)

    def _own(self, tree, record: RunRecord):
        place = self._place_of[record.experiment.name]
        return jax.tree.map(lambda leaf: np.asarray(leaf[place]), tree)


def map_seeds(experiment: Experiment, devices: Sequence[jax.Device], buckets: Sequence[int], a_device: int) -> Callable:
    """The training step mapped over seeds.

    Args:
      experiment: what the seeds share.
      devices: those to map over.
      buckets: padded lengths.
      a_device: seeds of a device.

    Returns:
      (states, seeds, lengths, active, bucket) -> (states, metrics). Leaves are (devices, seeds of a device, ...); `seeds` is
      uint32, `lengths` int32, `active` bool; but `bucket`, int32 (devices,), points into `buckets`. A state that is not
      active comes out as it went in.
    """
    model, optimizer = TraceRelay(experiment.model), make_optimizer(experiment.training)
    task, rows = experiment.task, experiment.training.batch_size
    one_device = data_mesh(rows, devices[:1])
    shortest = task.positions(experiment.training.lengths[0])

    def branch(bucket):
        # Beside a longer batch of another seed the shortest one is padded up to the longer one's bucket.
        padding = most_padding(buckets) if a_device == 1 else bucket - shortest
        step = make_train_step(model, task, optimizer, rows, one_device, padding)
        return jax.vmap(functools.partial(step, padded=bucket))

    branches = [branch(bucket) for bucket in buckets]

    def on_device(states, seeds, lengths, active, bucket):
        new, metrics = jax.lax.switch(bucket, branches, states, seeds, lengths)

        def choose(new, old):
            return jnp.where(active.reshape(active.shape + (1,) * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, new, states), metrics

    return jax.pmap(on_device, devices=devices, donate_argnums=0)
