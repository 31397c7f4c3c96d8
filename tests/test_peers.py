"""The peers of the comparison: what they compute, how large they are, and that what is reported is what was measured."""

import functools
import importlib.util
import io
import json
import os
import sys

import jax
import numpy as np
import pytest

from tests import tiny
from tests.launch.test_programs import run
from tracerelay_jax import TraceRelayConfig
from tracerelay_jax.benchmarks.peers import attention, compare, peer, registry, rounds, transformer
from tracerelay_jax.benchmarks.peers.programs import Program, state_bytes, update_program
from tracerelay_jax.errors import InputError
from tracerelay_jax.model.network import parameter_count
from tracerelay_jax.progress import Reporter
from tracerelay_jax.report.benchmark_charts import peers_chart

CONFIG = TraceRelayConfig(inputs=8, outputs=6)
PACKAGES = {"griffin": "recurrentgemma", "mamba2": "mamba2_jax"}
# Half of these tests need the extra, and the others matter only with it; they compile for minutes.
pytestmark = pytest.mark.skipif(
    not (os.environ.get("REQUIRE_PEERS") or all(map(importlib.util.find_spec, PACKAGES.values()))),
    reason="needs the extra `peers`",
)
LIMITS = rounds.Limits(rounds=2, seconds=30.0, memory_bytes=2**30)


def make(name, config=CONFIG):
    """The peer; skips the test where its package is not installed."""
    if name in PACKAGES and not importlib.util.find_spec(PACKAGES[name]):
        reason = f"{name} needs the extra `peers` ({PACKAGES[name]})"
        if os.environ.get("REQUIRE_PEERS"):
            pytest.fail(reason)
        pytest.skip(reason)
    return registry.make_peers([name], config, [24])[1]


def small_pieces(monkeypatch, name):
    """Pieces, windows and chunks that a short sequence has several of; without the scan that takes long to compile."""
    monkeypatch.setattr(transformer, "PIECES", (32, 50))
    monkeypatch.setattr(attention, "_KEY_BLOCK", 16)
    if name == "griffin":
        make(name)  # skips, or can be imported
        from tracerelay_jax.benchmarks.peers import griffin

        monkeypatch.setattr(griffin, "_WINDOW", 16)
        monkeypatch.setattr(griffin, "_SCANS", griffin._SCANS[:1])
    if name == "mamba2":
        make(name)
        from tracerelay_jax.benchmarks.peers import mamba2

        monkeypatch.setattr(mamba2, "PIECES", (32,))
        monkeypatch.setattr(mamba2, "_CHUNKS", (8, 16))


@pytest.mark.parametrize("name", registry.NAMES)
def test_prefill_and_decode_continue_the_forward_pass(name, monkeypatch):
    small_pieces(monkeypatch, name)
    model = make(name)
    params = jax.jit(model.init)(jax.random.key(0))
    tokens = np.random.default_rng(0).integers(0, 6, (2, 90), np.int32)
    forward = [jax.jit(forward, static_argnums=2) for forward in model.forward.values()]
    expected, *others = (np.asarray(each(params, tokens, None)) for each in forward)
    assert np.ptp(expected, axis=1).max() > 0.1  # it does depend on what it reads
    for other in others:
        np.testing.assert_allclose(other, expected, atol=2e-5)
    for each in forward:
        np.testing.assert_allclose(each(params, tokens, 6), expected[:, -6:], atol=2e-5)
    steps = [jax.jit(step) for step in model.step.values()]
    for way, prefill in model.prefill.items():
        last, start = jax.jit(prefill, static_argnums=2)(params, tokens[:, :70], 20)
        np.testing.assert_allclose(last, expected[:, 69], atol=2e-5, err_msg=way)
        for step in steps:
            state = start
            for position in range(70, 90):
                last, state = step(params, tokens[:, position : position + 1], position, state)
                np.testing.assert_allclose(last, expected[:, position], atol=2e-5, err_msg=way)


@pytest.mark.parametrize("name", registry.NAMES)
def test_the_state_of_a_context_is_of_the_shapes_that_prefill_leaves(name, monkeypatch):
    small_pieces(monkeypatch, name)
    model = make(name)
    prefill = next(iter(model.prefill.values()))
    params = jax.eval_shape(model.init, jax.random.key(0))
    tokens = jax.ShapeDtypeStruct((2, 70), np.int32)
    _, after = jax.eval_shape(functools.partial(prefill, room=20), params, tokens)
    made = jax.eval_shape(lambda: model.state(2, 70, 20))
    assert jax.tree.structure(made) == jax.tree.structure(after)
    assert [x.shape for x in jax.tree.leaves(made)] == [x.shape for x in jax.tree.leaves(after)]
    growth = state_bytes(model, 2048) / state_bytes(model, 1024)
    assert growth == (2 if name == "full_attention" else 1)


