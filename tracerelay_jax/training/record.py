"""What a run writes down as it goes: the loss every few updates, validations, checkpoints."""

import math
from collections.abc import Callable
from typing import Any

from tracerelay_jax.experiment import Experiment
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.checkpoints import Checkpoints
from tracerelay_jax.training.step import StepMetrics, TrainState
from tracerelay_jax.training.stopping import Progress, Validation

EventHook = Callable[[dict[str, Any]], None]  # is given each event of metrics.jsonl


class RunRecord:
    """The progress of one run and its folder, whoever makes the updates.

    Attributes:
      experiment: the run's configuration.
      folder: where it is written down.
      progress: what the run has become.
    """

    def __init__(self, experiment: Experiment, folder: RunFolder, on_event: EventHook | None = None):
        self.experiment, self.folder, self.progress = experiment, folder, Progress()
        self._on_event = on_event or (lambda event: None)
        self._checkpoints = Checkpoints(folder.checkpoints)
        self._pending: list[StepMetrics] = []

    def restore(self, state: TrainState) -> TrainState:
        """The state of the latest checkpoint, placed like `state`, which is the first one and returned if there is none."""
        state, self.progress = self._checkpoints.restore_latest(state) or (state, Progress())
        self.folder.drop_metrics_after(self.progress.updates)
        return state

    @property
    def stop_reason(self) -> str | None:
        """Why the run has ended; None while it goes on."""
        return stop_reason(self.experiment, self.progress)

    @property
    def next_validation(self) -> int:
        """The update after which the run is validated next."""
        every = self.experiment.validation.every
        return min((self.progress.updates // every + 1) * every, self.experiment.training.updates)

    def updated(self, positions: int, metrics: StepMetrics, updates_per_second: float) -> None:
        """Counts an update of a batch with `positions` a row.

        Raises:
          FloatingPointError: if loss or gradient were not finite since the last line.
        """
        training, progress = self.experiment.training, self.progress
        goal = self.next_validation
        progress.updates += 1
        progress.tokens += training.batch_size * positions
        self._pending.append(metrics)
        if progress.updates % training.log_every == 0 or progress.updates == goal:
            self._log(updates_per_second)

    def validated(self, state: TrainState, validation: Validation, seconds: float) -> None:
        """Adds a validation made `seconds` after the last one, and saves.

        Raises:
          FloatingPointError: if it is not finite; nothing is saved then.
        """
        progress = self.progress
        progress.record(validation, self.experiment.validation.threshold)
        progress.seconds += seconds
        self._emit({"event": "validation", "update": progress.updates, "score": validation.score,
                    "cross_entropy": validation.cross_entropy, "lengths": validation.lengths,
                    "tokens": progress.tokens, "seconds": round(progress.seconds, 3)})  # fmt: skip
        self._checkpoints.save(state, progress, validation)

    def close(self) -> None:
        """Waits for what is under way."""
        self._checkpoints.close()

    def _log(self, updates_per_second: float) -> None:
        loss, norm = (
            math.fsum(float(value) for value in values) / len(self._pending) for values in zip(*self._pending, strict=True)
        )
        self._pending = []
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise FloatingPointError(
                f"loss {loss} and gradient norm {norm} by update {self.progress.updates}: not finite; the checkpoints "
                "before are kept"
            )
        self._emit({"event": "train", "update": self.progress.updates, "loss": loss, "gradient_norm": norm,
                    "updates_per_second": round(updates_per_second, 2)})  # fmt: skip

    def _emit(self, event: dict[str, Any]) -> None:
        self.folder.append_metrics(event)
        self._on_event(event)


def stop_reason(experiment: Experiment, progress: Progress) -> str | None:
    """`threshold` after enough consecutive passes, `cap` when the updates are used up, else None."""
    if progress.streak >= experiment.validation.passes:
        return "threshold"
    return "cap" if progress.updates >= experiment.training.updates else None
