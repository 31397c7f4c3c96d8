"""Checks that result.json and metrics.jsonl of a run are whole, and belong to its configuration and to one another."""

import json
import math
import pathlib
from collections.abc import Iterable
from typing import Any

from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.report import names
from tracerelay_jax.tasks import Dyck, MostFreq


def check_result(experiment: Experiment, result: dict[str, Any], slices: Iterable[str]) -> None:
    """Checks a run's result.json.

    Args:
      experiment: the run's configuration.
      result: what result.json holds.
      slices: names of the slices that a Dyck run must have, such as `depth/1`.

    Raises:
      InputError: naming the field that is missing, impossible, or another than the configuration's.
    """
    wanted = {
        "name": experiment.name,
        "task": experiment.task.name,
        "inherit_phase": experiment.model.inherit_phase,
        "trace_widths": list(experiment.model.trace_widths),
        "seed": experiment.seed,
        "evaluation_seed": experiment.evaluation.seed,
    }
    for field, value in wanted.items():
        if result.get(field) != value:
            raise InputError(f"result.json has {field}={result.get(field)!r}, but config.json {value!r}")
    for field in ("best_update", "final_update", "tokens", "minutes", "parameters"):
        _require(_is_number(result.get(field)) and result[field] >= 0, field, result.get(field), "must be a number")
    stopped = result.get("stopped_by")
    _require(stopped in ("threshold", "cap"), "stopped_by", stopped, "must be threshold or cap")
    device = result.get("device")
    _require(isinstance(device, dict) and {"kind", "count"} <= set(device), "device", device, "must have a kind and a count")
    lengths = experiment.evaluation.id_lengths + experiment.evaluation.ood_lengths
    if set(result["lengths"]) != set(map(str, lengths)):
        raise InputError(f"result.json has lengths {', '.join(result['lengths'])}, but config.json {lengths}")
    for length, metrics in result["lengths"].items():
        _check_metrics(experiment, f"lengths.{length}", metrics, slices)


def _check_metrics(experiment: Experiment, field: str, metrics: dict[str, Any], slices: Iterable[str]) -> None:
    examples, wanted = metrics.get("examples"), experiment.evaluation.examples
    _require(examples == wanted, f"{field}.examples", examples, f"must be config.evaluation.examples={wanted}")
    _require(isinstance(metrics.get("fingerprint"), str), f"{field}.fingerprint", metrics.get("fingerprint"), "must be text")
    fractions = {"score": metrics.get("score")}
    if isinstance(experiment.task, MostFreq):
        fractions |= {name: metrics.get(name) for name in names.DIAGNOSTICS}
        fractions |= {f"baselines.{name}": metrics["baselines"].get(name) for name in names.SHORTCUTS}
    if isinstance(experiment.task, Dyck):
        for name in slices:
            kind, _, bounds = name.partition("/")
            cell = metrics[kind].get(bounds, {})
            closes = cell.get("closes")
            _require(_is_number(closes), f"{field}.{name}.closes", closes, "must be a number")
            if closes:  # an empty slice has no accuracy
                fractions[f"{name}.accuracy"] = cell.get("accuracy")
    for name, value in fractions.items():
        _require(_is_number(value) and 0 <= value <= 1, f"{field}.{name}", value, "must be a fraction of one")


def read_history(path: pathlib.Path, result: dict[str, Any]) -> tuple[tuple[int, float], ...]:
    """The validations in metrics.jsonl, (update, mean score in percent), in the order of updates.

    Args:
      path: of metrics.jsonl.
      result: of the same run.

    Raises:
      InputError: if a line is damaged, or the validations are not those of the result's selected and last updates.
    """
    if not path.is_file():
        raise InputError("must have a metrics.jsonl")
    ranks = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            event = json.loads(line)
            if event["event"] == "validation":
                ranks[event["update"]] = (float(event["score"]), -float(event["cross_entropy"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"metrics.jsonl is damaged in line {number} ({type(error).__name__}: {error})") from error
    updates, best = list(ranks), result["best_update"]
    if not updates or updates != sorted(updates) or updates[-1] != result["final_update"]:
        raise InputError(f"metrics.jsonl must hold the validations up to final_update={result['final_update']}")
    if ranks.get(best) != max(ranks.values()):
        raise InputError(f"metrics.jsonl has a better validation than that of best_update={best}, or has not that one")
    return tuple((update, 100 * score) for update, (score, _) in ranks.items())


def _require(holds: bool, field: str, value: Any, allowed: str) -> None:
    if not holds:
        raise InputError(f"result.json has {field}={value!r}: {allowed}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
