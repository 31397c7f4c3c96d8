"""What a result was measured on: versions, device, and the memory of this process."""

import importlib.metadata
import os
import pathlib
import platform
import resource
import sys
from typing import Any

import jax

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "tracerelay_jax")


def describe() -> dict[str, dict[str, Any]]:
    """The versions of Python and the packages, and the device with the machine around it."""
    return {
        "versions": {name: _version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "device": {"kind": jax.devices()[0].device_kind, "count": jax.device_count(), "machine": platform.machine(),
                   "processor": _processor(), "cores": os.cpu_count()},
    }  # fmt: skip


def peak_memory() -> int:
    """The most bytes of memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _version(package: str) -> str | None:
    """None for a package that is on the path but not installed, as this one may be: no reason to lose a run's result."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    info = pathlib.Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].partition(":")[2].strip() if names else platform.processor()
