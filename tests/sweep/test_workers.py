"""How a sweep takes what its workers say and how they end, with programs in the place of the workers."""

import io
import signal
import sys
import threading

import pytest

from tests import tiny
from tracerelay_jax import cli
from tracerelay_jax.progress import Bars, Reporter
from tracerelay_jax.run_folder import RunFolder
from tracerelay_jax.sweep import processes


@pytest.fixture
def sweep(monkeypatch, tmp_path):
    """Runs a program as the worker of one run, called `run`: the failures, and what the sweep printed."""

    def run(program):
        monkeypatch.setattr(processes, "_command", lambda folder, cores: [sys.executable, "-c", program, str(folder.path)])
        out, failures = io.StringIO(), []

        def work():
            failures.append(processes.run_in_processes([RunFolder(tmp_path / "run")], [0], Bars(Reporter(out))))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(timeout=120)
        assert failures, f"the sweep hangs or broke after {out.getvalue()!r}"
        return failures[0], out.getvalue().splitlines()

    return run


def test_what_is_no_message_is_a_line_of_text(sweep):
    failures, lines = sweep(r"""
import sys
print("a library's warning", 'null', '{"other": 1}', '{"line": "a message"}', sep="\n", flush=True)
sys.stdout.buffer.write(b"no UTF-8: \xff\n")
""")
    assert failures == {}
    assert lines[:4] == ["run  a library's warning", "run  null", 'run  {"other": 1}', "run  a message"]
    assert lines[4].startswith("run  no UTF-8: ")
    assert lines[5:] == ["sweep  1 of 1 ended, 0 running, 0 left"]


def test_workers_are_for_cpu_cores_whatever_the_machine_has(sweep, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    assert sweep("import os; print(os.environ['JAX_PLATFORMS'])")[1][0] == "run  cpu"


def test_output_that_cannot_be_read_is_a_failure(sweep, monkeypatch):
    monkeypatch.setattr(processes, "_as_message", lambda line: 1 / 0)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)  # which would print the error
    assert sweep("import time; print(1, flush=True); time.sleep(600)")[0] == {"run": "its output could not be read"}


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.stderr.write('why\\n\\n \\n'); sys.exit(3)", "why"),
        ("import sys; sys.stderr.write('\\n\\n'); sys.exit(3)", "ended with status 3, without a message"),
        ("import sys; sys.exit(3)", "ended with status 3, without a message"),
        ("import os; os.write(2, b'a warning'); os.kill(os.getpid(), 9)", f"killed by signal 9 ({signal.strsignal(9)})"),
    ],
    ids=["message and blank lines", "blank lines", "nothing", "signal"],
)
def test_a_worker_that_fails_is_reported(sweep, program, reason):
    failures, lines = sweep(program)
    assert failures == {"run": reason}
    assert lines[0] == f"run  failed: {reason}"


def test_the_reason_is_the_error_and_not_a_note_of_jax(sweep, root, tmp_path):
    RunFolder(tmp_path / "run").create_or_check(tiny.config(root), [])
    failures, _ = sweep(f"""
import sys
import jax
import jax.numpy as jnp
from tracerelay_jax.sweep import worker
worker.train_and_evaluate = lambda *_: jax.jit(lambda x: x.reshape(2))(jnp.ones(3))
worker.main(sys.argv[1], "{cli.available_cores()[0]}")
""")
    assert failures["run"].startswith("TypeError: cannot reshape array of shape (3,)")
