"""Graphs that are captured and built: captures go on behind nodes that were added."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from tests.simulator.graph_programs import BYTES, Graph, bytes_at, launch, rules


@pytest.fixture(params=["cuda:11", "cuda:12", "cuda:13", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any) -> Any:
    return start(request.param)


def test_captured_and_added_nodes_are_of_one_graph(client: Any) -> None:
    address, stream = client.make("Malloc", BYTES), client.make("StreamCreate")
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("MemsetAsync", address, 1, BYTES, stream)
    graph = Graph(client)
    made = ctypes.c_void_p()
    client.ok("StreamEndCapture", stream, ctypes.byref(made))
    graph.handle = made.value or 0
    (captured,) = graph.nodes()
    added = graph.fill(address, 2, captured)
    assert graph.edges() == [(captured, added)]
    launch(client, graph.instantiate(), stream)
    assert bytes_at(address) == b"\2"


def capturing(client: Any, stream: int) -> Graph:
    """Return the graph that a stream captures into."""
    graph, state, number, found = Graph(client), ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    name = "StreamGetCaptureInfo_v2"
    client.ok(name, stream, ctypes.byref(state), ctypes.byref(number), ctypes.byref(found), None, None)
    client.ok("GraphDestroy", graph.handle)
    graph.handle = found.value or 0
    return graph


def depend(client: Any, stream: int, *nodes: int, alone: bool) -> int:
    data = [None] if client.machine.ledger.version == 13 else []
    wanted, count = (ctypes.c_void_p * len(nodes))(*nodes), ctypes.c_size_t(len(nodes))
    answer = client.call("StreamUpdateCaptureDependencies", stream, wanted, *data, count, int(alone))
    assert isinstance(answer, int)
    return answer


def test_nodes_that_a_capture_depends_on_are_known_without_its_graph(client: Any) -> None:
    """As Warp asks for the node of an allocation: it names no place for the graph."""
    stream, address = client.make("StreamCreate"), ctypes.c_void_p()
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("MallocAsync", ctypes.byref(address), ctypes.c_size_t(BYTES), stream)
    state, nodes, count, kind = ctypes.c_int(), ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t(), ctypes.c_int()
    client.ok(
        "StreamGetCaptureInfo_v2", stream, ctypes.byref(state), None, None, ctypes.byref(nodes), ctypes.byref(count)
    )
    assert count.value == 1
    client.ok("GraphNodeGetType", nodes[0], ctypes.byref(kind))
    assert kind.value == 10
    made = ctypes.c_void_p()
    client.ok("StreamEndCapture", stream, ctypes.byref(made))


@pytest.mark.parametrize("alone", [False, True])
def test_a_capture_goes_on_behind_a_node_that_was_added(client: Any, alone: bool) -> None:
    address, stream, made = client.make("Malloc", BYTES), client.make("StreamCreate"), ctypes.c_void_p()
    assert depend(client, stream, alone=alone) == 401
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("MemsetAsync", address, 1, BYTES, stream)
    graph = capturing(client, stream)
    (first,) = graph.nodes()
    added = graph.fill(address, 2, first)
    assert depend(client, stream, added, alone=alone) == 0
    client.ok("MemsetAsync", address, 3, 1, stream)
    last = graph.nodes()[-1]
    assert set(graph.edges()) == {(first, added), (added, last)} | ({(first, last)} if not alone else set())
    for _ in range(70):  # more than there are streams in a capture
        added = graph.fill(address, 2, last)
        assert depend(client, stream, added, alone=True) == 0
        client.ok("MemsetAsync", address, 3, 1, stream)
        last = newest(graph)
    client.ok("StreamEndCapture", stream, ctypes.byref(made))
    launch(client, client.make("GraphInstantiateWithFlags", made.value, ctypes.c_uint64(0)), stream)
    assert ctypes.string_at(address, 2) == b"\3\2"
    assert rules(client) == []


def test_a_stream_captures_into_a_graph_that_is_there(client: Any) -> None:
    address, stream, made = client.make("Malloc", BYTES), client.make("StreamCreate"), ctypes.c_void_p()
    graph, other = Graph(client), Graph(client)
    first = graph.fill(address, 1)
    before = (ctypes.c_void_p * 1)(first)
    for _ in range(2):
        client.ok("StreamBeginCaptureToGraph", stream, graph.handle, before, None, ctypes.c_size_t(1), 2)
        client.ok("MemsetAsync", address, 2, 1, stream)
        client.ok("StreamEndCapture", stream, ctypes.byref(made))
        assert made.value == graph.handle
        before[0] = newest(graph)
    _, second, third = graph.nodes()
    assert graph.edges() == [(first, second), (second, third)]
    name = "StreamBeginCaptureToGraph"
    assert client.call(name, stream, other.handle, before, None, ctypes.c_size_t(1), 2) == 1
    launch(client, graph.instantiate(), stream)
    assert ctypes.string_at(address, 2) == b"\2\1"
    client.ok("GraphDestroy", graph.handle)


def newest(graph: Graph) -> int:
    nodes, count = (ctypes.c_uint64 * 256)(), ctypes.c_size_t(256)
    graph.client.ok("GraphGetNodes", graph.handle, nodes, ctypes.byref(count))
    return nodes[count.value - 1]


def test_an_event_outside_of_a_capture_is_recorded_by_each_launch(client: Any) -> None:
    address, stream, made = client.make("Malloc", BYTES), client.make("StreamCreate"), ctypes.c_void_p()
    other, event = client.make("StreamCreateWithFlags", 1), client.make("EventCreate")
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("MemsetAsync", address, 1, BYTES, stream)
    client.ok("EventRecordWithFlags", event, stream, 1)
    client.ok("StreamEndCapture", stream, ctypes.byref(made))
    client.ok("GraphLaunch", client.make("GraphInstantiateWithFlags", made.value, ctypes.c_uint64(0)), stream)
    client.ok("StreamWaitEvent", other, event, 0)
    client.ok("MemsetAsync", address, 2, BYTES, other)
    assert rules(client) == []
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("StreamWaitEvent", stream, event, 1)
    client.ok("MemsetAsync", address, 3, BYTES, stream)
    client.ok("StreamEndCapture", stream, ctypes.byref(made))
    client.ok("EventRecord", event, other)
    client.ok("GraphLaunch", client.make("GraphInstantiateWithFlags", made.value, ctypes.c_uint64(0)), stream)
    assert rules(client) == []
