import dataclasses
import functools
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import oracle
from tracerelay_jax import (
    InputError,
    LayerConfig,
    TraceRelay,
    TraceRelayConfig,
    TraceRelayLayer,
    generate,
    init_cache,
    init_layer_cache,  # fmt: skip
    parameter_count,
)

SMALL = TraceRelayConfig(
    inputs=5, outputs=4, hidden=12, ffn=20, heads=2, trace_widths=(8, 4), left_window=5, right_window=2, stride=4,
    init_scale=0.4,
)  # fmt: skip


def make(config, seed=0):
    """A model and random parameters, norms' scales among them; drawn here, since compiling the initialisation takes long."""
    model, rng = TraceRelay(config), np.random.default_rng(seed)
    shapes = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))

    def draw(path, leaf):
        noise = config.init_scale * rng.normal(size=leaf.shape)
        return jnp.asarray(1 + noise / 4 if path[-1].key == "scale" else noise, leaf.dtype)

    return model, jax.tree_util.tree_map_with_path(draw, shapes)


def tokens_of(config, batch, length, seed=1):
    return np.random.default_rng(seed).integers(0, config.inputs, (batch, length))


def float64(params):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), params)


VARIANTS = {
    "paper": {},
    "no position": {"position": "none"},
    "alibi": {"position": "alibi"},
    "without inheritance": {"inherit_phase": False},
    "radians": {"phase": "radians"},
    "wide alpha": {"alpha": 9.0},
    "reference attention": {"attention": "reference"},
    "widths apart": {"writer_widths": (4, 12), "reader_widths": (16, 8)},
    "windows per layer": {"left_window": (3, 0), "right_window": (1, 0), "stride": (2, 1)},
    "uniform": {"init": "uniform", "increment_init_scale": 0.7},
}


# T < W, T = W, W | T, W does not divide T; the other variants only at the last, which holds what the others do.
@pytest.mark.parametrize(
    ("variant", "length"),
    [*(("paper", length) for length in (1, 3, 4, 5, 8)), *((variant, 19) for variant in VARIANTS)],
)
def test_equals_the_loop_over_the_equations(variant, length):
    config = dataclasses.replace(SMALL, **VARIANTS[variant])
    model, params = make(config)
    tokens = tokens_of(config, 3, length)
    valid = np.ones((3, length), bool)
    valid[1] = np.random.default_rng(2).random(length) < 0.6  # gaps
    valid[2, : length // 2] = False  # padding on the left
    logits, cache = jax.jit(model.apply)(params, tokens, valid)
    for row in range(3):
        wanted, states = oracle.network(config, float64(params), tokens[row], valid[row])
        ok = valid[row]
        # An increment's rounding grows with alpha in each of the two layers; pi is the paper's.
        tolerance = 2e-5 * max(1, np.abs(wanted).max()) * max(1, config.alpha / np.pi) ** 2
        np.testing.assert_allclose(logits[row][ok], wanted[ok], atol=tolerance, rtol=0)
        for layer, (theta, v) in zip(cache, states, strict=True):
            tail = min(layer.lineage_valid.shape[1], length)
            np.testing.assert_array_equal(layer.lineage_valid[row, -tail:], v[-tail:])
            assert_same_angle(radians_of(config, layer.phase)[row, -tail:], theta[-tail:], 10 * tolerance)


def radians_of(config, phase):
    return np.asarray(phase.turns, np.float64) * 2 * np.pi / 2**32 if config.phase == "turns" else np.asarray(phase)


def assert_same_angle(got, wanted, tolerance=2e-4):
    difference = np.abs((got - wanted + np.pi) % (2 * np.pi) - np.pi)
    assert difference.max(initial=0) < tolerance


@pytest.mark.parametrize("variant", ["paper", "alibi", "without inheritance"])
def test_gradient_equals_finite_differences_of_the_loop(variant):
    config = dataclasses.replace(SMALL, **VARIANTS[variant])
    model, params = make(config)
    tokens = tokens_of(config, 1, 14)
    valid = np.ones((1, 14), bool)
    valid[0, 3:5] = False
    weights = np.random.default_rng(3).normal(size=(14, config.outputs)) * valid[0][:, None]

    def loss(params):
        return jnp.sum(model.apply(params, tokens, valid)[0][0] * weights)

    gradient = float64(jax.jit(jax.grad(loss))(params))
    start = float64(params)
    rng = np.random.default_rng(4)
    leaves, tree = jax.tree.flatten(start)
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(start)]
    assert len(leaves) == len(names) > 30
    for index, name in enumerate(names):  # along a random direction of each parameter
        direction = rng.normal(size=leaves[index].shape)
        ends = []
        for sign in (1, -1):
            moved = list(leaves)
            moved[index] = leaves[index] + sign * 1e-5 * direction
            logits, _ = oracle.network(config, jax.tree.unflatten(tree, moved), tokens[0], valid[0])
            ends.append(np.sum(logits * weights))
        wanted = (ends[0] - ends[1]) / 2e-5
        got = np.sum(jax.tree.leaves(gradient)[index] * direction)
        scale = np.linalg.norm(jax.tree.leaves(gradient)[index]) * np.linalg.norm(direction)
        assert abs(got - wanted) < 1e-4 * scale + 1e-5, name


