"""A sweep from its plan to its results, in the way that suits the machine."""

from collections.abc import Sequence

import jax

from tracerelay_jax import cli
from tracerelay_jax.errors import InputError
from tracerelay_jax.progress import Bars, Reporter
from tracerelay_jax.sweep.devices import SeedTrainer
from tracerelay_jax.sweep.plan import Run, alike_but_for_the_seed
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
        if method == "processes" or (method == "auto" and jax.default_backend() == "cpu"):
            return run_in_processes([run.folder for run in left], cli.available_cores(), bars)
        return _run_on_devices(runs, bars)


def _run_on_devices(runs: Sequence[Run], bars: Bars) -> dict[str, str]:
    failures = {}
    for group in alike_but_for_the_seed(runs):
        if all(run.done for run in group):
            continue
        # Finished ones keep their place, so that the others are computed as before an interruption.
        trainer = SeedTrainer(group, jax.local_devices(), bars)
        try:
            trainer.run()
        except (InputError, OSError) as error:  # a folder in use or a full disk: the other groups go on
            failures.update({run.experiment.name: str(error) for run in group if not run.done})
        failures.update(trainer.failures)
    return failures
