"""What the config files share: the argument parsers, and the parts of Table 2 that are the same for all tasks."""

import dataclasses
import os
import runpy
from typing import Any

from ml_collections import ConfigDict

from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.errors import InputError

_SWITCH = {"on": True, "true": True, "off": False, "false": False}


def parse_arguments(text: str | None, **defaults: int | bool) -> dict[str, Any]:
    """Parses `dc=16,seed=43,inherit=off`, the part of `--config=FILE:ARGUMENTS` after the colon.

    Args:
      text: the arguments, None or empty for the defaults.
      **defaults: each known argument; its value is the default, and its type the one to parse.

    Raises:
      InputError: for an unknown or repeated argument, or a value of another type.
    """
    given = _split_arguments(text, defaults)
    return {**defaults, **{name: _parse_value(name, value, defaults[name]) for name, value in given.items()}}


def select_arguments(text: str | None, **choices: tuple[str, ...]) -> dict[str, str]:
    """Parses `task=dyck,dc=16`, each argument one of its choices; those not given are left out.

    Raises:
      InputError: for an unknown or repeated argument, or a value that is none of its choices.
    """
    given = _split_arguments(text, choices)
    for name, value in given.items():
        if value not in choices[name]:
            raise InputError(f"config argument {name}={value!r}: must be one of {', '.join(choices[name])}")
    return given


def config_from_file(path: str | os.PathLike, arguments: str | None = None) -> ConfigDict:
    """What `--config=PATH:ARGUMENTS` stands for."""
    return runpy.run_path(os.fspath(path))["get_config"](arguments)


def _split_arguments(text: str | None, known: dict[str, Any]) -> dict[str, str]:
    given = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, value = part.partition("=")
        if not equals or name not in known:
            raise InputError(f"config argument {part!r}: must be one of {', '.join(f'{one}=' for one in known)}")
        if name in given:
            raise InputError(f"config argument {name!r}: given twice")
        given[name] = value
    return given


def _parse_value(name: str, value: str, default: int | bool) -> int | bool:
    if isinstance(default, bool):
        if value.lower() not in _SWITCH:
            raise InputError(f"config argument {name}={value!r}: must be on or off")
        return _SWITCH[value.lower()]
    try:
        return int(value)
    except ValueError:
        raise InputError(f"config argument {name}={value!r}: must be an integer") from None


def run_name(task: str, dc: int, seed: int, inherit: bool) -> str:
    """The name of a run of the paper, and of its folder."""
    return f"{task}-dc{dc}-seed{seed}" + ("" if inherit else "-off")


def paper_config(task: str, dc: int, seed: int, inherit: bool) -> ConfigDict:
    """The config of a run of Table 2, but for what differs between tasks.

    Args:
      task: the task's name.
      dc: trace width of the middle layer.
      seed: training seed.
      inherit: phase inheritance; False is the ablation.
    """
    config = ConfigDict()
    config.name = run_name(task, dc, seed, inherit)
    config.seed = seed
    config.task = task
    config.task_options = ConfigDict()
    config.model = _model_fields(dc, inherit)
    config.training = ConfigDict()
    config.training.batch_size = 64
    config.training.updates = 20_000
    config.training.learning_rate = 3e-4
    config.training.warmup_updates = 100
    config.training.beta1 = 0.9
    config.training.beta2 = 0.999
    config.training.epsilon = 1e-8
    config.training.weight_decay = 0.01
    config.training.gradient_clip = 1.0
    config.training.log_every = 50
    config.validation = ConfigDict({"seed": 20261007, "every": 250, "threshold": 0.99, "passes": 2})
    config.evaluation = ConfigDict({"seed": 20261006})
    return config


def _model_fields(dc: int, inherit: bool) -> ConfigDict:
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(TraceRelayConfig)
        if field.default is not dataclasses.MISSING
    }
    # Tuples, so that an override can give one for each layer.
    windows = {name: (defaults[name],) for name in ("left_window", "right_window", "stride")}
    return ConfigDict({**defaults, **windows, "trace_widths": (64, dc, 64), "inherit_phase": inherit})
