"""A whole run: train, evaluate the selected checkpoint, and write down what came out."""

from collections.abc import Sequence
from typing import Any

import jax

from tracerelay_jax.evaluation.final import evaluate_lengths
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.hosts import wait_for_all
from tracerelay_jax.model.network import parameter_count
from tracerelay_jax.progress import Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.checkpoints import load_parameters
from tracerelay_jax.training.loop import Trainer
from tracerelay_jax.training.record import EventHook, stop_reason
from tracerelay_jax.training.stopping import Progress


def train_and_evaluate(
    experiment: Experiment,
    folder: RunFolder,
    reporter: Reporter,
    on_event: EventHook | None = None,
    devices: Sequence[jax.Device] = (),
) -> dict[str, Any]:
    """Does what is left of a run and returns its result, which it writes to result.json.

    A finished run is not touched; an interrupted one goes on from its latest checkpoint, bit for bit as if it had never
    stopped. `on_event` is given each event of metrics.jsonl as well; `devices` are as for `Trainer`.

    Raises:
      InputError: if another process is at it.
      FloatingPointError: if loss, gradient or a validation is not finite.
    """
    with folder.locked():
        return _finish(experiment, folder, reporter, on_event, devices)


def _finish(experiment: Experiment, folder: RunFolder, reporter: Reporter, on_event, devices) -> dict[str, Any]:
    result = folder.read_result()
    if result is not None:
        reporter.line(f"{folder.path} is finished; its result is in {folder.path / 'result.json'}")
        return result
    reporter.line(f"run {experiment.name} in {folder.path}: {parameter_count(experiment.model):,} parameters")
    progress = Trainer(experiment, folder, reporter, on_event, devices).run()
    evaluate_best(experiment, folder, progress, reporter)
    if len({device.process_index for device in devices}) > 1:
        wait_for_all("result")  # which one of them writes
    return folder.read_result()


def evaluate_best(experiment: Experiment, folder: RunFolder, progress: Progress, reporter: Reporter) -> None:
    """Evaluates the selected checkpoint of a run that has stopped, and writes result.json."""
    best, params = load_parameters(folder)
    reason = stop_reason(experiment, progress)
    reporter.line(
        f"stopped by the {reason} at update {progress.updates} after {progress.seconds / 60:.1f} min; "
        f"best checkpoint at {best}, final evaluation:"
    )
    config = experiment.evaluation
    lengths = evaluate_lengths(experiment, params, config.id_lengths + config.ood_lengths, config.examples, reporter)
    folder.write_result(_result(experiment, progress, best, reason, lengths))
    reporter.line(f"written to {folder.path / 'result.json'}")


def _result(experiment: Experiment, progress: Progress, best: int, reason: str | None, lengths) -> dict[str, Any]:
    """What the tables need, Tables 1-5."""
    return {
        "name": experiment.name,
        "task": experiment.task.name,
        "inherit_phase": experiment.model.inherit_phase,
        "trace_widths": experiment.model.trace_widths,
        "seed": experiment.seed,
        "parameters": parameter_count(experiment.model),
        "best_update": best,
        "final_update": progress.updates,
        "stopped_by": reason,
        "tokens": progress.tokens,
        "minutes": round(progress.seconds / 60, 2),
        "validation": {"score": progress.best.score, "cross_entropy": progress.best.cross_entropy},
        "evaluation_seed": experiment.evaluation.seed,
        "id_lengths": experiment.evaluation.id_lengths,
        "ood_lengths": experiment.evaluation.ood_lengths,
        "lengths": lengths,
    }
