"""What is timed of a peer: an update of its parameters, the reading of a prompt, and decoding, each a compiled program."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import PartitionSpec

from tracerelay_jax.benchmarks.peers.peer import Peer
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.parallel import data_mesh, replicated, sum_over_rows
from tracerelay_jax.tasks import draw_key
from tracerelay_jax.training.optimizer import make_optimizer
from tracerelay_jax.training.step import TrainState, cross_entropy_sum


class Program(NamedTuple):
    """A compiled program.

    Attributes:
      call: runs it once.
      memory_bytes: of its arguments, results and temporaries.
      compile_seconds: what its compilation took, without a cache of compiled programs if there is none.
    """

    call: Callable
    memory_bytes: int
    compile_seconds: float


def _sum_over_devices(function: Callable, mesh) -> Callable:
    """As `sum_over_rows`, with all rows of a device at once."""
    return jax.shard_map(
        lambda params, rows: jax.lax.psum(function(params, rows), "data"),
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec("data")),
        out_specs=PartitionSpec(),
        check_vma=False,
    )


# How the gradient of a batch is summed: over the devices either way, and there slice by slice, or not.
SPREADS = {"slices": sum_over_rows, "at once": _sum_over_devices}


def update_program(
    peer: Peer, way: str, spread: str, experiment: Experiment, batch_size: int, length: int, last: int | None
) -> Program:
    """Updates by the experiment's optimizer, on its task's batches of one source length, without any padding.

    Args:
      peer: whose parameters.
      way: of its `forward`.
      spread: of SPREADS.
      experiment: with task and optimizer.
      batch_size: sources.
      length: of the sources.
      last: positions at the end, all that are scored among them, of which logits are asked for; None for all positions.
    """
    task, optimizer, mesh = experiment.task, make_optimizer(experiment.training), data_mesh(batch_size)
    forward = peer.forward[way]

    def loss_sum(params, batch):
        return cross_entropy_sum(forward(params, batch.tokens, last), batch)

    gradient_sum = SPREADS[spread](jax.value_and_grad(loss_sum), mesh)

    def update(state: TrainState):
        batch = task.sample(draw_key(0, state.step), batch_size, length)
        loss, gradients = gradient_sum(state.params, batch)
        gradients = jax.tree.map(lambda g: g / jnp.sum(batch.scored), gradients)
        updates, opt_state = optimizer.update(gradients, state.opt_state, state.params)
        return TrainState(state.step + 1, optax.apply_updates(state.params, updates), opt_state), loss

    def start() -> TrainState:
        params = peer.init(jax.random.key(0))
        return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))

    state = jax.jit(start, out_shardings=replicated(mesh))()
    run, memory_bytes, seconds = _compile(update, state, donate_argnums=0, out_shardings=replicated(mesh))

    def call():
        nonlocal state
        state, loss = run(state)
        return loss

    return Program(call, memory_bytes, seconds)


def prefill_program(peer: Peer, way: str, params, length: int) -> Program:
    """One prompt, to the logits after it and the state to go on from."""
    tokens = np.random.default_rng(0).integers(0, 2, (1, length), np.int32)
    read = peer.prefill[way]
    run, memory_bytes, seconds = _compile(lambda params, tokens: read(params, tokens, 0), params, tokens)
    return Program(lambda: run(params, tokens), memory_bytes, seconds)


def decode_program(peer: Peer, way: str, params, context: int, steps: int, symbols: int) -> Program:
    """One sequence goes on by `steps` tokens, the likeliest each time, as one program.

    Every call decodes the same positions and overwrites what the last one left in the state there.
    """
    step = peer.step[way]

    def decode(params, state):
        def advance(carry, position):
            token, state = carry
            logits, state = step(params, token, position, state)
            return (jnp.argmax(logits, axis=-1, keepdims=True).astype(jnp.int32) % symbols, state), None

        return jax.lax.scan(advance, (jnp.zeros((1, 1), jnp.int32), state), context + jnp.arange(steps))[0]

    state = jax.jit(lambda: peer.state(1, context, steps))()
    run, memory_bytes, seconds = _compile(decode, params, state, donate_argnums=1)

    def call():
        nonlocal state
        token, state = run(params, state)
        return token

    return Program(call, memory_bytes, seconds)


def state_bytes(peer: Peer, context: int) -> int:
    """Bytes of the state after `context` positions of one sequence, with room for no more."""
    shapes = jax.eval_shape(lambda: peer.state(1, context, 0))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def _compile(function: Callable, *arguments, **options):
    start = time.perf_counter()
    compiled = jax.jit(function, **options).lower(*arguments).compile()
    seconds = time.perf_counter() - start
    m = compiled.memory_analysis()
    memory_bytes = m.temp_size_in_bytes + m.argument_size_in_bytes + m.output_size_in_bytes - m.alias_size_in_bytes
    return compiled, memory_bytes, seconds
