"""The three tasks of the paper, behind one interface: `make(name, **options)`."""

import dataclasses

from tracerelay_jax.errors import InputError
from tracerelay_jax.tasks.base import Batch, Task, draw_key
from tracerelay_jax.tasks.dyck import Dyck
from tracerelay_jax.tasks.equal_repeats import EqualRepeats
from tracerelay_jax.tasks.most_freq import MostFreq

__all__ = ["NAMES", "Batch", "Dyck", "EqualRepeats", "MostFreq", "Task", "draw_key", "make"]

_TASKS = {task.name: task for task in (EqualRepeats, Dyck, MostFreq)}
NAMES = tuple(_TASKS)


def make(name: str, **options) -> Task:
    """Returns the task `name` (equal_repeats, dyck or most_freq) with its options.

    Raises:
      InputError: for an unknown task or option, or an option's value that cannot be.
    """
    if name not in _TASKS:
        raise InputError(f"task={name!r}: must be one of {', '.join(_TASKS)}")
    known = [field.name for field in dataclasses.fields(_TASKS[name])]
    for option in options:
        if option not in known:
            raise InputError(f"task option {option!r}: {name} has {', '.join(known) or 'no options'}")
    return _TASKS[name](**options)
