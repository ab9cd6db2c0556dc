"""Kernels as nodes of graphs, which compute: their arguments, and what nothing orders."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import ADD, Device, pointers_to

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

COUNT: Final = 4


class Kernel(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS``, of CUDA 12."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class Graph:
    """A graph of the driver's with kernels."""

    def __init__(self, device: Device) -> None:
        self.driver = device.driver
        self.function = device.kernel(ADD, "add")
        self.handle = ctypes.c_void_p()
        assert self.driver.cuGraphCreate(ctypes.byref(self.handle), 0) == 0

    def parameters(self, address: int, value: int) -> Kernel:
        values = [ctypes.c_uint64(address), ctypes.c_uint32(value), ctypes.c_uint32(COUNT)]
        pointers = pointers_to(values)
        made = Kernel(function=self.function, arguments=ctypes.addressof(pointers))
        made.grid[:], made.block[:] = (1, 1, 1), (COUNT, 1, 1)
        made.kept = pointers
        return made

    def add(self, address: int, value: int, *before: ctypes.c_void_p) -> ctypes.c_void_p:
        node, nodes = ctypes.c_void_p(), (ctypes.c_void_p * len(before))(*before)
        wanted, count = self.parameters(address, value), ctypes.c_size_t(len(before))
        made = self.driver.cuGraphAddKernelNode_v2(ctypes.byref(node), self.handle, nodes, count, ctypes.byref(wanted))
        assert made == 0
        return node

    def instantiate(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        assert self.driver.cuGraphInstantiateWithFlags(ctypes.byref(made), self.handle, ctypes.c_uint64(0)) == 0
        return made

    def launch(self, executable: ctypes.c_void_p) -> None:
        assert self.driver.cuGraphLaunch(executable, None) == 0
        assert self.driver.cuCtxSynchronize() == 0


@pytest.fixture
def device(checked: Callable[..., Checked]) -> Checked:
    return checked()


def test_arguments_of_a_node_are_its_own(device: Checked) -> None:
    address, graph = device.words(*[1] * COUNT), Graph(device)
    node = graph.add(address, 5)
    executable = graph.instantiate()
    graph.launch(executable)
    assert device.read(address, COUNT) == [6] * COUNT
    wanted = ctypes.byref(graph.parameters(address, 10))
    assert graph.driver.cuGraphExecKernelNodeSetParams_v2(executable, node, wanted) == 0
    graph.launch(executable)
    assert device.read(address, COUNT) == [16] * COUNT
    graph.launch(graph.instantiate())
    assert device.read(address, COUNT) == [21] * COUNT
    assert device.rules() == []


def test_arguments_can_be_read_changed_and_written_back(device: Checked) -> None:
    address, graph = device.words(*[1] * COUNT), Graph(device)
    node, told = graph.add(address, 5), Kernel()
    assert graph.driver.cuGraphKernelNodeGetParams_v2(node, ctypes.byref(told)) == 0
    assert (told.function, list(told.block)) == (graph.function.value, [COUNT, 1, 1])
    pointers = ctypes.cast(told.arguments, ctypes.POINTER(ctypes.c_void_p))
    value = ctypes.cast(pointers[1], ctypes.POINTER(ctypes.c_uint32))
    assert value[0] == 5
    value[0] = 7
    assert graph.driver.cuGraphKernelNodeSetParams_v2(node, ctypes.byref(told)) == 0
    graph.launch(graph.instantiate())
    assert device.read(address, COUNT) == [8] * COUNT


def test_a_captured_kernel_can_be_read_and_changed(device: Checked) -> None:
    address, graph, stream = device.words(*[1] * COUNT), Graph(device), device.client.make("StreamCreate")
    device.client.ok("StreamBeginCapture", stream, 2)
    device.ok(graph.function, 1, COUNT, address, 5, COUNT, stream=stream)
    device.client.ok("StreamEndCapture", stream, ctypes.byref(graph.handle))
    nodes, count, told = (ctypes.c_void_p * 1)(), ctypes.c_size_t(1), Kernel()
    assert graph.driver.cuGraphGetNodes(graph.handle, nodes, ctypes.byref(count)) == 0
    assert graph.driver.cuGraphKernelNodeGetParams_v2(ctypes.c_void_p(nodes[0]), ctypes.byref(told)) == 0
    pointers = ctypes.cast(told.arguments, ctypes.POINTER(ctypes.c_void_p))
    assert ctypes.cast(pointers[0], ctypes.POINTER(ctypes.c_uint64))[0] == address
    executable = graph.instantiate()
    wanted = ctypes.byref(graph.parameters(address, 9))
    assert graph.driver.cuGraphExecKernelNodeSetParams_v2(executable, ctypes.c_void_p(nodes[0]), wanted) == 0
    graph.launch(executable)
    assert device.read(address, COUNT) == [10] * COUNT


@pytest.mark.parametrize("ordered", [True, False])
def test_kernels_on_branches_race(device: Checked, ordered: bool) -> None:
    address, graph = device.words(*[1] * COUNT), Graph(device)
    first = graph.add(address, 5)
    graph.add(address, 5, *[first] * ordered)
    graph.launch(graph.instantiate())
    found: Any = device.findings()
    assert [finding.rule for finding in found] == ["conflicting_uses_are_ordered"] * (not ordered)
    for finding in found:
        calls = [site.call for site in finding.call_sites]
        assert calls[-2:] == ["cuGraphAddKernelNode_v2"] * 2


@pytest.mark.parametrize("fault", [False, True])
def test_a_kernel_that_outlives_its_buffer_is_found(device: Checked, fault: bool) -> None:
    address, graph = device.words(*[1] * COUNT), Graph(device)
    graph.add(address, 5)
    executable = graph.instantiate()
    if fault:
        device.client.ok("Free", address)
    graph.driver.cuGraphLaunch(executable, None)
    found: Any = device.findings()
    assert {finding.rule for finding in found} == ({"kernels_use_live_memory"} if fault else set())
    assert all("cuGraphAddKernelNode_v2" in [site.call for site in finding.call_sites] for finding in found)
