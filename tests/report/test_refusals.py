"""Runs that no report is made from: damaged, foreign, unlike the others, or not there."""

import pathlib
import re
import subprocess
import sys

import pytest

from tests.report.synthetic import edit, write_run
from tracerelay_jax import InputError, cli
from tracerelay_jax.report.page import write_report
from tracerelay_jax.report.paper import read_paper
from tracerelay_jax.report.runs import read_study

ROOT = pathlib.Path(__file__).resolve().parents[2]


def set_field(file, *path):
    """A change of a run's JSON file: all but the last of `path` lead to the last, its new value."""

    def change(folder):
        def put(values):
            for key in path[:-2]:
                values = values[key]
            values[path[-2]] = path[-1]

        edit(folder / file, put)

    return change


def drop_last_line(folder):
    path = folder / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


REJECTED = [
    (lambda folder: (folder / "result.json").write_text('{"name": "most'), "result.json is damaged"),
    (lambda folder: (folder / "result.json").write_text("[]"), "result.json is damaged"),
    (lambda folder: (folder / "config.json").write_text("{}"), "config.json is damaged"),
    (lambda folder: (folder / "config.json").unlink(), "must be the folder of a run"),
    (lambda folder: (folder / "metrics.jsonl").unlink(), "must have a metrics.jsonl"),
    (lambda folder: (folder / "metrics.jsonl").write_text("{\n"), "metrics.jsonl is damaged in line 1"),
    (drop_last_line, "metrics.jsonl must hold the validations up to final_update=750"),
    (lambda folder: folder.rename(folder.with_name("most_freq-dc16-seed43")),
     "its folder is 'most_freq-dc16-seed43', but the configuration is that of 'most_freq-dc16-seed42'"),
    (set_field("config.json", "config", "name", "mine"), "config.name is 'mine'"),
    (set_field("config.json", "config", "seed", 43), "its folder is 'most_freq-dc16-seed42'"),
    (set_field("config.json", "config", "model", "trace_widths", [64, 24, 64]),
     r"config.model.trace_widths=\(64, 24, 64\): the report's are \(64, 64, 64\), \(64, 32, 64\), \(64, 16, 64\)"),
    (set_field("config.json", "config", "model", "inherit_phase", False), "the report has no such runs of most_freq"),
    (set_field("config.json", "config", "training", "rate", 1), "config.training.rate: unknown"),
    (set_field("result.json", "seed", 44), "result.json has seed=44, but config.json 42"),
    (set_field("result.json", "trace_widths", [64, 32, 64]), "result.json has trace_widths"),
    (set_field("result.json", "best_update", 750), "better validation than that of best_update=750"),
    (set_field("result.json", "stopped_by", None), "stopped_by=None: must be threshold or cap"),
    (set_field("result.json", "minutes", "long"), "minutes='long': must be a number"),
    (set_field("result.json", "lengths", {}), "result.json has lengths"),
    (set_field("result.json", "lengths", "512", "score", 94.2), "lengths.512.score=94.2: must be a fraction of one"),
    (set_field("result.json", "lengths", "512", "top1", None), "lengths.512.top1=None: must be"),
    (set_field("result.json", "lengths", "512", "examples", 64), "lengths.512.examples=64: must be"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), REJECTED)
def test_a_damaged_or_foreign_run_is_named_before_anything_is_written(tmp_path, damage, message):
    damage(write_run(ROOT, tmp_path, "most_freq", 16, 42))
    with pytest.raises(InputError, match=message) as error:
        write_report(tmp_path)
    assert "most_freq-dc16-seed4" in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "report").exists()


def test_slices_of_dyck_must_be_whole(tmp_path):
    folder = write_run(ROOT, tmp_path, "dyck", 16, 42)
    edit(folder / "result.json", lambda result: result["lengths"]["4096"]["depth"].pop("10"))
    with pytest.raises(InputError, match=r"lengths\.4096\.depth/10\.closes=None"):
        read_study(tmp_path, read_paper())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (set_field("config.json", "config", "model", "init_scale", 0.05),
         "seed43-off: config.model.init_scale is 0.05, but 0.02 in equal_repeats-dc16-seed42; the runs of a task share"),
        (set_field("result.json", "lengths", "256", "fingerprint", "other"),
         "seed43-off: its examples of length 256 are not those of equal_repeats-dc16-seed42"),
    ],
)  # fmt: skip
def test_runs_of_a_task_must_be_comparable(tmp_path, damage, message):
    write_run(ROOT, tmp_path, "equal_repeats", 16, 42)
    write_run(ROOT, tmp_path, "most_freq", 16, 43)
    other = write_run(ROOT, tmp_path, "equal_repeats", 64, 43, inherit=False)
    assert len(read_study(tmp_path, read_paper()).runs) == 3  # other widths and variants are comparable
    damage(other)
    with pytest.raises(InputError, match=re.escape(message)):
        read_study(tmp_path, read_paper())


def test_a_folder_without_finished_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match=f"results={tmp_path}: must hold the folders of runs"):
        write_report(tmp_path)
    (write_run(ROOT, tmp_path, "most_freq", 16, 42) / "result.json").unlink()
    with pytest.raises(InputError, match="is finished"):
        write_report(tmp_path)


def test_the_program_ends_with_one_line_and_status_2(tmp_path, capsys):
    command = [sys.executable, str(ROOT / "launch" / "report.py"), "nothing/"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    message = "error: results=nothing/: must hold the folders of runs in nothing/runs\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert list(tmp_path.iterdir()) == []
    for words, message in ([], "RESULTS: must be given"), (["a", "b"], "argument 'b': not understood"):
        with pytest.raises(SystemExit, match="2"):
            cli._parse_flags(["report.py", *words], (), "RESULTS")
        assert capsys.readouterr().err.startswith(f"error: {message}")
