"""Devices that this machine does not have, as XLA's compilers know them: programs are compiled for them and not run."""

import importlib.util
import os

import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh

# From NVIDIA's data sheet and what CUDA reports for the device.
_H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 150000000000
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 }
device_description_str: "NVIDIA H200"
"""


def h200() -> Mesh:
    """Four NVIDIA H200 of one host; skips the test without JAX's CUDA plugin."""
    if not importlib.util.find_spec("jax_cuda13_plugin"):
        _missing("compiling for a GPU needs the extra `aot` (jax-cuda13-plugin)")
    return _mesh(topologies.get_topology_desc("h200", "cuda", topology="1x1x4", target_config=_H200))


def v5e() -> Mesh:
    """Four TPU v5e chips; skips the test without libtpu."""
    if not importlib.util.find_spec("libtpu"):
        _missing("compiling for a TPU needs the extra `aot` (libtpu)")
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # or libtpu asks the cloud which machine this is
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")  # pytest's processes compile at the same time
    return _mesh(topologies.get_topology_desc(topology_name="v5e:2x2", platform="tpu"))


def _missing(reason: str) -> None:
    if os.environ.get("REQUIRE_AOT"):
        pytest.fail(reason)
    pytest.skip(reason)


def _mesh(description) -> Mesh:
    return Mesh(np.array(description.devices).reshape(-1), ("data",), axis_types=(AxisType.Auto,))
