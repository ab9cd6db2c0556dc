"""What is done with captured graphs beside launching them: clones, updates, types of nodes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from quiesce.simulator.runtime.ledger import Seen

UPDATE_FAILURE, TOPOLOGY_CHANGED, NODE_TYPE_CHANGED = 910, 2, 3


@pytest.fixture(params=["cuda:11", "cuda:12", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any) -> Any:
    return start(request.param)


def captured(client: Any, stream: int, *calls: Callable[[], None]) -> int:
    graph = ctypes.c_void_p()
    client.ok("StreamBeginCapture", stream, 2)
    for call in calls:
        call()
    client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    return graph.value or 0


def update(client: Any, executable: int, graph: int) -> tuple[int, int]:
    """Return what is answered, and the result that says why."""
    if client.machine.ledger.version >= 12:  # HIP has not come so far
        written = (ctypes.c_int * 6)(99)
        return client.call("GraphExecUpdate", executable, graph, written), written[0]
    node, result = ctypes.c_void_p(), ctypes.c_int(99)
    return client.call("GraphExecUpdate", executable, graph, ctypes.byref(node), ctypes.byref(result)), result.value


def test_a_clone_lives_on_without_its_original(client: Any) -> None:
    address, stream = client.make("Malloc", 8), client.make("StreamCreate")
    graph = captured(client, stream, lambda: client.ok("MemsetAsync", address, 5, 8, stream))
    clone = client.make("GraphClone", graph)
    client.ok("GraphDestroy", graph)
    executable = client.make("GraphInstantiateWithFlags", clone, ctypes.c_uint64(0))
    client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)
    assert ctypes.string_at(address, 1) == b"\5"
    assert client.call("GraphClone", ctypes.byref(ctypes.c_void_p()), graph) == 1


def test_an_update_changes_what_nodes_do_and_nothing_else(client: Any) -> None:
    address, stream = client.make("Malloc", 8), client.make("StreamCreate")

    def fill(value: int) -> Callable[[], None]:
        return lambda: client.ok("MemsetAsync", address, value, 8, stream)

    def copy() -> None:
        client.ok("MemcpyAsync", address, address + 4, 4, 3, stream)

    executable = client.make("GraphInstantiateWithFlags", captured(client, stream, fill(1)), ctypes.c_uint64(0))
    assert update(client, executable, captured(client, stream, fill(2))) == (0, 0)
    assert update(client, executable, captured(client, stream, fill(3), fill(4))) == (UPDATE_FAILURE, TOPOLOGY_CHANGED)
    assert update(client, executable, captured(client, stream, copy)) == (UPDATE_FAILURE, NODE_TYPE_CHANGED)
    client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)
    assert ctypes.string_at(address, 1) == b"\2", "what was refused changed nothing"


def test_nodes_tell_their_types(client: Any) -> None:
    address, stream = client.make("Malloc", 8), client.make("StreamCreate")
    graph = captured(
        client,
        stream,
        lambda: client.ok("MemsetAsync", address, 5, 8, stream),
        lambda: client.ok("MemcpyAsync", address, address + 4, 4, 3, stream),
    )
    nodes, count, kind = (ctypes.c_void_p * 2)(), ctypes.c_size_t(2), ctypes.c_int()
    client.ok("GraphGetNodes", graph, nodes, ctypes.byref(count))
    types = []
    for node in nodes:
        client.ok("GraphNodeGetType", node, ctypes.byref(kind))
        types.append(kind.value)
    assert types == [2, 1]
    assert client.call("GraphNodeGetType", address, ctypes.byref(kind)) == 1


@pytest.mark.parametrize("use", ["fill", "copy to", "copy from"])
def test_a_graph_that_uses_what_was_freed_since_is_accused(client: Any, use: str) -> None:
    address, other, stream = client.make("Malloc", 8), client.make("Malloc", 8), client.make("StreamCreate")
    calls: dict[str, Callable[[], None]] = {
        "fill": lambda: client.ok("MemsetAsync", address, 1, 8, stream),
        "copy to": lambda: client.ok("MemcpyAsync", address, other, 8, 3, stream),
        "copy from": lambda: client.ok("MemcpyAsync", other, address, 8, 3, stream),
    }
    executable = client.make("GraphInstantiateWithFlags", captured(client, stream, calls[use]), ctypes.c_uint64(0))
    client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)
    assert not client.seen(Seen.USED_AFTER_FREE)
    client.ok("Free", address)
    client.ok("GraphLaunch", executable, stream)
    assert [record.address for record in client.seen(Seen.USED_AFTER_FREE)] == [address]


def test_memory_of_a_graph_may_be_freed_between_its_launches(start: Any) -> None:
    client = start("cuda:12")
    stream, address = client.make("StreamCreateWithFlags", 1), ctypes.c_void_p()

    def work() -> None:
        client.ok("MallocAsync", ctypes.byref(address), ctypes.c_uint64(64), stream)
        client.ok("MemsetAsync", address.value, 7, 64, stream)
        client.ok("FreeAsync", address.value, stream)

    executable = client.make("GraphInstantiateWithFlags", captured(client, stream, work), ctypes.c_uint64(0))
    for _ in range(3):
        client.ok("GraphLaunch", executable, stream)
        client.ok("StreamSynchronize", stream)
    assert not client.seen(Seen.USED_AFTER_FREE)


def neighbours(client: Any, node: int, after: bool, room: int) -> list[int]:
    """Return what comes directly after a node, or before it, as the runtime writes it into room for so many."""
    name = f"GraphNodeGet{'DependentNodes' if after else 'Dependencies'}"
    count, found = ctypes.c_size_t(), (ctypes.c_uint64 * 4)(*[9] * 4)
    data = [ctypes.byref((ctypes.c_uint64 * 4)())] if client.machine.ledger.version >= 13 else []
    nothing = [None] * len(data)
    client.ok(name, node, None, *nothing, ctypes.byref(count))
    least = count.value
    count.value = room
    client.ok(name, node, found, *data, ctypes.byref(count))
    assert count.value == min(least, room)
    return list(found)[:room]


@pytest.mark.parametrize("flavour", ["cuda:12", "cuda:13"])
def test_nodes_tell_what_comes_before_and_after_them(flavour: str, start: Any) -> None:
    client = start(flavour)
    address, stream, other = client.make("Malloc", 8), client.make("StreamCreate"), client.make("StreamCreate")
    forked, joined = client.make("EventCreate"), client.make("EventCreate")

    def fill(on: int) -> None:
        client.ok("MemsetAsync", address, 5, 8, on)

    def work() -> None:  # 0, then 1 next to 2, then 3
        fill(stream)
        client.ok("EventRecord", forked, stream)
        client.ok("StreamWaitEvent", other, forked, 0)
        fill(stream)
        fill(other)
        client.ok("EventRecord", joined, other)
        client.ok("StreamWaitEvent", stream, joined, 0)
        fill(stream)

    graph = captured(client, stream, work)
    clone = client.make("GraphClone", graph)
    for each in (graph, clone):
        nodes, count = (ctypes.c_uint64 * 4)(), ctypes.c_size_t(4)
        client.ok("GraphGetNodes", each, nodes, ctypes.byref(count))
        first, second, third, last = nodes
        assert neighbours(client, first, after=True, room=2) == [second, third]
        assert neighbours(client, first, after=True, room=1) == [second]
        assert neighbours(client, second, after=True, room=2) == [last, 0]
        assert neighbours(client, last, after=True, room=1) == [0]
        assert sorted(neighbours(client, last, after=False, room=2)) == sorted([second, third])
        assert neighbours(client, first, after=False, room=1) == [0]
    gone = client.make("GraphClone", graph)
    client.ok("GraphGetNodes", gone, nodes, ctypes.byref(count))
    client.ok("GraphDestroy", gone)
    assert client.call("GraphNodeGetDependentNodes", nodes[0], None, None, ctypes.byref(count)) == 1


@pytest.mark.parametrize("joined", [True, False])
def test_a_stream_that_joined_a_capture_may_be_destroyed_in_it(client: Any, joined: bool) -> None:
    """NVIDIA's sample graphMemoryNodes does so."""
    address, stream, other = client.make("Malloc", 8), client.make("StreamCreate"), client.make("StreamCreate")
    forked, join, graph = client.make("EventCreate"), client.make("EventCreate"), ctypes.c_void_p()
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("EventRecord", forked, stream)
    client.ok("StreamWaitEvent", other, forked, 0)
    client.ok("MemsetAsync", address, 5, 8, other)
    client.ok("EventRecord", join, other)
    if joined:
        client.ok("StreamWaitEvent", stream, join, 0)
    client.ok("StreamDestroy", other)
    assert client.call("StreamEndCapture", stream, ctypes.byref(graph)) == (0 if joined else 904)
    if joined:
        client.ok("GraphLaunch", client.make("GraphInstantiateWithFlags", graph.value, ctypes.c_uint64(0)), stream)
        client.ok("StreamSynchronize", stream)
        assert ctypes.string_at(address, 1) == b"\5"
