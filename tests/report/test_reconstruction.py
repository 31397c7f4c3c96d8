"""The reconstruction study: its configs, and its rule on runs that are made up in place of read ones."""

import copy
import math
import pathlib
import re
import runpy
import statistics

import pytest

from tests.report.conftest import STUDY, study_configs
from tracerelay_jax import InputError
from tracerelay_jax.experiment import make_experiment
from tracerelay_jax.protocol import config_from_file
from tracerelay_jax.report.paper import read_paper
from tracerelay_jax.report.reconstruction import rounds
from tracerelay_jax.report.reconstruction.candidates import BY_NAME, CANDIDATES, DEFAULT
from tracerelay_jax.report.reconstruction.conclusion import conclude, mean_misfit
from tracerelay_jax.report.reconstruction.rounds import ROUNDS
from tracerelay_jax.report.reconstruction.rule import judge, target
from tracerelay_jax.sweep.plan import configs_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAPER = read_paper()
SEEDS = PAPER.seeds
CELLS = [setting for round_ in ROUNDS for setting in round_.cells]
MF16, MF64, DYCK, REPEATS = CELLS


# The configs.


def test_the_default_is_the_papers_runs(planned):
    theirs = {config["name"]: config for config in configs_of(config_from_file(ROOT / "configs" / "paper.py"), [])}
    assert len(planned[DEFAULT]) == len(CELLS) * len(SEEDS)
    assert [config for config in planned[DEFAULT] if config != theirs[config["name"]]] == []


@pytest.mark.parametrize("candidate", [one for one in CANDIDATES if one.name != DEFAULT], ids=lambda one: one.name)
def test_a_candidate_differs_in_its_fields_and_in_nothing_else(planned, candidate):
    assert 1 <= len(candidate.changes) <= 2
    for ours, default in zip(planned[candidate.name], planned[DEFAULT], strict=True):
        wanted = copy.deepcopy(default)
        wanted["name"] += f"-{candidate.name}"
        for field, value in candidate.changes.items():
            assert wanted["model"][field] != value
            wanted["model"][field] = value
        assert ours == wanted
        assert make_experiment(ours).model != make_experiment(default).model


