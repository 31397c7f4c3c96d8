"""What a sweep has to do: its runs, which of them are done, and what can be mapped together."""

import copy
import dataclasses
import pathlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ml_collections import ConfigDict

from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import Experiment, make_experiment
from tracerelay_jax.run_folder import RunFolder


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a sweep."""

    config: dict[str, Any]
    experiment: Experiment
    folder: RunFolder

    @property
    def done(self) -> bool:
        """Whether its result is written."""
        return self.folder.read_result() is not None


def configs_of(config: Mapping[str, Any], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """The configs of a sweep: those in `runs`, or one run's config, each with every seed; no seeds for its own.

    The seed stands in a run's name, as in `-seed43`; where it does not, it is put at the end.

    Raises:
      InputError: if a config of runs is given seeds that it does not hold, or two runs have the same name.
    """
    configs = _runs_of(config) or [with_seed(config, seed) for seed in seeds] or [config]
    if "runs" in config and seeds:
        missing = set(seeds) - {run["seed"] for run in configs}
        if missing:
            raise InputError(f"seeds={sorted(missing)}: the config's runs have {sorted({run['seed'] for run in configs})}")
        configs = [run for run in configs if run["seed"] in seeds]
    for name, count in Counter(run["name"] for run in configs).items():
        if count > 1:
            raise InputError(f"config.runs: {count} runs have the name {name!r}; each needs its own")
    return configs


def _runs_of(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    # `ConfigDict.to_dict` leaves what stands in a tuple as it is.
    runs = [run.to_dict() if isinstance(run, ConfigDict) else run for run in config.get("runs", ())]
    if "runs" in config and not runs:
        raise InputError("config.runs: no run is selected")
    return runs


def with_seed(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The config with another seed, and a name that says so."""
    name, found = re.subn(r"(?<=-seed)\d+", str(seed), config["name"])
    return {**copy.deepcopy(dict(config)), "seed": seed, "name": name if found else f"{name}-seed{seed}"}


def plan(configs: Iterable[Mapping[str, Any]], root: pathlib.Path) -> list[Run]:
    """The runs, in folders `root`/NAME; all are checked, and nothing is written yet.

    Raises:
      InputError: for a bad config, or a folder that holds another.
    """
    runs = [Run(config, make_experiment(config), RunFolder(root / config["name"])) for config in configs]
    for run in runs:
        run.folder.check(run.config)
    return runs


def alike_but_for_the_seed(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs in groups that differ in nothing but name and seed, in the order of their first."""
    groups: dict[Experiment, list[Run]] = {}
    for run in runs:
        groups.setdefault(dataclasses.replace(run.experiment, name="", seed=0), []).append(run)
    return list(groups.values())


def deal(runs: Sequence[Run], process: int, processes: int) -> list[Run]:
    """One process's share, in the order of `runs`: by groups that can be mapped together where there are enough of them."""
    groups = alike_but_for_the_seed(runs)
    if len(groups) < processes:
        groups = [[run] for run in runs]
    dealt = {run.folder.path for group in groups[process::processes] for run in group}
    return [run for run in runs if run.folder.path in dealt]
