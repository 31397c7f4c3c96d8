"""A run small enough to train in seconds, from the paper's config files."""

import importlib.util
import re

from tracerelay_jax.experiment import make_experiment

OVERRIDES = {
    "equal_repeats": {"training.lengths": (23, 24), "validation.lengths": (8, 16), "evaluation.ood_lengths": (24,)},
    "dyck": {"training.lengths": (22, 24), "validation.lengths": (8, 16), "evaluation.ood_lengths": (24,)},
    "most_freq": {"training.lengths": (57, 58), "validation.lengths": (48, 56), "evaluation.ood_lengths": (64,)},
}
SHARED = {
    "model.hidden": 8, "model.ffn": 12, "model.heads": 2, "model.trace_widths": (4,), "model.left_window": (3,),
    "model.right_window": (1,), "model.stride": (2,), "model.init_scale": 0.3, "training.batch_size": 6,
    "training.updates": 6, "training.log_every": 2, "training.learning_rate": 1e-2, "training.warmup_updates": 3,
    "validation.every": 2, "validation.examples": 9, "evaluation.examples": 7, "evaluation.batch_size": 4,
}  # fmt: skip


def config(root, task="most_freq", argument=None, **overrides):
    """The config of `configs/TASK.py:ARGUMENT`, made tiny; overrides are written section__field."""
    spec = importlib.util.spec_from_file_location("config", root / "configs" / f"{task}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.get_config(argument)
    values = {**SHARED, **OVERRIDES[task], **{name.replace("__", "."): value for name, value in overrides.items()}}
    made.update_from_flattened_dict(values)
    made.evaluation.id_lengths = made.validation.lengths
    widths = made.model.trace_widths
    made.name = re.sub(r"-dc\d+", f"-dc{widths[len(widths) // 2]}", made.name)
    return made.to_dict()


def experiment(root, task="most_freq", argument=None, **overrides):
    return make_experiment(config(root, task, argument, **overrides))
