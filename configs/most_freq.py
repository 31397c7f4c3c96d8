"""Most-Freq: list five symbols by descending frequency, then end. Nine of the paper's runs.

    python launch/train.py --config=configs/most_freq.py:dc=16
    python launch/train.py --config=configs/most_freq.py:dc=64,seed=43 --workdir=runs/short --config.training.updates=5000

Arguments, after the colon and separated by commas:

    dc       trace width of the middle layer: 64 (default), 32 or 16 in the paper; a multiple of the heads
    seed     training seed: 42 (default), 43, 44 in the paper
    inherit  on (default), or off for the ablation without phase inheritance

Every field below can be overridden with --config.FIELD=VALUE; the fields of `config.model` are those of
`tracerelay_jax.TraceRelayConfig`, and left_window, right_window and stride hold one number for all layers, `(15,)`, or
one for each, `(15,31,15)`.

In the paper these runs stop after 2,500 to 5,000 updates, and generate 98.9% to 99.6% of the rankings of length 256 and
56% to 71% of length 1024 exactly.
"""

from tracerelay_jax.protocol import paper_config, parse_arguments


def get_config(arg=None):
    """Returns the run's ConfigDict."""
    config = paper_config("most_freq", **parse_arguments(arg, dc=64, seed=42, inherit=True))

    config.task_options.symbols = 5
    config.task_options.gap = 4  # least difference between two counts

    config.training.lengths = (128, 256)
    config.validation.lengths = (128, 192, 256)
    config.validation.examples = 512
    config.evaluation.id_lengths = (128, 192, 256)
    config.evaluation.ood_lengths = (512, 1024)
    config.evaluation.examples = 1024
    config.evaluation.batch_size = 64
    return config
