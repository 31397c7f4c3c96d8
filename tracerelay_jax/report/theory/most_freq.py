"""Most-Freq: how often the shortcuts of Figure 4 are right by chance."""

import functools
import math
from itertools import groupby

import numpy as np

from tracerelay_jax.evaluation.baselines import SUFFIX
from tracerelay_jax.tasks import MostFreq

_DRAWS = 2000  # of counts; given these, the chances below are exact


@functools.cache
def expected_baselines(task: MostFreq, length: int) -> dict[str, float]:
    """The chance, a fraction, that each shortcut gets the ranking of a source; names as in `most_freq_baselines`.

    The chances given the symbols' counts are formulas; the mean over counts is taken over fixed draws.
    """
    counts = _counts(task, length)
    return {
        f"suffix_{SUFFIX}": float(_suffix_is_right(counts, min(SUFFIX, length)).mean()),
        "first_appearance": float(_first_appearance_is_right(counts).mean()),
        "fixed_order": 1 / math.factorial(task.symbols),
    }


def _counts(task: MostFreq, length: int) -> np.ndarray:
    """Counts (draws, V), descending, as the sampler of Appendix A makes them."""
    symbols = task.symbols
    extras = np.random.default_rng(0).multinomial(length - task.least_length, [1 / symbols] * symbols, size=_DRAWS)
    ascending = 1 + task.gap * np.arange(symbols) + np.sort(extras, axis=1)
    return ascending[:, ::-1]


def _first_appearance_is_right(counts: np.ndarray) -> np.ndarray:
    """(draws,): symbols first appear in the order of their counts, in a random order of all places.

    Among the symbols that have not appeared yet, the next to appear is each with a chance in proportion to its count.
    """
    not_yet = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    return (counts / not_yet).prod(axis=1)


def _suffix_is_right(counts: np.ndarray, size: int) -> np.ndarray:
    """(draws,): the last `size` places hold every symbol, and rank them as the whole source does.

    What they hold is multivariate hypergeometric. Of symbols that tie there, every order of first occurrence is as likely.
    """
    length = int(counts[0].sum())
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, length + 1)))])
    log_all = log_factorial[length] - log_factorial[size] - log_factorial[length - size]
    chance = np.zeros(len(counts))
    for held in _descending_parts(size, counts.shape[1], size):
        orders = math.prod(math.factorial(len(list(ties))) for _, ties in groupby(held))
        left = counts - np.array(held)
        possible = (left >= 0).all(axis=1)
        ways = log_factorial[counts] - log_factorial[np.array(held)] - log_factorial[np.maximum(left, 0)]
        chance += np.where(possible, np.exp(ways.sum(axis=1) - log_all) / orders, 0.0)
    return chance


def _descending_parts(total: int, parts: int, most: int) -> list[tuple[int, ...]]:
    """All ways to write `total` as `parts` descending numbers from 1 to `most`."""
    if parts == 1:
        return [(total,)] if 1 <= total <= most else []
    return [
        (first, *rest)
        for first in range(1, min(most, total - parts + 1) + 1)
        for rest in _descending_parts(total - first, parts - 1, first)
    ]
