import os

import pytest

from tracerelay_jax import cli


@pytest.mark.parametrize(
    ("limits", "cores"), [("200000 100000", 2), ("150000 100000", 2), ("1000 100000", 1), ("max 100000", 4)]
)
def test_a_containers_share_of_the_cores_is_what_counts(tmp_path, monkeypatch, limits, cores):
    (tmp_path / "cpu.max").write_text(limits + "\n")
    monkeypatch.setattr(cli, "_LIMITS", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 4, 6}, raising=False)
    assert cli.available_cores() == [0, 2, 4, 6][:cores]
    (tmp_path / "cpu.max").unlink()
    assert cli.available_cores() == [0, 2, 4, 6]