def test_arguments_select_runs():
    everything = study_configs("")
    assert len({config["name"] for config in everything}) == len(everything) == (len(CANDIDATES) - 1) * 12
    names = [config["name"] for config in study_configs("round=1,candidate=alibi,dc=16")]
    assert names == [f"most_freq-dc16-seed{seed}-alibi" for seed in SEEDS]
    assert {config["task"] for config in study_configs("round=2")} == {"dyck", "equal_repeats"}
    assert {config["model"]["trace_widths"] for config in study_configs("task=dyck")} == {(64, 64, 64)}
    for wrong, message in (("candidate=rope", "must be one of default, bfloat16"), ("round=3", "must be one of 1, 2"),
                           ("seed=42", "must be one of round=, candidate=, task=, dc=")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            study_configs(wrong)
    with pytest.raises(InputError, match="no run is selected"):
        study_configs("task=dyck,dc=16")


def test_the_manual_says_what_the_study_computes():
    manual = runpy.run_path(str(STUDY))["__doc__"]
    changes = "normal|uniform|products of|bfloat16|ALiBi|no position"
    listed = re.findall(rf"^    (\w[\w.]*)  +(?:{changes})", manual, re.MULTILINE)
    assert listed == [one.name for one in CANDIDATES]
    assert (rounds.SPREAD, rounds.ID_FLOOR, rounds.OOD_FLOOR, rounds.FACTOR) == (3, 1, 5, 2)
    for words in ("3 SDs and than 1 point,", "3 SDs and than 5 points,", "before half or after twice the updates"):
        assert words in manual
    changes = [len(one.changes) for one in CANDIDATES]
    assert changes == sorted(changes)  # from the simplest


# The rule, on runs that are made up in place of read ones.


class FakeRun:
    def __init__(self, setting, seed, scores, stop, capped=False):
        self.setting, self.seed, self.scores = setting, seed, scores
        self.exposure = PAPER.exposure[setting, seed]._replace(final=stop, exhausted=capped)

    def percent(self, length, metric="score"):
        return self.scores[length, metric]


class FakeStudy:
    def __init__(self, runs):
        self.runs = runs

    def of(self, setting):
        return [run for run in self.runs if run.setting == setting]


def papers_runs(cells=CELLS, shift=None, **stops):
    """Runs with the paper's means and stops, but for `shift`, {(setting, measure's name): points or three of them}."""
    runs = []
    for setting in cells:
        measures = next(round_.cells[setting] for round_ in ROUNDS if setting in round_.cells)
        for i, seed in enumerate(SEEDS):
            scores = {}
            for measure in measures[1:]:
                moved = (shift or {}).get((setting, measure.name), 0.0)
                scores[measure.length, measure.metric] = target(PAPER, setting, measure).least + (
                    moved[i] if isinstance(moved, tuple) else moved
                )
            stop, capped = stops.get(f"{setting.task}_{setting.dc}", [(PAPER.exposure[setting, seed].final, False)] * 3)[i]
            runs.append(FakeRun(setting, seed, scores, stop, capped))
    return FakeStudy(runs)


def verdicts(study):
    return [judge(study, PAPER, round_) for round_ in ROUNDS]


def out(study):
    return [(each.setting, each.measure.name) for verdict in verdicts(study) for each in verdict.out]


def test_the_papers_own_numbers_survive_with_no_misfit():
    found = verdicts(papers_runs())
    assert [verdict.survives for verdict in found] == [True, True]
    assert mean_misfit(found) == pytest.approx(0.0, abs=0.05)  # the middle of three equal stops need not be the paper's


def rms(*sds):
    return math.sqrt(statistics.fmean(sd**2 for sd in sds))


@pytest.mark.parametrize(
    ("setting", "name", "tolerance"),
    [
        (MF16, "ID T = 256", 3 * rms(0.78, 0.35, 0.20)),
        (MF16, "T = 512", 3 * rms(3.73, 1.53, 0.59)),
        (MF64, "T = 1024", 3 * rms(12.82, 2.39, 4.95)),
        (DYCK, "T = 1024", 5.0),  # 3 SDs are 4.4
        (DYCK, "T = 4096", 3 * rms(1.81, 8.36, 10.49)),
        (REPEATS, "ID T = 256", 3 * rms(0.58, 0.56, 0.13)),
        (REPEATS, "T = 512", 5.0),  # below a range, without an SD
    ],
)
def test_a_mean_is_ruled_out_beyond_the_tolerance_and_not_before(setting, name, tolerance):
    assert out(papers_runs(shift={(setting, name): -tolerance + 0.01})) == []
    assert out(papers_runs(shift={(setting, name): -tolerance - 0.01})) == [(setting, name)]
    above = 0.99 if setting == REPEATS and name == "T = 512" else 0.0  # the width of the range
    assert out(papers_runs(shift={(setting, name): tolerance + above - 0.01})) == []
    assert out(papers_runs(shift={(setting, name): tolerance + above + 0.01})) == [(setting, name)]


def test_scatter_excuses_nothing():
    assert out(papers_runs(shift={(MF16, "T = 512"): (-80.0, -40.0, 5.0)})) == [(MF16, "T = 512")]


def test_table_4_rules_nobody_out_but_counts_as_one_column_in_the_misfit():
    shift = {(MF16, f"{name}, T = 1024"): -70.0 for name in ("Top-1", "Top-2 prefix", "Set exact", "Termination")}
    study = papers_runs([MF16], shift)
    (verdict, _) = verdicts(study)
    assert verdict.out == ()
    misfits = {each.measure.name: each.misfit for each in verdict.judged}
    diagnostics = [misfits[name] for _, name in shift]
    others = [misfits[name] for name in misfits if (MF16, name) not in shift]
    assert len(others) == 4
    assert mean_misfit([verdict]) == pytest.approx((sum(others) + statistics.fmean(diagnostics)) / 5)


@pytest.mark.parametrize(
    ("stops", "ruled_out"),
    [
        ([(1500, False), (1500, False), (250, False)], False),  # half of the paper's middle, 3,000
        ([(1250, False), (1250, False), (9000, False)], True),
        ([(250, False), (6000, False), (20_000, True)], False),  # one that never stops is no more than late
        ([(6250, False), (6250, False), (3000, False)], True),
        ([(20_000, True), (3000, False), (20_000, True)], True),
    ],
)
def test_the_middle_stop_rules(stops, ruled_out):
    assert out(papers_runs(most_freq_16=stops)) == ([(MF16, "updates")] if ruled_out else [])


def test_a_capped_middle_is_out_even_where_the_cap_is_within_twice_the_papers():
    stops = [(20_000, True), (15_000, False), (20_000, True)]
    found = verdicts(papers_runs(dyck_64=stops))
    (judged,) = found[1].out
    assert (judged.value, judged.capped, judged.misfit) == (20_000, True, 1.0)
    assert out(papers_runs(dyck_64=[(20_000, False)] * 3)) == []  # two passes just before the cap


def test_a_cell_without_all_its_seeds_is_not_judged():
    study = papers_runs(shift={(MF64, "T = 512"): -50.0, (MF16, "T = 512"): -50.0})
    study.runs = [run for run in study.runs if (run.setting, run.seed) != (MF64, 43)]
    first, second = verdicts(study)
    assert [(each.setting, each.measure.name) for each in first.out] == [(MF16, "T = 512")]
    assert first.missing == ((MF64, 2),)
    assert second.survives
    study.runs = [run for run in study.runs if run.setting != MF16]
    first, _ = verdicts(study)
    assert (first.judged, first.out, first.survives) == ((), (), False)


def concluded(**studies):
    """The conclusion on a study for each candidate, all others ruled out in the first cell."""
    failed = papers_runs([MF16], {(MF16, "T = 512"): -60.0})
    return conclude({name: verdicts(studies.get(name, failed)) for name in BY_NAME})


def test_conclusions():
    good, near = papers_runs(), papers_runs(shift={(setting, "T = 1024"): -4.9 for setting in (MF16, DYCK)})
    far = papers_runs(shift={(MF16, "T = 512"): 5.0, (MF64, "T = 512"): 6.0, (MF16, "T = 1024"): 23.0,
                             (MF64, "T = 1024"): 23.0, (DYCK, "T = 1024"): 4.9, (DYCK, "T = 4096"): 22.0})  # fmt: skip
    assert concluded(default=FakeStudy([]), alibi=good).startswith("Open: too few runs for a verdict on `default`.")
    assert concluded(default=papers_runs(CELLS[:2]), alibi=good).startswith("Open: too few runs for a verdict on `default`.")
    assert concluded(alibi=good).startswith(
        "`alibi` comes out. Candidates that survive every round, with their misfits: `al"
    )
    assert concluded(default=near, alibi=good).startswith("`default`, `alibi` tie, and the simplest, `default`, comes out.")
    assert concluded(default=far, alibi=good).startswith("`alibi` comes out.")
    closest = concluded(alibi=papers_runs(CELLS[:3], {(DYCK, "T = 4096"): -30.0}))
    assert closest.startswith("No candidate fits. Closest comes `alibi` (without all runs of Equal Repeats, d_c = 16), with")
    assert closest.endswith("It differs in Dyck, d_c = 64: T = 4096 (46.34).")
    assert "`default`, with" in concluded(default=papers_runs(shift={(MF16, "T = 512"): -60.0}))  # of many columns one
