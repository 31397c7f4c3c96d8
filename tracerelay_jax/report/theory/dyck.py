"""Dyck: how many closing brackets each slice of Table 3 is expected to hold, and how much that varies."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tracerelay_jax.tasks import Dyck


class Expected(NamedTuple):
    """A count over a set of independent words.

    Attributes:
      mean: expected closing brackets.
      sd: their standard deviation over sets.
    """

    mean: float
    sd: float


def expected_closes(task: Dyck, length: int, words: int, counted: Callable[[int, np.ndarray], np.ndarray]) -> Expected:
    """The closing brackets that are `counted`, over words drawn uniformly among all of `length`.

    A word of height at most q is a sequence of pairs ( w ) whose inner words w have height at most q - 1. So the generating
    functions are A_q = x W_{q-1} for a pair and W_q = 1 / (1 - A_q) for a word, x a pair of brackets; carrying along the
    sums of the number counted, and of its square, over all words gives its mean and variance exactly.

    Args:
      task: types and greatest depth; only the depth matters here.
      length: T, even.
      words: in the set.
      counted: of (depth before the close, array of distances to the opener), which closes count, as booleans.
    """
    pairs = length // 2
    words_of = _words(task.depth, pairs)
    distances = np.maximum(2 * np.arange(pairs + 1) - 1, 0)
    first = second = np.zeros(pairs + 1)  # over all words: the sum of their counts, of their squared counts
    for height, word in enumerate(words_of[1:], start=1):
        marked = counted(task.depth - height + 1, distances).astype(float)
        pair, pair_first, pair_second = (_enclose(inner, task.depth) for inner in (words_of[height - 1], first, second))
        pair_second += marked * (2 * pair_first + pair)
        pair_first += marked * pair
        first = _times(word, _times(pair_first, word))
        second = _times(word, _times(pair_second, word) + 2 * _times(pair_first, first))
    mean = first[-1] / word[-1]
    variance = second[-1] / word[-1] - mean**2
    return Expected(words * float(mean), math.sqrt(words * max(float(variance), 0.0)))


@functools.cache
def _words(depth: int, pairs: int) -> tuple[np.ndarray, ...]:
    """The numbers of words of 0..pairs pairs, for greatest heights 0..depth; scaled as in `_enclose`."""
    words = [np.zeros(pairs + 1)]
    words[0][0] = 1.0
    for _ in range(depth):
        words.append(_inverse_of_one_minus(_enclose(words[-1], depth)))
    return tuple(words)


def _enclose(inner: np.ndarray, depth: int) -> np.ndarray:
    """A series in x, times x: a pair around each word. Divided by the growth of all words a pair, so as not to overflow."""
    growth = 4 * math.cos(math.pi / (depth + 2)) ** 2
    return np.concatenate([[0.0], inner[:-1]]) / growth


def _times(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.convolve(left, right)[: len(left)]


def _inverse_of_one_minus(series: np.ndarray) -> np.ndarray:
    """1 / (1 - a) of a power series a without a constant term."""
    inverse = np.zeros_like(series)
    inverse[0] = 1.0
    for n in range(1, len(series)):
        inverse[n] = series[1 : n + 1] @ inverse[n - 1 :: -1][:n]
    return inverse