@pytest.mark.parametrize(
    ("inputs", "outputs", "counts"),
    [
        (2, 3, (295_875, 268_227, 256_707)),
        (16, 8, (297_096, 269_448, 257_928)),
        (8, 6, (296_454, 268_806, 257_286)),
    ],
    ids=["equal repeats", "dyck", "most freq"],
)
def test_parameter_counts_of_table_5(inputs, outputs, counts):
    for width, count in zip((64, 32, 16), counts, strict=True):
        config = TraceRelayConfig(inputs, outputs, trace_widths=(64, width, 64))
        assert parameter_count(config) == count
        assert parameter_count(dataclasses.replace(config, inherit_phase=False)) == count


@pytest.mark.parametrize("inherit", [True, False])
def test_reach_of_the_paper_network(inherit):
    """3 (W + L) = 69 positions without inheritance, no limit with it; to the bit."""
    # Parameters large enough that what can move an output does, and small enough that no softmax is saturated.
    config = TraceRelayConfig(3, 3, trace_widths=(64, 16, 64), inherit_phase=inherit, init_scale=0.2)
    model, params = make(config)
    length = 141
    tokens = np.repeat(tokens_of(config, 1, length), 3, axis=0)
    tokens[1, -1 - 69] = (tokens[0, -1 - 69] + 1) % 3
    tokens[2, -1 - 70] = (tokens[0, -1 - 70] + 1) % 3
    last = np.asarray(jax.jit(model.apply)(params, tokens)[0][:, -1])
    assert (last[1] != last[0]).any()
    assert (last[2] != last[0]).any() == inherit


@pytest.mark.parametrize("attention", ["reference", "windowed"])
def test_a_future_token_leaves_every_earlier_logit_as_it_was(attention):
    config = dataclasses.replace(SMALL, attention=attention)
    model, params = make(config)
    length = 27
    tokens = tokens_of(config, 1, length)
    apply = jax.jit(model.apply)
    logits = np.asarray(apply(params, tokens)[0])
    for t in range(length):
        changed = tokens.copy()
        changed[0, t] = (tokens[0, t] + 1) % config.inputs
        moved = np.asarray(apply(params, changed)[0])
        np.testing.assert_array_equal(moved[:, :t], logits[:, :t])
        assert (moved[:, t] != logits[:, t]).any()


@pytest.mark.parametrize("padding", [1, 4, 19])
def test_left_padding_changes_nothing_at_valid_positions(padding):
    model, params = make(SMALL)
    tokens = tokens_of(SMALL, 2, 21)
    logits, _ = jax.jit(model.apply)(params, tokens)
    padded = np.pad(tokens, ((0, 0), (padding, 0)), constant_values=3)
    valid = np.pad(np.ones_like(tokens, bool), ((0, 0), (padding, 0)))
    moved, _ = jax.jit(model.apply)(params, padded, valid)
    np.testing.assert_allclose(moved[:, padding:], logits, atol=2e-5 * np.abs(logits).max())


