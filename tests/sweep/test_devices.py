"""Seeds mapped over virtual devices, against each seed trained alone."""

import io
import json
import math
import subprocess
import sys

import jax
import numpy as np
import pytest

from tests import tiny
from tests.training.test_runs import metrics_of, without_times
from tracerelay_jax.progress import Bars, Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.sweep.devices import SeedTrainer
from tracerelay_jax.sweep.plan import configs_of, plan
from tracerelay_jax.training.checkpoints import load_parameters
from tracerelay_jax.training.lengths import batch_lengths, length_buckets, most_padding
from tracerelay_jax.training.loop import Trainer
from tracerelay_jax.training.stopping import Validation

SEEDS = [42, 43, 44]


def config_of_runs(root, task="dyck", **overrides):
    return tiny.config(root, task, **{"training__batch_size": 8, "validation__lengths": (8,), **overrides})


def runs(root, path, seeds=SEEDS, task="dyck", **overrides):
    made = plan(configs_of(config_of_runs(root, task, **overrides), seeds), path)
    for run in made:
        run.folder.create_or_check(run.config, [])
    return made


def train(made, devices):
    trainer = SeedTrainer(made, jax.devices()[:devices], Bars(Reporter(io.StringIO())))
    trainer.run()
    return trainer


def train_on_four(root, path, seeds):
    """In a process of its own, with as many virtual devices."""
    program = (
        "import jax; jax.config.update('jax_num_cpu_devices', 4); import pathlib; from tests.sweep import test_devices;"
        f"made = test_devices.runs(*map(pathlib.Path, {(str(root), str(path))!r}), {seeds});"
        "assert len(test_devices.train(made, 4)._devices) == 4"
    )
    subprocess.run([sys.executable, "-c", program], cwd=root, check=True)
    return plan(configs_of(config_of_runs(root), seeds), path)


def assert_equal_but_for_rounding(run, other):
    got, expected = metrics_of(run.folder), metrics_of(other.folder)
    assert [event["update"] for event in got] == [event["update"] for event in expected]
    losses = [[event.get("loss", event.get("cross_entropy")) for event in events] for events in (got, expected)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    # The seeds themselves are a hundred times further apart.
    for a, b in zip(
        jax.tree.leaves(load_parameters(run.folder)), jax.tree.leaves(load_parameters(other.folder)), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_mapped_seeds_equal_runs_alone_but_for_rounding(root, tmp_path):
    alone = runs(root, tmp_path / "alone", seeds=[*SEEDS, 45])
    for run in alone:
        Trainer(run.experiment, run.folder, Reporter(io.StringIO())).run()
    on_one, on_two = runs(root, tmp_path / "on one"), runs(root, tmp_path / "on two")
    train(on_one, 1)
    train(on_two, 2)  # two of the seeds on one of the devices
    on_four = train_on_four(root, tmp_path / "on four", [*SEEDS, 45])
    for mapped in (on_one, on_two, on_four):
        for run, other in zip(mapped, alone, strict=mapped is on_four):
            assert_equal_but_for_rounding(run, other)
    first, second = (np.asarray(jax.tree.leaves(load_parameters(run.folder)[1])[-1]) for run in alone[:2])
    assert np.abs(first - second).max() > 1e-2


def test_a_batch_beside_a_longer_one_is_read_where_it_is_scored(root, tmp_path):
    """The last layer is read at the end only, and the end of the shorter batch lies the further back."""
    lengths = (8, 11)
    settings = {"task": "equal_repeats", "training__lengths": lengths, "training__updates": 2}
    alone, mapped = (runs(root, tmp_path / name, **settings) for name in ("alone", "mapped"))
    for run in alone:
        Trainer(run.experiment, run.folder, Reporter(io.StringIO())).run()
    train(mapped, 1)
    drawn = [batch_lengths(run.experiment.task, lengths, run.experiment.seed, 0, 2) for run in mapped]
    assert np.ptp(drawn, axis=0).max() > most_padding(length_buckets(mapped[0].experiment.task, lengths))
    for run, other in zip(mapped, alone, strict=True):
        assert_equal_but_for_rounding(run, other)


def test_each_seed_stops_by_itself_and_a_failing_one_does_not_end_the_others(root, tmp_path):
    made = runs(root, tmp_path, training__updates=8)
    trainer = SeedTrainer(made, jax.devices()[:1], Bars(Reporter(io.StringIO())))
    scores = iter([(1.0, 0.1), (0.5, 0.1), (0.5, 0.1),  # after 2: all three
                   (1.0, 0.1), (0.5, math.nan), (0.5, 0.1),  # after 4: the first has stopped, the second fails
                   (0.6, 0.1), (0.7, 0.1)])  # fmt: skip
    trainer._validator.validate = lambda params, update: Validation(update, *next(scores), {})
    trainer.run()
    assert next(scores, None) is None
    assert set(trainer.failures) == {"dyck-dc4-seed43"}
    assert "not finite" in trainer.failures["dyck-dc4-seed43"]
    last = [json.loads((run.folder.path / "metrics.jsonl").read_text().splitlines()[-1])["update"] for run in made]
    assert last == [4, 4, 8]
    assert [load_parameters(run.folder)[0] for run in made] == [4, 2, 8]


def test_an_interrupted_sweep_goes_on_to_the_same_bits(root, tmp_path):
    whole, cut = runs(root, tmp_path / "whole"), runs(root, tmp_path / "cut")
    train(whole, 2)
    trainer = SeedTrainer(cut, jax.devices()[:2], Bars(Reporter(io.StringIO())))
    validate, calls = trainer._validator.validate, []

    def kill_at_the_fifth(params, update):  # the first seed has saved update 4, the others have not
        calls.append(update)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return validate(params, update)

    trainer._validator.validate = kill_at_the_fifth
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    train(cut, 2)
    for run, other in zip(cut, whole, strict=True):
        assert metrics_of(run.folder) == metrics_of(other.folder)
        jax.tree.map(np.testing.assert_array_equal, load_parameters(run.folder), load_parameters(other.folder))


def test_a_finished_run_keeps_its_place_and_is_not_touched(root, tmp_path):
    made = runs(root, tmp_path)
    result = {"name": "done", "lengths": {}}
    made[0].folder.write_result(result)
    made[0].folder.append_metrics({"event": "train", "update": 2})
    made[0].folder.checkpoints.rmdir()  # as where the results alone are kept
    before = {path.name: path.read_bytes() for path in made[0].folder.path.iterdir()}
    train(made, 1)
    assert {path.name: path.read_bytes() for path in made[0].folder.path.iterdir()} == before
    assert without_times(RunFolder(made[0].folder.path).read_result())["name"] == "done"
    assert all((run.folder.path / "metrics.jsonl").exists() for run in made[1:])
