"""Trained models: the best checkpoint of a run as one small file, and those that the package brings along."""

import json
import pathlib
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import traverse_util

from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import Experiment, make_experiment
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.protocol import run_name
from tracerelay_jax.tasks import Task

_SHIPPED = pathlib.Path(__file__).parent / "shipped_models"
_CONFIG = "config"  # beside the parameters, whose names all have a slash


class Trained(NamedTuple):
    """A model with what it has learned.

    Attributes:
      model: the network, for `model.apply(params, tokens)`.
      params: its parameters, float32.
      task: the task it was trained on.
    """

    model: TraceRelay
    params: optax.Params
    task: Task


def load(task: str, dc: int, seed: int = 42, inherit: bool = True) -> Trained:
    """Returns the best checkpoint of one of the paper's runs, repeated here, that come with the package.

    A source is answered by `generate` after `task.prompt(source)`, with the task's `stop` and `feed_back`.

    Args:
      task: `equal_repeats`, `dyck` or `most_freq`.
      dc: trace width of the middle layer.
      seed: training seed.
      inherit: phase inheritance.

    Raises:
      InputError: naming the runs there are, if it is none of them.
    """
    return read(run_name(task, dc, seed, inherit))


def shipped() -> list[str]:
    """The names of the runs whose best checkpoints come with the package."""
    return sorted(path.stem for path in _SHIPPED.glob("*.npz"))


def read(file: str | pathlib.Path) -> Trained:
    """Reads a file of `write`, or the model of the package of this name.

    Raises:
      InputError: if it is none.
    """
    experiment, params = read_run(file)
    return Trained(TraceRelay(experiment.model), params, experiment.task)


def read_run(file: str | pathlib.Path) -> tuple[Experiment, optax.Params]:
    """As `read`, with the whole configuration of its run."""
    if not str(file).endswith(".npz"):
        if file not in shipped():
            raise InputError(f"trained model {str(file)!r}: must be one of {', '.join(shipped())}, or a file *.npz")
        file = _SHIPPED / f"{file}.npz"
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        experiment = make_experiment(json.loads(str(arrays.pop(_CONFIG))))
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"file={file}: must be a model written by launch/export.py ({error})") from error
    return experiment, jax.tree.map(jnp.asarray, traverse_util.unflatten_dict(arrays, sep="/"))


def write(path: str | pathlib.Path, config: Mapping[str, Any], params: optax.Params) -> None:
    """Writes a run's configuration, as `make_experiment` takes it, and the parameters into one compressed .npz file."""
    np.savez_compressed(path, **{_CONFIG: json.dumps(config)}, **traverse_util.flatten_dict(params, sep="/"))