def test_padded_tokens_are_never_seen():
    model, params = make(SMALL)
    tokens = tokens_of(SMALL, 1, 24)
    valid = np.random.default_rng(5).random((1, 24)) < 0.6
    other = np.where(valid, tokens, (tokens + 1) % SMALL.inputs)
    assert (other != tokens).any()
    apply = jax.jit(model.apply)
    a, b = (np.asarray(apply(params, x, valid)[0]) for x in (tokens, other))
    np.testing.assert_array_equal(a[valid], b[valid])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("attention", ["reference", "windowed"])
def test_a_row_of_padding_gives_no_nan(attention, dtype):
    config = dataclasses.replace(SMALL, attention=attention, dtype=dtype)
    model, params = make(config)
    tokens = tokens_of(config, 2, 13)
    valid = np.zeros((2, 13), bool)
    valid[0] = True

    def loss(params):
        return jnp.sum(model.apply(params, tokens, valid)[0] ** 2)

    value, gradient = jax.jit(jax.value_and_grad(loss))(params)
    chex.assert_tree_all_finite((value, gradient))


@pytest.mark.parametrize("variant", ["paper", "without inheritance", "radians", "windows per layer"])
def test_any_cut_continues_from_the_cache(variant):
    config = dataclasses.replace(SMALL, **VARIANTS[variant])
    model, params = make(config)
    tokens = tokens_of(config, 2, 25)
    valid = np.random.default_rng(6).random((2, 25)) < 0.8
    apply = jax.jit(model.apply)
    whole, whole_cache = apply(params, tokens, valid)
    cache, parts = init_cache(config, 2), []
    for start, end in itertools.pairwise((0, 1, 2, 13, 14, 25)):
        logits, cache = apply(params, tokens[:, start:end], valid[:, start:end], cache)
        parts.append(logits)
    scale = np.abs(whole).max()
    np.testing.assert_allclose(np.where(valid[..., None], np.concatenate(parts, 1), 0),
                               np.where(valid[..., None], whole, 0), atol=2e-5 * scale)  # fmt: skip
    chex.assert_trees_all_equal_shapes_and_dtypes(cache, whole_cache)
    for layer, whole_layer in zip(cache, whole_cache, strict=True):
        np.testing.assert_array_equal(layer.lineage_valid, whole_layer.lineage_valid)
        assert_same_angle(radians_of(config, layer.phase), radians_of(config, whole_layer.phase))


def test_a_foreign_cache_is_refused():
    model, params = make(SMALL)
    tokens = tokens_of(SMALL, 2, 3)
    for config, batch, field in (
        (SMALL, 3, r"cache\[0\].right_query"),
        (dataclasses.replace(SMALL, left_window=(6, 5)), 2, r"cache\[0\].left_key"),
        (dataclasses.replace(SMALL, dtype="bfloat16"), 2, r"bfloat16"),
        (dataclasses.replace(SMALL, phase="radians"), 2, r"cache\[0\].phase"),
        (dataclasses.replace(SMALL, trace_widths=(8,)), 2, r"2 layers"),
    ):
        with pytest.raises(InputError, match=field):
            model.apply(params, tokens, cache=init_cache(config, batch))
    with pytest.raises(InputError, match="last=0: must be at least 1, or None"):
        model.apply(params, tokens, last=0)


def test_input_of_another_kind_is_refused():
    model, params = make(SMALL)
    tokens = tokens_of(SMALL, 2, 3)
    mask = np.ones((2, 3), bool)
    for arguments, message in (
        ((tokens.tolist(),), "tokens of type list: must be an array"),
        ((tokens[0],), r"tokens of shape \(3,\): must be \(B, T\)"),
        ((tokens.astype(float),), "tokens of type float64: must be integers"),
        ((tokens + SMALL.inputs,), rf"tokens from \d+ to \d+: must be from 0 to {SMALL.inputs - 1}"),
        ((np.full((2, 3), -1),), "tokens from -1 to -1: must be from 0"),
        ((tokens, init_cache(SMALL, 2)), "valid of type tuple: must be an array; a cache is given as cache="),
        ((tokens, mask[:1]), r"valid=bool\[1, 3\]: must be bool\[2, 3\]"),
        ((tokens, mask.astype(int)), r"valid=int64\[2, 3\]: must be bool\[2, 3\]"),
    ):
        for call in (model.apply, functools.partial(generate, model, steps=2)):
            with pytest.raises(InputError, match=message):
                call(params, *arguments)


