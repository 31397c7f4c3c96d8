"""Equal Repeats: the most that a reader of only the last tokens can score (Section 4, "maximum single-pass input lag")."""

import functools
from collections import Counter, defaultdict
from fractions import Fraction

from tracerelay_jax.config import TraceRelayConfig


def reader_window(model: TraceRelayConfig) -> int:
    """Tokens that an output without phase inheritance depends on: the last one, and W + L more for each layer."""
    return 1 + sum(layer.stride + layer.left_window for layer in model.layers)


@functools.cache
def ceiling(length: int, window: int, examples: int) -> float:
    """The best expected accuracy, a fraction, of a reader of the last `window` tokens who also knows the length.

    All words are enumerated, with their chances as `EqualRepeats` draws them; the best guess after a suffix is the class
    that is likeliest given the suffix.

    Args:
      length: T of every word.
      window: tokens seen.
      examples: words in the set, which decide the share of each class.
    """
    chances = defaultdict(Counter)
    third = examples // 3
    for relation, rows in enumerate((third, third, examples - 2 * third)):
        for repeated in range(1, length // 2 + 1):
            odd = length - 2 * repeated
            first, second, last = ((repeated, repeated, odd), (odd, repeated, repeated), (repeated, odd, repeated))[relation]
            label = 0 if odd == repeated else relation
            chances[_suffix(first, second, last, window)][label] += rows
    best = sum(max(classes.values()) for classes in chances.values())
    return float(Fraction(best, examples * (length // 2)))


def _suffix(first: int, second: int, last: int, window: int) -> tuple[tuple[int, int], ...]:
    """The last `window` tokens of 0^first 1^second 0^last as (symbol, times) pairs, from the end."""
    pairs, left = [], window
    for symbol, times in ((0, last), (1, second), (0, first)):
        times = min(times, left)
        left -= times
        if times and pairs and pairs[-1][0] == symbol:  # the run between them was empty
            pairs[-1] = (symbol, pairs[-1][1] + times)
        elif times:
            pairs.append((symbol, times))
    return tuple(pairs)
