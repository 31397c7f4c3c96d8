import dataclasses
import io
import json
import math
import types

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests import tiny
from tracerelay_jax import InputError, TraceRelay, tasks
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.parallel import data_mesh, slice_rows
from tracerelay_jax.progress import Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.checkpoints import Checkpoints, load_parameters
from tracerelay_jax.training.lengths import batch_lengths, bucket_of, length_buckets, most_padding
from tracerelay_jax.training.loop import Trainer
from tracerelay_jax.training.optimizer import make_optimizer
from tracerelay_jax.training.record import stop_reason
from tracerelay_jax.training.run import train_and_evaluate
from tracerelay_jax.training.step import TrainState, loss_sum, make_train_step
from tracerelay_jax.training.stopping import Progress, Validation

TIMES = ("seconds", "minutes", "updates_per_second")


def start(root, path, task="most_freq", **overrides):
    config = tiny.config(root, task, **overrides)
    folder = RunFolder(path)
    folder.create_or_check(config, ["test"])
    return make_experiment(config), folder


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(entry) for name, entry in value.items() if name not in TIMES}
    return value


def metrics_of(folder):
    return [without_times(json.loads(line)) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]


class KilledError(Exception):
    pass


class Killer(Reporter):
    """Raises in the midst of an update, as a kill would."""

    def __init__(self, at):
        super().__init__(io.StringIO())
        self.at = at

    def update(self, done, note):
        if done == self.at and note != "validating":
            raise KilledError


# Before the first checkpoint, between two, at the last update; the other tasks share all but their metrics.
@pytest.mark.parametrize(("task", "length", "kills"), [("most_freq", 48, (3,)), ("dyck", 8, (1, 6))])
def test_a_killed_run_goes_on_to_the_same_bits(root, tmp_path, task, length, kills):
    one_length = {"validation__lengths": (length,), "evaluation__ood_lengths": ()}  # fewer programs to compile
    experiment, whole = start(root, tmp_path / "whole", task, **one_length)
    result = train_and_evaluate(experiment, whole, Reporter(io.StringIO()))
    _, killed = start(root, tmp_path / "killed", task, **one_length)
    for at in kills:
        with pytest.raises(KilledError):
            Trainer(experiment, killed, Killer(at)).run()
    assert killed.read_result() is None
    (killed.path / "metrics.jsonl").open("a").write('{"event": "train", "upd')  # a line cut off
    again = train_and_evaluate(experiment, killed, Reporter(io.StringIO()))

    assert without_times(again) == without_times(result)
    assert metrics_of(killed) == metrics_of(whole)
    for got, wanted in zip(jax.tree.leaves(load_parameters(killed)), jax.tree.leaves(load_parameters(whole)), strict=True):
        np.testing.assert_array_equal(got, wanted)
    events = metrics_of(whole)
    assert [event["update"] for event in events if event["event"] == "validation"] == [2, 4, 6]
    assert result["final_update"] == 6
    assert result["stopped_by"] == "cap"
    assert set(result["lengths"]) == {str(n) for n in experiment.evaluation.id_lengths + experiment.evaluation.ood_lengths}


def test_a_finished_run_is_left_alone(root, tmp_path):
    experiment, folder = start(root, tmp_path / "run", "equal_repeats", training__updates=2)
    train_and_evaluate(experiment, folder, Reporter(io.StringIO()))
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    out = io.StringIO()
    train_and_evaluate(experiment, folder, Reporter(out))
    assert "is finished" in out.getvalue()
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before


def test_the_stop_rule_ends_a_run_and_best_and_latest_are_kept(root, tmp_path):
    experiment, folder = start(root, tmp_path / "run", "equal_repeats", validation__threshold=1e-9, training__updates=40)
    trainer = Trainer(experiment, folder, Reporter(io.StringIO()))
    scores = iter([(0.9, 1.0), (0.95, 1.0)])
    trainer._validator.validate = lambda params, update: Validation(update, *next(scores), {})
    progress = trainer.run()
    assert (progress.updates, stop_reason(experiment, progress)) == (4, "threshold")
    assert load_parameters(folder)[0] == 4

    experiment = dataclasses.replace(experiment, validation=dataclasses.replace(experiment.validation, threshold=1.0))
    folder = RunFolder(tmp_path / "other")
    folder.create_or_check(tiny.config(root, "equal_repeats"), [])
    trainer = Trainer(experiment, folder, Reporter(io.StringIO()))
    validations = [(0.5, 2.0), (0.9, 1.0), (0.9, 0.5), (0.9, 0.7), (0.2, 0.1)]
    scores = iter(validations)
    trainer._validator.validate = lambda params, update: Validation(update, *next(scores), {})
    with pytest.raises(StopIteration):
        trainer.run()
    assert load_parameters(folder)[0] == 6  # of equal scores the lower cross-entropy
    assert load_parameters(folder, latest=True)[0] == 10
    assert sorted(path.name for path in folder.checkpoints.iterdir() if path.name.isdigit()) == ["10", "6"]


