import functools

import chex
import jax
import numpy as np
import pytest

from tracerelay_jax import InputError, tasks
from tracerelay_jax.tasks.dyck import matching_distances_and_depths, open_probabilities
from tracerelay_jax.tasks.most_freq import first_places, rank_by_count

LENGTHS = {"equal_repeats": 37, "dyck": 36, "most_freq": 61}


def sample(name, seed, batch, length, padded=None):
    task = tasks.make(name)
    run = jax.jit(task.sample, static_argnums=(1, 2, 3))
    return jax.tree.map(np.asarray, run(jax.random.key(seed), batch, length, padded))


def within(value, expected, sd, times=3):
    assert abs(value - expected) < times * sd, (value, expected, sd)


@pytest.mark.parametrize("name", LENGTHS)
def test_shapes_types_and_ranges(name):
    task, length = tasks.make(name), LENGTHS[name]
    batch = sample(name, 0, 9, length)
    chex.assert_shape(list(batch), (9, task.positions(length)))
    assert batch.tokens.dtype == batch.targets.dtype == np.int32
    assert batch.valid.dtype == batch.scored.dtype == bool
    assert batch.valid.all()
    assert 0 <= batch.tokens.min() <= batch.tokens.max() < task.inputs
    scored = batch.targets[batch.scored]
    assert 0 <= scored.min() <= scored.max() < task.outputs


@pytest.mark.parametrize("name", LENGTHS)
def test_padding_changes_no_example_and_a_traced_length_gives_the_same(name):
    task, length = tasks.make(name), LENGTHS[name]
    positions = task.positions(length)
    exact = sample(name, 3, 6, length)
    traced = jax.jit(lambda key, length: task.sample(key, 6, length, positions + 13))(jax.random.key(3), length)
    for got, wanted in zip(traced, exact, strict=True):
        np.testing.assert_array_equal(np.where(exact.valid, got[:, :positions], 0), np.where(exact.valid, wanted, 0))
    assert not traced.valid[:, positions:].any()
    assert not traced.scored[:, positions:].any()


@pytest.mark.parametrize("name", LENGTHS)
def test_equal_keys_give_equal_examples_and_other_keys_others(name):
    length = LENGTHS[name]
    first, again, other = (sample(name, seed, 6, length) for seed in (5, 5, 6))
    chex.assert_trees_all_equal(first, again)
    assert (first.tokens != other.tokens).any()


def runs(row):
    """(a, b, c) of 0^a 1^b 0^c."""
    b = int(row.sum())
    a = int(np.argmax(row)) if b else len(row)
    return a, b, len(row) - a - b


