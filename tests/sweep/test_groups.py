"""Sweeps over devices take one config after the other, whatever becomes of the one before."""

import io
from typing import ClassVar

from tests import tiny
from tracerelay_jax.errors import InputError
from tracerelay_jax.progress import Reporter
from tracerelay_jax.sweep import sweep as sweeping
from tracerelay_jax.sweep.plan import configs_of, plan


def test_a_folder_in_use_or_a_full_disk_fails_its_own_config_only(root, tmp_path, monkeypatch):
    configs = [
        config for task in ("dyck", "most_freq", "equal_repeats") for config in configs_of(tiny.config(root, task), [1, 2])
    ]
    runs, errors = plan(configs, tmp_path), iter([InputError("another process is at work"), OSError("disk full"), None])
    trained = []

    class Trainer:
        failures: ClassVar = {}

        def __init__(self, group, devices, bars):
            self.group = group

        def run(self):
            trained.append(self.group[0].experiment.task.name)
            if error := next(errors):
                raise error

    monkeypatch.setattr(sweeping, "SeedTrainer", Trainer)
    failures = sweeping.sweep(runs, "devices", Reporter(io.StringIO()))
    assert trained == ["dyck", "most_freq", "equal_repeats"]
    assert failures == {run.experiment.name: why for run, why in zip(
        runs, ["another process is at work"] * 2 + ["disk full"] * 2, strict=False)}  # fmt: skip
