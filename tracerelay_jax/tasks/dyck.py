"""Bounded Dyck: predict the type of each closing bracket (Section 3, Appendix A)."""

import dataclasses
import functools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.errors import InputError
from tracerelay_jax.tasks.base import Batch, require_length, require_option, require_symbols, row_keys


@dataclasses.dataclass(frozen=True)
class Dyck:
    """Dyck-(k, m): words of k bracket types, nested at most m deep, uniform over the paths of their length.

    Opening brackets are tokens 0..k-1, closing ones k..2k-1. At t the target is the type of the token at t + 1 where that
    closes; nothing else is scored.

        k = 2:   0 1 3 2        ( [ ] )        scored at 1 (target 1) and at 2 (target 0)

    Attributes:
      types: k, uniform for each opening bracket.
      depth: m, the greatest number of open brackets.
    """

    types: int = 8
    depth: int = 10

    name: ClassVar[str] = "dyck"
    length_step: ClassVar[int] = 2
    stop: ClassVar[tuple[int, ...]] = ()
    scored_last: ClassVar[int | None] = None

    def __post_init__(self):
        for name in ("types", "depth"):
            value = getattr(self, name)
            require_option(isinstance(value, int) and value >= 1, name, value, "must be an integer of at least 1")

    @property
    def inputs(self) -> int:
        """Opening and closing brackets of each type."""
        return 2 * self.types

    @property
    def outputs(self) -> int:
        """Closing types."""
        return self.types

    @property
    def answer_limit(self) -> int:
        """As many brackets as can be open."""
        return self.depth

    def prompt(self, source) -> list[int]:
        """See `Task.prompt`: the beginning of a word, after which its open brackets are closed."""
        require_symbols(source, self.inputs)
        self._open_brackets(source)
        return list(source)

    def answer_length(self, source) -> int:
        """See `Task.answer_length`: the brackets that are open."""
        return len(self._open_brackets(source))

    def feed_back(self, output: jax.Array) -> jax.Array:
        """See `Task.feed_back`: the closing bracket of a type."""
        return output + self.types

    def _open_brackets(self, source) -> list[int]:
        stack = []
        for place, symbol in enumerate(source):
            if symbol < self.types:
                stack.append(symbol)
                fits, allowed = len(stack) <= self.depth, f"must not open more than {self.depth} brackets"
            else:
                fits = bool(stack) and stack.pop() == symbol - self.types
                allowed = "must close the bracket that was opened last"
            if not fits:
                raise InputError(f"source[{place}]={symbol}: {allowed}")
        return stack

    def positions(self, length: int) -> int:
        """The source alone."""
        return length

    def check_length(self, length: int, field: str = "length") -> None:
        """Raises InputError unless `length` is even and positive."""
        require_length(length >= 2 and length % 2 == 0, field, length, "a Dyck word has an even length of at least 2")

    def sample(self, key, batch_size, length, padded=None) -> Batch:
        """See `Task.sample`."""
        if padded is None:
            self.check_length(length)
            padded = self.positions(length)
        coins, types = jax.vmap(functools.partial(self._draws, padded=padded))(row_keys(key, batch_size))
        tokens = self._walk(coins, types, length, padded)
        place = jnp.arange(padded)[None, :]
        tokens = jnp.where(place < length, tokens, 0)
        following = jnp.pad(tokens[:, 1:], ((0, 0), (0, 1)))
        return Batch(
            tokens=tokens,
            valid=jnp.broadcast_to(place < length, tokens.shape),
            targets=jnp.maximum(following - self.types, 0),
            scored=following >= self.types,
        )

    def _draws(self, key, padded: int):
        coin_key, type_key = jax.random.split(key)
        return jax.random.uniform(coin_key, (padded,)), jax.random.randint(type_key, (padded,), 0, self.types)

    def _walk(self, coins, types, length, padded: int):
        """Tokens (B, T) from uniform draws and opening types, each (B, T)."""
        open_probability = jnp.asarray(open_probabilities(self.depth, padded))
        levels = jnp.arange(self.depth)

        def step(state, inputs):
            height, stack = state  # (B,) open brackets, and their types (B, m) from the outermost
            place, coin, kind = inputs
            left = jnp.maximum(length - place, 0)
            opens = coin < open_probability[left, height]
            top = jnp.sum(jnp.where(levels == height[:, None] - 1, stack, 0), axis=1)
            pushed = jnp.where(levels == height[:, None], kind[:, None], stack)
            token = jnp.where(opens, kind, self.types + top)
            return (height + jnp.where(opens, 1, -1), jnp.where(opens[:, None], pushed, stack)), token

        batch_size = coins.shape[0]
        start = (jnp.zeros(batch_size, jnp.int32), jnp.zeros((batch_size, self.depth), jnp.int32))
        _, tokens = jax.lax.scan(step, start, (jnp.arange(padded), coins.T, types.T))
        return tokens.T


@functools.cache
def open_probabilities(depth: int, length: int) -> np.ndarray:
    """P(open) with r steps left at height h, (length + 1, depth + 1) float32: N_{r-1}(h+1) / N_r(h).

    N_r(h) counts the ways back to an empty stack in r steps without ever passing `depth`. Counts overflow float64 near
    r = 1077; dividing each row by its sum leaves the ratio what it is.
    """
    counts = np.zeros(depth + 3)  # of heights -1..depth+1, the two outer ones always zero
    counts[1] = 1.0
    table = np.zeros((length + 1, depth + 1), np.float32)
    for left in range(1, length + 1):
        opened, closed = counts[2:], counts[:-2]
        total = opened + closed
        table[left] = np.divide(opened, total, out=np.zeros_like(total), where=total > 0)
        counts[1:-1] = total / total.sum()
    return table


def matching_distances_and_depths(tokens: np.ndarray, types: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """For every closing bracket of (B, T) words, the distance to its opener and the depth before it closes.

    Returns:
      Two (B, T) int32 arrays, zero at opening brackets.

    Raises:
      ValueError: if a word closes what is not open, passes `depth`, or ends with brackets open.
    """
    batch, length = tokens.shape
    rows = np.arange(batch)
    height = np.zeros(batch, int)
    place, kind = np.zeros((batch, depth + 1), int), np.zeros((batch, depth + 1), int)
    distances, depths = np.zeros((batch, length), np.int32), np.zeros((batch, length), np.int32)
    for t in range(length):
        token = tokens[:, t]
        closes = token >= types
        opener = np.maximum(height - 1, 0)
        bad = np.where(closes, (height == 0) | (kind[rows, opener] != token - types), height == depth)
        if bad.any():
            raise ValueError(f"row {int(np.argmax(bad))} is no Dyck-({types},{depth}) word: token {t} does not fit")
        depths[:, t] = np.where(closes, height, 0)
        distances[:, t] = np.where(closes, t - place[rows, opener], 0)
        slot = np.where(closes, depth, height)  # a closing row writes to the slot that is never read
        place[rows, slot], kind[rows, slot] = t, token
        height += np.where(closes, -1, 1)
    if height.any():
        raise ValueError(f"row {int(np.argmax(height != 0))} is no Dyck word: it ends with brackets open")
    return distances, depths
