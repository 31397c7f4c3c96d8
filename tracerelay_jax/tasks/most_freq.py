"""Most-Freq: list the symbols of a source by descending frequency, then end (Section 3, Appendix A)."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from tracerelay_jax.tasks.base import Batch, require_length, require_option, require_symbols, row_keys


@dataclasses.dataclass(frozen=True)
class MostFreq:
    """A source of V symbols with counts at least g apart, a separator, and the symbols by descending count.

    Inputs are the symbols 0..V-1, SEP = V, EOS = V+1 and PAD = V+2; outputs the symbols and EOS = V. Counts ascend from
    1, 1+g, 1+2g, ... to which sorted extras are added, multinomial over the symbols with equal chances; then symbols and
    positions are permuted. Positions from SEP on are scored.

        V = 3, g = 1:   2 0 2 1 2 0 SEP 2 0 1        targets from SEP on: 2 0 1 EOS

    Attributes:
      symbols: V.
      gap: g, the least difference between two counts; 4 in the paper, so that no counts tie.
    """

    symbols: int = 5
    gap: int = 4

    name: ClassVar[str] = "most_freq"
    length_step: ClassVar[int] = 1

    def __post_init__(self):
        for name, least in (("symbols", 2), ("gap", 1)):
            value = getattr(self, name)
            require_option(isinstance(value, int) and value >= least, name, value, f"must be an integer of at least {least}")

    @property
    def inputs(self) -> int:
        """Symbols, SEP, EOS and PAD."""
        return self.symbols + 3

    @property
    def outputs(self) -> int:
        """Symbols and EOS."""
        return self.symbols + 1

    @property
    def separator(self) -> int:
        """The input that ends a source."""
        return self.symbols

    @property
    def end(self) -> int:
        """The output that ends a ranking."""
        return self.symbols

    @property
    def stop(self) -> tuple[int, ...]:
        """EOS."""
        return (self.end,)

    @property
    def answer_limit(self) -> int:
        """Every symbol, and EOS."""
        return self.symbols + 1

    @property
    def scored_last(self) -> int:
        """SEP, and the symbols that are fed back."""
        return self.answer_limit

    def prompt(self, source) -> list[int]:
        """See `Task.prompt`: the source, of any counts, and SEP."""
        require_symbols(source, self.symbols)
        return [*source, self.separator]

    def answer_length(self, source) -> int:
        """See `Task.answer_length`."""
        del source
        return self.answer_limit

    def feed_back(self, output: jax.Array) -> jax.Array:
        """See `Task.feed_back`: EOS differs."""
        return jnp.where(output == self.end, self.symbols + 1, output)

    @property
    def least_length(self) -> int:
        """V + g V (V - 1) / 2, the shortest source that holds the separated counts."""
        return self.symbols + self.gap * self.symbols * (self.symbols - 1) // 2

    def positions(self, length: int) -> int:
        """The source, SEP and the V teacher-forced symbols."""
        return length + 1 + self.symbols

    def check_length(self, length: int, field: str = "length") -> None:
        """Raises InputError unless `length` holds the separated counts."""
        allowed = f"Most-Freq with {self.symbols} symbols and gap {self.gap} needs at least {self.least_length}"
        require_length(length >= self.least_length, field, length, allowed)

    def sample(self, key, batch_size, length, padded=None) -> Batch:
        """See `Task.sample`."""
        if padded is None:
            self.check_length(length)
            padded = self.positions(length)
        source, ranking = jax.vmap(lambda row_key: self._draw(row_key, length, padded))(row_keys(key, batch_size))

        place = jnp.arange(padded)[None, :]
        output = jnp.clip(place - length, 0, self.symbols)  # which output is predicted here
        answers = jnp.pad(ranking, ((0, 0), (0, 1)), constant_values=self.end)
        targets = jnp.take_along_axis(answers, jnp.broadcast_to(output, (batch_size, padded)), axis=1)
        fed_back = jnp.pad(targets[:, :-1], ((0, 0), (1, 0)))
        end = length + 1 + self.symbols
        tokens = jnp.where(place < length, source, jnp.where(place == length, self.separator, fed_back))
        shape = (batch_size, padded)
        return Batch(
            tokens=jnp.where(place < end, tokens, self.symbols + 2),
            valid=jnp.broadcast_to(place < end, shape),
            targets=targets,
            scored=jnp.broadcast_to((place >= length) & (place < end), shape),
        )

    def _draw(self, key, length, padded: int):
        """One source (padded,), meaningless from `length` on, and its ranking (V,)."""
        extra_key, label_key, place_key = jax.random.split(key, 3)
        place = jnp.arange(padded)
        extra = jax.random.randint(extra_key, (padded,), 0, self.symbols)
        extra = jnp.where(place < length - self.least_length, extra, self.symbols)
        extras = jnp.sort(jnp.sum(extra[:, None] == jnp.arange(self.symbols), axis=0))
        counts = 1 + self.gap * jnp.arange(self.symbols) + extras  # ascending
        labels = jax.random.permutation(label_key, self.symbols)
        rank = jnp.sum(place[:, None] >= jnp.cumsum(counts), axis=1)
        ordered = labels[jnp.minimum(rank, self.symbols - 1)]
        # A random order of the first `length` places: sorted by random numbers, padding after all of them.
        tickets = jax.random.bits(place_key, (padded,), jnp.uint32) >> 1
        tickets = jnp.where(place < length, tickets, jnp.uint32(1) << 31)
        return ordered[jnp.argsort(tickets)], labels[::-1]


def rank_by_count(sources: np.ndarray, symbols: int) -> np.ndarray:
    """Symbols present in each row of (B, T), by descending count, ties by first appearance; -1 past the last. (B, V)."""
    counts = np.stack([(sources == symbol).sum(axis=1) for symbol in range(symbols)], axis=1)
    order = np.lexsort((first_places(sources, symbols), -counts), axis=1)
    return np.where(np.take_along_axis(counts, order, axis=1) > 0, order, -1)


def first_places(sources: np.ndarray, symbols: int) -> np.ndarray:
    """(B, V): where each symbol first appears in each row of (B, T); T if it does not."""
    found = sources[:, None, :] == np.arange(symbols)[:, None]
    return np.where(found.any(axis=2), found.argmax(axis=2), sources.shape[1])
