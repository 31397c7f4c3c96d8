"""The implementations of local attention side by side, and the rate at which the device copies memory."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.benchmarks.timing import take_turns
from tracerelay_jax.ops.attention import local_attention
from tracerelay_jax.progress import Reporter

_COPY_BYTES = 2**28
_REFERENCE_LIMIT = 2048  # positions: its scores are T x S


def attention(batch: int, lengths: list[int], widths: list[int], rounds: int, reporter: Reporter) -> list[dict[str, Any]]:
    """Times Left attention (L = 15, RoPE, four heads, float32), forward and with its gradients.

    Args:
      batch: B.
      lengths: each T.
      widths: each width of the four heads together, a multiple of 8.
      rounds: of which the median counts; the implementations take turns.
      reporter: tells each case as it is measured.

    Returns:
      For each length, width and pass, by implementation: seconds, the ratio to the fastest and the bytes a second of what
      must be read and written at least; the reason where an implementation does not serve the case; and the copy rate.
    """
    rows = []
    for length in lengths:
        for width in widths:
            for backward in (False, True):
                cases, missing = _compile(batch, length, width, backward)
                arrays = 8 if backward else 4  # q, k, v, output; and the gradients of each
                needed = arrays * batch * length * width * 4
                times = take_turns({**cases, "copy": _copy()}, rounds)
                copy_rate = 2 * _COPY_BYTES / times.pop("copy")
                best = min(times.values())
                measured = {
                    name: {"seconds": seconds, "ratio_to_best": seconds / best, "bytes_per_second": needed / seconds}
                    for name, seconds in times.items()
                }
                row = {"length": length, "batch_size": batch, "width": width,
                       "pass": "gradients" if backward else "forward", "implementations": measured,
                       "not_served": missing, "copy_bytes_per_second": copy_rate}  # fmt: skip
                rows.append(row)
                reporter.line(_describe(row))
    return rows


def _compile(batch, length, width, backward) -> tuple[dict[str, Callable], dict[str, str]]:
    rng = np.random.default_rng(0)
    q, k, v = (
        jnp.asarray(rng.normal(size=(batch, n, 4, width // 4)), jnp.float32) for n in (length, length + 15, length + 15)
    )
    valid = jnp.ones((batch, length + 15), bool)
    cases, missing = {}, {}
    for name in ("reference", "windowed", "pallas"):

        def forward(q, k, v, valid, name=name):
            return local_attention(q, k, v, valid, 15, 0, "rope", name)

        def gradients(q, k, v, valid, forward=forward):
            return jax.grad(lambda *x: jnp.sum(jnp.square(forward(*x, valid))), (0, 1, 2))(q, k, v)

        if reason := _reason_against(name, length):
            missing[name] = reason
            continue
        try:
            call = jax.jit(gradients if backward else forward).lower(q, k, v, valid).compile()
        except NotImplementedError as error:
            missing[name] = str(error)
        else:
            cases[name] = lambda call=call: call(q, k, v, valid)
    return cases, missing


def _reason_against(name: str, length: int) -> str | None:
    if name == "reference" and length > _REFERENCE_LIMIT:
        return f"its memory is quadratic; measured to {_REFERENCE_LIMIT} positions"
    if name == "pallas" and jax.default_backend() != "gpu":
        return "the kernels are for GPUs"
    return None


def _copy() -> Callable:
    x = jnp.zeros(_COPY_BYTES // 4, jnp.float32)
    call = jax.jit(lambda x: x + 1.0).lower(x).compile()
    return lambda: call(x)


def _describe(row: dict[str, Any]) -> str:
    copy = row["copy_bytes_per_second"]
    parts = [
        f"{name} {case['seconds'] * 1e3:.2f} ms ({case['ratio_to_best']:.2f} of the best, "
        f"{case['bytes_per_second'] / copy:.0%} of the copy rate)"
        for name, case in row["implementations"].items()
    ]
    return f"T {row['length']:>6}  width {row['width']:>3}  {row['pass']:<9}  " + "  ".join(parts)
