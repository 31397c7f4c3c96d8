"""Two virtual devices, so that what shards is tested sharded, and a compilation cache that lives as long as the session."""

import atexit
import pathlib
import shutil
import tempfile

import jax
import pytest

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)

# Many tests start the same tiny run again: what was compiled once in this session is not compiled again.
_CACHE = tempfile.mkdtemp(prefix="tracerelay-tests-")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", _CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


@pytest.fixture
def root():
    """The root of the repository, found from this file and not from the working directory."""
    return pathlib.Path(__file__).resolve().parent.parent
