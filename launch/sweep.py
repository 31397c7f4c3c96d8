"""Trains and evaluates many runs, or goes on with them: seeds of one config, or all runs of a config of runs.

    python launch/sweep.py --config=configs/most_freq.py:dc=16 --seeds=42,43,44
    python launch/sweep.py --config=configs/paper.py:task=dyck,inherit=on

Each run has its folder under --workdir, as with launch/train.py, and comes out as it would alone. The same command goes on
with an interrupted sweep, and leaves finished runs alone. On a CPU each core takes a run; on GPUs and TPUs the seeds of a
config are mapped over the devices. With --distributed the runs are dealt out over the processes of a cluster, or over those
given by --coordinator, --processes and --process; with --share=0/4 to 3/4 over four jobs that do not know each other.
"""

import os
import pathlib
import subprocess
import sys

from absl import flags
from ml_collections import config_flags

from tracerelay_jax import cli
from tracerelay_jax.errors import InputError
from tracerelay_jax.hosts import gpus_for_another_program, leave_with_share
from tracerelay_jax.progress import Reporter
from tracerelay_jax.sweep.plan import configs_of, deal, plan
from tracerelay_jax.sweep.sweep import METHODS, sweep

_CONFIG = config_flags.DEFINE_config_file("config", None, "Config file of a run or of runs, its arguments after a colon.")
_SEEDS = flags.DEFINE_list("seeds", [], "Seeds; by default those of the config.")
_WORKDIR = flags.DEFINE_string("workdir", "runs", "The folder that holds the runs' folders.")
_METHOD = flags.DEFINE_enum("method", "auto", METHODS, "processes, one a core; devices, seeds mapped over them; or auto.")
_SHARE = flags.DEFINE_string("share", None, "Only this part of the runs, as 0/4 to 3/4 for four jobs of an array.")
_JOIN = cli.define_distributed()
flags.mark_flag_as_required("config")


def main(_):
    """Runs the program."""
    configs = configs_of(_CONFIG.value.to_dict(), cli.whole_numbers("seeds", _SEEDS.value))
    runs = plan(configs, pathlib.Path(_WORKDIR.value))
    share = _parse_share(_SHARE.value, flags.FLAGS.distributed)
    if _JOIN(accelerators=False):
        environment = {**os.environ, **gpus_for_another_program(os.environ)}
        command = [sys.executable, *sys.argv, "--nodistributed", f"--share={leave_with_share()}"]
        sys.exit(subprocess.call(command, env=environment))
    runs = deal(runs, *share)
    for run in runs:
        run.folder.create_or_check(run.config, sys.argv)
    failures = sweep(runs, _METHOD.value, Reporter())
    if failures:
        raise InputError("; ".join(f"{name}: {why}" for name, why in failures.items()))


def _parse_share(text, distributed):
    if text is None:
        return 0, 1
    if distributed:
        raise InputError(f"share={text!r}: must be left out with --distributed, which gives each process its share")
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and int(part) < int(parts)):
        raise InputError(f"share={text!r}: must be a part and the number of parts, from 0/4 to 3/4")
    return int(part), int(parts)


if __name__ == "__main__":
    cli.run(main, interrupted="interrupted; the same command goes on from the latest checkpoints")
