"""Measures the package on this machine.

    python launch/benchmark.py decode      the time of a decode step after 1K, 64K and 1M tokens of context
    python launch/benchmark.py attention   the implementations of local attention side by side, beside the rate of a copy
    python launch/benchmark.py stream      1M tokens through the cache: phase bits against integer sums in NumPy, memory
    python launch/benchmark.py train       an update of each task beside its matrix products alone; longer sequences

--dc sets the trace width of the middle layer of the paper's network; --output=FILE.json also writes the figures, with the
command, the versions and the machine, and of train and attention a chart beside it, FILE.png.
"""

import json
import pathlib
import runpy
import sys

from absl import flags

from tracerelay_jax import cli, machine, tasks
from tracerelay_jax.benchmarks import streaming
from tracerelay_jax.benchmarks.attention import attention
from tracerelay_jax.benchmarks.training import length_cases, task_cases, training
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.progress import Reporter
from tracerelay_jax.report.benchmark_charts import CHARTS

_DC = flags.DEFINE_integer("dc", 64, "Trace width of the middle layer.", lower_bound=1)
_CONTEXTS = flags.DEFINE_list("contexts", ["1024", "65536", "1048576"], "decode: tokens read before.")
_STEPS = flags.DEFINE_integer("steps", 1000, "decode: timed steps a round.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 21, "decode, attention, train: rounds, of which the median counts.", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch", 64, "attention: sequences.", lower_bound=1)
_LENGTHS = flags.DEFINE_list("lengths", ["160", "1024", "4096"], "attention: positions.")
_WIDTHS = flags.DEFINE_list("widths", ["16", "64"], "attention: width of the four heads together.")
_TRAIN_WIDTHS = flags.DEFINE_list("train_widths", ["16", "64"], "train: trace widths of the middle layer.")
_TRAIN_LENGTHS = flags.DEFINE_list(
    "train_lengths", ["1024", "4096", "16384", "65536"], "train: also these source lengths of Most-Freq, a row a device."
)
_TOKENS = flags.DEFINE_integer("tokens", 1_000_000, "stream: its length.", lower_bound=1)
_SINGLE_STEPS = flags.DEFINE_integer("single_steps", 5000, "stream: tokens at its end, one at a time.", lower_bound=0)
_OUTPUT = flags.DEFINE_string("output", None, "A .json file to write the figures to.")


def main(argv):
    """Runs the program."""
    output = cli.output_file(_OUTPUT.value, ".json")
    figures = _COMMANDS[argv[1]](Reporter())
    if output:
        description = {"command": ["python", *sys.argv], **machine.describe()}
        output.write_text(json.dumps({**description, "figures": figures}, indent=1) + "\n", encoding="utf-8")
        if argv[1] in CHARTS:
            CHARTS[argv[1]](figures).savefig(output.with_suffix(".png"))


def _decode(reporter):
    figures = streaming.decode(_network(), _numbers("contexts", _CONTEXTS.value), _STEPS.value, _ROUNDS.value, reporter)
    for row in figures["contexts"]:
        microseconds = row["seconds_per_token"] * 1e6
        reporter.line(f"context {row['context']:>8}  {microseconds:7.1f} us a token  cache {row['cache_bytes']} bytes")
    reporter.line(f"the last context takes {figures['ratio_of_last_to_first']:.3f} times as long as the first")
    return figures


def _stream(reporter):
    figures = streaming.stream(_network(), _TOKENS.value, min(_SINGLE_STEPS.value, _TOKENS.value), reporter)
    (first, last), memory = figures["cache_bytes"], figures["peak_memory_bytes"]
    early, late = (memory[name] / 2**20 for name in ("after_a_tenth", "at_the_end"))
    reporter.line(f"{figures['tokens']} tokens: {figures['phases_differing']} of {figures['phases_compared']} phases differ")
    reporter.line(
        f"cache {first} bytes before, {last} after; peak memory {early:.0f} MiB after a tenth, {late:.0f} after all"
    )
    return figures


def _attention(reporter):
    lengths, widths = _numbers("lengths", _LENGTHS.value), _numbers("widths", _WIDTHS.value)
    for width in widths:
        if width % 8:
            raise InputError(f"widths={width}: must be multiples of 8, for four heads of an even width")
    return attention(_BATCH.value, lengths, widths, _ROUNDS.value, reporter)


def _train(reporter):
    cli.use_all_cores()  # as launch/train.py does
    widths = _numbers("train_widths", _TRAIN_WIDTHS.value)
    experiments = [_paper_experiment(task, width) for task in tasks.NAMES for width in widths]
    lengths = _numbers("train_lengths", _TRAIN_LENGTHS.value)
    cases = task_cases(experiments) + length_cases(_paper_experiment("most_freq", _DC.value), lengths)
    return training(cases, _ROUNDS.value, reporter)


def _network() -> TraceRelayConfig:
    return TraceRelayConfig(inputs=8, outputs=6, trace_widths=(64, _DC.value, 64))


def _paper_experiment(task: str, width: int):
    """As the task's config file has it."""
    path = pathlib.Path(__file__).parent.parent / "configs" / f"{task}.py"
    return make_experiment(runpy.run_path(str(path))["get_config"](f"dc={width}").to_dict())


def _numbers(flag: str, texts: list[str]) -> list[int]:
    for text in texts or [""]:
        if not text.isdigit() or int(text) == 0:
            raise InputError(f"{flag}={text!r}: must be positive whole numbers, separated by commas")
    return [int(text) for text in texts]


_COMMANDS = {"decode": _decode, "attention": _attention, "stream": _stream, "train": _train}

if __name__ == "__main__":
    cli.run(main, commands=tuple(_COMMANDS))
