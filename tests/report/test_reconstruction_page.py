"""The page of the reconstruction study, from synthetic run folders."""

import csv
import pathlib
import re
import runpy

import pytest

from tests.report.synthetic import edit, write_run
from tests.report.test_reconstruction import rms
from tracerelay_jax import InputError
from tracerelay_jax.report.figures import style
from tracerelay_jax.report.paper import Setting, read_paper
from tracerelay_jax.report.reconstruction import figure as figures
from tracerelay_jax.report.reconstruction.candidates import BY_NAME, CANDIDATES, DEFAULT
from tracerelay_jax.report.reconstruction.findings import judge_all
from tracerelay_jax.report.reconstruction.page import write_study
from tracerelay_jax.report.reconstruction.rounds import ROUNDS
from tracerelay_jax.report.reconstruction.runs import read_candidates

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAPER = read_paper()
SEEDS = PAPER.seeds


def write_candidate(results, name, task, dc, seed, **run):
    """As `write_run`, for a candidate: its folder, its name and its fields."""
    if name == DEFAULT:
        return write_run(ROOT, results, task, dc, seed, **run)
    folder = write_run(ROOT, results / "reconstruction", task, dc, seed, **run)

    def change(values):
        values["config"]["name"] += f"-{name}"
        values["config"]["model"].update(BY_NAME[name].changes)

    edit(folder / "config.json", change)
    edit(folder / "result.json", lambda values: values.update(name=f"{values['name']}-{name}"))
    return folder.rename(folder.with_name(f"{folder.name}-{name}"))


def history(stop):
    return ((stop - 250, 0.99), (stop, 0.995))


GOOD = {"scores": {256: 0.996, 512: 0.95, 1024: 0.70}, "history": history(3000)}
BAD = {"scores": {256: 0.99, 512: 0.30, 1024: 0.05}, "history": history(20_000), "stopped_by": "cap"}


