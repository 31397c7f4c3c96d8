"""A sweep from its plan to its results, in the way that suits the machine."""

from collections.abc import Sequence

from tracerelay_jax import cli
from tracerelay_jax.progress import Bars, Reporter
from tracerelay_jax.sweep.plan import Run
from tracerelay_jax.sweep.processes import run_in_processes

METHODS = ("auto", "processes", "devices")


def sweep(runs: Sequence[Run], method: str, reporter: Reporter) -> dict[str, str]:
    """Does what is left of the runs; finished ones are not touched.

    Args:
      runs: of `plan`.
      method: one of METHODS; auto takes processes on a CPU.
      reporter: is told what is done, running and left.

    Returns:
      {run: what went wrong}.
    """
    left = [run for run in runs if not run.done]
    reporter.line(f"{len(runs)} runs, {len(runs) - len(left)} of them done, {len(left)} left")
    with Bars(reporter) as bars:
        return run_in_processes([run.folder for run in left], cli.available_cores(), bars)
