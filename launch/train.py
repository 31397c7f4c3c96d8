"""Trains one run until its stop rule, evaluates its best checkpoint, and writes result.json.

    python launch/train.py --config=configs/most_freq.py:dc=16
    python launch/train.py --config=configs/dyck.py:dc=64,seed=43 --workdir=runs/mine --config.training.updates=5000
    srun python launch/train.py --config=configs/dyck.py --distributed

The same command goes on with an interrupted run, and leaves a finished one alone. The config files are their own manuals.
With --distributed the processes of a cluster, or those given by --coordinator, --processes and --process, share each batch;
they need a folder that all of them see, and the first of them writes.
"""

import os
import sys

import jax
from absl import flags
from ml_collections import config_flags

from tracerelay_jax import cli
from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.hosts import wait_for_all
from tracerelay_jax.progress import Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.run import train_and_evaluate
from tracerelay_jax.training.tensorboard import tensorboard_writer

_CONFIG = config_flags.DEFINE_config_file("config", None, "Config file of the run, with its arguments after a colon.")
_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder; by default runs/ and the run's name.")
_TENSORBOARD = flags.DEFINE_bool("tensorboard", False, "Also write TensorBoard scalars to the folder; needs the extra.")
_JOIN = cli.define_distributed()
flags.mark_flag_as_required("config")


def main(_):
    """Runs the program."""
    cli.use_all_cores()
    config = _CONFIG.value.to_dict()
    if "runs" in config:
        raise InputError(f"config: holds {len(config['runs'])} runs; launch/sweep.py trains them")
    experiment = make_experiment(config)
    _JOIN()
    first = jax.process_index() == 0
    folder = RunFolder(_WORKDIR.value or f"runs/{experiment.name}", writes=first)
    if first:
        folder.create_or_check(config, sys.argv)
    wait_for_all("folder")
    folder.check(config)
    on_event = tensorboard_writer(folder.path / "tensorboard") if _TENSORBOARD.value and first else None
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        reporter = Reporter() if first else Reporter(nowhere)
        train_and_evaluate(experiment, folder, reporter, on_event, jax.devices())


if __name__ == "__main__":
    cli.run(main, interrupted="interrupted; the same command goes on from the latest checkpoint")
