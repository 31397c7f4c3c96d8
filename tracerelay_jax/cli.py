"""What the launchers share: settings of the process, and errors of a person's input as one line."""

import ast
import contextlib
import os
import pathlib
import sys
import warnings
from collections.abc import Callable, Collection, Sequence

import jax
from absl import app, flags, logging

from tracerelay_jax import hosts
from tracerelay_jax.errors import InputError

_LIMITS = pathlib.Path("/sys/fs/cgroup/cpu.max")  # of a container, where Linux has control groups of version 2


def run(
    main: Callable[[Sequence[str]], None],
    commands: Sequence[str] = (),
    interrupted: str = "interrupted",
    operand: str | None = None,
) -> None:
    """Runs `main(argv)` as a program: bad input ends it with one line on standard error and status 2.

    Args:
      main: takes the program and its command or operand, if it has any.
      commands: words of which a person gives one, besides the flags.
      interrupted: what to say after Ctrl-C.
      operand: name of the one word that a person gives instead of a command, such as a folder.
    """
    try:
        app.run(main=lambda argv: _guarded(main, argv), flags_parser=lambda argv: _parse_flags(argv, commands, operand))
    except KeyboardInterrupt:
        sys.exit(interrupted)


def available_cores() -> list[int]:
    """The cores that this process may use, no more than a container's share of them."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    return cores[: _share_of_container()]


def _share_of_container() -> int | None:
    """How many cores' worth of time a container has, rounded up; None without a limit."""
    try:
        quota, period = map(int, _LIMITS.read_text().split())
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return max(-(-quota // period), 1)


def use_all_cores() -> None:
    """Makes each core of a CPU a device of its own, before the first use of JAX; no effect on GPUs and TPUs.

    JAX's own environment variable comes first.
    """
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        jax.config.update("jax_num_cpu_devices", len(available_cores()))


def use_cores(cores: Collection[int]) -> None:
    """Keeps this process to some of its cores, and makes each a device, before the first use of JAX."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    jax.config.update("jax_num_cpu_devices", len(cores))


def keep_compiled_programs() -> None:
    """Keeps what JAX compiles in the user's cache folder, for the next start; JAX's own environment variables come first."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        jax.config.update("jax_compilation_cache_dir", os.path.join(root, "tracerelay_jax", "compiled"))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def define_distributed() -> Callable[..., bool]:
    """Defines --distributed and what goes with it; returns what then joins the other processes, and whether it was asked to.

    That takes `accelerators=False` for a program that leaves GPUs and TPUs to another one.
    """
    distributed = flags.DEFINE_bool(
        "distributed", False, "Work with other processes of the same command; Slurm and TPU pods need no more than this."
    )
    coordinator = flags.DEFINE_string("coordinator", None, "distributed: HOST:PORT of process 0.")
    processes = flags.DEFINE_integer("processes", None, "distributed: how many there are.", lower_bound=1)
    process = flags.DEFINE_integer("process", None, "distributed: which one this is, from 0.", lower_bound=0)

    def join(accelerators: bool = True) -> bool:
        if distributed.value:
            if not accelerators:
                jax.config.update("jax_platforms", "cpu")
            hosts.join(coordinator.value, processes.value, process.value)
        return distributed.value

    return join


def whole_numbers(flag: str, texts: Sequence[str], allowed: str = "whole numbers", least: int = 0) -> list[int]:
    """The numbers of a flag that is a list.

    Raises:
      InputError: unless all are whole numbers of at least `least`, which is what `allowed` says.
    """
    for text in texts:
        if not text.isdigit() or int(text) < least:
            raise InputError(f"{flag}={text!r}: must be {allowed}, separated by commas")
    return [int(text) for text in texts]


def output_file(name: str | None, suffix: str) -> pathlib.Path | None:
    """The file that a flag asks for, if any.

    Raises:
      InputError: if it has another suffix or its folder does not exist, before there is anything to lose.
    """
    if name is None:
        return None
    path = pathlib.Path(name)
    if path.suffix != suffix:
        raise InputError(f"output={name}: must end in {suffix}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"output={name}: must be in a folder that exists")
    return path


def _parse_flags(argv: Sequence[str], commands: Sequence[str], operand: str | None) -> list[str]:
    warnings.filterwarnings("ignore", message=".*load_module.*", category=DeprecationWarning)  # ml_collections' loader
    logging.set_verbosity(logging.WARNING)  # Orbax tells of every save in a dozen lines; the flag --verbosity overrides
    try:
        rest = flags.FLAGS(argv)
    except (
        flags.Error,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:  # ml_collections raises any of these
        _fail(_essence(error))
    odd = rest[2:] if commands or operand else rest[1:]
    if odd:
        _fail(f"argument {odd[0]!r}: not understood; settings are written --name=value")
    if operand and len(rest) < 2:
        _fail(f"{operand}: must be given")
    if commands and (len(rest) < 2 or rest[1] not in commands):
        given = repr(rest[1]) if len(rest) > 1 else "none given"
        _fail(f"command {given}: must be one of {', '.join(commands)}")
    return rest


def _guarded(main: Callable[[Sequence[str]], None], argv: Sequence[str]) -> None:
    keep_compiled_programs()
    try:
        main(argv)
    except (InputError, FloatingPointError) as error:
        _fail(str(error))
    except OSError as error:  # a missing config file comes as several lines, the last of which says so
        _fail(str(error).strip().splitlines()[-1].strip())


def _essence(error: Exception) -> str:
    """The line that says what is wrong: ml_collections wraps the error of a config file in its traceback."""
    text = str(error.args[0] if error.args else error).strip()
    if text.startswith("'"):  # a field that is none, then what may be meant; in quotes if it was a KeyError's message
        with contextlib.suppress(SyntaxError):
            text = ast.literal_eval(text)
        return ": ".join(text.splitlines())
    last = text.splitlines()[-1] if "Traceback" in text else text.splitlines()[0]
    return last.rpartition("InputError: ")[2]


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)
