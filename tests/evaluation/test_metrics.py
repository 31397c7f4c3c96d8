import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import tiny
from tracerelay_jax import TraceRelay, tasks
from tracerelay_jax.evaluation.baselines import most_freq_baselines
from tracerelay_jax.evaluation.examples import make_examples
from tracerelay_jax.evaluation.metrics import _slice, evaluate, most_freq_diagnostics
from tracerelay_jax.evaluation.predictor import Predictor
from tracerelay_jax.progress import Reporter


def test_most_freq_diagnostics_by_hand():
    task = tasks.make("most_freq")
    ranking = np.array([[3, 1, 4, 0, 2]] * 6)
    outputs = np.array([
        [3, 1, 4, 0, 2, 5],  # exact
        [3, 1, 0, 4, 2, 5],  # the set, and the first two
        [3, 1, 4, 0, 2, 2],  # the ranking, but no end
        [3, 5, 4, 0, 2, 5],  # ended early: what follows does not count
        [1, 3, 4, 0, 2, 5],  # the set alone
        [5, 5, 5, 5, 5, 5],  # ended at once
    ])  # fmt: skip
    got = most_freq_diagnostics(task, outputs, ranking)
    wanted = {"score": 1 / 6, "top1": 4 / 6, "top2_prefix": 3 / 6, "set_exact": 3 / 6, "termination": 5 / 6}
    assert got == pytest.approx(wanted)


def test_baselines_at_length_1024():
    """Expected over 20,000 samples: 1.8%, 1.2% and 1/120, which the paper's 1,024 examples agree with."""
    task = tasks.make("most_freq")
    batch = jax.tree.map(np.asarray, jax.jit(task.sample, static_argnums=(1, 2))(jax.random.key(0), 20_000, 1024))
    got = most_freq_baselines(task, batch.tokens[:, :1024], batch.targets[:, 1024:1029])
    for name, expected in (("suffix_32", 0.018), ("first_appearance", 0.012), ("fixed_order", 1 / 120)):
        # The expectation is itself of 20,000 samples.
        assert abs(got[name] - expected) < 3 * np.sqrt(2 * expected / 20_000), name
    whole = most_freq_baselines(task, batch.tokens[:, 1024 - 32 : 1024], batch.targets[:, 1024:1029])
    assert whole["suffix_32"] == got["suffix_32"]


def test_a_suffix_that_covers_the_source_is_an_oracle():
    task = tasks.make("most_freq", symbols=3, gap=2)
    batch = jax.tree.map(np.asarray, task.sample(jax.random.key(1), 50, 20))
    assert most_freq_baselines(task, batch.tokens[:, :20], batch.targets[:, 20:23])["suffix_32"] == 1.0


def test_an_empty_slice_is_missing_and_not_zero():
    assert _slice(np.array([True]), np.array([False])) == {"closes": 0, "accuracy": None}


def setup(root, task, **overrides):
    experiment = tiny.experiment(root, task, **overrides)
    model = TraceRelay(experiment.model)
    params = jax.jit(model.init)(jax.random.key(1), jnp.zeros((1, 1), jnp.int32))
    return experiment, model, params


@pytest.mark.parametrize("task", ["most_freq", "dyck", "equal_repeats"])
def test_metrics_do_not_depend_on_the_batch(root, task):
    experiment, model, params = setup(root, task)
    examples = make_examples(experiment.task, 5, experiment.validation.lengths[1], 11)
    results = [
        evaluate(Predictor(model, batch_size, Reporter(io.StringIO())), params, experiment.task, examples)
        for batch_size in (1, 4)
    ]
    for name in results[0]:
        if isinstance(results[0][name], float):
            assert results[0][name] == pytest.approx(results[1][name], rel=1e-5)
        else:
            assert results[0][name] == results[1][name]
    assert results[0]["examples"] == 11
    if task == "dyck":
        assert sum(cell["closes"] for cell in results[0]["depth"].values()) == 11 * examples.length // 2
        assert sum(cell["closes"] for cell in results[0]["distance"].values()) == 11 * examples.length // 2
        weighted = sum(cell["closes"] * (cell["accuracy"] or 0) for cell in results[0]["depth"].values())
        assert weighted / (11 * examples.length // 2) == pytest.approx(results[0]["score"])
    if task == "equal_repeats":
        assert results[0]["class_counts"] == np.bincount(examples.batch.targets[:, -1], minlength=3).tolist()


def test_answers_equal_repeated_full_forward_passes(root):
    experiment, model, params = setup(root, "most_freq", model__init_scale=0.8)
    task, predictor = experiment.task, Predictor(model, 4, Reporter(io.StringIO()))
    batch = make_examples(task, 6, 50, 13).batch
    teacher_forced, got = predictor.predict_answers(params, task, batch)
    whole = predictor.predict(params, batch)
    np.testing.assert_array_equal(teacher_forced.outputs, whole.outputs[:, 50:])
    np.testing.assert_allclose(teacher_forced.cross_entropy, whole.cross_entropy, rtol=1e-5)
    sources = batch.tokens[:, :50]
    stream = np.pad(sources, ((0, 0), (0, 1)), constant_values=task.separator)
    apply = jax.jit(lambda params, tokens, valid: model.apply(params, tokens, valid)[0])
    for step in range(task.symbols + 1):
        padded = np.pad(stream, ((0, 0), (0, 57 - stream.shape[1])))  # one compilation for all lengths
        logits = apply(params, padded, np.arange(57)[None, :] < np.full((13, 1), stream.shape[1]))
        output = np.argmax(logits[:, stream.shape[1] - 1], axis=-1)
        np.testing.assert_array_equal(got[:, step], output)
        stream = np.concatenate([stream, task.feed_back(output)[:, None]], axis=1)
    assert len(np.unique(got)) > 1


def test_a_predictor_keeps_predictions_at_the_last_positions_apart(root):
    experiment, model, params = setup(root, "dyck")
    predictor = Predictor(model, 4, Reporter(io.StringIO()))
    batch = make_examples(experiment.task, 6, 20, 5).batch
    whole = predictor.predict(params, batch)
    np.testing.assert_array_equal(predictor.predict(params, batch, last=3).outputs, whole.outputs[:, -3:])


def test_fingerprints_tell_examples_apart_and_do_not_depend_on_the_model():
    task = tasks.make("most_freq")
    first, again = (make_examples(task, 20261006, 128, 64).fingerprint for _ in range(2))
    assert first == again
    others = {make_examples(task, seed, length, count).fingerprint
              for seed, length, count in ((20261007, 128, 64), (20261006, 129, 64), (20261006, 128, 65))}  # fmt: skip
    assert len(others | {first}) == 4


@pytest.mark.parametrize(
    ("name", "length", "recorded"),
    [("most_freq", 128, "16823ca76af6"), ("dyck", 64, "2e7b167df15e"), ("equal_repeats", 64, "794134945d19")],
)
def test_examples_are_those_behind_the_recorded_results(name, length, recorded):
    """A new version of JAX, or of a sampler, may not change them unnoticed: results would no longer be comparable."""
    assert make_examples(tasks.make(name), 20261006, length, 64).fingerprint.startswith(recorded)
