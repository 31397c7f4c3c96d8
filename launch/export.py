"""Writes the best checkpoint of a run as one small file, configuration and parameters, to be read without the run's folder.

    python launch/export.py --workdir=runs/most_freq-dc16-seed42 --output=most_freq.npz

In Python: `model, params, task = tracerelay_jax.trained.read("most_freq.npz")`.
"""

from absl import flags

from tracerelay_jax import cli, trained
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.training.checkpoints import load_parameters

_WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder.", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "The file to write, NAME.npz.", required=True)


def main(_):
    """Runs the program."""
    path = cli.output_file(_OUTPUT.value, ".npz")
    folder = RunFolder(_WORKDIR.value)
    config = folder.read_config()
    update, params = load_parameters(folder)
    trained.write(path, config, params)
    print(f"the checkpoint at update {update} is in {path}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    cli.run(main)
