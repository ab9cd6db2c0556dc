"""Memory that captured calls allocate and free: a graph's own."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from quiesce.simulator.ledger import Seen, Thing

USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)


@pytest.fixture(params=["cuda:12", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any) -> Any:
    return start(request.param)


def attribute(client: Any, number: int) -> int:
    value = ctypes.c_uint64(99)
    client.ok("DeviceGetGraphMemAttribute", 0, number, ctypes.byref(value))
    return value.value


def capture(client: Any, *, frees: bool) -> tuple[int, int, int]:
    """Return a stream, a graph that allocates, fills and perhaps frees 64 KiB, and the address."""
    stream, graph = client.make("StreamCreate"), ctypes.c_void_p()
    client.ok("StreamBeginCapture", stream, 2)
    address = client.make("MallocAsync", 1 << 16, stream)
    client.ok("MemsetAsync", address, 7, 1 << 16, stream)
    if frees:
        client.ok("FreeAsync", address, stream)
    client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    return stream, graph.value or 0, address


def test_memory_that_a_graph_frees_is_kept_for_graphs_until_it_is_trimmed(client: Any) -> None:
    stream, graph, _ = capture(client, frees=True)
    count = ctypes.c_size_t()
    client.ok("GraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value == 3
    executable = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    for _ in range(3):
        client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)
    assert (attribute(client, USED), attribute(client, USED_HIGH)) == (0, 1 << 16)
    assert attribute(client, RESERVED) >= 1 << 16
    client.ok("DeviceGraphMemTrim", 0)
    assert (attribute(client, RESERVED), attribute(client, RESERVED_HIGH) >= 1 << 16) == (0, True)
    client.ok("DeviceSetGraphMemAttribute", 0, USED_HIGH, ctypes.byref(ctypes.c_uint64(0)))
    assert attribute(client, USED_HIGH) == 0
    assert client.call("DeviceSetGraphMemAttribute", 0, USED, ctypes.byref(ctypes.c_uint64(0))) == 1
    client.ok("GraphExecDestroy", executable)
    client.ok("GraphDestroy", graph)
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)
    assert not client.seen(Seen.USED_AFTER_FREE, Seen.FREED_TWICE, Seen.FREED_FOREIGN)


@pytest.mark.parametrize("how", ["Free", "FreeAsync"])
def test_memory_that_a_graph_leaves_is_the_clients_to_free(client: Any, how: str) -> None:
    stream, graph, address = capture(client, frees=False)
    executable = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    client.ok("GraphLaunch", executable, stream)
    client.ok("GraphExecDestroy", executable)
    client.ok("GraphDestroy", graph)
    assert client.machine.ledger.counted(Thing.DEVICE) == (1, 1 << 16), "it outlives its graph"
    client.ok("StreamSynchronize", stream)
    assert ctypes.string_at(address, 4) == b"\x07" * 4
    client.ok(how, address, *([stream] if how == "FreeAsync" else []))
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)


def test_a_second_launch_needs_the_first_ones_memory_back(client: Any) -> None:
    stream, graph, _ = capture(client, frees=False)
    frees = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(1))
    client.ok("GraphLaunch", frees, stream)
    client.ok("GraphLaunch", frees, stream)
    client.ok("GraphExecDestroy", frees)
    plain = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    assert client.call("GraphLaunch", plain, stream) == 1


def test_a_graph_with_memory_is_instantiated_once_at_a_time_and_not_cloned(client: Any) -> None:
    _, graph, _ = capture(client, frees=True)
    executable, other = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0)), ctypes.c_void_p()
    assert client.call("GraphInstantiateWithFlags", ctypes.byref(other), graph, ctypes.c_uint64(0)) == 1
    assert client.call("GraphClone", ctypes.byref(other), graph) == 1
    client.ok("GraphExecDestroy", executable)
    client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))


def test_a_second_launch_after_a_free_outside_fails_by_name(client: Any, capfd: pytest.CaptureFixture[str]) -> None:
    stream, graph, address = capture(client, frees=False)
    executable = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    client.ok("GraphLaunch", executable, stream)
    client.ok("FreeAsync", address, stream)
    assert client.call("GraphLaunch", executable, stream) == 801
    assert "free it inside the graph" in capfd.readouterr().err


def test_a_graph_that_was_never_launched_leaves_nothing(client: Any) -> None:
    _, graph, _ = capture(client, frees=False)
    executable = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    client.ok("GraphDestroy", graph)
    assert client.machine.ledger.counted(Thing.DEVICE)[0] == 1
    client.ok("GraphExecDestroy", executable)
    assert client.machine.ledger.counted(Thing.DEVICE)[0] == 0


def test_only_memory_of_graphs_is_freed_in_a_capture(client: Any) -> None:
    stream = client.make("StreamCreate")
    outside = client.make("MallocAsync", 64, stream)
    client.ok("StreamBeginCapture", stream, 2)
    assert client.call("FreeAsync", outside, stream) == 1


def test_memory_of_graphs_counts_against_the_device(start: Any) -> None:
    client = start("hip:7", capacity=1 << 20)
    stream, made = client.make("StreamCreate"), ctypes.c_void_p()
    client.ok("StreamBeginCapture", stream, 2)
    assert client.call("MallocAsync", ctypes.byref(made), ctypes.c_size_t(1 << 21), stream) == 2
    client.make("MallocAsync", 1 << 19, stream)
    client.ok("StreamEndCapture", stream, ctypes.byref(made))
    assert client.call("Malloc", ctypes.byref(made), ctypes.c_size_t((1 << 19) + 512)) == 2


def test_a_graph_leaves_alone_what_came_to_lie_where_its_memory_was(client: Any) -> None:
    """Its memory was freed outside before it was launched, and the address was given out again."""
    _, graph, address = capture(client, frees=False)
    client.ok("Free", address)
    other = client.make("Malloc", 1 << 16)
    assert other == address
    client.ok("GraphDestroy", graph)
    assert client.machine.ledger.counted(Thing.DEVICE) == (1, 1 << 16)
    client.ok("Free", other)
    assert not client.seen(Seen.FREED_TWICE, Seen.FREED_FOREIGN)
