import pytest

from tests import tiny
from tracerelay_jax import InputError
from tracerelay_jax.protocol import config_from_file
from tracerelay_jax.sweep.plan import alike_but_for_the_seed, configs_of, deal, plan


def test_the_papers_runs(root):
    configs = configs_of(config_from_file(root / "configs/paper.py").to_dict(), [])
    assert len({config["name"] for config in configs}) == len(configs) == 36
    kinds = {(c["task"], c["model"]["trace_widths"], c["seed"], c["model"]["inherit_phase"]) for c in configs}
    assert len(kinds) == 36
    alone = config_from_file(root / "configs/dyck.py", "dc=32,seed=43").to_dict()
    assert next(config for config in configs if config["name"] == "dyck-dc32-seed43") == alone
    assert sum(not config["model"]["inherit_phase"] for config in configs) == 9

    chosen = config_from_file(root / "configs/paper.py", "task=equal_repeats,inherit=off,dc=16").to_dict()
    names = [config["name"] for config in configs_of(chosen, [42, 44])]
    assert names == ["equal_repeats-dc16-seed42-off", "equal_repeats-dc16-seed44-off"]


def test_a_sweep_goes_on_with_the_runs_that_the_project_keeps(root):
    runs = plan(configs_of(config_from_file(root / "configs/paper.py").to_dict(), []), root / "results/runs")
    assert sum(run.done for run in runs) == sum((run.folder.path / "config.json").exists() for run in runs) > 0


@pytest.mark.parametrize(("arguments", "message"), [
    ("task=parity", "config argument task='parity': must be one of equal_repeats, dyck, most_freq"),
    ("seed=42", "config argument 'seed=42': must be one of task=, dc=, inherit="),
])  # fmt: skip
def test_odd_selections_are_refused(root, arguments, message):
    with pytest.raises(InputError, match=message):
        config_from_file(root / "configs/paper.py", arguments)


def test_selections_without_runs_and_seeds_without_a_run_are_refused(root):
    nothing = config_from_file(root / "configs/paper.py", "task=dyck,inherit=off").to_dict()
    with pytest.raises(InputError, match=r"config\.runs: no run is selected"):
        configs_of(nothing, [])
    with pytest.raises(InputError, match=r"seeds=\[7\]: the config's runs have \[42, 43, 44\]"):
        configs_of(config_from_file(root / "configs/paper.py").to_dict(), [42, 7])


def test_seeds_of_one_config(root):
    config = tiny.config(root, "dyck", "dc=4,inherit=off")
    made = configs_of(config, [43, 44])
    assert [(one["seed"], one["name"]) for one in made] == [(43, "dyck-dc4-seed43-off"), (44, "dyck-dc4-seed44-off")]
    assert config["seed"] == 42
    assert [one["name"] for one in configs_of({**config, "name": "mine"}, [5])] == ["mine-seed5"]
    assert configs_of(config, []) == [config]
    with pytest.raises(InputError, match="2 runs have the name 'dyck-dc4-seed43-off'"):
        configs_of(config, [43, 43])


def test_nothing_is_written_when_one_config_is_bad(root, tmp_path):
    good, bad = tiny.config(root), {**tiny.config(root), "name": "bad", "seed": -1}
    with pytest.raises(InputError, match=r"config\.seed=-1"):
        plan([good, bad], tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="must be empty, new, or the folder of a run"):
        plan([good, {**good, "name": "taken"}], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_groups_differ_in_nothing_but_the_seed(root, tmp_path):
    configs = [*configs_of(tiny.config(root), [1, 2]), *configs_of(tiny.config(root, "dyck"), [1, 2])]
    configs = [configs[i] for i in (0, 2, 1, 3)]
    groups = alike_but_for_the_seed(plan(configs, tmp_path))
    assert [[(run.experiment.task.name, run.experiment.seed) for run in group] for group in groups] == [
        [("most_freq", 1), ("most_freq", 2)],
        [("dyck", 1), ("dyck", 2)],
    ]


def test_what_can_be_mapped_together_is_dealt_out_together(root, tmp_path):
    configs = [*configs_of(tiny.config(root), [1, 2]), *configs_of(tiny.config(root, "dyck"), [1, 2])]
    runs = plan(configs, tmp_path)
    assert [deal(runs, process, 2) for process in range(2)] == [runs[:2], runs[2:]]
    assert [deal(runs, process, 3) for process in range(3)] == [[runs[0], runs[3]], [runs[1]], [runs[2]]]
    assert deal(runs, 0, 1) == runs
    by_seed = [runs[i] for i in (0, 2, 1, 3)]
    assert deal(by_seed, 0, 1) == by_seed, "each process keeps the order of the config"
    assert deal(by_seed, 1, 2) == runs[2:]
