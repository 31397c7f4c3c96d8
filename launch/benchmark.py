"""Measures the package on this machine.

    python launch/benchmark.py decode      the time of a decode step after 1K, 64K and 1M tokens of context
    python launch/benchmark.py attention   the implementations of local attention side by side, beside the rate of a copy
    python launch/benchmark.py stream      1M tokens through the cache: phase bits against integer sums in NumPy, memory
    python launch/benchmark.py start       from the command to the first update, with and without compiled programs kept
    python launch/benchmark.py train       an update of each task beside its matrix products alone; longer sequences
    python launch/benchmark.py peers       other sequence models of as many parameters side by side; needs '.[peers]'

--dc sets the trace width of the middle layer of the paper's network; attention has --widths instead, and train
--train_widths. --output=FILE.json also writes the figures, with the command, the versions and the machine, and of attention,
train and peers a chart beside it, FILE.png.
"""

import json
import os
import pathlib
import sys

from absl import flags

from tracerelay_jax import cli, machine, tasks
from tracerelay_jax.benchmarks import streaming
from tracerelay_jax.benchmarks.attention import attention
from tracerelay_jax.benchmarks.peers import registry
from tracerelay_jax.benchmarks.peers.compare import Cases, compare
from tracerelay_jax.benchmarks.peers.rounds import Limits
from tracerelay_jax.benchmarks.starting import starting
from tracerelay_jax.benchmarks.training import length_cases, task_cases, training
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.errors import InputError
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.progress import Reporter
from tracerelay_jax.protocol import config_from_file
from tracerelay_jax.report.benchmark_charts import CHARTS

_DC = flags.DEFINE_integer("dc", 64, "Trace width of the middle layer.", lower_bound=1)
_CONTEXTS = flags.DEFINE_list("contexts", ["1024", "65536", "1048576"], "decode: tokens read before.")
_STEPS = flags.DEFINE_integer("steps", 1000, "decode: timed steps a round.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 21, "All but stream: rounds, of which the median counts.", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch", 64, "attention, peers (training): sequences.", lower_bound=1)
_LENGTHS = flags.DEFINE_list("lengths", ["160", "1024", "4096"], "attention: positions.")
_WIDTHS = flags.DEFINE_list("widths", ["16", "64"], "attention: width of the four heads together.")
_TRAIN_WIDTHS = flags.DEFINE_list("train_widths", ["16", "64"], "train: trace widths of the middle layer.")
_PRODUCT_DTYPES = flags.DEFINE_list("product_dtypes", ["float32", "bfloat16"], "train: of the factors of products.")
_TRAIN_LENGTHS = flags.DEFINE_list(
    "train_lengths", ["1024", "4096", "16384", "65536"], "train: also these source lengths of Most-Freq, a row a device."
)
_TOKENS = flags.DEFINE_integer("tokens", 1_000_000, "stream: its length.", lower_bound=1)
_SINGLE_STEPS = flags.DEFINE_integer("single_steps", 5000, "stream: tokens at its end, one at a time.", lower_bound=0)
_PEERS = flags.DEFINE_list("peers", list(registry.NAMES), "peers: which.")
_WINDOWS = flags.DEFINE_list(
    "windows",
    ["24", "128"],
    "peers: positions of each sliding window. A layer of TraceRelay sees 24 itself, without what its traces bring from "
    "further back; 128 is gpt-oss's, the narrowest of the well-known models'.",
)
_SOURCES = flags.DEFINE_list("sources", ["192"], "peers: source lengths of Most-Freq to train on; 192 is its mean.")
_PROMPTS = flags.DEFINE_list("prompts", ["1024", "8192", "32768", "65536"], "peers: lengths of a prompt to read.")
_PEER_CONTEXTS = flags.DEFINE_list("peer_contexts", ["1024", "8192", "65536"], "peers: tokens before those to decode.")
_PEER_STEPS = flags.DEFINE_integer("peer_steps", 512, "peers: tokens to decode a round.", lower_bound=1)
_CASE_SECONDS = flags.DEFINE_float("case_seconds", 5.0, "peers: after as many a peer sits out a case's rounds.", 0.0)
_MEMORY_GIB = flags.DEFINE_float("memory_gib", 8.0, "peers: a program that needs more is not run.", 0.0)
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
    experiments = [
        _paper_experiment(task, width, product_dtype=dtype)
        for task in tasks.NAMES
        for width in widths
        for dtype in _PRODUCT_DTYPES.value
    ]
    lengths = _numbers("train_lengths", _TRAIN_LENGTHS.value)
    cases = task_cases(experiments) + length_cases(_paper_experiment("most_freq", _DC.value), lengths)
    return training(cases, _ROUNDS.value, reporter)


def _peers(reporter):
    cli.use_all_cores()  # as for training
    experiment = _paper_experiment("most_freq", _DC.value)
    sources = _numbers("sources", _SOURCES.value)
    for length in sources:
        experiment.task.check_length(length, "sources")
    cases = Cases(
        experiment,
        _BATCH.value,
        sources,
        prompts=_numbers("prompts", _PROMPTS.value),
        contexts=_numbers("peer_contexts", _PEER_CONTEXTS.value),
        steps=_PEER_STEPS.value,
    )
    peers = registry.make_peers(_PEERS.value, experiment.model, _numbers("windows", _WINDOWS.value))
    limits = Limits(_ROUNDS.value, _CASE_SECONDS.value, int(_MEMORY_GIB.value * 2**30))
    return compare(peers, cases, limits, reporter)


def _start(reporter):
    launch = os.path.relpath(pathlib.Path(__file__).parent)  # a command as a person writes it
    config = f"--config={os.path.relpath(_config_file('most_freq'))}:dc={_DC.value}"
    return starting([f"{launch}/train.py", config, "--config.training.log_every=1"], _ROUNDS.value, reporter)


def _network() -> TraceRelayConfig:
    return TraceRelayConfig(inputs=8, outputs=6, trace_widths=(64, _DC.value, 64))


def _paper_experiment(task: str, width: int, **model_fields: str):
    """As the task's config file has it, but for these fields of its model."""
    config = config_from_file(_config_file(task), f"dc={width}")
    config.model.update(model_fields)
    return make_experiment(config.to_dict())


def _config_file(task: str) -> pathlib.Path:
    return pathlib.Path(__file__).parent.parent / "configs" / f"{task}.py"


def _numbers(flag: str, texts: list[str]) -> list[int]:
    return cli.whole_numbers(flag, texts or [""], "positive whole numbers", least=1)


_COMMANDS = {
    "decode": _decode,
    "attention": _attention,
    "start": _start,
    "stream": _stream,
    "train": _train,
    "peers": _peers,
}

if __name__ == "__main__":
    cli.run(main, commands=tuple(_COMMANDS))