def draw_little(patch):
    """Pictures of one row and few points, which are quicker."""
    patch.setattr(style, "DPI", 40)
    rows = figures._rows()[:1]
    patch.setattr(figures, "_rows", lambda: rows)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results with its page, written by the program."""
    results = tmp_path_factory.mktemp("results")
    for seed in SEEDS:
        write_candidate(results, DEFAULT, "most_freq", 16, seed, **GOOD)
        write_candidate(results, "uniform", "most_freq", 16, seed, **BAD)
    write_run(ROOT, results, "most_freq", 32, 42)  # of the paper's sweep, and not of the study
    write_candidate(results, DEFAULT, "dyck", 64, 43, scores={1024: 0.9, 4096: 0.7})
    write_candidate(results, "alibi", "most_freq", 16, 42, **GOOD)
    (write_candidate(results, "alibi", "most_freq", 64, 44) / "result.json").unlink()
    with pytest.MonkeyPatch.context() as patch:
        draw_little(patch)
        runpy.run_path(str(ROOT / "launch" / "reconstruction.py"))["main"](["reconstruction.py", str(results)])
    return results


def test_the_page_says_what_the_runs_show_and_no_more(results):
    text = (results / "reconstruction" / "README.md").read_text()
    assert "- Open: too few runs for a verdict on `default`, `bfloat16`, `bfloat16_products`, `alibi`, `no_p" in text
    assert f"8 of {12 * len(CANDIDATES)} runs are finished." in text
    assert "Without a result yet: most_freq-dc64-seed44-alibi." in text
    lines = text.splitlines()

    def row(*start):
        return next(line for line in lines if line.startswith(f"| {' | '.join(start)} |"))

    assert "| `default` | not enough runs: Most-Freq, d_c = 64 has 0 of 3 |" in text
    out = "Most-Freq, d_c = 16: updates (20,000†), T = 512 (30.00), T = 1024 (5.00)"
    uniform = next(line for line in lines if line.startswith(f"| `uniform` | ruled out by {out} | ruled out before |"))
    assert float(uniform.split("|")[-2]) > 1
    assert "| 3,000, 3,000, 3,000 (-0.82) | 99.60 ± 0.00 (-0.07) |" in row("Most-Freq, d_c = 16", "`default`")
    assert "| **20,000†, 20,000†, 20,000†** (+20.00) |" in row("Most-Freq, d_c = 16", "`uniform`")
    assert "| 95.00, n = 1 (+0.36, paper's SD) |" in row("Most-Freq, d_c = 16", "`alibi`")
    assert set(row("Most-Freq, d_c = 64", "`alibi`").split("|")[3:-1]) == {" – "}
    assert "| 42.52 to 43.51 |" in row("Equal Repeats, d_c = 16", "the paper")
    assert "**" not in row("Most-Freq, d_c = 16", "`default`")


def test_the_csv_holds_every_column_of_every_candidate(results):
    with open(results / "reconstruction" / "reconstruction.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(CANDIDATES) * sum(len(of) for round_ in ROUNDS for of in round_.cells.values())

    def cell(candidate, task, dc, column):
        key = {"candidate": candidate, "task": task, "d_c": dc, "column": column}
        (found,) = [row for row in rows if key.items() <= row.items()]
        return found

    got = cell("uniform", "most_freq", "16", "T = 512")
    assert [got[name] for name in ("seeds", "score_mean", "ruled_out", "rules")] == ["42 43 44", "30.0", "True", "True"]
    assert float(got["misfit"]) == pytest.approx((94.79 - 30) / (3 * rms(3.73, 1.53, 0.59)))
    single = cell("alibi", "most_freq", "16", "T = 512")
    assert [single[name] for name in ("seeds", "score_n", "misfit", "ruled_out")] == ["42", "1", "", ""]
    missing = cell("alibi", "most_freq", "64", "T = 512")
    assert [missing[name] for name in ("seeds", "score_n", "score_mean", "score_paper_mean")] == ["", "0", "", "87.76"]


def test_the_figure_marks_what_is_ruled_out_and_leaves_missing_runs_out(results, planned):
    drawn = figures.figure(judge_all(read_candidates(results, planned, PAPER), PAPER)).figure
    panels = {axes.get_title("left"): axes for axes in drawn.axes}
    panel = panels["Most-Freq, $d_c$ = 16: updates"]
    marks = {(line.get_marker(), round(line.get_ydata()[0])): line.get_xdata()[0] for line in panel.lines
             if line.get_marker() in ("o", "X", ">")}  # fmt: skip
    names = list(BY_NAME)
    assert marks["o", names.index(DEFAULT)] == 3000
    assert marks["X", names.index("uniform")] == marks[">", names.index("uniform")] == 20_000
    assert {y for _, y in marks} == {names.index(name) for name in (DEFAULT, "uniform", "alibi")}
    assert sum(axes.get_visible() for axes in drawn.axes) == 22


def test_a_second_page_is_the_same_to_the_byte_and_all_it_names_is_there(results, planned, tmp_path, monkeypatch):
    draw_little(monkeypatch)
    (tmp_path / "runs").symlink_to(results / "runs")
    (tmp_path / "reconstruction").mkdir()
    (tmp_path / "reconstruction" / "runs").symlink_to(results / "reconstruction" / "runs")
    write_study(tmp_path, planned)
    written = {path.name: path for path in (results / "reconstruction").iterdir() if path.is_file()}
    again = {name: (tmp_path / "reconstruction" / name).read_bytes() for name in written}
    assert [name for name, path in written.items() if path.read_bytes() != again[name]] == []
    links = re.findall(r"\]\((?!\.\.)([^)]+)\)", written["README.md"].read_text())
    assert set(links) == (written.keys() - {"README.md"}) | {"runs"}


def set_model(field, value):
    def change(folder):
        edit(folder / "config.json", lambda values: values["config"]["model"].update({field: value}))

    return change


REJECTED = [
    (set_model("init_scale", 0.05), "config.model.init_scale is 0.05, but the study has 0.02"),
    (set_model("position", "rope"), "config.model.position is 'rope', but the study has 'alibi'"),
    (lambda folder: edit(folder / "config.json", lambda values: values["config"]["training"].update(updates=5000)),
     "config.training.updates is 5000, but the study has 20000"),
    (lambda folder: folder.rename(folder.with_name("most_freq-dc32-seed42-alibi")), "not one of the study's"),
    (lambda folder: (folder / "result.json").write_text("[]"), "result.json is damaged"),
    (lambda folder: (folder / "config.json").unlink(), "must be the folder of a run"),
    (lambda folder: edit(folder / "result.json", lambda values: values["lengths"]["512"].update(fingerprint="other")),
     "its examples of length 512 are not those of most_freq-dc16-seed42"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), REJECTED)
def test_a_foreign_or_damaged_run_is_named_before_anything_is_written(tmp_path, planned, damage, message):
    write_candidate(tmp_path, DEFAULT, "most_freq", 16, 42)
    folder = write_candidate(tmp_path, "alibi", "most_freq", 16, 43)
    set_model("attention", "reference")(folder)  # no result depends on it
    assert len(read_candidates(tmp_path, planned, PAPER)["alibi"].runs) == 1
    damage(folder)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        write_study(tmp_path, planned)
    assert "\n" not in str(error.value)
    assert "-alibi" in str(error.value)
    assert not (tmp_path / "reconstruction" / "README.md").exists()


def test_a_folder_without_runs_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main = runpy.run_path(str(ROOT / "launch" / "reconstruction.py"))["main"]
    refused = pytest.raises(InputError, match=r"^results=nothing/: must hold the folders of finished runs in nothing/runs$")
    with refused:
        main(["reconstruction.py", "nothing/"])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "nothing" / "runs").mkdir(parents=True)
    with refused:
        main(["reconstruction.py", "nothing/"])
    assert [path.name for path in (tmp_path / "nothing").iterdir()] == ["runs"]


def test_the_real_runs_of_the_default_are_found(planned):
    found = read_candidates(ROOT / "results", planned, PAPER)[DEFAULT].runs
    assert Setting("most_freq", 16, True) in {run.setting for run in found}
