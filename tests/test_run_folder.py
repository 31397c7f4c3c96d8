import errno
import fcntl
import json
import os
import pathlib

import pytest

from tests import tiny
from tracerelay_jax import InputError
from tracerelay_jax.run_folder import RunFolder


def failing(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


def test_a_config_that_could_not_be_written_leaves_nothing(root, tmp_path, monkeypatch):
    folder, config = RunFolder(tmp_path / "run"), tiny.config(root)
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", failing(errno.ENOSPC))
        with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
            folder.create_or_check(config, [])
    assert list(folder.path.iterdir()) == []
    folder.create_or_check(config, [])
    assert folder.read_config()["name"] == config["name"]


def test_a_file_is_cut_off_by_a_full_disk_and_the_old_one_stays(root, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    folder.create_or_check(tiny.config(root), [])
    folder.write_result({"score": 1})
    write = pathlib.Path.write_text

    def write_half(path, text, **options):
        write(path, text[: len(text) // 2], **options)
        failing(errno.ENOSPC)()

    monkeypatch.setattr(pathlib.Path, "write_text", write_half)
    with pytest.raises(OSError, match="No space left"):
        folder.write_result({"score": 2})
    assert folder.read_result()["score"] == 1
    assert not list(folder.path.glob("*.tmp"))


def test_what_a_kill_left_of_a_config_is_no_obstacle(root, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json.tmp").write_text('{"command": [')
    folder, config = RunFolder(tmp_path / "run"), tiny.config(root)
    folder.create_or_check(config, ["command"])
    assert json.loads((folder.path / "config.json").read_text())["command"] == ["command"]
    assert sorted(path.name for path in folder.path.iterdir()) == ["checkpoints", "config.json"]


def test_of_two_processes_that_begin_a_folder_one_writes_it_and_the_other_checks_it(root, tmp_path, monkeypatch):
    ours, theirs, other = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "run"), tiny.config(root, argument="seed=7")
    link = os.link

    def they_are_faster(source, target):
        monkeypatch.setattr(os, "link", link)
        theirs.create_or_check(other, ["theirs"])
        link(source, target)

    monkeypatch.setattr(os, "link", they_are_faster)
    with pytest.raises(InputError, match="holds a run of another configuration"):
        ours.create_or_check(tiny.config(root), ["ours"])
    ours.create_or_check(other, ["ours"])
    assert json.loads((ours.path / "config.json").read_text())["command"] == ["theirs"]
    assert sorted(path.name for path in ours.path.iterdir()) == ["checkpoints", "config.json"]


def test_a_file_system_without_locks_is_named_with_the_folder(root, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    folder.create_or_check(tiny.config(root), [])
    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK))
    refused = pytest.raises(InputError, match=rf"workdir={folder.path}: cannot be locked \({os.strerror(errno.ENOLCK)}\)")
    with refused, folder.locked():
        pass


def change_held_config(folder, change):
    path = folder.path / "config.json"
    held = json.loads(path.read_text())
    change(held["config"])
    path.write_text(json.dumps(held))


def test_a_field_that_was_added_since_has_its_default(root, tmp_path):
    folder, config = RunFolder(tmp_path / "run"), tiny.config(root)
    folder.create_or_check(config, [])
    change_held_config(folder, lambda held: [held["model"].pop(name) for name in ("product_dtype", "phase")])
    folder.check(config)
    config["model"]["product_dtype"] = "bfloat16"
    with pytest.raises(InputError, match=r"config\.model\.product_dtype is '' there, 'bfloat16' here"):
        folder.check(config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 7}, r"config\.seed is 7 there, 42 here"),
        ({"task_options": {"depth": 3}}, r"config\.task_options\.depth is 3 there, 10 here"),
        ({"task": "equal_repeats"}, r"config\.task is 'equal_repeats' there, 'dyck' here"),
        ({"model": {"widths": [4]}}, r"config\.json cannot be used \(config\.model\.widths: unknown; model has hidden, "),
        ({"model": 3}, r"config\.json cannot be used \('int' object is not iterable\)"),
    ],
    ids=["seed", "option", "task", "unknown field", "no section"],
)
def test_another_configuration_is_refused_by_its_field(root, tmp_path, change, message):
    folder, config = RunFolder(tmp_path / "run"), tiny.config(root, "dyck")
    folder.create_or_check(config, [])
    empty = {"task_options": {}} if "task" in change else {}
    change_held_config(folder, lambda held: held.update(change | empty))
    with pytest.raises(InputError, match=message):
        folder.check(config)


@pytest.mark.parametrize(
    ("overrides", "wrong"),
    [
        ({"seed": 43}, "seed=43"),
        ({"model__trace_widths": (8, 16, 8)}, "dc=16"),
        ({"model__inherit_phase": False}, "inherit=off"),
        ({"seed": 43, "model__inherit_phase": False}, "seed=43, inherit=off"),
    ],
)
def test_a_new_run_is_not_named_after_another(root, tmp_path, overrides, wrong):
    folder, config = RunFolder(tmp_path / "run"), tiny.config(root)
    name = config["name"]
    assert name == "most_freq-dc4-seed42"
    config = {**tiny.config(root, **overrides), "name": name}
    with pytest.raises(InputError, match=f"config.name='{name}': is not the name of a run with {wrong};"):
        folder.create_or_check(config, [])
    assert not folder.path.exists()
    folder.create_or_check({**config, "name": "mine"}, [])
