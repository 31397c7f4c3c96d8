"""Runs in processes of their own, each on some of the cores: the fastest way through many runs on a CPU.

A core to each run beats all cores to one run after the other, since nothing waits for anything. Which cores a run has does
not change its bits (`tracerelay_jax.parallel`), so the last runs take what is free.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from tracerelay_jax.progress import Bars
from tracerelay_jax.run_folder import RunFolder


class _Worker:
    """A process at work on one run; what it says goes to `messages` as (worker, message), and None at its end."""

    def __init__(self, folder: RunFolder, cores: list[int], messages: queue.Queue):
        self.name, self.cores = folder.path.name, cores
        self.failure: str | None = "its output could not be read"  # until its end says otherwise
        # Without a platform each would take its share of the one GPU or TPU.
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._process = subprocess.Popen(_command(folder, cores), **pipes, text=True, errors="replace", env=environment)
        threading.Thread(target=self._listen, args=(messages,), daemon=True).start()

    def _listen(self, messages: queue.Queue) -> None:
        errors = []
        drain = threading.Thread(target=lambda: errors.extend(self._process.stderr), daemon=True)
        try:
            drain.start()
            for line in self._process.stdout:
                messages.put((self, _as_message(line)))
            drain.join()
            self.failure = _failure(self._process.wait(), errors)
        finally:
            self.stop()  # where its output could not be read, so that its cores are free
            messages.put((self, None))

    def stop(self) -> None:
        """Ends the process; the run goes on from its latest checkpoint another time."""
        self._process.kill()


def _command(folder: RunFolder, cores: Sequence[int]) -> list[str]:
    return [sys.executable, "-m", "tracerelay_jax.sweep.worker", str(folder.path), ",".join(map(str, cores))]


def _as_message(line: str) -> dict[str, Any]:
    """What `Bars.receive` takes; what a library prints to a worker's standard output is a line of text."""
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    is_message = isinstance(message, dict) and ("line" in message or "note" in message)
    return message if is_message else {"line": line.rstrip("\n")}


def _failure(status: int, errors: Sequence[str]) -> str | None:
    """Why a process failed, in a line; None if it did not."""
    if status == 0:
        return None
    if status < 0:
        return f"killed by signal {-status} ({signal.strsignal(-status)})"
    said = [line.strip() for line in errors if line.strip()]
    return said[-1] if said else f"ended with status {status}, without a message"


def run_in_processes(folders: Sequence[RunFolder], cores: Sequence[int], bars: Bars) -> dict[str, str]:
    """Does what is left of the runs in `folders`, as many at a time as there are cores.

    Returns:
      {run: what went wrong} of those that failed; they keep the checkpoints that they had, and the others go on.
    """
    waiting, free, working = deque(folders), list(cores), set()
    messages, failures = queue.Queue(), {}
    try:
        while waiting or working:
            while waiting and free:
                share = [free.pop(0) for _ in range(max(1, len(free) // len(waiting)))]
                working.add(_Worker(waiting.popleft(), share, messages))
            worker, message = messages.get()
            if message is not None:
                bars.receive(worker.name, message)
                continue
            working.remove(worker)
            free.extend(worker.cores)
            bars.remove(worker.name)
            if worker.failure is not None:
                failures[worker.name] = worker.failure
                bars.receive(worker.name, {"line": f"failed: {worker.failure}"})
            bars.receive("sweep", {"line": f"{len(folders) - len(waiting) - len(working)} of {len(folders)} ended, "
                                           f"{len(working)} running, {len(waiting)} left"})  # fmt: skip
    finally:
        for worker in working:
            worker.stop()
    return failures
