"""One update: a batch from (seed, step), its gradient summed over slices and devices, AdamW (Table 2)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.parallel import replicated, sum_over_rows
from tracerelay_jax.tasks import Batch, Task, draw_key


class TrainState(NamedTuple):
    """What an update changes.

    Attributes:
      step: int32 scalar, updates made.
      params: float32 parameters.
      opt_state: the optimizer's state.
    """

    step: jax.Array
    params: optax.Params
    opt_state: optax.OptState


class StepMetrics(NamedTuple):
    """Float32 scalars of one update: mean cross-entropy over scored positions, and the gradient's norm before the clip."""

    loss: jax.Array
    gradient_norm: jax.Array


def loss_sum(model: TraceRelay, params: optax.Params, batch: Batch, last: int | None = None) -> jax.Array:
    """Cross-entropy summed over the scored positions of the batch, all of which are among the `last`, if given."""
    logits, _ = model.apply(params, batch.tokens, batch.valid, last=last)
    return cross_entropy_sum(logits, batch)


def cross_entropy_sum(logits: jax.Array, batch: Batch) -> jax.Array:
    """Cross-entropy in nats, summed over the scored positions, of logits (B, n, V) at the last n positions of the batch."""
    targets, scored = (x[:, -logits.shape[1] :] for x in (batch.targets, batch.scored))
    return jnp.sum(optax.softmax_cross_entropy_with_integer_labels(logits, targets), where=scored)


def init_state(model: TraceRelay, optimizer: optax.GradientTransformation, seed: int | jax.Array) -> TrainState:
    """The state before the first update; parameters depend on the seed and the model only."""
    params = model.init(jax.random.key(seed), jnp.zeros((1, 1), jnp.int32))
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))


def make_train_step(
    model: TraceRelay,
    task: Task,
    optimizer: optax.GradientTransformation,
    batch_size: int,
    mesh: Mesh,
    most_padding: int | None = None,
) -> Callable[[TrainState, jax.Array, jax.Array, int], tuple[TrainState, StepMetrics]]:
    """Returns `step(state, seed, length, padded) -> (state, metrics)`, to be jitted with `padded` static.

    The batch is a function of (seed, step) alone: neither the model nor the devices change it. With `most_padding`, the most
    by which `padded` exceeds the positions of any `length`, the last layer is read only where the task scores it.
    """
    last = None if most_padding is None or task.scored_last is None else task.scored_last + most_padding

    def loss_and_gradient(params, rows):
        return jax.value_and_grad(loss_sum, 1)(model, params, rows, last)

    gradient_sum = sum_over_rows(loss_and_gradient, mesh)

    def step(state: TrainState, seed: jax.Array, length: jax.Array, padded: int):
        batch = task.sample(draw_key(seed, state.step), batch_size, length, padded)
        loss, gradients = gradient_sum(state.params, batch)
        scale = 1.0 / jnp.sum(batch.scored)
        gradients = jax.tree.map(lambda g: g * scale, gradients)
        updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        metrics = StepMetrics(loss * scale, optax.tree.norm(gradients))
        return TrainState(state.step + 1, params, opt_state), metrics

    return step


def compile_train_step(step: Callable, state: TrainState, padded: int, mesh: Mesh) -> jax.stages.Compiled:
    """A step of `make_train_step` compiled for one padded length: (state, seed, length) -> (state, metrics).

    The state it is given, or its shapes, is replicated over the mesh and used up by a call.
    """
    jitted = jax.jit(step, static_argnums=3, donate_argnums=0, out_shardings=replicated(mesh))
    return jitted.lower(state, np.uint32(0), np.int32(0), padded).compile()
