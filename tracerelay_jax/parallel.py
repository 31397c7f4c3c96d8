"""A batch over devices, and over slices small enough to stay in a CPU's cache."""

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from tracerelay_jax.errors import InputError

# Positions that a CPU works on at a time: enough to keep it busy, few enough to stay in its cache.
_CPU_SLICE_POSITIONS = 530
# Groups of rows that a CPU sums apart: as many devices, or fewer that divide them, add up to the same bits.
_CPU_GROUPS = 8


def data_mesh(rows: int, devices: Sequence[jax.Device] = ()) -> Mesh:
    """A mesh with the axis `data` over as many of the devices, by default the local ones, as divide `rows` evenly.

    One process takes up to eight of a CPU's, for with more the order of sums would depend on their number.

    Raises:
      InputError: if a process would be left without a device, and so wait for ever.
    """
    devices = devices or jax.local_devices()
    if devices[0].platform == "cpu" and len({device.process_index for device in devices}) == 1:
        devices = devices[:_CPU_GROUPS]
    count = max(n for n in range(1, len(devices) + 1) if rows % n == 0)
    processes = [len({device.process_index for device in some}) for some in (devices, devices[:count])]
    if processes[0] != processes[1]:
        raise InputError(f"batch_size={rows}: must divide among all {processes[0]} processes, of {len(devices)} devices")
    return jax.make_mesh((count,), ("data",), axis_types=(AxisType.Auto,), devices=devices[:count])


def replicated(mesh: Mesh) -> NamedSharding:
    """The sharding of what every device of the mesh holds whole."""
    return NamedSharding(mesh, PartitionSpec())


def slice_rows(rows: int, positions: int, platform: str) -> int:
    """Rows of a slice: all of them on an accelerator, on a CPU the divisor of `rows` that fits its cache."""
    if platform != "cpu":
        return rows
    wanted = max(_CPU_SLICE_POSITIONS // positions, 1)
    return max(n for n in range(1, min(wanted, rows) + 1) if rows % n == 0)


def sum_over_rows(function: Callable, mesh: Mesh) -> Callable:
    """Sums a function of a few rows over all rows of a batch, spread over the mesh and taken slice by slice.

    Args:
      function: (replicated, rows) -> a tree of sums over the rows; `rows` a tree of (b, T, ...) arrays.
      mesh: with the axis `data`.

    Returns:
      (replicated, batch) -> the tree of sums over the batch. Rows are summed in groups and the groups in their order, so
      on 1, 2, 4 or 8 CPU devices the order of sums is the same.
    """
    function = jax.jit(function)  # traced once for its two uses below

    def sum_of_group(replicated, group):
        slices = _slices(group, mesh)
        shapes = jax.eval_shape(function, replicated, jax.tree.map(lambda x: x[0], slices))
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return jax.lax.scan(lambda sums, rows: (_add(sums, function(replicated, rows)), None), zeros, slices)[0]

    def on_device(replicated, batch):
        sums = jax.lax.map(lambda group: sum_of_group(replicated, group), _groups(batch, mesh))
        if mesh.size > 1:
            sums = jax.lax.all_gather(sums, "data", tiled=True)
        return jax.tree.map(lambda x: functools.reduce(jnp.add, x), sums)

    if mesh.size == 1:
        return on_device  # which may then be mapped over seeds on other devices
    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec("data")),
        out_specs=PartitionSpec(),
        check_vma=False,
    )


def map_over_rows(function: Callable, mesh: Mesh) -> Callable:
    """As `sum_over_rows`, for a function whose results have the rows as their first axis; they are put together again."""

    def on_device(replicated, batch):
        out = jax.lax.map(lambda rows: function(replicated, rows), _slices(batch, mesh))
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), out)

    rows = PartitionSpec("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(PartitionSpec(), rows), out_specs=rows, check_vma=False)


def _groups(batch, mesh: Mesh):
    """This device's share of the groups."""
    rows = jax.tree.leaves(batch)[0].shape[0]
    devices, platform = mesh.devices.size, mesh.devices.flat[0].platform
    groups = math.lcm(devices, math.gcd(devices * rows, _CPU_GROUPS)) if platform == "cpu" else devices
    return _split(batch, groups // devices)


def _slices(batch, mesh: Mesh):
    rows, positions = jax.tree.leaves(batch)[0].shape[:2]
    return _split(batch, rows // slice_rows(rows, positions, mesh.devices.flat[0].platform))


def _split(batch, parts: int):
    return jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), batch)


def _add(a, b):
    return jax.tree.map(jnp.add, a, b)
