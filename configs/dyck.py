"""Bounded Dyck-(8, 10): predict the type of each closing bracket. Nine of the paper's runs.

    python launch/train.py --config=configs/dyck.py:dc=64
    python launch/train.py --config=configs/dyck.py:dc=16,seed=44 --workdir=runs/depth6 --config.task_options.depth=6

Arguments, after the colon and separated by commas:

    dc       trace width of the middle layer: 64 (default), 32 or 16 in the paper; a multiple of the heads
    seed     training seed: 42 (default), 43, 44 in the paper
    inherit  on (default), or off for the ablation without phase inheritance

Every field below can be overridden with --config.FIELD=VALUE; the fields of `config.model` are those of
`tracerelay_jax.TraceRelayConfig`, and left_window, right_window and stride hold one number for all layers, `(15,)`, or
one for each, `(15,31,15)`.

In the paper these runs stop after 14,250 to 20,000 updates, and predict 98.3% to 98.5% of the closing types of words of
length 256 and 87% to 93% of length 1024.
"""

from tracerelay_jax.protocol import paper_config, parse_arguments


def get_config(arg=None):
    """Returns the run's ConfigDict."""
    config = paper_config("dyck", **parse_arguments(arg, dc=64, seed=42, inherit=True))

    config.task_options.types = 8
    config.task_options.depth = 10  # most brackets that are ever open

    config.training.lengths = (32, 256)  # even ones
    config.validation.lengths = (32, 64, 128, 256)
    config.validation.examples = 1024
    config.evaluation.id_lengths = (32, 64, 128, 256)
    config.evaluation.ood_lengths = (512, 1024, 2048, 4096)
    config.evaluation.examples = 2000
    config.evaluation.batch_size = 64
    return config
