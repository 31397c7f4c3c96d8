"""What every task is: a sampler on the device, and how its sequences are laid out."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from tracerelay_jax.errors import InputError


class Batch(NamedTuple):
    """Examples of one source length, padded on the right.

    Attributes:
      tokens: (B, T) int32 inputs.
      valid: (B, T) bool, False at padding.
      targets: (B, T) int32, the class to predict at each position; meaningless where not scored.
      scored: (B, T) bool, the positions whose logits count, in the loss as in every metric.
    """

    tokens: jax.Array
    valid: jax.Array
    targets: jax.Array
    scored: jax.Array


class Task(Protocol):
    """A task: a frozen dataclass whose fields are its options."""

    name: str
    inputs: int  # input symbols
    outputs: int  # classes of a target
    length_step: int  # source lengths are multiples of this
    answer_limit: int  # outputs of the longest answer
    scored_last: int | None  # as many of a sequence's last positions may be scored; None for all
    stop: tuple[int, ...]  # outputs that end an answer

    def positions(self, length: int) -> int:
        """Positions that a source of `length` takes up, separators and teacher-forced outputs included."""

    def check_length(self, length: int, field: str = "length") -> None:
        """Raises InputError, naming `field`, unless `length` is possible."""

    def sample(self, key: jax.Array, batch_size: int, length: int | jax.Array, padded: int | None = None) -> Batch:
        """Draws a batch with sources of `length`.

        Args:
          key: a typed PRNG key; an equal key gives equal examples, whatever the padding or the device.
          batch_size: B.
          length: the source length; it may be traced where `padded` is given.
          padded: positions to pad to, T of the batch; by default `positions(length)`.
        """

    def prompt(self, source: Sequence[int]) -> list[int]:
        """The inputs after which the answer to a source of any length is generated.

        Raises:
          InputError: unless `source` could stand in this task, or be its beginning.
        """

    def answer_length(self, source: Sequence[int]) -> int:
        """Outputs in the answer to `source`, at most."""

    def feed_back(self, output: jax.Array) -> jax.Array:
        """The input symbol of each output symbol, elementwise."""


def require_symbols(source: Sequence[int], symbols: int) -> None:
    """Raises InputError unless `source` holds at least one symbol and only those from 0 to symbols - 1."""
    if not source:
        raise InputError("source=[]: must hold at least one symbol")
    for place, symbol in enumerate(source):
        if not 0 <= symbol < symbols:
            raise InputError(f"source[{place}]={symbol}: must be a symbol from 0 to {symbols - 1}")


def require_length(holds: bool, field: str, length: int, allowed: str) -> None:
    """Raises InputError unless `holds`."""
    if not holds:
        raise InputError(f"{field}={length}: {allowed}")


def require_option(holds: bool, name: str, value, allowed: str) -> None:
    """Raises InputError, naming a task's option, unless `holds`."""
    if not holds:
        raise InputError(f"task option {name}={value!r}: {allowed}")


def row_keys(key: jax.Array, batch_size: int) -> jax.Array:
    """A key for each row, independent of the number of rows; within a row, draws are a prefix of longer draws."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(batch_size))


def draw_key(seed: int | jax.Array, index: int | jax.Array) -> jax.Array:
    """The key of the batch at `index` (a step, or a length) of the stream `seed`."""
    return jax.random.fold_in(jax.random.key(seed), index)
