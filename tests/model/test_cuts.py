"""1,024 random cuts of sequences: phases, flags and logits to the bit, for random layers, lengths, padding and dtypes.

The cuts are drawn as chunks of a few lengths, so that each layer compiles a few programs and not hundreds; among them are
single steps and chunks shorter and longer than every window.
"""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from tests.model.test_network import SMALL, make
from tracerelay_jax import TraceRelayConfig, init_cache

pytestmark = pytest.mark.usefixtures("optimized")
CASES_PER_CONFIG = 128
CHUNKS = (1, 2, 21)
LENGTHS = (5, 33)


def random_config(seed):
    """One or two layers with windows, strides and widths of their own; each dtype, position and variant in turn.

    Widths are multiples of 16: the odd end of a row of numbers is not computed in vectors, and may round otherwise.
    """
    rng = np.random.default_rng(seed)
    heads, layers = int(rng.choice([1, 2, 4])), 1 + (seed in (3, 6))

    def widths():
        return tuple(int(rng.choice([16, 32])) for _ in range(layers))

    right = rng.integers(0, 9, layers)
    return TraceRelayConfig(
        inputs=6,
        outputs=int(rng.integers(2, 8)),
        hidden=int(rng.choice([16, 32])),
        ffn=int(rng.choice([16, 48])),
        heads=heads,
        trace_widths=widths(),
        writer_widths=widths(),
        reader_widths=widths(),
        left_window=tuple(rng.integers(0, 18, layers).tolist()),
        right_window=tuple(right.tolist()),
        stride=tuple((right + rng.integers(1, 8, layers)).tolist()),
        alpha=float(rng.choice([0.5, np.pi, 9.0])),
        inherit_phase=seed % 4 != 1,
        position=("rope", "none", "alibi")[seed % 3],
        dtype="bfloat16" if seed % 4 == 2 else "float32",
        product_dtype="bfloat16" if seed % 4 == 3 or seed == 4 else "",
        init_scale=0.3,
    )


def random_chunks(rng, length):
    """Chunk lengths that add up to `length`; a quarter of the cases are single steps only."""
    chunks = [1] * length if rng.random() < 0.25 else []
    while (left := length - sum(chunks)) > 0:
        chunks.append(int(rng.choice([chunk for chunk in CHUNKS if chunk <= left])))
    return chunks


@pytest.mark.parametrize("seed", range(8))
def test_every_cut_gives_the_same_bits(seed):
    config, rng = random_config(seed), np.random.default_rng(seed)
    model, params = make(config)
    apply = jax.jit(model.apply)
    for case in range(CASES_PER_CONFIG):
        length = int(rng.choice(LENGTHS))
        tokens = rng.integers(0, config.inputs, (2, length))
        valid = rng.random((2, length)) < rng.choice([0.6, 0.9, 1.0])
        whole, whole_cache = apply(params, tokens, valid, init_cache(config, 2))
        cache, parts, start = init_cache(config, 2), [], 0
        for chunk in random_chunks(rng, length):
            end = start + chunk
            logits, cache = apply(params, tokens[:, start:end], valid[:, start:end], cache)
            parts.append(logits)
            start = end
        np.testing.assert_array_equal(np.concatenate(parts, 1)[valid], np.asarray(whole)[valid], str(case))
        chex.assert_trees_all_equal([(layer.phase.turns, layer.lineage_valid) for layer in cache],
                                    [(layer.phase.turns, layer.lineage_valid) for layer in whole_cache])  # fmt: skip


@pytest.mark.parametrize(("variant", "length"), [({}, 1), ({}, 4), ({}, 40), ({"left_window": 0, "right_window": 0}, 9)])
def test_the_last_logits_alone_are_the_same_bits_and_so_is_the_cache(variant, length):
    config = dataclasses.replace(random_config(0), **variant)
    model, params = make(config)
    rng = np.random.default_rng(3)
    before, tokens = rng.integers(0, config.inputs, (2, 7)), rng.integers(0, config.inputs, (2, length))
    apply = jax.jit(model.apply, static_argnames="last")
    _, cache = apply(params, before)
    whole, whole_cache = apply(params, tokens, cache=cache)
    for last in {1, min(3, length), length, length + 5}:
        logits, last_cache = apply(params, tokens, cache=cache, last=last)
        np.testing.assert_array_equal(logits, whole[:, -last:], str(last))
        chex.assert_trees_all_equal(last_cache, whole_cache)


