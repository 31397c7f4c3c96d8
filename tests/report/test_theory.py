"""What arithmetic expects, against enumeration and against the samplers."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from tests import tiny
from tracerelay_jax import tasks
from tracerelay_jax.evaluation.baselines import most_freq_baselines
from tracerelay_jax.report.theory.dyck import expected_closes
from tracerelay_jax.report.theory.equal_repeats import ceiling, reader_window
from tracerelay_jax.report.theory.most_freq import expected_baselines
from tracerelay_jax.tasks.dyck import matching_distances_and_depths


@pytest.mark.parametrize(
    ("length", "percent"),
    [(64, 100), (128, 72.92), (256, 51.30), (512, 42.32), (1024, 37.83), (2048, 35.58), (4096, 34.46)],
)
def test_the_ceiling_of_70_tokens(length, percent):
    """Within what the examples' share of each class, not quite a third, changes."""
    assert 100 * ceiling(length, 70, 10_000) == pytest.approx(percent, abs=0.012)


@pytest.mark.parametrize(("length", "window"), [(12, 5), (13, 4), (9, 3)])
def test_the_ceiling_is_what_the_best_guess_scores_on_drawn_words(length, window):
    rows = 30_000
    batch = jax.tree.map(np.asarray, tasks.make("equal_repeats").sample(jax.random.key(length), rows, length))
    suffixes = batch.tokens[:, -window:] @ (1 << np.arange(window))
    counts = np.zeros((1 << window, 3), int)
    np.add.at(counts, (suffixes, batch.targets[:, -1]), 1)
    expected = ceiling(length, window, rows)
    assert counts.max(axis=1).sum() / rows == pytest.approx(expected, abs=4 * np.sqrt(0.25 / rows))
    assert ceiling(length, window - 1, rows) <= expected < ceiling(length, length, rows) == 1.0


def test_the_window_is_one_more_than_the_longest_lag(root):
    model = tiny.experiment(root, "equal_repeats", "dc=16,inherit=off").model
    paper = dataclasses.replace(model, trace_widths=(8, 4, 8), left_window=15, right_window=7, stride=8)
    assert reader_window(paper) == 1 + 69
    assert reader_window(dataclasses.replace(paper, left_window=(1, 2, 30), stride=(8, 9, 10))) == 1 + 33 + 27


def bounded_words(length, depth):
    """All height-bounded words of one bracket type, as tokens 0 and 1."""
    words = np.array(list(itertools.product((0, 1), repeat=length)))
    heights = np.cumsum(1 - 2 * words, axis=1)
    return words[(heights >= 0).all(axis=1) & (heights <= depth).all(axis=1) & (heights[:, -1] == 0)]


@pytest.mark.parametrize(("length", "depth"), [(12, 3), (10, 5), (2, 1)])
def test_expected_closes_are_those_of_all_words(length, depth):
    words = bounded_words(length, depth)
    distances, depths = matching_distances_and_depths(words, 1, depth)
    task = tasks.make("dyck", types=1, depth=depth)
    for at in range(1, depth + 1):
        got = expected_closes(task, length, 7, lambda d, x, at=at: np.full(x.shape, d == at))
        counts = (depths == at).sum(axis=1)
        assert got == pytest.approx((7 * counts.mean(), np.sqrt(7) * counts.std()), abs=1e-6)
    for low, high in ((1, 1), (2, 5), (6, 99)):
        got = expected_closes(task, length, 7, lambda _, x, low=low, high=high: (x >= low) & (x <= high))
        counts = ((distances >= low) & (distances <= high)).sum(axis=1)
        assert got == pytest.approx((7 * counts.mean(), np.sqrt(7) * counts.std()), abs=1e-6)


def test_expected_closes_at_the_length_of_table_3():
    task = tasks.make("dyck")
    assert expected_closes(task, 4096, 2000, lambda d, x: np.full(x.shape, d == 5)).mean == pytest.approx(681_512, abs=0.5)
    far = expected_closes(task, 4096, 2000, lambda _, x: (x >= 513) & (x <= 1024))
    assert far == pytest.approx((1575.5, 36.4), abs=0.05)
    assert expected_closes(task, 4096, 2000, lambda _, x: x > 0).mean == pytest.approx(2000 * 2048)


@pytest.mark.parametrize(("options", "length"), [({}, 64), ({"symbols": 3, "gap": 1}, 20)])
def test_expected_baselines_are_those_of_drawn_sources(options, length):
    task, rows = tasks.make("most_freq", **options), 10_000
    batch = jax.tree.map(np.asarray, jax.jit(task.sample, static_argnums=(1, 2))(jax.random.key(3), rows, length))
    ranking = batch.targets[:, length : length + task.symbols]
    got = most_freq_baselines(task, batch.tokens[:, :length], ranking)
    expected = expected_baselines(task, length)
    assert got.keys() == expected.keys()
    for name, chance in expected.items():
        error = np.sqrt(chance * (1 - chance) / rows)
        assert got[name] == pytest.approx(chance, abs=4 * error + 0.02 * chance), name  # counts are drawn there, too
