"""The programs as a person runs them: in a process of their own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests import tiny
from tracerelay_jax import trained as trained_models
from tracerelay_jax.run_folder import RunFolder

TINY = [
    "--config.model.hidden=8", "--config.model.ffn=8", "--config.model.heads=2", "--config.model.trace_widths=(4,)",
    "--config.training.lengths=(8,12)", "--config.validation.lengths=(8,12)", "--config.evaluation.id_lengths=(8,)",
    "--config.evaluation.ood_lengths=(16,)", "--config.training.batch_size=4", "--config.training.updates=4",
    "--config.validation.every=2", "--config.validation.examples=8", "--config.evaluation.examples=8",
    "--config.evaluation.batch_size=4",
]  # fmt: skip


def run(root, program, *arguments, cwd=None, text=None):
    command = [sys.executable, str(root / "launch" / program), *arguments]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=cwd or root, env=environment, timeout=300)


def test_train_then_evaluate_then_export_then_generate(root, tmp_path):
    config = f"--config={root}/configs/dyck.py:dc=4,seed=43"
    trained = run(root, "train.py", config, *TINY, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    folder = tmp_path / "runs" / "dyck-dc4-seed43"
    for text in (
        "compiled training step",
        "update 4/4  validation",
        "ID  length     8",
        "OOD length    16",
        "result.json",
    ):
        assert text in trained.stdout, text
    assert "\r" not in trained.stdout  # line by line where the output is no terminal
    assert trained.stderr == ""
    assert any(pathlib.Path(os.environ["XDG_CACHE_HOME"], "tracerelay_jax", "compiled").iterdir())
    result = json.loads((folder / "result.json").read_text())
    assert result["seed"] == 43
    assert result["lengths"]["16"]["depth"]["1"]["closes"] > 0
    assert json.loads((folder / "config.json").read_text())["command"][1:] == [config, *TINY]

    evaluated = run(root, "evaluate.py", f"--workdir={folder}", "--lengths=8,20", "--examples=8", "--output=out.json",
                    cwd=tmp_path)  # fmt: skip
    assert evaluated.returncode == 0, evaluated.stderr
    lengths = json.loads((tmp_path / "out.json").read_text())["lengths"]
    assert set(lengths) == {"8", "20"}
    assert lengths["8"] == result["lengths"]["8"]

    exported = run(root, "export.py", f"--workdir={folder}", "--output=model.npz", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    assert exported.stdout.startswith("the checkpoint at update ")
    assert trained_models.read(tmp_path / "model.npz").model.config.trace_widths == (4,)

    answered = run(root, "generate.py", f"--workdir={folder}", text="0 1 9\n3 4 5\n")
    assert answered.returncode == 0, answered.stderr
    types = [[int(word) for word in line.split()] for line in answered.stdout.splitlines()]
    assert [len(line) for line in types] == [1, 3]
    assert all(0 <= output < 8 for line in types for output in line)
    again = run(root, "generate.py", "--model=model.npz", text="0 1 9\n3 4 5\n", cwd=tmp_path)
    assert again.stdout == answered.stdout, again.stderr


CONFIG = "--config=configs/most_freq.py"


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        ("train.py", [f"{CONFIG}:dc=18"], "config.model.trace_widths=18: must be divisible by heads=4"),
        ("train.py", [f"{CONFIG}:width=16"], "config argument 'width=16': must be one of dc=, seed=, inherit="),
        ("train.py", [f"{CONFIG}:dc=16,dc=32"], "config argument 'dc': given twice"),
        ("train.py", [f"{CONFIG}:dc=x"], "config argument dc='x': must be an integer"),
        ("train.py", [f"{CONFIG}:inherit=maybe"], "config argument inherit='maybe': must be on or off"),
        ("train.py", [CONFIG, "--config.training.rate=1"], "rate"),
        ("train.py", [CONFIG, "--config.model.stride=(7,)"], "config.model.stride=7: must exceed right_window=7"),
        ("train.py", [CONFIG, "--config.training.lengths=(40,256)"], "config.training.lengths=40: Most-Freq with"),
        ("train.py", ["--config=configs/dyck.py", "--config.validation.lengths=(32,33)"],
         "config.validation.lengths=33: a Dyck word has an even length"),
        ("train.py", [CONFIG, "--config.task=parity"], "task='parity': must be one of"),
        ("train.py", [CONFIG, "--config.training.batch_size=0"], "config.training.batch_size=0: must be"),
        ("train.py", ["--config=configs/nothing.py"], "configs/nothing.py"),
        ("train.py", [], "--config"),
        ("train.py", [CONFIG, "dc=16"], "argument 'dc=16': not understood"),
        ("train.py", [CONFIG, "--workdir=/dev/null/run"], "workdir=/dev/null/run: cannot be written"),
        ("train.py", [CONFIG, "--workdir=tests"], "workdir=tests: must be empty, new, or the folder of a run"),
        ("train.py", [CONFIG, "--config.modle.stride=3"], """'modle': Did you mean "model" instead of "modle"?"""),
        ("train.py", [CONFIG, "--config.model.strid=3"], """'strid': Did you mean "stride" instead of "strid"?"""),
        ("train.py", ["--config=configs/paper.py"], "config: holds 36 runs; launch/sweep.py trains them"),
        ("evaluate.py", ["--model=most_freq-dc16-seed42", "--latest"], "latest=True: needs --workdir"),
        ("evaluate.py", ["--workdir=tests"], "workdir=tests: must be the folder of a run (it has no config.json)"),
        ("generate.py", [], "workdir"),
        ("generate.py", ["--model=parity"], f"trained model 'parity': must be one of {', '.join(trained_models.shipped())}"),
        ("export.py", ["--workdir=tests", "--output=model.txt"], "output=model.txt: must end in .npz"),
        ("sweep.py", [CONFIG, "--share=4/4"], "share='4/4': must be a part and the number of parts, from 0/4 to 3/4"),
        ("sweep.py", [CONFIG, "--share=0/4", "--distributed"], "share='0/4': must be left out with --distributed"),
        ("benchmark.py", ["speed"], "command 'speed': must be one of decode, attention, start, stream, train"),
        ("benchmark.py", ["decode", "--contexts=1k"], "contexts='1k': must be positive whole numbers"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_one_clear_line_before_anything_compiles(root, program, arguments, message):
    failed = run(root, program, *arguments)
    assert failed.returncode != 0
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert failed.stderr.startswith("error: ")
    assert failed.stdout == ""


def test_a_line_that_is_no_source_is_named_before_anything_is_loaded(root, tmp_path):
    RunFolder(tmp_path / "run").create_or_check(tiny.config(root, "dyck"), [])
    (tmp_path / "words.txt").write_text("0 1 9\n9\n")
    failed = run(root, "generate.py", f"--workdir={tmp_path}/run", f"--input={tmp_path}/words.txt")
    assert failed.returncode == 2
    assert failed.stderr == "error: line 2: source[0]=9: must close the bracket that was opened last\n"


def test_a_folder_without_a_checkpoint_cannot_be_evaluated(root, tmp_path):
    RunFolder(tmp_path / "run").create_or_check(tiny.config(root), [])
    failed = run(root, "evaluate.py", f"--workdir={tmp_path}/run")
    assert failed.returncode == 2
    assert "holds no checkpoint" in failed.stderr
    assert failed.stderr.count("\n") == 1
