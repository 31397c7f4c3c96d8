"""A run's folder on disk: config.json, metrics.jsonl, checkpoints/ and result.json."""

import contextlib
import fcntl
import json
import os
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

from tracerelay_jax import machine
from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import Experiment, check_name, differences, make_experiment

_TEMPORARY = ".tmp"


class RunFolder:
    """The files of one run; every file is written whole or not at all.

    Where several processes make one run, they share the folder and one of them `writes`; the others only read.

    `config.json` holds the configuration and the command, `metrics.jsonl` one event a line in the order of updates,
    `checkpoints/` the latest and the best state, `result.json` the final evaluation. Metrics grow line by line; a run that
    goes on from a checkpoint first drops those after it.
    """

    def __init__(self, path: str | os.PathLike, writes: bool = True):
        self.path = pathlib.Path(path)
        self._writes = writes

    @property
    def checkpoints(self) -> pathlib.Path:
        """Orbax's folder."""
        return self.path / "checkpoints"

    def create_or_check(self, config: dict[str, Any], command: list[str]) -> None:
        """Writes config.json, or checks that the folder there is holds the same configuration.

        Raises:
          InputError: if the folder belongs to another configuration or to something else, or cannot be written, or the
            name of a new run says what is not true of it.
        """
        self.check(config)
        if (self.path / "config.json").exists():
            return
        check_name(make_experiment(config))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Where another process was faster, there is its file, and ours may be gone with the leftovers; checked below.
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                _create(self.path / "config.json", _as_text({"command": command, "config": config}))
                for left_by_a_kill in self.path.glob(f"config.json*{_TEMPORARY}"):
                    left_by_a_kill.unlink(missing_ok=True)
            self.checkpoints.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"workdir={self.path}: cannot be written ({error.strerror})") from error
        self.check(config)

    def check(self, config: dict[str, Any]) -> None:
        """Checks that the folder is new, empty, or holds a run of this configuration, defaults filled in on either side.

        Raises:
          InputError: if it is not.
        """
        foreign = [path for path in self.path.glob("*") if path.suffix != _TEMPORARY]  # before a look at config.json
        if (self.path / "config.json").exists():
            for field, was, now in differences(self._held_experiment(), make_experiment(config)):
                raise InputError(
                    f"workdir={self.path}: holds a run of another configuration (config.{field} is {was!r} there, "
                    f"{now!r} here); give another --workdir"
                )
        elif foreign:
            raise InputError(f"workdir={self.path}: must be empty, new, or the folder of a run (it has no config.json)")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Around whatever writes to the folder: one process at a time; a lock ends with its process, however that ends.

        Raises:
          InputError: if another process holds the lock, or the file system has no locks.
        """
        if not self._writes:
            yield
            return
        with open(self.path / "config.json", "r+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"workdir={self.path}: another process is at work on this run") from None
            except OSError as error:
                raise InputError(
                    f"workdir={self.path}: cannot be locked ({error.strerror}); must be on a file system that has flock"
                ) from error
            yield

    def read_config(self) -> dict[str, Any]:
        """The run's configuration, as `make_experiment` takes it.

        Raises:
          InputError: if the folder is no run's.
        """
        return self._read("config.json")["config"]

    def read_result(self) -> dict[str, Any] | None:
        """The final evaluation; None before there is one."""
        return self._read("result.json") if (self.path / "result.json").exists() else None

    def write_result(self, result: dict[str, Any]) -> None:
        """Writes result.json with the versions and the device that made it."""
        if self._writes:
            self._write("result.json", {**result, **machine.describe()})

    def append_metrics(self, event: dict[str, Any]) -> None:
        """Adds a line to metrics.jsonl; `event` has an `update`."""
        if self._writes:
            with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")

    def drop_metrics_after(self, update: int) -> None:
        """Removes what an interrupted run logged past the checkpoint that it goes on from."""
        path = self.path / "metrics.jsonl"
        if path.exists() and self._writes:
            lines = [line for line in path.read_text(encoding="utf-8").splitlines() if _update_of(line) <= update]
            _replace(path, "".join(line + "\n" for line in lines))

    def _held_experiment(self) -> Experiment:
        config = self.read_config()
        try:
            return make_experiment(config)
        except (KeyError, TypeError, AttributeError, ValueError) as error:  # of another version, or changed by hand
            raise InputError(f"workdir={self.path}: config.json cannot be used ({error}); give another --workdir") from error

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            raise InputError(f"workdir={self.path}: must be the folder of a run (it has no {name})")
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"workdir={self.path}: {name} is damaged ({error})") from error

    def _write(self, name: str, values: dict[str, Any]) -> None:
        _replace(self.path / name, _as_text(values))


def _update_of(line: str) -> float:
    try:
        return json.loads(line)["update"]
    except ValueError:  # cut off when the run was killed
        return float("inf")


def _as_text(values: dict[str, Any]) -> str:
    return json.dumps(values, indent=1) + "\n"


def _create(path: pathlib.Path, text: str) -> None:
    """Writes a new file whole, and raises FileExistsError where there is one."""
    with _written_aside(path, text) as temporary:
        os.link(temporary, path)


def _replace(path: pathlib.Path, text: str) -> None:
    """Writes a file whole: readers see the old text or the new."""
    with _written_aside(path, text) as temporary:
        os.replace(temporary, path)


@contextlib.contextmanager
def _written_aside(path: pathlib.Path, text: str) -> Iterator[pathlib.Path]:
    """A file beside `path` that nobody else writes, removed afterwards if it is still there."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}{_TEMPORARY}")
    try:
        temporary.write_text(text, encoding="utf-8")
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
