"""Several processes, on one host or many, as one: `jax.distributed`."""

from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax.experimental import multihost_utils

from tracerelay_jax.errors import InputError

# Where JAX keeps the GPUs that a cluster gives this process, and what tells another program: JAX's setting is not inherited.
_VISIBLE_GPUS = {"jax_cuda_visible_devices": "CUDA_VISIBLE_DEVICES", "jax_rocm_visible_devices": "HIP_VISIBLE_DEVICES"}


def join(coordinator: str | None, processes: int | None, process: int | None) -> None:
    """Joins the others, before the first use of JAX; they must do so too.

    Args:
      coordinator: HOST:PORT of process 0; None, like the others, where Slurm, MPI or a TPU pod says so.
      processes: how many there are.
      process: which one this is.

    Raises:
      InputError: if the three are neither all given nor all left to the cluster, or nothing answers.
    """
    given = {"coordinator": coordinator, "processes": processes, "process": process}
    missing = [name for name, value in given.items() if value is None]
    if missing and len(missing) < len(given):
        raise InputError(f"{missing[0]}=None: --coordinator, --processes and --process are given together or not at all")
    if not missing and not 0 <= process < processes:
        raise InputError(f"process={process}: must be from 0 to processes - 1 = {processes - 1}")
    try:
        jax.distributed.initialize(coordinator, processes, process)
    except (ValueError, RuntimeError) as error:  # no cluster found; nobody at the address
        raise InputError(f"distributed: {str(error).splitlines()[0]}") from error


def wait_for_all(place: str) -> None:
    """Returns when every process has come to `place`; at once where there is one process only."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(place)


def of_first_process(numbers: Sequence[float]) -> list[float]:
    """Process 0's numbers, to the bit, on every process; all must ask for as many."""
    words = np.array(numbers, np.float64).view(np.uint32)  # JAX would make float32 of float64
    return multihost_utils.broadcast_one_to_all(words).view(np.float64).tolist()


def leave_with_share() -> str:
    """Parts from the others again, and returns which of how many processes this was, as 0/4 to 3/4."""
    share = f"{jax.process_index()}/{jax.process_count()}"
    jax.distributed.shutdown()
    return share


def gpus_for_another_program(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep a program with this environment to the GPUs that the cluster gave this process, if it did."""
    given = {variable: jax.config.values.get(setting, "all") for setting, variable in _VISIBLE_GPUS.items()}
    return {variable: _choose(places, environment.get(variable)) for variable, places in given.items() if places != "all"}


def _choose(places: str, visible: str | None) -> str:
    """Those at `places` of the visible GPUs, which is where JAX counts; all, where each task is shown but its own."""
    if visible is None:
        return places
    names = visible.split(",")
    return ",".join(names[int(place)] for place in places.split(",") if int(place) < len(names)) or visible
