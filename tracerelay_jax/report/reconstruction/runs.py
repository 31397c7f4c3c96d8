"""The study's runs: read from the folders that its config plans, and checked against it."""

import functools
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import Experiment, differences, make_experiment
from tracerelay_jax.report.paper import Paper, Setting
from tracerelay_jax.report.reconstruction.candidates import DEFAULT
from tracerelay_jax.report.runs import Run, Study, is_visible_folder, read_runs

# What no result depends on but for rounding.
_MAY_DIFFER = {"model.attention", "training.log_every"}


def folder_of(results: str | os.PathLike, candidate: str) -> pathlib.Path:
    """Where a candidate's runs are: the default's are the paper's runs."""
    root = pathlib.Path(results)
    return root / "runs" if candidate == DEFAULT else root / "reconstruction" / "runs"


def read_candidates(
    results: str | os.PathLike, planned: Mapping[str, Sequence[Mapping[str, Any]]], paper: Paper
) -> dict[str, Study]:
    """Reads those of the planned runs that are there.

    Args:
      results: the folder that holds runs/ and reconstruction/runs/.
      planned: by candidate, the configs of its runs.
      paper: its numbers.

    Raises:
      InputError: if no run is finished, or there is a run that is not planned; naming the run, if it is damaged,
        has another configuration than planned, or was evaluated on other examples than the others.
    """
    _check_names(results, planned)
    studies = {name: _read_all(folder_of(results, name), configs, paper) for name, configs in planned.items()}
    if not any(study.runs for study in studies.values()):
        raise InputError(f"results={results}: must hold the folders of finished runs in {folder_of(results, DEFAULT)}")
    _check_examples(run for study in studies.values() for run in study.runs)
    return studies


def _check_names(results: str | os.PathLike, planned: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    folder = folder_of(results, "")
    known = {config["name"] for name, configs in planned.items() if name != DEFAULT for config in configs}
    for path in sorted(folder.iterdir() if folder.is_dir() else ()):
        if is_visible_folder(path) and path.name not in known:
            raise InputError(f"run {path}: not one of the study's; its name must be such as {min(known)}")


def _read_all(folder: pathlib.Path, configs: Iterable[Mapping[str, Any]], paper: Paper) -> Study:
    paths = {folder / config["name"]: functools.partial(_setting, config) for config in configs}
    return read_runs({path: setting_of for path, setting_of in paths.items() if path.is_dir()}, paper)


def _setting(config: Mapping[str, Any], held: Experiment) -> Setting:
    """The cell of a planned run, if its folder holds that run."""
    for field, ours, theirs in differences(held, make_experiment(config), _MAY_DIFFER):
        raise InputError(f"config.{field} is {ours!r}, but the study has {theirs!r}")
    return Setting(config["task"], config["model"]["trace_widths"][1], config["model"]["inherit_phase"])


def _check_examples(runs: Iterable[Run]) -> None:
    """Runs of a task have the same final examples."""
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for run in runs:
        for length, metrics in run.result["lengths"].items():
            fingerprint = metrics["fingerprint"]
            first, other = seen.setdefault((run.setting.task, length), (run.name, fingerprint))
            if other != fingerprint:
                raise InputError(f"run {run.name}: its examples of length {length} are not those of {first}")
