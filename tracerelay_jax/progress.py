"""Signs of life: what compiles and for how long, progress bars on a terminal, lines elsewhere."""

import contextlib
import datetime
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class Reporter:
    """Writes to `stream`: lines that stay, and on a terminal a bar below them while updates run."""

    def __init__(self, stream=None):
        # No markup and no wrapping: lines are read by people and by grep alike.
        self.console = Console(file=stream or sys.stdout, markup=False, highlight=False, soft_wrap=True)
        self._bar = None
        self._task = None
        self.compile_seconds = 0.0

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        self.console.print(text)
        self.console.file.flush()

    @contextlib.contextmanager
    def compiling(self, what: str) -> Iterator[None]:
        """Around a compilation: a line with its seconds; on a terminal also what is being compiled meanwhile."""
        spinner = contextlib.nullcontext()
        if self._bar is not None:
            self._bar.update(self._task, note=f"compiling {what}")
        elif self.console.is_terminal:
            spinner = self.console.status(f"compiling {what}")
        with spinner, self._timed_compilation(what):
            yield

    @contextlib.contextmanager
    def _timed_compilation(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.compile_seconds += seconds
        self.line(f"compiled {what} in {seconds:.1f} s")

    @contextlib.contextmanager
    def updates(self, done: int, total: int) -> Iterator[None]:
        """Around the training loop."""
        if not self.console.is_terminal:
            yield
            return
        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
        with Progress(*columns, console=self.console) as self._bar:
            self._task = self._bar.add_task("training", total=total, completed=done, note="")
            try:
                yield
            finally:
                self._bar = None

    def update(self, done: int, note: str) -> None:
        """Moves the bar to `done` updates, with a note after it."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, note=note)


class MessageReporter(Reporter):
    """Reports to a `Bars`, perhaps in another process: calls `send` with what `Bars.receive` takes."""

    _SECONDS = 0.5  # between two moves of a bar

    def __init__(self, send: Callable[[dict[str, Any]], None]):
        super().__init__()
        self._send = send
        self._total, self._last = 0, -math.inf

    def line(self, text: str) -> None:
        """Sends a line that stays."""
        self._send({"line": text})

    @contextlib.contextmanager
    def compiling(self, what: str) -> Iterator[None]:
        """Around a compilation."""
        self._send({"note": f"compiling {what}"})
        with self._timed_compilation(what):
            yield

    @contextlib.contextmanager
    def updates(self, done: int, total: int) -> Iterator[None]:
        """Around the training loop."""
        self._total = total
        self._send({"done": done, "total": total, "note": ""})
        yield

    def update(self, done: int, note: str) -> None:
        """Sends where the bar stands, now and then."""
        if time.monotonic() - self._last >= self._SECONDS or done == self._total:
            self._last = time.monotonic()
            self._send({"done": done, "total": self._total, "note": note})


class Bars:
    """A bar for each of several runs on a terminal; lines that stay, each after its run's name, there and elsewhere."""

    def __init__(self, reporter: Reporter):
        self._console = reporter.console
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
        self._progress = Progress(*columns, console=self._console, disable=not self._console.is_terminal)
        self._tasks = {}

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(self, *_):
        self._progress.stop()

    def receive(self, name: str, message: dict[str, Any]) -> None:
        """Shows a message of a `MessageReporter`."""
        if "line" in message:
            self._console.print(f"{name}  {message['line']}")
            self._console.file.flush()
            return
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=None, note="")
        place = {"completed": message["done"], "total": message["total"]} if "total" in message else {}
        self._progress.update(self._tasks[name], note=message["note"], **place)

    def remove(self, name: str) -> None:
        """Takes a run's bar away."""
        if name in self._tasks:
            self._progress.remove_task(self._tasks.pop(name))


class Pace:
    """Updates per second, without compilation and validation; and the time left at the whole loop's pace."""

    def __init__(self):
        self._updates = 0
        self._step_seconds = 0.0
        self._other_seconds = 0.0

    def step(self, seconds: float) -> None:
        """Counts an update."""
        self._updates += 1
        self._step_seconds += seconds

    def validation(self, seconds: float) -> None:
        """Counts a validation, without its compilation."""
        self._other_seconds += seconds

    @property
    def updates_per_second(self) -> float:
        """Zero before the first update."""
        return self._updates / self._step_seconds if self._step_seconds else 0.0

    def time_left(self, updates: int) -> str:
        """Time for `updates` more, validation included, as h:mm:ss."""
        if not self._updates:
            return "unknown"
        seconds = updates * (self._step_seconds + self._other_seconds) / self._updates
        return str(datetime.timedelta(seconds=round(seconds)))
