"""Seeds mapped over virtual devices, against each seed trained alone."""

import io
import json
import math

import jax
import numpy as np
import pytest

from tests import tiny
from tests.training.test_runs import metrics_of, without_times
from tracerelay_jax.progress import Bars, Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.sweep.devices import SeedTrainer
from tracerelay_jax.sweep.plan import configs_of, plan
from tracerelay_jax.training.loop import Trainer, load_best
from tracerelay_jax.training.stopping import Validation

SEEDS = [42, 43, 44]


def runs(root, path, seeds=SEEDS, **overrides):
    overrides = {"training__batch_size": 8, "validation__lengths": (8,), **overrides}
    made = plan(configs_of(tiny.config(root, "dyck", **overrides), seeds), path)
    for run in made:
        run.folder.create_or_check(run.config, [])
    return made


def train(made, devices):
    trainer = SeedTrainer(made, jax.devices()[:devices], Bars(Reporter(io.StringIO())))
    trainer.run()
    return trainer


def test_mapped_seeds_equal_runs_alone_but_for_rounding(root, tmp_path):
    alone = runs(root, tmp_path / "alone")
    for run in alone:
        Trainer(run.experiment, run.folder, Reporter(io.StringIO())).run()
    for seeds, devices in ((2, 2), (3, 1)):  # one and all seeds to a device; the next test has two to one
        mapped = runs(root, tmp_path / f"{seeds} on {devices}", seeds=SEEDS[:seeds])
        train(mapped, devices)
        for run, other in zip(mapped, alone[:seeds], strict=True):
            got, expected = metrics_of(run.folder), metrics_of(other.folder)
            assert [event["update"] for event in got] == [event["update"] for event in expected]
            losses = [[event.get("loss", event.get("cross_entropy")) for event in events] for events in (got, expected)]
            np.testing.assert_allclose(*losses, rtol=1e-5)
            # The seeds themselves are a hundred times further apart.
            for a, b in zip(jax.tree.leaves(load_best(run.folder)), jax.tree.leaves(load_best(other.folder)), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-4)
    first, second = (np.asarray(jax.tree.leaves(load_best(run.folder)[1])[-1]) for run in alone[:2])
    assert np.abs(first - second).max() > 1e-2


def test_each_seed_stops_by_itself_and_a_failing_one_does_not_end_the_others(root, tmp_path):
    made = runs(root, tmp_path, training__updates=8)
    trainer = SeedTrainer(made, jax.devices()[:1], Bars(Reporter(io.StringIO())))
    scores = iter([(1.0, 0.1), (0.5, 0.1), (0.5, 0.1),  # after 2: all three
                   (1.0, 0.1), (0.5, math.nan), (0.5, 0.1),  # after 4: the first has stopped, the second fails
                   (0.6, 0.1), (0.7, 0.1)])  # fmt: skip
    trainer._validator.validate = lambda params, update: Validation(update, *next(scores), {})
    trainer.run()
    assert next(scores, None) is None
    assert set(trainer.failures) == {"dyck-dc64-seed43"}
    assert "not finite" in trainer.failures["dyck-dc64-seed43"]
    last = [json.loads((run.folder.path / "metrics.jsonl").read_text().splitlines()[-1])["update"] for run in made]
    assert last == [4, 4, 8]
    assert [load_best(run.folder)[0] for run in made] == [4, 2, 8]


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
        jax.tree.map(np.testing.assert_array_equal, load_best(run.folder), load_best(other.folder))


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
