"""Programs of several peers in turn: each runs in the fastest of its ways, within limits of time and memory."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from tracerelay_jax.benchmarks.peers.programs import Program
from tracerelay_jax.progress import Reporter


class Limits(NamedTuple):
    """When a program is let go.

    Attributes:
      rounds: calls that are timed, at most.
      seconds: after so many a program is not called again.
      memory_bytes: a program that needs more is not run.
    """

    rounds: int
    seconds: float
    memory_bytes: int


class Entrant:
    """A program that takes part, and the seconds of its calls that count."""

    def __init__(self, way: str, program: Program):
        self.way = way
        self.program = program
        self.times = []
        self.spent = 0.0

    def call(self) -> None:
        """Runs the program once."""
        start = time.perf_counter()
        jax.block_until_ready(self.program.call())
        self.times.append(time.perf_counter() - start)
        self.spent += self.times[-1]

    @property
    def seconds(self) -> float:
        """The median of a call."""
        return float(np.median(self.times))


class Choice(NamedTuple):
    """A peer's fastest way, None if it has none; and for each way its seconds at its trial, or why it has none."""

    entrant: Entrant | None
    tried: dict[str, dict[str, float] | str]


def fastest(
    peer: str,
    ways: Mapping[str, Callable[[], Program]],
    limits: Limits,
    reporter: Reporter,
    before: Choice | None = None,
) -> Choice:
    """Tries ways one after the other, with two calls of which the second counts, while there is time.

    Args:
      peer: whose ways.
      ways: each compiles its program.
      limits: of each program; all trials together may take as many seconds as one program.
      reporter: tells what compiles.
      before: the peer's choice among other ways.
    """
    best, tried, spent = None, {}, 0.0
    if before is not None:
        best, tried = before.entrant, dict(before.tried)
    for way, build in ways.items():
        if best is not None and spent > limits.seconds:
            tried[way] = f"not tried: the {limits.seconds:g} s for trials were over"
            continue
        with reporter.compiling(f"{peer}, {way}"):
            program = _guarded(build)
        entrant = program if isinstance(program, str) else _try(way, program, limits)
        if isinstance(entrant, str):
            tried[way] = entrant
            continue
        spent += entrant.spent
        tried[way] = {"seconds": entrant.seconds, "compile_seconds": entrant.program.compile_seconds}
        if best is None or entrant.seconds < best.seconds:
            best = entrant
    return Choice(best, tried)


def run_rounds(entrants: Sequence[Entrant], limits: Limits) -> None:
    """Calls all in every round, so that what disturbs the machine disturbs all of them.

    One that has had its seconds sits out; if it had them at its trial, its one call there counts.
    """
    for entrant in entrants:
        if entrant.spent < limits.seconds:
            entrant.times.clear()  # a trial is no round
    for _ in range(limits.rounds):
        for entrant in entrants:
            if entrant.spent < limits.seconds:
                entrant.call()


def _try(way: str, program: Program, limits: Limits) -> Entrant | str:
    if program.memory_bytes > limits.memory_bytes:
        needed, limit = (size / 2**30 for size in (program.memory_bytes, limits.memory_bytes))
        return f"needs {needed:.1f} GiB, over the limit of {limit:.1f} GiB"

    def run() -> Entrant:
        entrant = Entrant(way, program)
        entrant.call()
        if entrant.spent < limits.seconds:
            entrant.times.clear()
            entrant.call()
        return entrant

    return _guarded(run)


def _guarded(function: Callable):
    """Its result, or the first line of what it raised: whatever another package raises is what there is to report."""
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
