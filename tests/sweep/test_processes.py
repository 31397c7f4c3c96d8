"""Whole programs on the loopback address and in processes of their own, against runs alone: the same bits in every case."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.training.test_runs import metrics_of, without_times
from tracerelay_jax.run_folder import RunFolder

TINY = [
    "--config=configs/dyck.py:dc=16", "--config.model.hidden=16", "--config.model.ffn=16", "--config.model.heads=2",
    "--config.model.trace_widths=(16,)", "--config.training.lengths=(22,24)", "--config.validation.lengths=(8,)",
    "--config.evaluation.id_lengths=(8,)", "--config.evaluation.ood_lengths=()", "--config.training.batch_size=8",
    "--config.training.updates=60", "--config.validation.every=10", "--config.validation.examples=8",
    "--config.evaluation.examples=8", "--config.evaluation.batch_size=4",
]  # fmt: skip
NAMES = ["dyck-dc16-seed42", "dyck-dc16-seed43", "dyck-dc16-seed44"]


def start(root, program, *arguments, before="", **variables):
    """Starts a program; `before` is run first, in the same process."""
    interpreter = [sys.executable, *(["-c", before + _THEN_THE_PROGRAM] if before else [])]
    command = [*interpreter, str(root / "launch" / program), *TINY, *arguments]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2", **variables}
    return subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


_THEN_THE_PROGRAM = """
import runpy, sys
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def finish(*processes):
    try:
        for process in processes:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()  # those that wait for one that failed


def outcome(path):
    folder = RunFolder(path)
    result = {name: value for name, value in folder.read_result().items() if name != "device"}
    return without_times(result), metrics_of(folder), folder.read_config()


@pytest.fixture(scope="module")
def alone(root, tmp_path_factory):
    """The first seed, trained by launch/train.py on two devices of one process."""
    path = tmp_path_factory.mktemp("alone") / NAMES[0]
    finish(start(root, "train.py", f"--workdir={path}"))
    return outcome(path)


def test_a_sweep_in_processes_killed_at_random_ends_in_the_files_of_runs_alone(root, tmp_path, alone):
    arguments = [f"--workdir={tmp_path}", "--seeds=42,43,44"]
    for updates in (0, 30):  # of the first run, when the sweep is killed
        sweep = start(root, "sweep.py", *arguments)
        path = tmp_path / NAMES[0] / "metrics.jsonl"
        limit = time.monotonic() + 120
        while updates and not (path.exists() and f'"update": {updates}' in path.read_text()):
            assert time.monotonic() < limit
            assert sweep.poll() is None, sweep.communicate()
            time.sleep(0.02)
        sweep.send_signal(signal.SIGKILL)
        sweep.communicate()
    finish(start(root, "sweep.py", *arguments))
    assert outcome(tmp_path / NAMES[0]) == alone
    assert [outcome(tmp_path / name)[0]["seed"] for name in NAMES] == [42, 43, 44]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    again = start(root, "sweep.py", *arguments)
    assert "3 runs, 3 of them done, 0 left" in again.communicate(timeout=300)[0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_two_processes_with_two_devices_each_share_a_batch(root, tmp_path, alone):
    path = tmp_path / NAMES[0]
    finish(*_distributed(root, "train.py", f"--workdir={path}"))
    assert outcome(path) == alone


_ROUNDS_OTHERWISE = """
import dataclasses
import jax
from tracerelay_jax.training.validation import Validator
validate = Validator.validate
def validate_apart(self, params, update):
    validation = validate(self, params, update)
    if jax.process_index() == 0:
        return dataclasses.replace(validation, score=1.0)
    return dataclasses.replace(validation, score=0.5, cross_entropy=float("nan"))
Validator.validate = validate_apart
"""


def test_processes_that_validate_differently_stop_together_by_the_first(root, tmp_path):
    arguments = ["train.py", f"--workdir={tmp_path}/run", "--config.training.updates=30"]
    finish(*_distributed(root, *arguments, before=_ROUNDS_OTHERWISE))
    result = RunFolder(tmp_path / "run").read_result()
    assert (result["stopped_by"], result["final_update"], result["validation"]["score"]) == ("threshold", 20, 1.0)


def test_runs_are_dealt_out_over_processes(root, tmp_path, alone):
    finish(*_distributed(root, "sweep.py", f"--workdir={tmp_path}", "--seeds=42,43", "--method=devices"))
    (result, metrics, config), (other, *_) = (outcome(tmp_path / name) for name in NAMES[:2])
    assert config == alone[2]
    assert (result["seed"], other["seed"]) == (42, 43)
    losses = [[event["loss"] for event in events if "loss" in event] for events in (metrics, alone[1])]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)  # another program, so another order of roundings


def test_each_task_of_slurm_sweeps_on_its_own_gpu(root, tmp_path):
    slurm = {"SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_NODES": "1",
             "CUDA_VISIBLE_DEVICES": "2,3", "JAX_COORDINATOR_PORT": str(_free_port())}  # fmt: skip
    tell = """
import subprocess
subprocess.call = lambda command, env: print(command[-1], env["CUDA_VISIBLE_DEVICES"], env["HIP_VISIBLE_DEVICES"])
"""
    arguments = ["sweep.py", f"--workdir={tmp_path}", "--seeds=42,43", "--distributed"]
    tasks = [start(root, *arguments, before=tell, **slurm, SLURM_PROCID=i, SLURM_LOCALID=i) for i in "01"]
    assert [task.communicate(timeout=300)[0] for task in tasks] == ["--share=0/2 2 0\n", "--share=1/2 3 1\n"]


def test_what_fails_in_one_run_does_not_end_the_others(root, tmp_path):
    broken = tmp_path / NAMES[0]
    sweep = start(root, "sweep.py", f"--workdir={tmp_path}", "--seeds=42,43", "--config.training.updates=10")
    while not (broken / "config.json").exists():
        time.sleep(0.01)
    lock = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(broken)], cwd=root, stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    assert lock.stdout.readline() == b"held\n"
    out, errors = sweep.communicate(timeout=300)
    lock.communicate()
    assert sweep.returncode == 2
    assert "another process is at work on this run" in errors
    assert errors.count("\n") == 1
    assert (tmp_path / NAMES[1] / "result.json").exists(), out
    assert not (broken / "result.json").exists()


_HOLD = """
import sys
from tracerelay_jax.run_folder import RunFolder
with RunFolder(sys.argv[1]).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def _distributed(root, program, *arguments, before=""):
    together = ["--distributed", f"--coordinator=localhost:{_free_port()}", "--processes=2"]
    each = [[*arguments, *together, f"--process={process}"] for process in range(2)]
    return [start(root, program, *own, before=before) for own in each]


def _free_port():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def test_half_an_address_is_refused(root, tmp_path):
    failed = start(root, "train.py", "--distributed", "--processes=2", f"--workdir={tmp_path}/run")
    _, errors = failed.communicate(timeout=300)
    assert failed.returncode == 2
    assert "--coordinator, --processes and --process are given together or not at all" in errors
    assert not (tmp_path / "run").exists()
