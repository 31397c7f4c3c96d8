"""Training, prefill and decode compiled for an NVIDIA H200 and for TPU v5e, on a machine that has neither."""

import functools

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from tests import targets
from tracerelay_jax import TraceRelay, TraceRelayConfig, init_cache, tasks
from tracerelay_jax.experiment import TrainingConfig
from tracerelay_jax.ops.attention import local_attention
from tracerelay_jax.training.optimizer import make_optimizer
from tracerelay_jax.training.step import init_state, make_train_step

pytestmark = pytest.mark.usefixtures("optimized")
TARGETS = {"h200": (targets.h200, "pallas"), "v5e": (targets.v5e, "windowed")}
BATCH, POSITIONS = 64, 160
KERNELS = ("forward_kernel", "query_gradient_kernel", "key_gradient_kernel")


@pytest.fixture(params=TARGETS)
def target(request):
    """The mesh of a device and the attention that is meant for it."""
    mesh, attention = TARGETS[request.param]
    return mesh(), attention


def paper_model(attention):
    return TraceRelay(TraceRelayConfig(inputs=8, outputs=6, trace_widths=(64, 16, 64), attention=attention))


def compile_for(mesh, function, *arguments):
    sharding = NamedSharding(mesh, PartitionSpec())
    shapes = [jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), x) for x in arguments]
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):  # where Pallas looks for the device that it compiles for
        return jax.jit(function).lower(*shapes).compile()


def training_step(model, mesh):
    """The step with its length bound, and the shapes of its state and seed."""
    task, optimizer = tasks.make("most_freq"), make_optimizer(TrainingConfig(lengths=(128, 256)))
    step = make_train_step(model, task, optimizer, BATCH, mesh, most_padding=16)
    state = jax.eval_shape(lambda: init_state(model, optimizer, 0))
    return functools.partial(step, length=POSITIONS - 6, padded=POSITIONS), state, jax.ShapeDtypeStruct((), jnp.uint32)


def check(compiled, attention, kernels, megabytes):
    program = compiled.as_text()
    assert [name in program for name in KERNELS] == [attention == "pallas" and name in kernels for name in KERNELS]
    assert compiled.memory_analysis().temp_size_in_bytes < megabytes * 1e6


def test_training_step_data_parallel(target):
    """On as many devices as the target has; a whole batch of 64 x 160 positions is live at once."""
    mesh, attention = target
    step, state, seed = training_step(paper_model(attention), mesh)
    check(compile_for(mesh, step, state, seed), attention, KERNELS, 400 / mesh.size)


def test_prefill_and_decode(target):
    mesh, attention = target
    model = paper_model(attention)
    params = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    cache = jax.eval_shape(lambda: init_cache(model.config, BATCH))

    def forward(params, tokens, cache):
        return model.apply(params, tokens, cache=cache)

    for length, megabytes in ((1, 30), (4096, 2500)):
        tokens = jax.ShapeDtypeStruct((BATCH, length), jnp.int32)
        check(compile_for(mesh, forward, params, tokens, cache), attention, KERNELS[:1], megabytes)


@pytest.mark.parametrize("implementation", ["reference", "windowed", "pallas"])
def test_every_implementation_of_attention(target, implementation):
    """Forward and backward over 8 x 4096 positions: a few times the inputs' 8 MB each, but for the reference's T x S."""
    mesh, _ = target
    if implementation == "pallas" and mesh.devices.flat[0].platform == "tpu":
        pytest.skip("the kernels are for GPUs")

    def gradients(q, k, v, valid):
        def loss(q, k, v):
            return jnp.sum(local_attention(q, k, v, valid, 15, 0, "rope", implementation))

        return jax.grad(loss, (0, 1, 2))(q, k, v)

    shapes = [jax.ShapeDtypeStruct((8, length, 4, 16), jnp.float32) for length in (4096, 4111, 4111)]
    compiled = compile_for(mesh, gradients, *shapes, jax.ShapeDtypeStruct((8, 4111), bool))
    check(compiled, implementation, KERNELS, {"reference": 10_000, "windowed": 200, "pallas": 60}[implementation])
    if implementation == "reference":
        assert compiled.memory_analysis().temp_size_in_bytes > 1e9


def test_seeds_side_by_side(target):
    """Three seeds as a vmapped axis: the kernels take it as an axis of their grid."""
    mesh, attention = target
    model = paper_model(attention)
    params = jax.eval_shape(
        jax.vmap(lambda seed: model.init(jax.random.key(seed), jnp.zeros((1, 1), jnp.int32))), jnp.arange(3)
    )

    def gradients(params, tokens):
        return jax.vmap(jax.grad(lambda params: jnp.sum(model.apply(params, tokens)[0] ** 2)))(params)

    compiled = compile_for(mesh, gradients, params, jax.ShapeDtypeStruct((8, POSITIONS), jnp.int32))
    check(compiled, attention, KERNELS, 1500)
