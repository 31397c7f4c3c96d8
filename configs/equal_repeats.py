"""Equal Repeats: which two runs of 0^a 1^b 0^c are equally long. Eighteen of the paper's runs.

    python launch/train.py --config=configs/equal_repeats.py:dc=64
    python launch/train.py --config=configs/equal_repeats.py:dc=16,seed=43,inherit=off

Arguments, after the colon and separated by commas:

    dc       trace width of the middle layer: 64 (default), 32 or 16 in the paper; a multiple of the heads
    seed     training seed: 42 (default), 43, 44 in the paper
    inherit  on (default), or off for the ablation without phase inheritance

Every field below can be overridden with --config.FIELD=VALUE; the fields of `config.model` are those of
`tracerelay_jax.TraceRelayConfig`, and left_window, right_window and stride hold one number for all layers, `(15,)`, or
one for each, `(15,31,15)`.

In the paper the runs with inheritance stop after 4,250 to 10,250 updates and classify 98.8% to 99.7% at length 256; those
without use all 20,000 updates and classify 50.7% to 51.6%.
"""

from tracerelay_jax.protocol import paper_config, parse_arguments


def get_config(arg=None):
    """Returns the run's ConfigDict."""
    config = paper_config("equal_repeats", **parse_arguments(arg, dc=64, seed=42, inherit=True))

    config.training.lengths = (32, 256)
    config.validation.lengths = (32, 64, 128, 256)
    config.validation.examples = 1024
    config.evaluation.id_lengths = (32, 64, 128, 256)
    config.evaluation.ood_lengths = (512, 1024, 2048, 4096)
    config.evaluation.examples = 10_000
    config.evaluation.batch_size = 128
    return config
