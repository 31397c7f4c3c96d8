"""Does what is left of the run in a folder, on cores of its own: the process that a sweep starts for each run on a CPU.

    python -m tracerelay_jax.sweep.worker FOLDER CORE,CORE,...

It reports on standard output, a JSON object a line, and ends with its parent, which holds its standard input. What makes it
fail is the last line of its standard error.
"""

import json
import os
import sys
import threading
import traceback
from typing import Any

from tracerelay_jax import cli
from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.progress import MessageReporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.run import train_and_evaluate


def main(path: str, cores: str) -> None:
    """Runs the program."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cli.use_cores({int(core) for core in cores.split(",")})
    cli.keep_compiled_programs()
    folder = RunFolder(path)
    try:
        train_and_evaluate(make_experiment(folder.read_config()), folder, MessageReporter(_send))
    except (InputError, FloatingPointError) as error:
        sys.exit(str(error))
    except Exception as error:  # whose own last line may be a note that JAX adds about its tracebacks
        traceback.print_exc()
        sys.exit(_in_a_line(error))


def _in_a_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return ": ".join([type(error).__name__, *lines[:1]])


def _send(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1):  # not through Python's buffer, whose lock would be held at exit
        pass
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