@pytest.mark.parametrize("name", registry.NAMES)
@pytest.mark.parametrize("width", [16, 64])
def test_parameters_are_as_many_as_ours(name, width):
    config = TraceRelayConfig(inputs=8, outputs=6, trace_widths=(64, width, 64))
    assert abs(peer.parameter_count(make(name, config)) / parameter_count(config) - 1) < 0.02


def test_a_size_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="full_attention: cannot have 1000 parameters within 2%"):
        transformer.full_attention(8, 6, 1000)


@pytest.mark.parametrize("width", [5, 24, 64, None])
def test_attention_equals_a_dense_masked_reference(width, monkeypatch):
    """In float64, in full and cut into pieces that end anywhere in the ring."""
    monkeypatch.setattr(attention, "_KEY_BLOCK", 16)
    rng = np.random.default_rng(1)
    q = rng.normal(size=(2, 100, 4, 8)).astype(np.float32)
    k, v = rng.normal(size=(2, 2, 100, 8)).astype(np.float32)
    distance = np.arange(100)[:, None] - np.arange(100)
    seen = (distance >= 0) & (distance < (width or 100))
    scores = np.where(seen, np.einsum("btnk,bsk->bnts", np.float64(q), k) / np.sqrt(8), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = np.einsum("bnts,bsk->btnk", weights / weights.sum(axis=-1, keepdims=True), v)

    whole = [attention.full, attention.full_rows]
    if width is not None:
        whole = [functools.partial(attend, width=width) for attend in (attention.window, attention.window_dense)]
    for attend in whole:
        np.testing.assert_allclose(attend(q, k, v), expected, atol=1e-5)
        np.testing.assert_allclose(attend(q[:, -7:], k, v), expected[:, -7:], atol=1e-5)
    cache = attention.full_cache(100, 8) if width is None else attention.window_cache(width, 8)
    attend = attention.full_cached if width is None else attention.window_cached
    start = 0
    for length in (1, 30, 7, 1, 61):
        part = slice(start, start + length)
        out, cache = attend(q[0, part], k[0, part], v[0, part], np.int32(start), cache)
        np.testing.assert_allclose(out, expected[0, part], atol=1e-5)
        start += length


def program(calls, name, seconds, memory_bytes=0, error=None):
    """One that takes so long by a clock that it moves itself."""

    def call():
        calls.append(name)
        if error:
            raise error
        calls.clock += seconds

    return Program(call, memory_bytes, 0.0)


class Calls(list):
    clock = 0.0


@pytest.fixture
def calls(monkeypatch):
    made = Calls()
    monkeypatch.setattr(rounds.time, "perf_counter", lambda: made.clock)
    return made


def choose(calls, limits=LIMITS, **programs):
    ways = {way: functools.partial(program, calls, way, *arguments) for way, arguments in programs.items()}
    return rounds.fastest("peer", ways, limits, Reporter(io.StringIO()))


def test_the_fastest_way_is_chosen_and_what_cannot_run_says_why(calls):
    choice = choose(calls, slow=[2.0], fast=[1.0], large=[0.5, 2**31], broken=[0.1, 0, ValueError("no\nmore")])
    assert choice.entrant.way == "fast"
    assert choice.tried["slow"]["seconds"] == 2.0
    assert choice.tried["large"] == "needs 2.0 GiB, over the limit of 1.0 GiB"
    assert choice.tried["broken"] == "ValueError: no"
    assert calls == ["slow", "slow", "fast", "fast", "broken"]
    assert choose(calls, broken=[0.1, 0, KeyError()]) == (None, {"broken": "KeyError: no message"})


def test_trials_end_with_their_seconds(calls):
    choice = choose(calls, limits=LIMITS._replace(seconds=5.0), long=[7.0], short=[1.0])
    assert choice.entrant.way == "long"
    assert choice.tried == {
        "long": {"seconds": 7.0, "compile_seconds": 0.0}, "short": "not tried: the 5 s for trials were over"}  # fmt: skip
    assert calls == ["long"]


def test_rounds_interleave_until_a_program_has_had_its_seconds(calls):
    limits = rounds.Limits(rounds=3, seconds=5.0, memory_bytes=0)
    entrants = [choose(calls, limits, **{name: [seconds]}).entrant for name, seconds in (("a", 1.0), ("b", 2.0), ("c", 6.0))]
    calls.clear()
    rounds.run_rounds(entrants, limits)
    assert calls == ["a", "b", "a", "a"]
    assert [entrant.times for entrant in entrants] == [[1.0, 1.0, 1.0], [2.0], [6.0]]


def test_further_cases_are_spared_the_slow_ways(calls):
    before = choose(calls, a=[1.5], b=[1.0], c=[2.1], d=[1.0, 2**31])
    reason = "not tried: took 2.1 times as long as the fastest way in the case before"
    assert compare._still_worth_trying(before) == (["b", "a"], {"c": reason, "d": before.tried["d"]})
    assert compare._still_worth_trying(choose(calls, d=[1.0, 2**31])) == ([], {"d": before.tried["d"]})


def test_a_peer_that_is_not_installed_is_one_line(monkeypatch):
    for name, package in PACKAGES.items():
        for module in list(sys.modules):
            if module.split(".")[0] == package or module.endswith(f".peers.{name}"):
                monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InputError, match=rf"^peers='{name}': {package}.* is not installed; pip install '\.\[peers\]'$"):
            registry.make_peers([name], CONFIG, [24])


