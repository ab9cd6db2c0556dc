"""Kernels of a client's own: what a library asks of them before it launches them, and how CUDA 13's compilers do."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from quiesce.simulator.runtime.ledger import Seen

INVALID_VALUE = 1
INVALID_DEVICE_FUNCTION = 98
KERNEL = ctypes.c_void_p(0x1234)


class Attributes(ctypes.Structure):
    _fields_ = (
        ("bytes", ctypes.c_size_t * 3),
        ("threads_per_block", ctypes.c_int),
        ("registers", ctypes.c_int),
        ("ptx_version", ctypes.c_int),
        ("binary_version", ctypes.c_int),
        ("more", ctypes.c_int * 3),
        ("clusters", ctypes.c_int * 6),
        ("reserved", ctypes.c_int * 16),
    )


class Dimensions(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


def attribute(client: Any, number: int) -> int:
    value = ctypes.c_int()
    client.ok("DeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


@pytest.mark.parametrize(("flavour", "cluster"), [("cuda:11", 77), ("cuda:13", 0)])
def test_a_kernel_is_made_for_the_device(flavour: str, cluster: int, start: Any) -> None:
    client, attributes = start(flavour), Attributes(clusters=(77,))
    client.ok("FuncGetAttributes", ctypes.byref(attributes), KERNEL)
    major, minor, threads = (attribute(client, number) for number in (75, 76, 1))
    assert attributes.ptx_version == attributes.binary_version == 10 * major + minor
    assert (attributes.threads_per_block, attributes.clusters[0]) == (threads, cluster)
    assert client.call("FuncGetAttributes", ctypes.byref(attributes), None) == INVALID_DEVICE_FUNCTION
    client.ok("FuncSetAttribute", KERNEL, 8, 65536)


def test_occupancy_is_what_fits_a_processor(start: Any) -> None:
    client, blocks = start("cuda:13"), ctypes.c_int()
    for threads, fitting in ((1, 32), (1000, 2), (1024, 2), (1025, 0)):
        client.ok("OccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), KERNEL, threads, 0)
        assert blocks.value == fitting
    refused = ("OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", ctypes.byref(blocks), KERNEL, 0, 0, 0)
    assert client.call(*refused) == INVALID_VALUE
    assert attribute(client, 39) == 2048


def test_a_launch_by_handle_is_a_launch(start: Any) -> None:
    client, kernel = start("cuda:13"), ctypes.c_void_p()
    ask, launch = (client.machine._library[name] for name in ("__cudaGetKernel", "__cudaLaunchKernel"))
    one = Dimensions(1, 1, 1)
    assert ask(ctypes.byref(kernel), KERNEL) == 0
    before = client.machine.ledger.launches
    assert launch(kernel, one, one, None, ctypes.c_size_t(0), None) == 0
    assert launch(kernel, Dimensions(0, 1, 1), one, None, ctypes.c_size_t(0), None) == INVALID_VALUE
    assert client.machine.ledger.launches == before + 1
    assert client.seen(Seen.NOT_SIMULATED) == []