@pytest.mark.parametrize("product_dtype", ["", "bfloat16"])
def test_the_network_of_the_paper_over_a_long_sequence(product_dtype):
    config = TraceRelayConfig(8, 6, trace_widths=(64, 16, 64), init_scale=0.1, product_dtype=product_dtype)
    model, params = make(config)
    apply = jax.jit(model.apply)
    tokens = np.random.default_rng(5).integers(0, 8, (1, 600))
    whole, _ = apply(params, tokens)
    first, cache = apply(params, tokens[:, :512])
    second, cache = apply(params, tokens[:, 512:545], cache=cache)  # two tiles of rows, and one row
    third, cache = apply(params, tokens[:, 545:599], cache=cache)
    last, _ = apply(params, tokens[:, 599:], cache=cache)
    np.testing.assert_array_equal(np.concatenate([first, second, third, last], axis=1), whole)


@pytest.mark.parametrize("carried", [True, False])
def test_gradients_through_a_cut(carried):
    """Carried through the cache they are those of the uncut sequence; truncated, those of the second chunk alone."""
    config = random_config(0)
    model, params = make(config)
    rng = np.random.default_rng(1)
    tokens, cut = rng.integers(0, config.inputs, (2, 18)), 13
    wanted = jnp.asarray(rng.normal(size=(2, 18, config.outputs)))

    def cut_loss(params):
        logits, cache = model.apply(params, tokens[:, :cut])
        loss = jnp.sum(logits * wanted[:, :cut])
        cache = cache if carried else jax.lax.stop_gradient(cache)
        return loss * carried + jnp.sum(model.apply(params, tokens[:, cut:], cache=cache)[0] * wanted[:, cut:])

    def whole_loss(params):
        if carried:
            return jnp.sum(model.apply(params, tokens)[0] * wanted)
        _, cache = model.apply(make(config)[1], tokens[:, :cut])  # a constant
        return jnp.sum(model.apply(params, tokens[:, cut:], cache=cache)[0] * wanted[:, cut:])

    got, expected = (jax.jit(jax.grad(loss))(params) for loss in (cut_loss, whole_loss))
    scale = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(expected))
    chex.assert_trees_all_close(got, expected, atol=1e-5 * scale)
    assert scale > 0.1


def test_rows_of_a_ragged_batch_equal_the_rows_alone():
    config = random_config(0)
    model, params = make(config)
    apply = jax.jit(model.apply)
    rng, length = np.random.default_rng(2), 40
    prompts = [rng.integers(0, config.inputs, n) for n in (40, 33, 5)]
    tokens, valid = np.zeros((3, length), np.int32), np.zeros((3, length), bool)
    for row, prompt in enumerate(prompts):
        tokens[row, length - len(prompt) :], valid[row, length - len(prompt) :] = prompt, True
    together, _ = apply(params, tokens, valid)
    for row, prompt in enumerate(prompts):
        alone, _ = apply(params, prompt[None])
        np.testing.assert_array_equal(together[row, length - len(prompt) :], alone[0])


def test_the_cache_under_vmap_and_scan():
    config = random_config(0)
    model, params = make(config)
    tokens = np.random.default_rng(3).integers(0, config.inputs, (3, 2, 22))
    whole, _ = jax.vmap(lambda tokens: model.apply(params, tokens))(tokens)

    def step(cache, token):
        logits, cache = model.apply(params, token[:, None], cache=cache)
        return cache, logits[:, 0]

    def stream(tokens):
        return jax.lax.scan(step, init_cache(config, 2), tokens.T)[1].swapaxes(0, 1)

    streamed = jax.jit(jax.vmap(stream))(tokens)
    np.testing.assert_allclose(streamed, whole, atol=1e-5 * np.abs(whole).max())  # vmap batches the products


@pytest.mark.parametrize("left_window", [5, 0])
def test_the_cache_is_an_orbax_item(tmp_path, left_window):
    config = dataclasses.replace(SMALL, trace_widths=(4,), left_window=left_window)
    model, params = make(config)
    tokens = np.random.default_rng(4).integers(0, config.inputs, (2, 12))
    apply = jax.jit(model.apply)
    _, cache = apply(params, tokens)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "cache", cache)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "cache", init_cache(config, 2))
    chex.assert_trees_all_equal(apply(params, tokens, cache=restored), apply(params, tokens, cache=cache))
