"""What a capture in progress says of itself: its graph, and what the next node of a stream depends on."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, Start

NONE, ACTIVE, INVALIDATED = 0, 1, 2
FORMS: Final = {
    "cuda:11": "StreamGetCaptureInfo_v2",
    "cuda:12": "StreamGetCaptureInfo_v3",
    "cuda:13": "StreamGetCaptureInfo",
    "hip:5": "StreamGetCaptureInfo_v2",
    "hip:7": "StreamGetCaptureInfo_v2",
}
"""The last form that each has. From the third on, it tells of edges too."""


class Information:
    """All that a capture says of one of its streams."""

    def __init__(self, client: Client, flavour: str, stream: int) -> None:
        state, number, graph = ctypes.c_int(99), ctypes.c_uint64(99), ctypes.c_void_p(99)
        nodes, edges, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_void_p(99), ctypes.c_size_t(99)
        tells_edges = flavour in ("cuda:12", "cuda:13")
        places: list[Any] = [state, number, graph, nodes, *([edges] if tells_edges else []), count]
        client.ok(FORMS[flavour], stream, *map(ctypes.byref, places))
        self.state, self.number, self.graph = state.value, number.value, graph.value
        self.dependencies = {nodes[i] for i in range(count.value)}
        assert len(self.dependencies) == count.value
        if tells_edges and count.value:
            assert not any(ctypes.string_at(edges.value or 0, 8 * count.value)), "edges are plain ones"


@pytest.fixture(params=list(FORMS))
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def nodes_of(client: Client, graph: int | None) -> list[int]:
    nodes, count = (ctypes.c_void_p * 64)(), ctypes.c_size_t(64)
    client.ok("GraphGetNodes", graph, nodes, ctypes.byref(count))
    return [node or 0 for node in nodes[: count.value]]


def test_a_stream_that_captures_nothing_has_no_graph(start: Start, flavour: str) -> None:
    client = start(flavour)
    said = Information(client, flavour, client.make("StreamCreate"))
    assert (said.state, said.number, said.graph, said.dependencies) == (NONE, 0, None, set())


def test_dependencies_are_the_last_nodes_of_what_was_waited_for(start: Start, flavour: str) -> None:
    client = start(flavour)
    streams, event = [client.make("StreamCreate") for _ in range(3)], client.make("EventCreate")
    block = client.make("Malloc", 8)

    def fill(stream: int) -> None:
        client.ok("MemsetAsync", block, 1, 8, stream)

    def wait(waiting: int, for_: int) -> None:
        client.ok("EventRecord", event, for_)
        client.ok("StreamWaitEvent", waiting, event, 0)

    def ask(stream: int) -> Information:
        return Information(client, flavour, stream)

    first, second, third = streams
    client.ok("StreamBeginCapture", first, 2)
    graph = ask(first).graph
    assert ask(first).dependencies == set()
    assert nodes_of(client, graph) == []
    fill(first)
    fill(first)
    (_, two) = nodes_of(client, graph)
    assert ask(first).dependencies == {two}
    wait(second, first)
    assert ask(second).dependencies == {two}
    fill(second)
    (*_, three) = nodes_of(client, graph)
    assert (ask(first).dependencies, ask(second).dependencies) == ({two}, {three})
    wait(third, second)
    assert ask(third).dependencies == {three}, "what that depends on itself is none of its own"
    fill(first)
    (*_, four) = nodes_of(client, graph)
    wait(third, first)
    assert ask(third).dependencies == {three, four}
    wait(first, third)
    assert ask(first).dependencies == {three, four}
    assert {ask(stream).graph for stream in streams} == {graph}
    assert {(ask(stream).state, ask(stream).number) for stream in streams} == {(ACTIVE, 1)}
    made = ctypes.c_void_p()
    client.ok("StreamEndCapture", first, ctypes.byref(made))
    assert made.value == graph
    assert len(nodes_of(client, graph)) == 4


def test_an_invalid_capture_says_that_and_nothing_else(start: Start, flavour: str) -> None:
    client = start(flavour)
    stream = client.make("StreamCreate")
    client.ok("StreamBeginCapture", stream, 0)
    assert client.call("StreamSynchronize", stream) == 900
    said = Information(client, flavour, stream)
    assert (said.state, said.graph, said.dependencies) == (INVALIDATED, None, set())


def test_the_graph_of_a_capture_can_be_copied_and_instantiated(start: Start) -> None:
    client = start()
    stream, other, block = client.make("StreamCreate"), client.make("StreamCreate"), client.make("Malloc", 8)
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("MemsetAsync", block, 7, 8, stream)
    executable = client.make("GraphInstantiateWithFlags", Information(client, "cuda:12", stream).graph, 0)
    client.ok("GraphLaunch", executable, other)
    client.ok("StreamSynchronize", other)
    assert ctypes.string_at(block, 1) == b"\7"
    client.ok("StreamEndCapture", stream, ctypes.byref(ctypes.c_void_p()))


@pytest.mark.parametrize("flavour_", ["cuda:11", "cuda:12"])
def test_the_oldest_form_takes_three_arguments(start: Start, flavour_: str) -> None:
    client = start(flavour_)
    stream, state, number = client.make("StreamCreate"), ctypes.c_int(), ctypes.c_uint64()
    untouched = ctypes.c_void_p(99)
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("StreamGetCaptureInfo", stream, ctypes.byref(state), ctypes.byref(number), ctypes.byref(untouched))
    assert (state.value, number.value, untouched.value) == (ACTIVE, 1, 99)


@pytest.mark.parametrize(("flavour_", "form"), [("cuda:12", "_v2"), ("cuda:13", "_v3")])
def test_the_driver_hands_out_the_form_that_its_headers_mean(start: Start, flavour_: str, form: str) -> None:
    client = start(flavour_)
    found, result = ctypes.c_void_p(), ctypes.c_int(99)
    client.ok(
        "GetDriverEntryPoint", b"cuStreamGetCaptureInfo", ctypes.byref(found), ctypes.c_uint64(0), ctypes.byref(result)
    )
    wanted = getattr(client.machine.library, f"cuStreamGetCaptureInfo{form}")
    assert found.value == ctypes.cast(wanted, ctypes.c_void_p).value
