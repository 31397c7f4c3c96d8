"""The training step beside its floor: the model's matrix products alone, spread and sliced the same way."""

import contextlib
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from tracerelay_jax.benchmarks.parts import product_shapes, update_parts
from tracerelay_jax.benchmarks.timing import take_turns
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.parallel import data_mesh, replicated
from tracerelay_jax.progress import Reporter
from tracerelay_jax.training.optimizer import make_optimizer
from tracerelay_jax.training.step import compile_train_step, init_state, make_train_step


class Case(NamedTuple):
    """What is timed: updates of `batch_size` sources of one `length`; `series` groups cases that are compared."""

    series: str
    experiment: Experiment
    batch_size: int
    length: int


def task_cases(experiments: Sequence[Experiment]) -> list[Case]:
    """A case for each experiment: its batches at the mean of its training lengths."""
    return [Case("tasks", e, e.training.batch_size, _mean_length(e)) for e in experiments]


def length_cases(experiment: Experiment, lengths: Sequence[int]) -> list[Case]:
    """A case for each source length, with one source a device."""
    return [Case("lengths", experiment, jax.local_device_count(), length) for length in lengths]


def _mean_length(experiment: Experiment) -> int:
    step = experiment.task.length_step
    return sum(experiment.training.lengths) // 2 // step * step


def training(cases: Sequence[Case], rounds: int, reporter: Reporter) -> list[dict[str, Any]]:
    """Times updates, each beside its floor.

    Args:
      cases: in the order of the rows.
      rounds: of which the median counts; the step and its floor take turns.
      reporter: tells each case as it is measured.

    Returns:
      For each case: seconds of a step, of its floor, of its parts when run alone, and of what remains; the ratio of the step
      to its floor and to its own products, updates and tokens a second, the rate of the floor in FLOP/s, the bytes that the
      compiled step needs, and its seconds of compilation, cold and from a filled cache.
    """
    rows = []
    for case in cases:
        rows.append(_measure(case, rounds))
        reporter.line(_describe(rows[-1]))
    return rows


def _measure(case: Case, rounds: int) -> dict[str, Any]:
    experiment = case.experiment
    model, optimizer, mesh = TraceRelay(experiment.model), make_optimizer(experiment.training), data_mesh(case.batch_size)
    positions = experiment.task.positions(case.length)
    step = make_train_step(model, experiment.task, optimizer, case.batch_size, mesh, most_padding=0)
    make_state = jax.jit(lambda: init_state(model, optimizer, 0), out_shardings=replicated(mesh))
    state = make_state()
    compiled, compile_seconds = _compile_twice(lambda: compile_train_step(step, state, positions, mesh))
    memory = compiled.memory_analysis()

    def update():
        nonlocal state
        state, metrics = compiled(state, jnp.uint32(0), jnp.int32(case.length))
        return metrics

    seconds = take_turns({"step": update, **update_parts(experiment, case.batch_size, case.length, mesh)}, rounds)
    step_seconds, floor_seconds = seconds.pop("step"), seconds.pop("floor")
    products = sum(math.prod(shape) for shape in product_shapes(experiment.model, positions, positions))
    return {
        "series": case.series,
        "task": experiment.task.name,
        "trace_widths": experiment.model.trace_widths,
        "product_dtype": experiment.model.product_dtype or experiment.model.dtype,
        "batch_size": case.batch_size,
        "positions": positions,
        "step_seconds": step_seconds,
        "floor_seconds": floor_seconds,
        "ratio_to_floor": step_seconds / floor_seconds,
        "ratio_to_products": step_seconds / seconds["products"],
        "parts_seconds": {**seconds, "rest": step_seconds - sum(seconds.values())},
        "updates_per_second": 1 / step_seconds,
        "tokens_per_second": case.batch_size * positions / step_seconds,
        "floor_flops_per_second": 6.0 * case.batch_size * products / floor_seconds,
        "memory_bytes": memory.temp_size_in_bytes + memory.argument_size_in_bytes,
        "compile_seconds": compile_seconds,
    }


def _compile_twice(compile_: Callable) -> tuple[jax.stages.Compiled, dict[str, float]]:
    """Compiles, traced anew each time, with an empty cache and then with a filled one."""
    seconds = {}
    with _own_compilation_cache():
        for state in ("cold", "cached"):
            jax.clear_caches()
            start = time.perf_counter()
            compiled = compile_()
            seconds[state] = time.perf_counter() - start
    return compiled, seconds


@contextlib.contextmanager
def _own_compilation_cache() -> Iterator[None]:
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    with tempfile.TemporaryDirectory() as folder:
        _use_compilation_cache(folder, 0.0)
        try:
            yield
        finally:
            _use_compilation_cache(*before)


def _use_compilation_cache(folder: str | None, least_seconds: float) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least_seconds)
    compilation_cache.reset_cache()  # JAX looks at the setting only once


def _describe(row: dict[str, Any]) -> str:
    widths = "/".join(map(str, row["trace_widths"]))
    parts = ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in row["parts_seconds"].items())
    return (
        f"{row['task']:<13}  widths {widths:<8}  {row['product_dtype']:<8}  {row['batch_size']:>2} x {row['positions']:<5}  "
        f"step {row['step_seconds'] * 1e3:7.1f} ms ({parts}), {row['ratio_to_floor']:.2f} of the floor at "
        f"{row['floor_flops_per_second'] / 1e9:.0f} GFLOP/s  {row['updates_per_second']:5.2f} updates/s  "
        f"{row['tokens_per_second']:8.0f} tokens/s  {row['memory_bytes'] / 2**20:6.0f} MiB  compiled in "
        f"{row['compile_seconds']['cold']:.1f} s, cached {row['compile_seconds']['cached']:.1f} s"
    )