@pytest.mark.parametrize("length", [2, 3, 9, 10, 48, 61])
def test_equal_repeats_words_and_labels(length):
    batch = sample("equal_repeats", length, 300, length)
    np.testing.assert_array_equal(batch.scored.sum(0), [0] * (length - 1) + [300])
    seen = set()
    for index, (row, label) in enumerate(zip(batch.tokens, batch.targets[:, -1], strict=True)):
        a, b, c = runs(row)
        np.testing.assert_array_equal(row, [0] * a + [1] * b + [0] * c)
        relation = min(index // 100, 2)
        if length % 3 == 0 and {a, b, c} == {length // 3}:
            assert label == 0
        else:
            assert label == relation
        if b:  # without ones the two runs of zeros cannot be told apart
            assert ((a, b)[0] == b, b == c, a == c)[label]
        seen.add(({0: a, 1: b, 2: a}[relation]) if b else length // 2)
    if length <= 10:
        assert seen == set(range(1, length // 2 + 1))  # inclusive at both ends


def test_equal_repeats_class_counts_of_the_paper():
    for length in (32, 64):
        labels = sample("equal_repeats", 1, 10_000, length).targets[:, -1]
        assert np.bincount(labels).tolist() == [3333, 3333, 3334]
    draws = sample("equal_repeats", 1, 30_000, 48)
    repeated = np.array([min(runs(row)[0], 24) for row in draws.tokens[:10_000]])  # class 0: a = r in 1..24
    within(repeated.mean(), 12.5, np.sqrt((24**2 - 1) / 12 / 10_000))


def test_dyck_probabilities_equal_exact_counts():
    depth, length = 4, 60
    table = open_probabilities(depth, length)

    @functools.cache
    def ways(left, height):
        if not 0 <= height <= depth:
            return 0
        return int(height == 0) if left == 0 else ways(left - 1, height + 1) + ways(left - 1, height - 1)

    for left in range(1, length + 1):
        for height in range(depth + 1):
            if ways(left, height):
                assert table[left, height] == pytest.approx(ways(left - 1, height + 1) / ways(left, height), rel=2e-7)
    assert np.isfinite(open_probabilities(10, 4096)).all()


def test_dyck_words_are_valid_and_uniform_over_paths():
    task = tasks.make("dyck", types=2, depth=2)
    batch = jax.tree.map(np.asarray, task.sample(jax.random.key(0), 16_000, 8))
    matching_distances_and_depths(batch.tokens, 2, 2)  # raises unless every word is valid
    paths, counts = np.unique(batch.tokens >= 2, axis=0, return_counts=True)
    assert len(paths) == 8  # paths of length 8 and height at most 2
    for count in counts:
        within(count, 2000, np.sqrt(16_000 / 8 * 7 / 8), times=4)


def test_dyck_targets_are_the_types_of_the_next_closings():
    batch = sample("dyck", 2, 40, 64)
    closes = batch.tokens >= 8
    np.testing.assert_array_equal(batch.scored[:, :-1], closes[:, 1:])
    assert not batch.scored[:, -1].any()
    np.testing.assert_array_equal(batch.targets[batch.scored], batch.tokens[closes] - 8)


def test_matching_distances_and_depths_by_hand():
    words = np.array([[0, 1, 3, 0, 2, 2], [1, 3, 0, 2, 0, 2]])
    distances, depths = matching_distances_and_depths(words, 2, 3)
    np.testing.assert_array_equal(distances, [[0, 0, 1, 0, 1, 5], [0, 1, 0, 1, 0, 1]])
    np.testing.assert_array_equal(depths, [[0, 0, 2, 0, 2, 1], [0, 1, 0, 1, 0, 1]])
    for bad in ([0, 3], [2, 0], [0, 0], [0, 0, 0, 2, 2, 2]):
        with pytest.raises(ValueError, match="no Dyck"):
            matching_distances_and_depths(np.array([bad]), 2, 2)


# Expected counts over 2,000 words of length 4,096, and their standard deviations; the paper's lie within 1.9 of them.
DEPTHS = [96_013, 255_016, 436_692, 592_695, 681_512, 679_512, 587_231, 429_228, 247_552, 90_549]
DEPTHS_SD = [406, 728, 1043, 1030, 999, 991, 981, 969, 823, 436]
DISTANCES = [3_193_172, 360_661, 257_614, 159_837, 80_687, 32_471, 9_940, 1_575.5, 44.6]
DISTANCES_SD = [564, 537, 526, 400, 275, 172, 81, 35, 5.1]


def test_dyck_slice_counts_at_the_longest_length():
    tokens = sample("dyck", 20261006, 2000, 4096).tokens
    distances, depths = matching_distances_and_depths(tokens, 8, 10)
    for got, expected, sd in zip(np.bincount(depths.ravel(), minlength=11)[1:], DEPTHS, DEPTHS_SD, strict=True):
        within(got, expected, sd)
    edges = [0, *(2**n for n in range(3, 12))]
    for low, high, expected, sd in zip(edges[:-1], edges[1:], DISTANCES, DISTANCES_SD, strict=True):
        within(((distances > low) & (distances <= high)).sum(), expected, sd)
    kinds = np.bincount(tokens[tokens < 8], minlength=8)
    for count in kinds:
        within(count, kinds.sum() / 8, np.sqrt(kinds.sum() * 7 / 64), times=4)


@pytest.mark.parametrize("length", [45, 46, 128, 1024])
def test_most_freq_sources_and_rankings(length):
    batch = sample("most_freq", length, 500, length)
    sources = batch.tokens[:, :length]
    counts = (sources[:, :, None] == np.arange(5)).sum(1)
    assert counts.min() >= 1
    assert (counts.sum(1) == length).all()  # nothing but symbols
    assert np.diff(np.sort(counts, axis=1), axis=1).min() >= 4
    ranking = np.argsort(-counts, axis=1)
    np.testing.assert_array_equal(rank_by_count(sources, 5), ranking)
    assert (batch.tokens[:, length] == 5).all()  # SEP
    np.testing.assert_array_equal(batch.tokens[:, length + 1 :], ranking)
    np.testing.assert_array_equal(batch.targets[:, length:], np.pad(ranking, ((0, 0), (0, 1)), constant_values=5))
    np.testing.assert_array_equal(batch.scored[0], [False] * length + [True] * 6)


def test_most_freq_is_uniform_over_labels_and_positions():
    batch = sample("most_freq", 7, 20_000, 60)
    ranking = batch.targets[:, 60:65]
    for place in range(5):
        for symbol in range(5):
            within((ranking[:, place] == symbol).mean(), 0.2, np.sqrt(0.16 / 20_000), times=4)
    top = batch.tokens[:, :60] == ranking[:, :1]
    shares = top.mean(0)
    assert np.abs(shares - shares.mean()).max() < 4.5 * np.sqrt(shares.mean() * (1 - shares.mean()) / 20_000)


def test_ties_are_ranked_by_first_appearance_and_absent_symbols_left_out():
    np.testing.assert_array_equal(rank_by_count(np.array([[2, 1, 1, 2, 0]]), 4), [[2, 1, 0, -1]])
    np.testing.assert_array_equal(first_places(np.array([[2, 1, 1, 2, 0]]), 4), [[4, 1, 0, 5]])


@pytest.mark.parametrize(
    ("name", "length", "message"),
    [
        ("equal_repeats", 1, "length=1: Equal Repeats needs at least 2"),
        ("dyck", 33, "length=33: a Dyck word has an even length"),
        ("dyck", 0, "length=0: a Dyck word"),
        ("most_freq", 44, "length=44: Most-Freq with 5 symbols and gap 4 needs at least 45"),
    ],
)
def test_impossible_lengths_are_refused(name, length, message):
    with pytest.raises(InputError, match=message):
        tasks.make(name).sample(jax.random.key(0), 4, length)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tasks.make("parity"), "task='parity': must be one of equal_repeats, dyck, most_freq"),
        (lambda: tasks.make("dyck", width=3), "task option 'width': dyck has types, depth"),
        (lambda: tasks.make("equal_repeats", runs=3), "task option 'runs': equal_repeats has no options"),
        (lambda: tasks.make("dyck", depth=0), "task option depth=0: must be an integer of at least 1"),
        (lambda: tasks.make("most_freq", symbols=1), "task option symbols=1: must be an integer of at least 2"),
    ],
)
def test_unknown_tasks_and_options_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
