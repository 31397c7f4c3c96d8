"""What a training update is made of: its matrix products and its other parts, each run alone; and its floor."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.model.cache import PHASE_OPS
from tracerelay_jax.model.modules import product, product_dtype
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.ops.attention import local_attention
from tracerelay_jax.parallel import replicated, slice_rows
from tracerelay_jax.tasks import draw_key


def update_parts(experiment: Experiment, batch_size: int, length: int, mesh: Mesh) -> dict[str, Callable]:
    """Calls that do parts of an update alone, forward and backward, as often and on as many rows at a time as the update.

    Args:
      experiment: whose network and task.
      batch_size: sources.
      length: of the sources.
      mesh: of the update.

    Returns:
      `floor`: every product of the network with a weight at every position; `products`: those that the update makes, which
      reads the last layer where the task scores it; `attention`: every local attention; `phases`: the transport of all
      phases; `batch`: drawing the batch.
    """
    config, task = experiment.model, experiment.task
    positions, rows = task.positions(length), batch_size // mesh.size
    last = min(task.scored_last or positions, positions)
    size = slice_rows(rows, positions, mesh.devices.flat[0].platform)
    sample = jax.jit(task.sample, static_argnums=(1, 3))
    key = draw_key(0, 0)
    shapes = {"floor": product_shapes(config, positions, positions), "products": product_shapes(config, positions, last)}
    starts = {
        **{
            name: (functools.partial(_products, config, size, each), _products_start(config, size, each))
            for name, each in shapes.items()
        },
        "attention": (functools.partial(_attention, config), _attention_start(config, size, positions, last)),
        "phases": (functools.partial(_phases, config), _phases_start(config, size, positions)),
    }
    return {
        **{name: _repeated(part, start, rows // size, mesh) for name, (part, start) in starts.items()},
        "batch": lambda: sample(key, batch_size, jnp.int32(length), positions),
    }


def _repeated(part: Callable, start, count: int, mesh: Mesh) -> Callable:
    """A call of `part` on every device, `count` times, each time on what the last one gave: nothing can be left out."""

    def on_device(start):
        return jax.lax.fori_loop(0, count, lambda _, carry: part(carry), start)

    start = jax.device_put(start, replicated(mesh))
    everywhere = {"mesh": mesh, "in_specs": PartitionSpec(), "out_specs": PartitionSpec(), "check_vma": False}
    compiled = jax.jit(jax.shard_map(on_device, **everywhere)).lower(start).compile()
    return lambda: compiled(start)


def product_shapes(config: TraceRelayConfig, positions: int, last: int) -> list[tuple[int, int, int]]:
    """(positions, out, in) of each product with a weight, q, k and v as one, where the `last` positions are read.

    Without the input's, which multiplies by ones and zeros.
    """
    tree = jax.eval_shape(TraceRelay(config).init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))["params"]
    shapes = [(last, *tree["head"]["weight"].shape)]
    for index, layer in enumerate(config.layers):
        final = index == len(config.layers) - 1
        outputs = last if final else positions
        read = min(outputs + layer.left_window, positions)
        counts = {"P_phi": read, "left": read, "left_out": outputs, "P_L": outputs, "ffn": outputs}
        for name, module in tree[f"layer_{index}"].items():
            shapes += [(counts.get(name, positions), *shape) for shape in _weight_shapes(module)]
    return shapes


def _weight_shapes(module) -> list[tuple[int, int]]:
    weights = [leaf["weight"] if isinstance(leaf, dict) else leaf for leaf in module.values()]
    weights = [weight.shape for weight in weights if len(weight.shape) == 2]
    return [(3 * weights[0][0], weights[0][1])] if "query" in module else weights


def _products_start(config: TraceRelayConfig, rows: int, shapes: list[tuple[int, int, int]]):
    """Weights, and vectors of each of their widths: zeros, which neither grow nor vanish from one time to the next."""
    weights = [jnp.zeros((out, width)) for _, out, width in shapes]
    vectors = {
        (rows * count, width): jnp.zeros((rows * count, width), config.dtype) for count, *both in shapes for width in both
    }
    return weights, vectors, vectors


def _products(config: TraceRelayConfig, rows: int, shapes: list[tuple[int, int, int]], carry):
    """Every product with a weight; each of the three takes the place of one of its factors."""
    weights, inputs, gradients = carry
    inputs, gradients, new_weights = dict(inputs), dict(gradients), []
    for weight, (positions, out, width) in zip(weights, shapes, strict=True):
        count = rows * positions
        gradient = gradients[count, out]
        gradients[count, out], backward = jax.vjp(
            lambda x, weight: product(x, weight, product_dtype(config, x)), inputs[count, width], weight
        )
        inputs[count, width], new_weight = backward(gradient)
        new_weights.append(new_weight)
    return new_weights, inputs, gradients


def _attention_start(config: TraceRelayConfig, rows: int, positions: int, last: int):
    """Queries, keys and values of the Right and the Left attention of each layer; of the last layer's Left, where read."""
    shapes = []
    for index, layer in enumerate(config.layers):
        outputs = last if index == len(config.layers) - 1 else positions
        attentions = ((layer.writer_width, positions, layer.right_window), (layer.reader_width, outputs, layer.left_window))
        for width, queries, context in attentions:
            heads = (layer.heads, width // layer.heads)
            shapes.append([(rows, length, *heads) for length in (queries, queries + context, queries + context)])
    return jax.tree.map(lambda shape: jnp.zeros(shape), shapes, is_leaf=lambda x: isinstance(x, tuple))


def _attention(config: TraceRelayConfig, carry):
    windows = [window for layer in config.layers for window in ((0, layer.right_window), (layer.left_window, 0))]

    def loss(qkv, left, right):
        valid = jnp.ones(qkv[1].shape[:2], bool)
        return jnp.sum(jnp.square(local_attention(*qkv, valid, left, right, config.position, config.attention)))

    return [jax.grad(loss)(qkv, *window) for qkv, window in zip(carry, windows, strict=True)]


def _phases_start(config: TraceRelayConfig, rows: int, positions: int):
    return [jnp.zeros((rows, positions, layer.trace_width)) for layer in config.layers]


def _phases(config: TraceRelayConfig, carry):
    """Phase transport of each layer: increments, sums along the lineages, cosine and sine."""
    ops = PHASE_OPS[config.phase]

    def loss(delta, stride):
        tail = ops.zeros((delta.shape[0], stride, delta.shape[2]))
        cos, sin = ops.cos_sin(ops.accumulate(ops.increments(delta), tail))
        return jnp.sum(cos + sin)

    return [jax.grad(loss)(delta, layer.stride) for delta, layer in zip(carry, config.layers, strict=True)]
