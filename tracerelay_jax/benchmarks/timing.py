"""Times of calls that are to be compared with each other."""

import time
from collections.abc import Callable, Hashable

import jax
import numpy as np


def take_turns(cases: dict[Hashable, Callable], rounds: int) -> dict[Hashable, float]:
    """The median seconds of each call; all run once in every round, so that what disturbs the machine disturbs all of them.

    The first round, which may compile, does not count.
    """
    times = {name: [] for name in cases}
    for round_ in range(rounds + 1):
        for name, call in cases.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            if round_:
                times[name].append(time.perf_counter() - start)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}