def test_a_layer_alone_is_the_layer_of_a_network():
    """On hidden states of one's own, whole and in chunks."""
    config = LayerConfig(hidden=12, ffn=20, heads=2, trace_width=8, left_window=5, right_window=2, stride=4)
    assert config == dataclasses.replace(SMALL, trace_widths=(8,), init_scale=0.02).layers[0]
    layer = TraceRelayLayer(config)
    h = jax.random.normal(jax.random.key(0), (2, 13, 12))
    params = jax.tree.map(lambda x: 10 * x, layer.init(jax.random.key(1), h))
    whole, _ = layer.apply(params, h)
    np.testing.assert_array_equal(whole, layer.apply(params, h, np.ones((2, 13), bool), init_layer_cache(config, 2))[0])
    first, cache = layer.apply(params, h[:, :6])
    second, _ = layer.apply(params, h[:, 6:], cache=cache)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, atol=1e-4)
    assert np.abs(whole - h).max() > 0.1
    for arguments, message in (
        ((h[0],), r"h_BTH=float32\[13, 12\]: must be float32\[B, T, 12\]"),
        ((h.astype(jnp.bfloat16),), r"h_BTH=bfloat16\[2, 13, 12\]: must be float32"),
        ((h, np.ones((2, 13))), r"valid=float64\[2, 13\]: must be bool"),
        ((h[:1], None, cache), r"cache.right_query=float32\[2, 4, 2, 4\]: this configuration with batch size 1 has"),
    ):
        with pytest.raises(InputError, match=message):
            layer.apply(params, *arguments)
    for network, message in (
        (TraceRelayLayer(SMALL), "config of type TraceRelayConfig: must be a LayerConfig"),
        (TraceRelay(config), "config of type LayerConfig: must be a TraceRelayConfig"),
    ):
        with pytest.raises(InputError, match=message):
            network.init(jax.random.key(0), h)
    with pytest.raises(InputError, match="stride=7: must exceed right_window=7"):
        LayerConfig(stride=7)


def test_initialisation():
    uniform = {"init": "uniform", "increment_init_scale": 0.0}
    for fields, name, check in (
        ({}, "P_phi", lambda x: abs(x.std() - 0.4) < 0.05),
        (uniform, "P_phi", lambda x: 0.9 / 4 < abs(x).max() <= 1 / 4),  # fan in 2 D = 16
        (uniform, "P_delta", lambda x: abs(x).max() <= 1 / math.sqrt(8)),
        (uniform | {"increment_init_scale": 3.0}, "P_delta", lambda x: 2 < x.std() < 4),
        ({"readout_init_scale": 3.0}, "P_phi", lambda x: 2 < x.std() < 4),
        ({"readout_init_scale": 3.0}, "P_delta", lambda x: abs(x.std() - 0.4) < 0.1),
    ):
        assert check(initial(**fields)["layer_0"][name]["weight"]), (fields, name)


def test_adapters_may_have_an_initialisation_of_their_own():
    same, apart = initial(), initial(adapter_init="uniform")
    bound = 1 / math.sqrt(SMALL.hidden)
    assert 0.8 * bound < abs(apart["head"]["weight"]).max() <= bound
    assert 0 < abs(apart["head"]["bias"]).max() <= bound
    bound = 1 / math.sqrt(SMALL.inputs)
    assert 0.8 * bound < abs(apart["input"]["weight"]).max() <= bound
    assert not same["head"]["bias"].any()
    chex.assert_trees_all_equal(*({**params, "head": 0, "input": 0} for params in (same, apart)))


def initial(**fields):
    model = TraceRelay(dataclasses.replace(SMALL, **fields))
    return jax.tree.map(np.asarray, jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 1), jnp.int32)))["params"]