@pytest.mark.parametrize(
    ("names", "windows", "message"),
    [(["rwkv"], [24], "peers='rwkv': must be of griffin"), (["sliding_window"], [40], "windows=40: must be up to 32")],
)
def test_other_names_and_windows_are_refused(names, windows, message):
    with pytest.raises(InputError, match=message):
        registry.make_peers(names, CONFIG, windows)


@pytest.mark.parametrize("name", registry.NAMES)
def test_training_lowers_the_loss(name, root, monkeypatch):
    small_pieces(monkeypatch, name)
    experiment = tiny.experiment(root, "dyck")
    model = make(name, TraceRelayConfig(experiment.task.inputs, experiment.task.outputs))
    update = update_program(model, next(iter(model.forward)), "at once", experiment, 2, 16, None)
    losses = [float(update.call()) for _ in range(8)]
    assert 0 < losses[-1] < 0.9 * losses[0]


def test_every_case_is_ranked(root, monkeypatch):
    monkeypatch.setattr(compare, "SPREADS", ("at once",))
    experiment = tiny.experiment(root, "most_freq")
    peers = registry.make_peers(["full_attention", "sliding_window"], CONFIG, [24])
    peers = [each._replace(prefill=dict([*each.prefill.items()][:1])) for each in peers]
    peers[-1] = peers[-1]._replace(step={"cache": lambda *_: 1 / 0})
    cases = compare.Cases(experiment, 2, sources=[56], prompts=[64, 128], contexts=[64], steps=3)
    figures = compare.compare(peers, cases, LIMITS, Reporter(io.StringIO()))

    assert list(figures["peers"]) == [each.name for each in peers]
    rows = [*figures["training"], *figures["prefill"], *figures["decode"]]
    assert [row["ratio_to_best_peer"] > 0 for row in rows] == [True] * 5
    assert [row["logits"] for row in figures["training"]] == [62, 6]  # everywhere, and where the task scores
    for row, tokens in zip(rows, (2 * 62, 2 * 62, 64, 128, 3), strict=True):
        rates = {name: result["tokens_per_second"] for name, result in row["results"].items() if "seconds" in result}
        ours = rates.pop("tracerelay")
        assert row["ratio_to_best_peer"] == ours / rates[row["best_peer"]] == ours / max(rates.values())
        for result in row["results"].values():
            if "seconds" in result:
                assert result["tokens_per_second"] * result["seconds"] == pytest.approx(tokens)
                assert result["memory_bytes"] > 1e6
    failed = figures["decode"][0]["results"][peers[-1].name]
    assert failed["tried"] == {"cache": "ZeroDivisionError: division by zero"}
    times = [row["results"]["tracerelay"]["seconds"] for row in figures["prefill"]]
    assert figures["prefill_growth"] == [{"from": 64, "to": 128, "ratio": times[1] / times[0]}]

    bars, prefill, decode, *_ = peers_chart(figures).axes
    rates = [result["tokens_per_second"] * 1e-3 for case in figures["training"] for result in case["results"].values()]
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches], rates)
    lines = {line.get_label(): line.get_xydata() for line in prefill.lines}
    np.testing.assert_allclose(lines["TraceRelay"], [(64, times[0] / 64 * 1e6), (128, times[1] / 128 * 1e6)])
    assert len(decode.lines) == len(peers) - 1


def test_the_command_writes_figures_and_chart(root, tmp_path):
    output = tmp_path / "peers.json"
    done = run(root, "benchmark.py", "peers", "--peers=sliding_window", "--windows=24", "--rounds=1",
               "--case_seconds=0.001", "--sources=56", "--batch=2", "--prompts=64", "--peer_contexts=64", "--peer_steps=2",
               f"--output={output}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "TraceRelay is " in done.stdout
    figures = json.loads(output.read_text())["figures"]
    assert list(figures["peers"]) == ["tracerelay", "sliding_window_24"]
    assert output.with_suffix(".png").stat().st_size > 10_000
