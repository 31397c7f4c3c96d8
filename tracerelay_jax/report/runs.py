"""The runs that a report is made from: read from their folders, and checked, before anything is written."""

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import Experiment, differences, make_experiment
from tracerelay_jax.protocol import run_name
from tracerelay_jax.report.paper import Exposure, Paper, Setting
from tracerelay_jax.report.results import check_result, read_history
from tracerelay_jax.run_folder import RunFolder

# What runs of one task may differ in: what the paper varies, and what no result depends on but for rounding.
_MAY_DIFFER = {
    "name", "seed", "model.trace_widths", "model.inherit_phase", "model.attention", "training.log_every"
}  # fmt: skip
_DAMAGE = (KeyError, TypeError, AttributeError, ValueError)


class Run(NamedTuple):
    """A finished run.

    Attributes:
      setting: the cell that it belongs to.
      seed: training seed.
      experiment: its configuration.
      result: its result.json.
      history: (update, mean validation score in percent), every one that was logged.
    """

    setting: Setting
    seed: int
    experiment: Experiment
    result: dict[str, Any]
    history: tuple[tuple[int, float], ...]

    @property
    def name(self) -> str:
        """That of its folder."""
        return self.experiment.name

    @property
    def exposure(self) -> Exposure:
        """Its row of Table 5."""
        result = self.result
        exhausted, millions = result["stopped_by"] == "cap", result["tokens"] / 1e6
        return Exposure(
            result["best_update"], result["final_update"], exhausted, millions, result["minutes"], result["parameters"]
        )

    def percent(self, length: int, metric: str = "score") -> float | None:
        """A metric at a length in percent; a slice is `distance/1-8` or `depth/1`, a shortcut `baselines/fixed_order`.

        None where the length was not evaluated, or the slice is empty.
        """
        value = self.result["lengths"].get(str(length))
        for key in metric.split("/"):
            value = value and value[key]
        if isinstance(value, dict):
            value = value["accuracy"]
        return None if value is None else 100 * value

    def closes(self, length: int, name: str) -> int | None:
        """The closing brackets in a slice of Dyck; None where the length was not evaluated."""
        metrics = self.result["lengths"].get(str(length))
        kind, _, bounds = name.partition("/")
        return metrics and metrics[kind][bounds]["closes"]


class Study(NamedTuple):
    """All runs there are.

    Attributes:
      runs: the finished ones, in the order of the paper's settings and of seeds.
      unfinished: names of those that have no result yet, which count as missing.
    """

    runs: tuple[Run, ...]
    unfinished: tuple[str, ...]

    def of(self, setting: Setting) -> list[Run]:
        """The runs of one cell."""
        return [run for run in self.runs if run.setting == setting]

    def percents(self, setting: Setting, length: int, metric: str = "score") -> dict[int, float]:
        """{seed: metric in percent}, without the runs that do not have it."""
        values = {run.seed: run.percent(length, metric) for run in self.of(setting)}
        return {seed: value for seed, value in values.items() if value is not None}

    def first(self, task: str) -> Run | None:
        """A run of the task, for what all of them share."""
        return next((run for run in self.runs if run.setting.task == task), None)

    def lengths(self, task: str, paper: Paper) -> list[int]:
        """Every length at which the paper or these runs evaluate the task."""
        lengths = set(
            paper.protocol_value(task, "evaluation.id_lengths") + paper.protocol_value(task, "evaluation.ood_lengths")
        )
        run = self.first(task)
        return sorted(lengths | (set(map(int, run.result["lengths"])) if run else set()))

    def examples(self, task: str, paper: Paper) -> int:
        """Evaluation examples a length; the paper's where there is no run."""
        run = self.first(task)
        return run.experiment.evaluation.examples if run else paper.protocol_value(task, "evaluation.examples")


