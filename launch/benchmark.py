"""Measures the package on this machine.

    python launch/benchmark.py decode      the time of a decode step after 1K, 64K and 1M tokens of context
    python launch/benchmark.py stream      1M tokens through the cache: phase bits against integer sums in NumPy, memory

--dc sets the trace width of the middle layer of the paper's network; --output=FILE also writes the figures as JSON, with the
command, the versions and the machine.
"""

import json
import pathlib

from absl import flags

from tracerelay_jax import cli
from tracerelay_jax.benchmarks import machine, streaming
from tracerelay_jax.config import TraceRelayConfig
from tracerelay_jax.progress import Reporter

_DC = flags.DEFINE_integer("dc", 64, "Trace width of the middle layer.", lower_bound=1)
_CONTEXTS = flags.DEFINE_list("contexts", ["1024", "65536", "1048576"], "decode: tokens read before.")
_STEPS = flags.DEFINE_integer("steps", 1000, "decode: timed steps a round.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 21, "decode: rounds, of which the median counts.", lower_bound=1)
_TOKENS = flags.DEFINE_integer("tokens", 1_000_000, "stream: its length.", lower_bound=1)
_SINGLE_STEPS = flags.DEFINE_integer("single_steps", 5000, "stream: tokens at its end, one at a time.", lower_bound=0)
_OUTPUT = flags.DEFINE_string("output", None, "A JSON file to write the figures to.")


def main(argv):
    """Runs the program."""
    config = TraceRelayConfig(inputs=8, outputs=6, trace_widths=(64, _DC.value, 64))
    figures = {"decode": _decode, "stream": _stream}[argv[1]](config, Reporter())
    if _OUTPUT.value:
        text = json.dumps({**machine.describe(), "figures": figures}, indent=1)
        pathlib.Path(_OUTPUT.value).write_text(text + "\n", encoding="utf-8")


def _decode(config, reporter):
    contexts = [int(context) for context in _CONTEXTS.value]
    figures = streaming.decode(config, contexts, _STEPS.value, _ROUNDS.value, reporter)
    for row in figures["contexts"]:
        microseconds = row["seconds_per_token"] * 1e6
        reporter.line(f"context {row['context']:>8}  {microseconds:7.1f} us a token  cache {row['cache_bytes']} bytes")
    reporter.line(f"the last context takes {figures['ratio_of_last_to_first']:.3f} times as long as the first")
    return figures


def _stream(config, reporter):
    figures = streaming.stream(config, _TOKENS.value, min(_SINGLE_STEPS.value, _TOKENS.value), reporter)
    (first, last), memory = figures["cache_bytes"], figures["peak_memory_bytes"]
    early, late = (memory[name] / 2**20 for name in ("after_a_tenth", "at_the_end"))
    reporter.line(f"{figures['tokens']} tokens: {figures['phases_differing']} of {figures['phases_compared']} phases differ")
    reporter.line(
        f"cache {first} bytes before, {last} after; peak memory {early:.0f} MiB after a tenth, {late:.0f} after all"
    )
    return figures


if __name__ == "__main__":
    cli.run(main, commands=("decode", "stream"))
