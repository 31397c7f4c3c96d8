"""The streaming benchmarks at a small size: what they report is what they measured."""

import dataclasses
import io

import jax
import numpy as np
import pytest

from tests import tiny
from tests.launch.test_programs import TINY
from tests.model.test_network import SMALL
from tracerelay_jax import InputError
from tracerelay_jax.benchmarks import attention, streaming
from tracerelay_jax.benchmarks.parts import product_shapes
from tracerelay_jax.benchmarks.starting import starting
from tracerelay_jax.benchmarks.training import length_cases, task_cases, training
from tracerelay_jax.model.network import parameter_count
from tracerelay_jax.progress import Reporter
from tracerelay_jax.report import benchmark_charts

CONFIG = dataclasses.replace(SMALL, trace_widths=(4,), writer_widths=(), reader_widths=())


def test_a_stream_has_exact_phases_and_a_cache_of_one_size(monkeypatch):
    monkeypatch.setattr(streaming, "_CHUNK", 64)
    figures = streaming.stream(CONFIG, 300, 5, Reporter(io.StringIO()))
    assert figures["phases_compared"] == 300 * 4
    assert figures["phases_differing"] == 0
    first, last = figures["cache_bytes"]
    assert first == last > 0


def test_the_oracle_of_a_stream_notices_a_difference(monkeypatch):
    monkeypatch.setattr(streaming, "_CHUNK", 64)
    add = streaming._add_lineages
    monkeypatch.setattr(
        streaming, "_add_lineages", lambda sums, x, position: add(sums, x + np.uint32(position == 64), position)
    )
    assert streaming.stream(CONFIG, 128, 0, Reporter(io.StringIO()))["phases_differing"] == 64 * 4


def test_decode_times_every_context():
    figures = streaming.decode(CONFIG, [8, 32], steps=4, rounds=3, reporter=Reporter(io.StringIO()))
    assert [row["context"] for row in figures["contexts"]] == [8, 32]
    first, last = (row["seconds_per_token"] for row in figures["contexts"])
    assert figures["ratio_of_last_to_first"] == last / first
    assert figures["contexts"][0]["cache_bytes"] == figures["contexts"][1]["cache_bytes"]


def test_attention_is_measured_side_by_side(monkeypatch):
    monkeypatch.setattr(attention, "_REFERENCE_LIMIT", 32)
    rows = attention.attention(2, [16, 64], [16], rounds=3, reporter=Reporter(io.StringIO()))
    assert [(row["length"], row["pass"]) for row in rows] == [
        (16, "forward"), (16, "gradients"), (64, "forward"), (64, "gradients")]  # fmt: skip
    for row in rows:
        assert min(case["ratio_to_best"] for case in row["implementations"].values()) == 1
        assert set(row["implementations"]) | set(row["not_served"]) == {"reference", "windowed", "pallas"}
    assert "quadratic" in rows[-1]["not_served"]["reference"]

    figure = benchmark_charts.attention_chart(rows)
    assert [axes.get_title() for axes in figure.axes] == ["width 16, forward", "width 16, gradients"]
    lines = {line.get_label(): line.get_xydata() for line in figure.axes[0].lines}
    seconds = rows[2]["implementations"]["windowed"]["seconds"]
    np.testing.assert_allclose(lines["windowed"][1], (64, seconds / (2 * 64) * 1e6))
    assert len(lines["reference"]) == 1


def test_an_update_is_timed_beside_the_products_in_it(root):
    experiment = tiny.experiment(root, "dyck")
    cache = jax.config.jax_compilation_cache_dir
    cases = task_cases([experiment]) + length_cases(experiment, [32])
    assert [case[2:] for case in cases] == [(6, 22), (2, 32)]  # sources and their length; two devices
    (row,) = training(cases[:1], rounds=1, reporter=Reporter(io.StringIO()))
    assert jax.config.jax_compilation_cache_dir == cache
    assert row["tokens_per_second"] * row["step_seconds"] == pytest.approx(6 * 22)
    floor = row["floor_seconds"]
    weights = parameter_count(experiment.model) - 4 * 8 - 8 * 16 - 8  # without norms, the input's weight, the head's bias
    assert row["floor_flops_per_second"] * floor == pytest.approx(6 * 6 * 22 * weights)

    updates, times, _ = benchmark_charts.training_chart([row, {**row, "series": "lengths"}]).axes
    assert sum(row["parts_seconds"].values()) == pytest.approx(row["step_seconds"])
    bars = [bar.get_width() for bar in updates.patches]
    np.testing.assert_allclose(bars, [max(seconds, 0) * 1e3 for seconds in row["parts_seconds"].values()])
    np.testing.assert_allclose(times.lines[0].get_xydata(), [(22, 1e6 / row["tokens_per_second"])])


def test_the_products_of_an_update_are_those_of_the_positions_that_are_read(root):
    config = tiny.experiment(root).model  # one layer: H = 8, F = 12, D = 4, L = 3
    writer = [(63, 12, 8), (63, 4, 4), (63, 4, 4)]  # q, k and v; its output; P_delta
    reader = [(9, 8, 8), (9, 12, 8), (6, 4, 4), (6, 8, 4)]  # P_phi; q, k and v; its output; P_L
    rest = [(6, 12, 8), (6, 12, 8), (6, 8, 12), (6, 6, 8)]  # the FFN and the head
    assert sorted(product_shapes(config, 63, 6)) == sorted(writer + reader + rest)
    assert {count for count, *_ in product_shapes(config, 63, 63)} == {63}


def test_the_first_update_is_timed_with_and_without_kept_programs(root, monkeypatch):
    monkeypatch.chdir(root)
    tiny_run = [*TINY, "--config.training.log_every=1"]
    out = io.StringIO()
    figures = starting(["launch/train.py", "--config=configs/dyck.py:dc=4", *tiny_run], 1, Reporter(out))
    assert figures["rounds"] == {kind: [seconds] for kind, seconds in figures["seconds"].items()}
    assert set(figures["seconds"]) == {"cold", "warm"}
    assert all(0.5 < seconds < 120 for seconds in figures["seconds"].values())  # a process at least starts
    assert out.getvalue().count("first update after") == 2
    with pytest.raises(InputError, match="no update, status 2"):
        starting(["launch/train.py", "--config=configs/nothing.py"], 1, Reporter(out))