def read_study(results: str | os.PathLike, paper: Paper) -> Study:
    """Reads every run in `results`/runs.

    Raises:
      InputError: naming the run, if one is damaged, is not one of the paper's settings, has another name than its
        configuration says, or differs from the other runs of its task in what they share; or if there is none.
    """
    folder = pathlib.Path(results) / "runs"
    paths = sorted(path for path in folder.iterdir() if is_visible_folder(path)) if folder.is_dir() else []
    if not paths:
        raise InputError(f"results={results}: must hold the folders of runs in {folder}")
    study = read_runs({path: lambda experiment, path=path: _setting(path, experiment, paper) for path in paths}, paper)
    if not study.runs:
        raise InputError(f"results={results}: no run in {folder} is finished")
    runs = sorted(study.runs, key=lambda run: (paper.settings.index(run.setting), run.seed))
    for run in runs:
        _check_agreement(run, next(other for other in runs if other.setting.task == run.setting.task))
    return study._replace(runs=tuple(runs))


def read_runs(paths: Mapping[pathlib.Path, Callable[[Experiment], Setting]], paper: Paper) -> Study:
    """Reads runs, in their order.

    Args:
      paths: the folder of each, and what checks its configuration and tells its cell.
      paper: its numbers.

    Raises:
      InputError: naming the run, if it is damaged or its configuration is refused.
    """
    found = {path: _read_run(path, setting_of, paper) for path, setting_of in paths.items()}
    finished = tuple(run for run in found.values() if run is not None)
    return Study(finished, tuple(path.name for path, run in found.items() if run is None))


def is_visible_folder(path: pathlib.Path) -> bool:
    """Whether it could be a run's."""
    return path.is_dir() and not path.name.startswith(".")


def _read_run(path: pathlib.Path, setting_of: Callable[[Experiment], Setting], paper: Paper) -> Run | None:
    """None if it is not finished."""
    folder = RunFolder(path)
    with _naming(path, "config.json"):
        experiment = make_experiment(folder.read_config())
        setting = setting_of(experiment)
    with _naming(path, "result.json"):
        result = folder.read_result()
        if result is None:
            return None
        check_result(experiment, result, paper.slice_counts)
        return Run(setting, experiment.seed, experiment, result, read_history(path / "metrics.jsonl", result))


@contextlib.contextmanager
def _naming(path: pathlib.Path, file: str) -> Iterator[None]:
    """Makes whatever is wrong with a run's file an InputError that names the run."""
    try:
        yield
    except InputError as error:
        named = str(path) in str(error)
        raise InputError(str(error) if named else f"run {path}: {error}") from error
    except _DAMAGE as error:
        raise InputError(f"run {path}: {file} is damaged ({type(error).__name__}: {error})") from error


def _setting(path: pathlib.Path, experiment: Experiment, paper: Paper) -> Setting:
    model, task = experiment.model, experiment.task.name
    dc = next((dc for dc, widths in paper.trace_widths.items() if widths == model.trace_widths), None)
    if dc is None:
        allowed = ", ".join(map(str, paper.trace_widths.values()))
        raise InputError(f"config.model.trace_widths={model.trace_widths}: the report's are {allowed}")
    setting = Setting(task, dc, model.inherit_phase)
    if setting not in paper.settings:
        raise InputError(f"config.model.inherit_phase={model.inherit_phase}: the report has no such runs of {task}")
    name = run_name(task, dc, experiment.seed, model.inherit_phase)
    for what, value in (("its folder", path.name), ("config.name", experiment.name)):
        if value != name:
            raise InputError(f"run {path}: {what} is {value!r}, but the configuration is that of {name!r}")
    return setting


def _check_agreement(run: Run, other: Run) -> None:
    """Runs of a task share their configuration and their final examples."""
    for field, ours, theirs in differences(run.experiment, other.experiment, _MAY_DIFFER):
        raise InputError(
            f"run {run.name}: config.{field} is {ours!r}, but {theirs!r} in {other.name}; the runs of a task share their "
            "configuration"
        )
    for length, metrics in run.result["lengths"].items():
        if metrics["fingerprint"] != other.result["lengths"][length]["fingerprint"]:
            raise InputError(f"run {run.name}: its examples of length {length} are not those of {other.name}")
