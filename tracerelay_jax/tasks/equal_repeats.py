"""Equal Repeats: which two of the three runs in 0^a 1^b 0^c are equally long (Section 3, Appendix A)."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from tracerelay_jax.tasks.base import Batch, require_length, require_symbols, row_keys


@dataclasses.dataclass(frozen=True)
class EqualRepeats:
    """Class 0 is a = b, class 1 is b = c, class 2 is a = c; the class is read at the last position.

    The repeated run r is uniform in [1, T // 2], the odd run takes the T - 2r left, which may be none; three equal runs are
    class 0. Of a batch of B, B // 3 rows, at least one, are of class 0, as many of class 1, and the rest of class 2, before
    that rule.

        0 0 0 1 1 1 0        a = b = 3, c = 1: class 0
        0 0 1 0 0            a = c = 2, b = 1: class 2
    """

    name: ClassVar[str] = "equal_repeats"
    inputs: ClassVar[int] = 2
    outputs: ClassVar[int] = 3
    length_step: ClassVar[int] = 1
    answer_limit: ClassVar[int] = 1
    scored_last: ClassVar[int | None] = 1
    stop: ClassVar[tuple[int, ...]] = ()

    def positions(self, length: int) -> int:
        """The source alone."""
        return length

    def check_length(self, length: int, field: str = "length") -> None:
        """Raises InputError unless `length` holds two runs."""
        require_length(length >= 2, field, length, "Equal Repeats needs at least 2 positions")

    def prompt(self, source) -> list[int]:
        """See `Task.prompt`: the whole source, whose class is read at its end."""
        require_symbols(source, self.inputs)
        return list(source)

    def answer_length(self, source) -> int:
        """See `Task.answer_length`: the class."""
        del source
        return self.answer_limit

    def feed_back(self, output: jax.Array) -> jax.Array:
        """See `Task.feed_back`: nothing follows the class."""
        return jnp.zeros_like(output)

    def sample(self, key, batch_size, length, padded=None) -> Batch:
        """See `Task.sample`."""
        if padded is None:
            self.check_length(length)
            padded = self.positions(length)
        draw = jax.vmap(lambda row_key: jax.random.randint(row_key, (), 1, length // 2 + 1))
        repeated = draw(row_keys(key, batch_size))
        odd = length - 2 * repeated
        relation = jnp.minimum(jnp.arange(batch_size) // max(batch_size // 3, 1), 2)
        first = jnp.where(relation == 1, odd, repeated)  # a
        second = jnp.where(relation == 2, odd, repeated)  # b
        label = jnp.where(odd == repeated, 0, relation)

        place = jnp.arange(padded)[None, :]
        ones = (place >= first[:, None]) & (place < (first + second)[:, None])
        shape = (batch_size, padded)
        return Batch(
            tokens=ones.astype(jnp.int32),
            valid=jnp.broadcast_to(place < length, shape),
            targets=jnp.broadcast_to(label[:, None], shape).astype(jnp.int32),
            scored=jnp.broadcast_to(place == length - 1, shape),
        )
