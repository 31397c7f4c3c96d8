"""Events of a run as TensorBoard scalars; needs the extra `tensorboard`."""

import pathlib
from collections.abc import Callable
from typing import Any

from tracerelay_jax.errors import InputError


def tensorboard_writer(directory: pathlib.Path) -> Callable[[dict[str, Any]], None]:
    """Returns a function that writes the numbers of an event of metrics.jsonl, under its kind, to event files.

    Raises:
      InputError: if tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise InputError("tensorboard=True: needs tensorboardX; pip install '.[tensorboard]'") from None
    writer = None

    def write(event: dict[str, Any]) -> None:
        nonlocal writer
        if writer is None:  # TensorBoard drops what an interrupted run wrote from here on, as metrics.jsonl does
            writer = SummaryWriter(str(directory), purge_step=event["update"])
        for name, value in event.items():
            if isinstance(value, int | float) and name != "update":
                writer.add_scalar(f"{event['event']}/{name}", value, event["update"])
        writer.flush()

    return write
