"""From the command to the first update of a run, with an empty cache of compiled programs and with a filled one."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from tracerelay_jax.errors import InputError
from tracerelay_jax.progress import Reporter

_LIMIT = 600.0  # seconds


def starting(command: Sequence[str], rounds: int, reporter: Reporter) -> dict[str, Any]:
    """Starts a run again and again, in new folders, and ends it when its first update is logged.

    Args:
      command: a launch/train.py with its config, which logs every update.
      rounds: of which the median counts.
      reporter: is told each start.

    Returns:
      The median seconds and every round's, `cold` with an empty cache and `warm` with the one that the cold start left.

    Raises:
      InputError: if the run ends without an update, or none comes for ten minutes.
    """
    rounds_of = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as root:
            for kind, seconds in rounds_of.items():
                seconds.append(_first_update(command, pathlib.Path(root), kind))
                reporter.line(f"first update after {seconds[-1]:.1f} s, {kind}")
    medians = {kind: statistics.median(seconds) for kind, seconds in rounds_of.items()}
    return {"timed": ["python", *command], "seconds": medians, "rounds": rounds_of}


def _first_update(command: Sequence[str], root: pathlib.Path, kind: str) -> float:
    workdir = root / kind
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(root / "compiled")}
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command, f"--workdir={workdir}"], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        while not (workdir / "metrics.jsonl").exists():
            if process.poll() is not None or time.perf_counter() - begin > _LIMIT:
                raise InputError(f"{' '.join(command)}: no update, status {process.poll()}")
            time.sleep(0.01)
        return time.perf_counter() - begin
    finally:
        process.kill()
        process.wait()
