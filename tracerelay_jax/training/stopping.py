"""When a run ends, and which of its checkpoints is the best (Section 3, "Selection and reporting")."""

import dataclasses
import math
from typing import Any


@dataclasses.dataclass(frozen=True)
class Validation:
    """One validation: means over the ID lengths, unweighted, and each length's metrics.

    Attributes:
      update: updates made.
      score: mean of the task's score, a fraction.
      cross_entropy: mean cross-entropy in nats.
      lengths: {length: metrics}.
    """

    update: int
    score: float
    cross_entropy: float
    lengths: dict[str, dict[str, Any]]

    @property
    def rank(self) -> tuple[float, float]:
        """The greater, the better: score, then lower cross-entropy."""
        return self.score, -self.cross_entropy


@dataclasses.dataclass
class Progress:
    """What a run knows of itself besides its parameters; saved with each checkpoint, so that it survives a restart.

    Attributes:
      updates: updates made.
      tokens: physical positions trained on, padding to a bucket not counted.
      seconds: wall time of the training loop, validation and compilation included.
      history: every validation, in order.
      streak: consecutive passes of the threshold up to now.
    """

    updates: int = 0
    tokens: int = 0
    seconds: float = 0.0
    history: list[Validation] = dataclasses.field(default_factory=list)
    streak: int = 0

    @property
    def best(self) -> Validation:
        """The validation of the selected checkpoint; of full ties the latest."""
        return max(reversed(self.history), key=lambda validation: validation.rank)

    def record(self, validation: Validation, threshold: float) -> None:
        """Adds a validation and counts the streak.

        Raises:
          FloatingPointError: if its score or cross-entropy is not finite.
        """
        if not all(map(math.isfinite, validation.rank)):
            raise FloatingPointError(f"validation at update {validation.update} gave {validation.rank}: not finite")
        self.history.append(validation)
        self.streak = self.streak + 1 if validation.score >= threshold else 0

    def to_json(self) -> dict[str, Any]:
        """A tree of plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Progress":
        """The inverse of `to_json`."""
        return cls(**{**values, "history": [Validation(**entry) for entry in values["history"]]})
