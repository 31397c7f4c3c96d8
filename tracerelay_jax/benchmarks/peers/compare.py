"""TraceRelay beside its peers in one process: training, prefill, decoding, memory; every case in rounds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax

from tracerelay_jax.benchmarks.peers.peer import Peer, parameter_count
from tracerelay_jax.benchmarks.peers.programs import SPREADS, decode_program, prefill_program, state_bytes, update_program
from tracerelay_jax.benchmarks.peers.rounds import Choice, Limits, fastest, run_rounds
from tracerelay_jax.benchmarks.peers.trace_relay import NAME as OURS
from tracerelay_jax.experiment import Experiment
from tracerelay_jax.progress import Reporter

_WORTH_TRYING = 1.5  # a way that takes more than so many times as long as the fastest is not tried in further cases


class Cases(NamedTuple):
    """What is measured.

    Attributes:
      experiment: whose task and optimizer train.
      batch_size: sources of an update.
      sources: source lengths of the updates.
      prompts: lengths of prompts, of one sequence each.
      contexts: positions before those that are decoded, of one sequence.
      steps: tokens that a call decodes.
    """

    experiment: Experiment
    batch_size: int
    sources: Sequence[int]
    prompts: Sequence[int]
    contexts: Sequence[int]
    steps: int


def compare(peers: Sequence[Peer], cases: Cases, limits: Limits, reporter: Reporter) -> dict[str, Any]:
    """Measures every peer, TraceRelay among them, in every case.

    Args:
      peers: TraceRelay first.
      cases: what is measured.
      limits: of each peer in each case.
      reporter: tells of programs as they are compiled and of cases as they are measured.

    Returns:
      `peers`: the parameters and settings of each; `limits`; `training`, `prefill` and `decode`: for each case the results
      of each peer, the fastest of the others, and how many times as fast as that TraceRelay is; `prefill_growth`: the ratio
      of TraceRelay's time from each length to the next.
    """
    params = {peer.name: jax.jit(peer.init)(jax.random.key(0)) for peer in peers}
    choose = partial(fastest, limits=limits, reporter=reporter)
    rank = partial(_rank, limits=limits, reporter=reporter)
    training = _training(peers, cases, choose, rank)
    prefill = _prefill(peers, params, cases, choose, rank)
    decode = [_decode(peers, params, cases, context, choose, rank) for context in cases.contexts]
    return {
        "peers": {peer.name: {"parameters": parameter_count(peer), **peer.settings} for peer in peers},
        "limits": limits._asdict(),
        "training": training,
        "prefill": prefill,
        "prefill_growth": _growth(prefill),
        "decode": decode,
    }


def _training(peers, cases: Cases, choose: Callable, rank: Callable) -> list[dict[str, Any]]:
    """Updates with logits everywhere and, if the task scores the end of a sequence only, with logits there."""
    task = cases.experiment.task
    rows, before = [], {}
    for length in cases.sources:
        for last in dict.fromkeys([None, task.scored_last]):
            choices = {}
            for peer in peers:

                def program(way, peer=peer, length=length, last=last):
                    forward, spread = way.split("; ")
                    return update_program(peer, forward, spread, cases.experiment, cases.batch_size, length, last)

                choices[peer.name] = _choose_update(peer, program, before.get(peer.name), choose)
            before = choices
            positions = task.positions(length)
            case = {"batch_size": cases.batch_size, "positions": positions, "logits": last or positions}
            rows.append(rank("training", case, choices, cases.batch_size * positions))
    return rows


def _choose_update(peer: Peer, program: Callable, before: Choice | None, choose: Callable) -> Choice:
    if before is not None:
        ways, skipped = _still_worth_trying(before)
        return choose(peer.name, {way: partial(program, way) for way in ways}, before=Choice(None, skipped))
    first, *others = peer.forward
    choice = choose(peer.name, {f"{first}; {spread}": partial(program, f"{first}; {spread}") for spread in SPREADS})
    if not others or choice.entrant is None:
        return choice
    spread = choice.entrant.way.partition("; ")[2]  # the other ways only as the first is spread best
    others = {f"{way}; {spread}": partial(program, f"{way}; {spread}") for way in others}
    return choose(peer.name, others, before=choice)


def _prefill(peers, params, cases: Cases, choose: Callable, rank: Callable) -> list[dict[str, Any]]:
    rows, before = [], {}
    for length in cases.prompts:
        choices = {}
        for peer in peers:
            ways, skipped = _still_worth_trying(before[peer.name]) if before else (peer.prefill, {})
            programs = {way: partial(prefill_program, peer, way, params[peer.name], length) for way in ways}
            choices[peer.name] = choose(peer.name, programs, before=Choice(None, skipped))
        before = choices
        rows.append(rank("prefill", {"length": length}, choices, length))
    return rows


def _still_worth_trying(before: Choice) -> tuple[list[str], dict[str, str]]:
    """The ways to try after another case, the fastest there first; and why not the others."""
    times = {way: tried["seconds"] for way, tried in before.tried.items() if isinstance(tried, dict)}
    least = min(times.values(), default=0.0)
    ways = sorted((way for way, seconds in times.items() if seconds <= _WORTH_TRYING * least), key=times.get)
    skipped = {way: tried for way, tried in before.tried.items() if isinstance(tried, str)}
    reason = "not tried: took {:.1f} times as long as the fastest way in the case before"
    return ways, skipped | {way: reason.format(times[way] / least) for way in times if way not in ways}


def _decode(peers, params, cases: Cases, context: int, choose: Callable, rank: Callable) -> dict[str, Any]:
    choices = {}
    for peer in peers:
        arguments = params[peer.name], context, cases.steps, cases.experiment.task.outputs
        choices[peer.name] = choose(peer.name, {way: partial(decode_program, peer, way, *arguments) for way in peer.step})
    row = rank("decode", {"context": context}, choices, cases.steps)
    for peer in peers:
        row["results"][peer.name]["state_bytes"] = state_bytes(peer, context)
    return row


def _rank(
    kind: str, case: dict[str, int], choices: Mapping[str, Choice], tokens: int, limits: Limits, reporter: Reporter
) -> dict[str, Any]:
    """Times what was chosen, in turn.

    Returns:
      The case; `results`: for each peer its way, the calls that count and their median seconds, tokens a second, the bytes
      of the program, and what was tried, which is all where nothing ran; `best_peer`; `ratio_to_best_peer`.
    """
    run_rounds([choice.entrant for choice in choices.values() if choice.entrant], limits)
    results = {name: _result(choice, tokens) for name, choice in choices.items()}
    rates = {name: result["tokens_per_second"] for name, result in results.items() if "tokens_per_second" in result}
    best = max((name for name in rates if name != OURS), key=rates.get, default=None)
    ratio = rates[OURS] / rates[best] if best and OURS in rates else None
    row = {**case, "results": results, "best_peer": best, "ratio_to_best_peer": ratio}
    reporter.line(f"{kind}  " + "  ".join(f"{name.replace('_', ' ')} {value}" for name, value in case.items()))
    for line in _describe(row):
        reporter.line(line)
    return row


def _result(choice: Choice, tokens: int) -> dict[str, Any]:
    if choice.entrant is None:
        return {"tried": choice.tried}
    seconds = choice.entrant.seconds
    return {
        "way": choice.entrant.way,
        "calls": len(choice.entrant.times),
        "seconds": seconds,
        "tokens_per_second": tokens / seconds,
        "memory_bytes": choice.entrant.program.memory_bytes,
        "tried": choice.tried,
    }


def _growth(rows: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    measured = [(row["length"], row["results"][OURS]["seconds"]) for row in rows if "seconds" in row["results"][OURS]]
    return [
        {"from": shorter, "to": longer, "ratio": later / before} for (shorter, before), (longer, later) in pairwise(measured)
    ]


def _describe(row: dict[str, Any]) -> Iterator[str]:
    for name, result in row["results"].items():
        if "seconds" not in result:
            yield f"  {name:<18} cannot run it: " + "; ".join(f"{way}: {why}" for way, why in result["tried"].items())
            continue
        yield (
            f"  {name:<18} {1e6 / result['tokens_per_second']:9.2f} us a token  {result['memory_bytes'] / 2**20:8.1f} MiB  "
            f"{result['calls']:>3} calls  {result['way']}"
        )
    if row["ratio_to_best_peer"]:
        yield f"  TraceRelay is {row['ratio_to_best_peer']:.2f} times as fast as {row['best_peer']}, the best of the others"
