"""Trained models as small files, and those that come with the package."""

import json
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import tiny
from tests.model.test_network import make
from tracerelay_jax import InputError, load, trained
from tracerelay_jax.evaluation.examples import make_examples
from tracerelay_jax.evaluation.predictor import Predictor
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.progress import Reporter


def test_a_file_holds_the_model_with_all_its_settings(root, tmp_path):
    config = tiny.config(root, "dyck", task_options__depth=3, model__inherit_phase=False)
    experiment = make_experiment(config)
    model, params = make(experiment.model)
    trained.write(tmp_path / "model.npz", config, params)
    got = trained.read(tmp_path / "model.npz")
    assert got.model == model
    assert got.task == experiment.task
    assert jax.tree.structure(got.params) == jax.tree.structure(params)
    jax.tree.map(np.testing.assert_array_equal, got.params, params)


def test_what_is_not_there_is_named(tmp_path):
    assert {"most_freq-dc16-seed42", "equal_repeats-dc16-seed42", "dyck-dc16-seed42"} <= set(trained.shipped())
    with pytest.raises(InputError, match=re.escape("trained model 'dyck-dc17-seed42': must be one of ")):
        load("dyck", dc=17)
    (tmp_path / "text.npz").write_text("no model")
    (tmp_path / "empty.npz").write_text("")
    shipped = pathlib.Path(trained.__file__).parent / "shipped_models" / f"{trained.shipped()[0]}.npz"
    (tmp_path / "half.npz").write_bytes(shipped.read_bytes()[: shipped.stat().st_size // 2])
    np.savez(tmp_path / "arrays.npz", weight=np.zeros(3))
    for name in ("text.npz", "empty.npz", "half.npz", "arrays.npz", "nothing.npz"):
        with pytest.raises(InputError, match=re.escape("must be a model written by launch/export.py")):
            trained.read(tmp_path / name)


@pytest.mark.parametrize("name", trained.shipped())
def test_a_shipped_model_is_the_best_checkpoint_of_the_run_whose_result_is_kept(root, name):
    """It predicts on the examples of the shortest length as result.json says."""
    result = json.loads((root / "results" / "runs" / name / "result.json").read_text())
    model, params, task = load(result["task"], result["trace_widths"][1], result["seed"], result["inherit_phase"])
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == result["parameters"]
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(params))
    length = result["id_lengths"][0]
    wanted = result["lengths"][str(length)]
    examples = make_examples(task, result["evaluation_seed"], length, wanted["examples"])
    assert examples.fingerprint == wanted["fingerprint"]
    losses = Predictor(model, 64, Reporter()).predict(params, examples.batch, task.scored_last).cross_entropy
    assert losses.sum() / examples.batch.scored.sum() == pytest.approx(wanted["cross_entropy"], rel=1e-3)  # of 1e-2 to 1e-4
