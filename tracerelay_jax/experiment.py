"""One run, whole: task, network, training, validation and final evaluation, checked before anything compiles."""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

from tracerelay_jax import tasks
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.errors import InputError


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How parameters are learned (Table 2).

    Attributes:
      lengths: (shortest, longest) source; each batch has one length, uniform between them in steps of the task's own.
      batch_size: sequences an update.
      updates: cap on updates.
      learning_rate: AdamW's rate after the warm-up.
      warmup_updates: update n of these has n / warmup_updates of the rate.
      beta1: decay of the gradient's mean.
      beta2: decay of the gradient's square.
      epsilon: added to the root of the second moment.
      weight_decay: decoupled, on all parameters.
      gradient_clip: greatest global norm of a gradient.
      log_every: updates that one train line in metrics.jsonl covers.
    """

    lengths: tuple[int, int]
    batch_size: int = 64
    updates: int = 20_000
    learning_rate: float = 3e-4
    warmup_updates: int = 100
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    gradient_clip: float = 1.0
    log_every: int = 50


@dataclasses.dataclass(frozen=True)
class ValidationConfig:
    """Validation on fixed sets, which selects the checkpoint and stops the run (Section 3, "Selection and reporting").

    Attributes:
      lengths: source lengths of the sets.
      examples: examples a length.
      seed: of the sets.
      every: updates between validations.
      threshold: mean score over lengths that counts as a pass.
      passes: consecutive passes that stop the run.
    """

    lengths: tuple[int, ...]
    examples: int
    seed: int = 20261007
    every: int = 250
    threshold: float = 0.99
    passes: int = 2


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """The final evaluation of the selected checkpoint.

    Attributes:
      id_lengths: source lengths within the training range.
      ood_lengths: source lengths beyond it.
      examples: examples a length.
      seed: of the examples.
      batch_size: rows taken at once, in validation too; no result depends on it but for rounding.
    """

    id_lengths: tuple[int, ...]
    ood_lengths: tuple[int, ...]
    examples: int
    seed: int = 20261006
    batch_size: int = 64


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A run's configuration; `name` is that of its folder, `seed` decides parameters and batches."""

    name: str
    seed: int
    task: tasks.Task
    model: TraceRelayConfig
    training: TrainingConfig
    validation: ValidationConfig
    evaluation: EvaluationConfig


def make_experiment(config: Mapping[str, Any]) -> Experiment:
    """Builds the experiment that a config file, or the `config` of a run folder, describes.

    Args:
      config: a mapping with `name`, `seed`, `task`, `task_options`, `model`, `training`, `validation` and `evaluation`.

    Raises:
      InputError: naming the field, its value and what is allowed.
    """
    known = {"name", "seed", "task", "task_options", "model", "training", "validation", "evaluation"}
    if set(config) != known:
        odd = sorted(set(config) ^ known)
        raise InputError(f"config fields {', '.join(odd)}: a config has exactly {', '.join(sorted(known))}")
    task = tasks.make(config["task"], **config["task_options"])
    experiment = Experiment(
        name=config["name"],
        seed=config["seed"],
        task=task,
        model=_build(TraceRelayConfig, "model", config["model"], inputs=task.inputs, outputs=task.outputs),
        training=_build(TrainingConfig, "training", config["training"]),
        validation=_build(ValidationConfig, "validation", config["validation"]),
        evaluation=_build(EvaluationConfig, "evaluation", config["evaluation"]),
    )
    _check(experiment)
    return experiment


def check_name(experiment: Experiment) -> None:
    """Checks that a name with -dcN or -seedN in it, or with both and -off or not, as those of the config files, is true.

    Raises:
      InputError: if it is not.
    """
    name, model = experiment.name, experiment.model
    said = {field: int(number) for field, number in re.findall(r"-(dc|seed)(\d+)(?![^-])", name)}
    true = {"dc": model.trace_widths[len(model.trace_widths) // 2], "seed": experiment.seed}
    wrong = [f"{field}={true[field]}" for field in said if said[field] != true[field]]
    if said.keys() == true.keys() and ("off" in name.split("-")) == model.inherit_phase:
        wrong.append(f"inherit={'on' if model.inherit_phase else 'off'}")
    if wrong:
        raise InputError(
            f"config.name={name!r}: is not the name of a run with {', '.join(wrong)}; give that as an argument of the "
            "config file, after its colon, or another --config.name"
        )


def differences(one: Experiment, other: Experiment, may_differ: Set[str] = frozenset()) -> Iterator[tuple[str, Any, Any]]:
    """Yields (field, value, the other's value) of each that differs, but for those that may; `model.alpha` is a field."""
    ours, theirs = _fields(one), _fields(other)
    for field in ours | theirs:
        if field not in may_differ and ours.get(field) != theirs.get(field):
            yield field, ours.get(field), theirs.get(field)


def _fields(experiment: Experiment) -> dict[str, Any]:
    """{name as in a config, sections dotted: value}."""
    values = dataclasses.asdict(experiment)
    options = values.pop("task")
    return _flat({"task": experiment.task.name, "task_options": options, **values})


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    fields = {}
    for name, value in values.items():
        fields |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return fields


def _build(kind, section: str, values: Mapping[str, Any], **more):
    names = [field.name for field in dataclasses.fields(kind) if field.name not in more]
    for name in values:
        if name not in names:
            raise InputError(f"config.{section}.{name}: unknown; {section} has {', '.join(names)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    try:
        return kind(**values, **more)
    except InputError as error:
        raise InputError(f"config.{section}.{error}") from error
    except TypeError as error:  # a field without a default is missing
        raise InputError(f"config.{section}: {error}") from error


def _check(experiment: Experiment) -> None:
    _check_lengths(experiment)
    for section in ("training", "validation", "evaluation"):
        _check_numbers(section, getattr(experiment, section))
    if experiment.validation.threshold > 1:
        raise InputError(f"config.validation.threshold={experiment.validation.threshold}: must be a fraction of at most 1")
    if not isinstance(experiment.seed, int) or not 0 <= experiment.seed < 2**32:
        raise InputError(f"config.seed={experiment.seed!r}: must be an integer from 0 to 2**32 - 1")


def _check_lengths(experiment: Experiment) -> None:
    lengths = experiment.training.lengths
    if len(lengths) != 2 or lengths[0] > lengths[1]:
        raise InputError(f"config.training.lengths={lengths}: must be the shortest and the longest length")
    fields = {
        "training.lengths": lengths,
        "validation.lengths": experiment.validation.lengths,
        "evaluation.id_lengths": experiment.evaluation.id_lengths,
        "evaluation.ood_lengths": experiment.evaluation.ood_lengths,
    }
    for field, values in fields.items():
        if not values and field != "evaluation.ood_lengths":
            raise InputError(f"config.{field}={values}: must hold at least one length")
        for length in values:
            experiment.task.check_length(length, f"config.{field}")


def _check_numbers(section: str, config) -> None:
    """Every number of a section is positive; a decay and a moment's decay may be zero."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, tuple):
            continue
        least_ok = value >= 0 if field.name in ("weight_decay", "beta1", "beta2", "seed") else value > 0
        if not (least_ok and math.isfinite(value)):
            raise InputError(f"config.{section}.{field.name}={value}: must be a positive number")
        if field.name in ("beta1", "beta2") and value >= 1:
            raise InputError(f"config.{section}.{field.name}={value}: must be below 1")
