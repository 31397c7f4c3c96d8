"""Evaluates the best checkpoint of a run, or its latest, or a model, at any lengths, on any number of examples.

    python launch/evaluate.py --workdir=runs/most_freq-dc16-seed42 --lengths=512,2048 --examples=256
    python launch/evaluate.py --workdir=runs/most_freq-dc16-seed42 --latest --lengths=1024
    python launch/evaluate.py --model=most_freq-dc16-seed42 --lengths=512

Prints a line for each length; --output=FILE also writes all metrics as JSON. The examples are those of the run's
evaluation seed: a length and a count of the final evaluation give its examples again.
"""

import json
from collections.abc import Callable

from absl import flags

from tracerelay_jax import cli
from tracerelay_jax.errors import InputError
from tracerelay_jax.evaluation.final import evaluate_lengths
from tracerelay_jax.experiment import Experiment, make_experiment
from tracerelay_jax.progress import Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.trained import read_run
from tracerelay_jax.training.checkpoints import load_parameters

_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.")
_MODEL = flags.DEFINE_string("model", None, "Instead: a file of launch/export.py, or the name of a model of the package.")
flags.mark_flags_as_mutual_exclusive(["workdir", "model"], required=True)
_LENGTHS = flags.DEFINE_list("lengths", None, "Source lengths; by default those of the run's final evaluation.")
_EXAMPLES = flags.DEFINE_integer("examples", None, "Examples a length; by default as many.", lower_bound=1)
_LATEST = flags.DEFINE_boolean("latest", False, "The checkpoint after the last update, instead of the selected one.")
_OUTPUT = flags.DEFINE_string("output", None, "A .json file to write the metrics to.")


def main(_):
    """Runs the program."""
    cli.use_all_cores()
    output = cli.output_file(_OUTPUT.value, ".json")
    experiment, load = _experiment_and_loader()
    lengths = _lengths(experiment)
    update, params = load()
    reporter = Reporter()
    reporter.line(_MODEL.value or f"{_WORKDIR.value}: checkpoint at update {update}")
    results = evaluate_lengths(experiment, params, lengths, _EXAMPLES.value or experiment.evaluation.examples, reporter)
    if output:
        output.write_text(json.dumps({"update": update, "lengths": results}, indent=1) + "\n")


def _experiment_and_loader() -> tuple[Experiment, Callable]:
    """What the model was trained by, and how to load (update, parameters) once the flags have proved to be right."""
    if _MODEL.value:
        if _LATEST.value:
            raise InputError("latest=True: needs --workdir; a model is of the selected checkpoint")
        experiment, params = read_run(_MODEL.value)
        return experiment, lambda: (None, params)
    folder = RunFolder(_WORKDIR.value)
    return make_experiment(folder.read_config()), lambda: load_parameters(folder, _LATEST.value)


def _lengths(experiment: Experiment) -> list[int]:
    if _LENGTHS.value is None:
        return list(experiment.evaluation.id_lengths + experiment.evaluation.ood_lengths)
    lengths = cli.whole_numbers("lengths", _LENGTHS.value)
    for length in lengths:
        experiment.task.check_length(length, "lengths")
    return lengths


if __name__ == "__main__":
    cli.run(main)
