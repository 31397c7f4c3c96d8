"""Two virtual devices, so that what shards is tested sharded, and compilations made short and remembered for the session."""

import atexit
import importlib.metadata
import os
import pathlib
import shutil
import tempfile

import jax
import pytest

from tracerelay_jax import machine

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)

_ROOT = pathlib.Path(__file__).resolve().parent.parent

# Many tests start the same tiny run again: what was compiled once in this session is not compiled again.
_CACHE = tempfile.mkdtemp(prefix="tracerelay-tests-")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", _CACHE)
os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
os.environ["XDG_CACHE_HOME"] = _CACHE  # where programs in processes of their own keep what they compile
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

# Compilation is most of the work here, half of it optimisation that no result depends on but for rounding.
jax.config.update("jax_disable_most_optimizations", True)


def pytest_configure():
    """Programs in processes of their own must be of the code that the tests import."""
    if _ROOT in [pathlib.Path(path).resolve() for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]:
        return
    installed = pathlib.Path(importlib.metadata.distribution("tracerelay_jax").locate_file("tracerelay_jax"))
    if installed.is_dir() and machine.code(installed) != machine.code(_ROOT / "tracerelay_jax"):
        pytest.exit(f"{installed} is of other code than {_ROOT}: pip install -e '.[test]' to change and test it", 2)


@pytest.fixture
def optimized():
    """Compiles as users do, for tests of the very bits that come out."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(scope="session")
def root():
    """The root of the repository, found from this file and not from the working directory."""
    return _ROOT
