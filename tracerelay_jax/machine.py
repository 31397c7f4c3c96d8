"""What a result was measured on: code, versions, device, and the memory of this process."""

import hashlib
import importlib.metadata
import os
import pathlib
import platform
import resource
import sys
from typing import Any

import jax

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "tracerelay_jax")


def describe() -> dict[str, Any]:
    """The code, the versions of Python and the packages, and the device with the machine around it."""
    return {
        "code": code(),
        "versions": {name: _version(name) for name in _PACKAGES} | {"python": platform.python_version()},
        "device": {"kind": jax.devices()[0].device_kind, "count": jax.device_count(), "machine": platform.machine(),
                   "processor": _processor(), "cores": os.cpu_count()},
    }  # fmt: skip


def code(package: pathlib.Path = pathlib.Path(__file__).parent) -> str:
    """Twelve digits that stand for the Python files of this package, of whatever version: other code, other digits."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


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
