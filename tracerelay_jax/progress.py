"""Signs of life: what compiles and for how long, a progress bar on a terminal, lines elsewhere."""

import contextlib
import datetime
import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class Reporter:
    """Writes to `stream`: lines that stay, and on a terminal a bar below them while updates run."""

    def __init__(self, stream=None):
        # No markup and no wrapping: lines are read by people and by grep alike.
        self._console = Console(file=stream or sys.stdout, markup=False, highlight=False, soft_wrap=True)
        self._bar = None
        self._task = None
        self.compile_seconds = 0.0

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        self._console.print(text)
        self._console.file.flush()

    @contextlib.contextmanager
    def compiling(self, what: str) -> Iterator[None]:
        """Around a compilation: a line with its seconds; on a terminal also what is being compiled meanwhile."""
        start = time.perf_counter()
        spinner = contextlib.nullcontext()
        if self._bar is not None:
            self._bar.update(self._task, note=f"compiling {what}")
        elif self._console.is_terminal:
            spinner = self._console.status(f"compiling {what}")
        with spinner:
            yield
        seconds = time.perf_counter() - start
        self.compile_seconds += seconds
        self.line(f"compiled {what} in {seconds:.1f} s")

    @contextlib.contextmanager
    def updates(self, done: int, total: int) -> Iterator[None]:
        """Around the training loop."""
        if not self._console.is_terminal:
            yield
            return
        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
        with Progress(*columns, console=self._console) as self._bar:
            self._task = self._bar.add_task("training", total=total, completed=done, note="")
            try:
                yield
            finally:
                self._bar = None

    def update(self, done: int, note: str) -> None:
        """Moves the bar to `done` updates, with a note after it."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, note=note)


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