def test_a_step_is_compiled_at_most_once_a_bucket(root, tmp_path):
    out = io.StringIO()
    experiment, folder = start(root, tmp_path / "run", "equal_repeats", training__updates=40, validation__every=20)
    buckets = length_buckets(experiment.task, experiment.training.lengths)
    Trainer(experiment, folder, Reporter(out)).run()
    compiled = [line for line in out.getvalue().splitlines() if "compiled training step" in line]
    assert len(compiled) == len({line.split(" in ")[0] for line in compiled}) <= len(buckets) <= 8


@pytest.mark.parametrize(("task", "lengths"), [("most_freq", (128, 256)), ("dyck", (32, 256)), ("equal_repeats", (32, 256)),
                                               ("equal_repeats", (2, 3)), ("dyck", (2, 4096))])  # fmt: skip
def test_buckets(task, lengths):
    made = tasks.make(task)
    buckets = length_buckets(made, lengths)
    assert 1 <= len(buckets) <= 8
    assert list(buckets) == sorted(set(buckets))
    drawn = batch_lengths(made, lengths, 42, 0, 2000)
    assert all(bucket_of(buckets, made.positions(int(length))) in buckets for length in drawn)
    assert drawn.min() >= lengths[0]
    assert drawn.max() <= lengths[1]
    used = {bucket_of(buckets, made.positions(int(length))) for length in drawn}
    assert used == set(buckets)  # none is compiled for nothing


def test_lengths_depend_on_seed_and_step_alone_and_are_uniform():
    task = tasks.make("most_freq")
    whole = batch_lengths(task, (128, 256), 42, 0, 500)
    np.testing.assert_array_equal(batch_lengths(task, (128, 256), 42, 200, 100), whole[200:300])
    assert (batch_lengths(task, (128, 256), 43, 0, 500) != whole).any()
    many = batch_lengths(task, (128, 256), 44, 0, 20_000)
    assert set(many) == set(range(128, 257))
    assert abs(many.mean() - 192) < 4 * 37.2 / math.sqrt(20_000)
    assert set(batch_lengths(tasks.make("dyck"), (32, 256), 42, 0, 5000)) == set(range(32, 257, 2))


def gradient_step(task, experiment, params, devices, padded, length, most_padding=None):
    model, optimizer = TraceRelay(experiment.model), optax.sgd(1.0)
    mesh = data_mesh(experiment.training.batch_size) if devices == 2 else jax.make_mesh(
        (1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])  # fmt: skip
    assert mesh.size == devices
    step = make_train_step(model, task, optimizer, experiment.training.batch_size, mesh, most_padding)
    state = TrainState(jnp.int32(0), params, optimizer.init(params))
    new, metrics = jax.jit(step, static_argnums=3)(state, jnp.uint32(7), jnp.int32(length), padded)
    return jax.tree.map(lambda a, b: np.asarray(a) - np.asarray(b), state.params, new.params), metrics


def test_devices_slices_and_padding_change_a_gradient_by_rounding_only(root, monkeypatch):
    experiment = tiny.experiment(root, "dyck")
    task = experiment.task
    model = TraceRelay(experiment.model)
    params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    gradient, metrics = gradient_step(task, experiment, params, 1, 20, 20)
    batch = task.sample(tasks.draw_key(7, 0), 6, 20)
    mean_loss = jax.jit(jax.value_and_grad(lambda params: loss_sum(model, params, batch) / batch.scored.sum()))
    loss, plain = mean_loss(params)
    assert metrics.loss == pytest.approx(float(loss), rel=1e-6)
    assert metrics.gradient_norm == pytest.approx(float(optax.tree.norm(plain)), rel=1e-5)

    cases = {"plain": plain, "two devices": gradient_step(task, experiment, params, 2, 20, 20)[0]}
    cases["padded"] = gradient_step(task, experiment, params, 2, 32, 20)[0]
    monkeypatch.setattr("tracerelay_jax.parallel._CPU_SLICE_POSITIONS", 20)
    cases["slices of one"] = gradient_step(task, experiment, params, 1, 20, 20)[0]
    for name, case in cases.items():
        for got, wanted in zip(jax.tree.leaves(case), jax.tree.leaves(gradient), strict=True):
            np.testing.assert_allclose(got, wanted, atol=2e-6, err_msg=name)


@pytest.mark.parametrize(("task", "length", "padded"), [("most_freq", 57, 59), ("equal_repeats", 24, 26)])
def test_reading_only_where_the_task_scores_leaves_the_gradient_as_it_is(root, task, length, padded):
    experiment = tiny.experiment(root, task)
    params = jax.jit(TraceRelay(experiment.model).init)(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    wanted, metrics = gradient_step(experiment.task, experiment, params, 1, padded, length)
    got, last_metrics = gradient_step(experiment.task, experiment, params, 1, padded, length, most_padding=2)
    assert last_metrics.loss == pytest.approx(float(metrics.loss), rel=1e-6)
    chex.assert_trees_all_close(got, wanted, atol=2e-6)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(got)) > 1e-2


