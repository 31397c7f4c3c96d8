"""Several processes, on one host or many, as one: `jax.distributed`."""

import jax
from jax.experimental import multihost_utils

from tracerelay_jax.errors import InputError


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


def leave_with_share() -> str:
    """Parts from the others again, and returns which of how many processes this was, as 0/4 to 3/4."""
    share = f"{jax.process_index()}/{jax.process_count()}"
    jax.distributed.shutdown()
    return share
