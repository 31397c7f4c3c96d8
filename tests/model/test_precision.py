"""What is rounded to bfloat16, and what is not."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from tests.model.test_network import SMALL, make, tokens_of
from tracerelay_jax import TraceRelay
from tracerelay_jax.model.modules import product


def assert_rounded(**fields):
    """With these fields the network still computes the same thing, but rounds; returns its parameters, logits and cache."""
    exact_config = dataclasses.replace(SMALL, init_scale=0.1)
    config = dataclasses.replace(exact_config, **fields)
    model, params = make(config)
    tokens = tokens_of(config, 2, 30)
    logits, cache = jax.jit(model.apply)(params, tokens)
    exact, _ = jax.jit(TraceRelay(exact_config).apply)(params, tokens)
    error = np.abs(logits - exact).max() / np.abs(exact).max()
    assert 1e-4 < error < 0.02
    return params, logits, cache


def test_bfloat16_keeps_parameters_phases_and_logits_in_full_precision():
    params, logits, cache = assert_rounded(dtype="bfloat16")
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(params))
    assert logits.dtype == jnp.float32
    assert cache[0].right_key.dtype == jnp.bfloat16
    assert cache[0].phase.turns.dtype == jnp.int32


def test_product_dtype_rounds_products_only():
    _, logits, cache = assert_rounded(product_dtype="bfloat16")
    assert cache[0].right_key.dtype == logits.dtype == jnp.float32


def test_products_of_bfloat16_sum_in_float32():
    """As NumPy adds up the rounded factors, and their gradients likewise; the widths make either factor the narrower."""
    rng = np.random.default_rng(7)
    for outputs, inputs in ((48, 16), (16, 48)):
        x, weight, g = (
            rng.normal(size=shape).astype(np.float32) for shape in ((5, 3, inputs), (outputs, inputs), (5, 3, outputs))
        )
        out, backward = jax.vjp(functools.partial(product, dtype="bfloat16"), x, weight)
        dx, dweight = backward(g)
        x, weight, g = (np.asarray(jnp.asarray(a, jnp.bfloat16), np.float64) for a in (x, weight, g))
        np.testing.assert_allclose(out, x @ weight.T, atol=1e-5)
        np.testing.assert_allclose(dx, g @ weight, atol=1e-5)
        np.testing.assert_allclose(dweight, np.einsum("bto,bti->oi", g, x), atol=1e-5)
        assert {a.dtype for a in (out, dx, dweight)} == {np.dtype(np.float32)}
