"""TensorBoard's events, with a stand-in for the writer's package, which is an extra."""

import sys
from unittest import mock

import pytest

from tracerelay_jax import InputError
from tracerelay_jax.training.tensorboard import tensorboard_writer


def test_numbers_are_written_and_those_after_the_checkpoint_dropped(tmp_path, monkeypatch):
    package = mock.Mock()
    monkeypatch.setitem(sys.modules, "tensorboardX", package)
    write = tensorboard_writer(tmp_path)
    write({"event": "train", "update": 300, "loss": 0.5})
    write({"event": "validation", "update": 500, "score": 0.25, "lengths": {"32": 0.25}})
    package.SummaryWriter.assert_called_once_with(str(tmp_path), purge_step=300)
    scalars = package.SummaryWriter.return_value.add_scalar.call_args_list
    assert scalars == [mock.call("train/loss", 0.5, 300), mock.call("validation/score", 0.25, 500)]


def test_without_the_extra_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(InputError, match="tensorboard=True: needs tensorboardX; pip install"):
        tensorboard_writer(tmp_path)
