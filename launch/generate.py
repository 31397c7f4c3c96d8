"""Answers sources with a trained model: reads a source a line, prints the outputs, a line each.

    python launch/generate.py --model=most_freq-dc16-seed42 --input=sources.txt
    echo "0 0 1 0 2 1 1 1 3 3 1 4" | python launch/generate.py --workdir=runs/most_freq-dc16-seed42
    python launch/generate.py --workdir=runs/dyck-dc16-seed42 --input=words.txt --temperature=0.8 --top_k=4

Symbols are whole numbers, separated by spaces. Most-Freq: the source without separator; the answer ranks its symbols, and
V ends it. Dyck: the beginning of a word; the answer is the types of the brackets that close it. Equal Repeats: the source;
the answer is its class.
"""

import pathlib
import sys
from collections.abc import Callable

from absl import flags

from tracerelay_jax import cli
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.generation import Sampling
from tracerelay_jax.model.network import TraceRelay
from tracerelay_jax.prompts import answer, read_sources
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.tasks import Task
from tracerelay_jax.trained import Trained, read
from tracerelay_jax.training.checkpoints import load_parameters

_WORKDIR = flags.DEFINE_string("workdir", None, "A run's folder, for its best checkpoint.")
_MODEL = flags.DEFINE_string("model", None, "Instead: a file of launch/export.py, or the name of a model of the package.")
flags.mark_flags_as_mutual_exclusive(["workdir", "model"], required=True)
_INPUT = flags.DEFINE_string("input", "-", "File of sources; - is standard input.")
_TEMPERATURE = flags.DEFINE_float("temperature", 0.0, "0 takes the likeliest output.", lower_bound=0.0)
_TOP_K = flags.DEFINE_integer(
    "top_k", 0, "With a temperature: samples among the likeliest only; 0 is no limit.", lower_bound=0
)
_SEED = flags.DEFINE_integer("seed", 0, "With a temperature: of the sampling.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 16, "Sources that are run together.", lower_bound=1)
_CHUNK = flags.DEFINE_integer("chunk", 512, "Positions that are run at a time; bounds the memory.", lower_bound=1)


def main(_):
    """Runs the program."""
    task, load = _task_and_loader()
    text = sys.stdin.read() if _INPUT.value == "-" else pathlib.Path(_INPUT.value).read_text(encoding="utf-8")
    sources = read_sources(text.splitlines(), task)
    answers = answer(
        *load(),
        sources,
        batch_size=_BATCH_SIZE.value,
        chunk=_CHUNK.value,
        seed=_SEED.value,
        sampling=Sampling(_TEMPERATURE.value, _TOP_K.value),
    )
    for outputs in answers:
        print(*outputs, flush=True)


def _task_and_loader() -> tuple[Task, Callable[[], Trained]]:
    """The task of the model, and how to load it once the sources have proved to be some."""
    if _MODEL.value:
        trained = read(_MODEL.value)
        return trained.task, lambda: trained
    folder = RunFolder(_WORKDIR.value)
    experiment = make_experiment(folder.read_config())
    return experiment.task, lambda: Trained(TraceRelay(experiment.model), load_parameters(folder)[1], experiment.task)


if __name__ == "__main__":
    cli.run(main)
