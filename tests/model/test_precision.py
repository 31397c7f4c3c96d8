"""What is rounded to bfloat16, and what is not."""

import dataclasses
import functools

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.model.test_network import SMALL, make, tokens_of
from tracerelay_jax import TraceRelay, TraceRelayLayer, generate
from tracerelay_jax.model.modules import Linear, product


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


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dtype_is_that_of_every_layer_and_of_its_maps(dtype):
    model, params = make(dataclasses.replace(SMALL, dtype=dtype))
    tokens = tokens_of(SMALL, 2, 5)
    _, variables = model.apply(
        params, tokens, capture_intermediates=lambda module, _: isinstance(module, TraceRelayLayer | Linear)
    )
    calls = {path: value[0] for path, value in flax.traverse_util.flatten_dict(variables["intermediates"]).items()
             if path[-1] == "__call__"}  # fmt: skip
    types = {path[:-1]: jax.tree.leaves(value)[0].dtype for path, value in calls.items()}
    assert types.pop(("head",)) == jnp.float32  # the logits
    assert len(types) > 15
    assert set(types.values()) == {jnp.dtype(dtype)}


def test_products_of_float32_are_rounded_nowhere():
    """Left to themselves GPUs round factors of float32 to 10 bits and TPUs to 7."""
    x, weight = jnp.ones((16, 8)), jnp.ones((4, 8))
    for dtype, precision in (("float32", "HIGHEST"), ("bfloat16", "None")):
        gradient = jax.grad(lambda x, weight, dtype=dtype: product(x, weight, dtype).sum(), (0, 1))
        program = str(jax.make_jaxpr(gradient)(x, weight))
        products = [line for line in program.splitlines() if line.strip().startswith("precision=")]
        assert all(precision in line for line in products)
        assert program.count("dot_general[") >= 4
        assert len(products) == (program.count("dot_general[") if dtype == "float32" else 0)


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


def test_nothing_turns_to_float64_where_jax_has_it_switched_on():
    model, params = make(SMALL)
    tokens = tokens_of(SMALL, 2, 12)
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(lambda params: model.apply(params, tokens)[0].sum()))(params)
        logits, cache = model.apply(params, tokens)
        outputs, _ = generate(model, params, tokens, steps=3, chunk=5)
    types = {str(leaf.dtype) for leaf in jax.tree.leaves((gradient, logits, cache, outputs))}
    assert types == {"float32", "int32", "bool"}
    np.testing.assert_allclose(logits, model.apply(params, tokens)[0], atol=1e-5)
