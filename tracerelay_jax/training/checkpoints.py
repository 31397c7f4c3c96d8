"""Checkpoints through Orbax: the latest, to go on from, and the best, to evaluate."""

import pathlib
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import AnyPreservationPolicy, BestN, LatestN

from tracerelay_jax.errors import InputError
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.stopping import Progress, Validation


class Checkpoints:
    """The checkpoints of one run; saves are synchronous, so that a failed one raises here and now."""

    def __init__(self, directory: pathlib.Path):
        # Orbax needs both: best_fn records the metrics, and the policy keeps the latest as well as the best.
        keep_best = BestN(get_metric_fn=_rank, n=1, keep_checkpoints_without_metrics=False)
        options = ocp.CheckpointManagerOptions(
            best_fn=_rank,
            preservation_policy=AnyPreservationPolicy([LatestN(1), keep_best]),
            enable_async_checkpointing=False,
        )
        handlers = {"state": ocp.StandardCheckpointHandler(), "progress": ocp.JsonCheckpointHandler()}
        self._manager = ocp.CheckpointManager(directory.absolute(), options=options, item_handlers=handlers)

    def save(self, state, progress: Progress, validation: Validation) -> None:
        """Saves the training state after `validation`, and the run's progress."""
        self._manager.save(
            validation.update,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state._asdict()), progress=ocp.args.JsonSave(progress.to_json())
            ),
            metrics={"score": validation.score, "cross_entropy": validation.cross_entropy},
        )

    def restore_latest(self, state) -> tuple[Any, Progress] | None:
        """The latest state, placed like `state`, and its progress; None if nothing was saved yet."""
        step = self._manager.latest_step()
        if step is None:
            return None
        restored = self._manager.restore(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardRestore(jax.tree.map(ocp.utils.to_shape_dtype_struct, state._asdict())),
                progress=ocp.args.JsonRestore(),
            ),
        )
        return type(state)(**restored.state), Progress.from_json(restored.progress)

    def restore_parameters(self, latest: bool = False) -> tuple[int, Any] | None:
        """The update of the best checkpoint, or of the latest, and its parameters as NumPy arrays; None if there is none."""
        step = self._manager.latest_step() if latest else self._manager.best_step()
        if step is None:
            return None
        device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        state = self._manager.item_metadata(step).state
        abstract = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=device), state)
        restored = self._manager.restore(step, args=ocp.args.Composite(state=ocp.args.StandardRestore(abstract)))
        return step, jax.tree.map(np.asarray, restored.state["params"])

    def close(self) -> None:
        """Waits for what is under way."""
        self._manager.close()


def load_parameters(folder: RunFolder, latest: bool = False):
    """The selected checkpoint of a run, or its latest: (update, parameters).

    Raises:
      InputError: if there is none.
    """
    found = None
    if folder.checkpoints.is_dir():
        checkpoints = Checkpoints(folder.checkpoints)
        try:
            found = checkpoints.restore_parameters(latest)
        finally:
            checkpoints.close()
    if found is None:
        raise InputError(f"workdir={folder.path}: holds no checkpoint; those of a run are where it was trained")
    return found


def _rank(metrics: dict[str, float]) -> tuple[float, float]:
    return metrics["score"], -metrics["cross_entropy"]