@pytest.mark.parametrize("task", tasks.NAMES)
def test_what_a_task_scores_is_among_the_positions_that_are_read(root, task):
    experiment = tiny.experiment(root, task, training__lengths=(56, 96), validation__lengths=(56,))
    made, buckets = experiment.task, length_buckets(experiment.task, experiment.training.lengths)
    for length in range(56, 97, made.length_step):
        padded = bucket_of(buckets, made.positions(length))
        assert padded - made.positions(length) <= most_padding(buckets)
        if made.scored_last is not None and length in (56, 57, 95, 96):
            scored = jax.jit(made.sample, static_argnums=(1, 3))(tasks.draw_key(0, 0), 3, jnp.int32(length), padded).scored
            assert not scored[:, : -(made.scored_last + most_padding(buckets))].any()
    assert most_padding((24,)) == 0


def test_slices():
    assert slice_rows(64, 10_000, "gpu") == 64
    assert slice_rows(64, 10_000, "cpu") == 1
    assert 1 < slice_rows(64, 100, "cpu") < 64
    assert 60 % slice_rows(60, 40, "cpu") == 0


def test_no_process_is_left_without_a_device():
    devices = [types.SimpleNamespace(process_index=index // 2, platform="cpu") for index in range(6)]
    with pytest.raises(InputError, match=r"batch_size=64: must divide among all 3 processes, of 6 devices"):
        data_mesh(64, devices)


@pytest.mark.parametrize(("platform", "used"), [("cpu", 8), ("gpu", 16)])
def test_a_cpu_of_many_cores_gives_a_run_no_more_than_the_order_of_sums_allows(monkeypatch, platform, used):
    devices = [types.SimpleNamespace(process_index=0, platform=platform) for _ in range(16)]
    monkeypatch.setattr(jax, "make_mesh", lambda shape, names, axis_types, devices: len(devices))
    assert data_mesh(64, devices) == used


def test_the_optimizer_is_that_of_table_2(root):
    """The first two updates by hand: clip, AdamW with decay on all parameters, warm-up from a hundredth of the rate."""
    config = tiny.experiment(root, training__warmup_updates=100, training__learning_rate=3e-4).training
    optimizer = make_optimizer(config)
    params = {"scale": jnp.array([1.0, -2.0])}
    gradients = [np.array([3.0, 4.0]), np.array([0.3, 0.1])]  # norm 5, clipped to 1; norm below 1
    opt_state, value = optimizer.init(params), np.array([1.0, -2.0])
    m, v = np.zeros(2), np.zeros(2)
    for n, gradient in enumerate(gradients, 1):
        updates, opt_state = optimizer.update({"scale": jnp.asarray(gradient, jnp.float32)}, opt_state, params)
        params = optax.apply_updates(params, updates)
        clipped = gradient / max(1, np.linalg.norm(gradient))
        m, v = 0.9 * m + 0.1 * clipped, 0.999 * v + 0.001 * clipped**2
        step = m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
        value = value - 3e-4 * n / 100 * (step + 0.01 * value)
        np.testing.assert_allclose(params["scale"], value, rtol=1e-6)


def test_an_infinite_score_is_refused_before_it_is_saved():
    progress = Progress()
    with pytest.raises(FloatingPointError, match="update 3"):
        progress.record(Validation(3, 0.5, math.nan, {}), 0.99)
    assert not progress.history


def test_progress_survives_json():
    progress = Progress(updates=4, tokens=10, seconds=1.5)
    progress.record(Validation(2, 0.995, 0.1, {"8": {"score": 0.995}}), 0.99)
    assert Progress.from_json(json.loads(json.dumps(progress.to_json()))) == progress
    assert progress.streak == 1


def test_a_folder_of_another_configuration_is_refused(root, tmp_path):
    start(root, tmp_path / "run")
    with pytest.raises(InputError, match=r"config.training.learning_rate is 0.01 there, 0.5 here"):
        start(root, tmp_path / "run", training__learning_rate=0.5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="must be empty, new, or the folder of a run"):
        start(root, tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        start(root, tmp_path / "file" / "run")


def test_a_checkpoint_loads_on_another_number_of_devices(tmp_path):
    mesh = data_mesh(2)
    sharded = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    experiment_state = init_state_of(sharded)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(experiment_state, Progress(updates=1), Validation(1, 0.5, 0.5, {}))
    alone = init_state_of(jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    restored, _ = checkpoints.restore_latest(alone)
    for got, wanted in zip(jax.tree.leaves(restored), jax.tree.leaves(experiment_state), strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert len(got.sharding.device_set) == 1
    checkpoints.close()


def init_state_of(sharding):
    return TrainState(*jax.device_put((jnp.int32(3), {"a": jnp.arange(3.0)}, {"m": jnp.ones(2)}), sharding))
