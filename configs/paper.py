"""The paper's 36 runs, for launch/sweep.py: three tasks, widths and seeds, and Equal Repeats without inheritance too.

    python launch/sweep.py --config=configs/paper.py
    python launch/sweep.py --config=configs/paper.py:task=dyck
    python launch/sweep.py --config=configs/paper.py:inherit=off
    python launch/sweep.py --config=configs/paper.py:task=most_freq,dc=16 --seeds=42

Arguments, after the colon and separated by commas; each selects, and all runs are meant without it:

    task     equal_repeats, dyck or most_freq
    dc       trace width of the middle layer: 16, 32 or 64
    inherit  on, or off for the ablation without phase inheritance

Most-Freq comes first, as the shortest; then Equal Repeats, Dyck, and Equal Repeats without inheritance; within each, the
first seed of every width before the second. Every run is that of its task's config file, which says what it is.
"""

import pathlib

from ml_collections import ConfigDict

from tracerelay_jax.protocol import config_from_file, select_arguments

_HERE = pathlib.Path(__file__).parent
_SETS = (("most_freq", "on"), ("equal_repeats", "on"), ("dyck", "on"), ("equal_repeats", "off"))
_WIDTHS = (16, 32, 64)
_SEEDS = (42, 43, 44)


def get_config(arg=None):
    """Returns a ConfigDict with the tuple `runs`."""
    chosen = select_arguments(
        arg,
        task=("equal_repeats", "dyck", "most_freq"),
        dc=tuple(map(str, _WIDTHS)),
        inherit=("on", "off"),
    )
    runs = [
        {"task": task, "dc": str(dc), "seed": str(seed), "inherit": inherit}
        for task, inherit in _SETS
        for seed in _SEEDS
        for dc in _WIDTHS
    ]
    runs = [run for run in runs if all(run[name] == value for name, value in chosen.items())]
    return ConfigDict({"runs": tuple(_config(**run) for run in runs)})


def _config(task: str, **arguments: str) -> dict:
    text = ",".join(f"{name}={value}" for name, value in arguments.items())
    return config_from_file(_HERE / f"{task}.py", text).to_dict()
