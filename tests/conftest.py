"""Two virtual devices, so that every test also runs sharded; strict rank promotion; both set before JAX starts."""

import os

import jax
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "allow")


@pytest.fixture
def configs_dir():
    """The folder of the config files, found from this file and not from the working directory."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "configs")
