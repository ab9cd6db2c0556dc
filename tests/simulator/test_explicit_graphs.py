"""Graphs that are built node by node: what their nodes do, and in which order."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from tests.simulator.graph_programs import (
    BYTES,
    COPY,
    EMPTY,
    FILL,
    HOST,
    NOT_SUPPORTED,
    Graph,
    Memset,
    Other,
    bytes_at,
    fill_of,
    launch,
    rules,
)

from quiesce.simulator.runtime.ledger import Seen


@pytest.fixture(params=["cuda:11", "cuda:12", "cuda:13", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any) -> Any:
    return start(request.param)


# -- order -----------------------------------------------------------------------------------------------------------


def test_edges_decide_the_order_whenever_nodes_were_added(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    last, first, middle = (graph.fill(address, value) for value in (3, 1, 2))
    assert graph.connect((first, middle), (middle, last)) == 0
    assert graph.nodes() == [last, first, middle]
    assert graph.nodes("RootNodes") == [first]
    assert graph.edges() == [(first, middle), (middle, last)]
    assert graph.connect((first, middle)) == 1, "it is there"
    launch(client, graph.instantiate())
    assert bytes_at(address) == b"\3"
    assert graph.connect((first, middle), (middle, last), how="Remove") == 0
    assert graph.connect((first, middle), how="Remove") == 1
    assert graph.connect((last, middle), (middle, first)) == 0
    launch(client, graph.instantiate())
    assert bytes_at(address) == b"\1"


def test_a_circle_is_not_instantiated(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    one = graph.fill(address, 1)
    other = graph.fill(address, 2, one)
    assert graph.connect((other, one)) == 0
    made = ctypes.c_void_p()
    assert client.call("GraphInstantiateWithFlags", ctypes.byref(made), graph.handle, ctypes.c_uint64(0)) == 1
    assert graph.connect((one, one)) == 1


def test_a_node_that_is_destroyed_takes_its_edges_along(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    first = graph.fill(address, 1)
    second = graph.fill(address, 2, first)
    third = graph.fill(address, 3, first, second)
    client.ok("GraphDestroyNode", second)
    assert (graph.nodes(), graph.edges()) == ([first, third], [(first, third)])
    assert client.call("GraphDestroyNode", second) == 1
    fourth = graph.fill(address, 4, third)
    assert graph.edges() == [(first, third), (third, fourth)]


def test_another_graphs_nodes_are_no_dependencies(client: Any) -> None:
    address, graph, other = client.make("Malloc", BYTES), Graph(client), Graph(client)
    foreign = other.fill(address, 1)
    own = graph.fill(address, 1)
    wanted = ctypes.byref(fill_of(client, address, 2))
    assert graph.refuses("MemsetNode", [foreign], wanted) == 1
    assert graph.refuses("MemsetNode", [own, own], wanted) == 1
    assert (graph.nodes(), graph.edges()) == ([own], [])


# -- what nodes do ---------------------------------------------------------------------------------------------------


def test_nodes_copy_fill_and_call(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    source, target = ctypes.create_string_buffer(b"\7" * BYTES, BYTES), ctypes.create_string_buffer(BYTES)
    called: list[int] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
    host = (ctypes.c_void_p * 2)(ctypes.cast(function, ctypes.c_void_p), 5)
    begin = graph.add("EmptyNode", [])
    copied = graph.copy(address, source, begin)
    back = graph.copy(target, address, copied)
    last = graph.add("HostNode", [back], ctypes.byref(host))
    kind = ctypes.c_int()
    kinds = []
    for node in (begin, copied, back, last):
        client.ok("GraphNodeGetType", node, ctypes.byref(kind))
        kinds.append(kind.value)
    assert kinds == [EMPTY, COPY, COPY, HOST]
    executable = graph.instantiate()
    assert (target[0], called) == (b"\0", [])
    launch(client, executable)
    assert (target[0], called) == (b"\7", [5])
    told = (ctypes.c_void_p * 2)()
    client.ok("GraphHostNodeGetParams", last, told)
    assert list(told) == list(host)


def test_a_child_graph_is_a_copy_of_what_it_was(client: Any) -> None:
    address, inner, outer = client.make("Malloc", BYTES), Graph(client), Graph(client)
    inner.fill(address, 1)
    child = outer.add("ChildGraphNode", [], inner.handle)
    inner.fill(address, 9, *inner.nodes())
    outer.fill(address, 2, child, size_bytes=1)
    executable = outer.instantiate()
    launch(client, executable)
    assert ctypes.string_at(address, 2) == b"\2\1"
    shown = ctypes.c_void_p()
    client.ok("GraphChildGraphNodeGetGraph", child, ctypes.byref(shown))
    assert client.call("GraphDestroy", shown.value) == 401, "it is the node's"
    outer_handle, inner.handle = outer.handle, shown.value or 0
    (filled,) = inner.nodes()
    client.ok("GraphMemsetNodeSetParams", filled, ctypes.byref(fill_of(client, address, 7)))
    launch(client, executable)
    assert ctypes.string_at(address, 2) == b"\2\1"
    launch(client, outer.instantiate())
    assert ctypes.string_at(address, 2) == b"\2\7"
    client.ok("GraphDestroy", outer_handle)
    assert client.call("GraphGetNodes", shown.value, None, ctypes.byref(ctypes.c_size_t())) == 1


def test_a_child_graph_of_an_executable_one_is_changed_to_one_like_it(client: Any) -> None:
    address, inner, outer = client.make("Malloc", BYTES), Graph(client), Graph(client)
    inner.fill(address, 1)
    child = outer.add("ChildGraphNode", [], inner.handle)
    executable, other = outer.instantiate(), Graph(client)
    other.fill(address, 2)
    client.ok("GraphExecChildGraphNodeSetParams", executable, child, other.handle)
    launch(client, executable)
    assert bytes_at(address) == b"\2"
    other.add("EmptyNode", [])
    assert client.call("GraphExecChildGraphNodeSetParams", executable, child, other.handle) == 1


def test_events_in_graphs_are_recorded_and_awaited(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    event, stream = client.make("EventCreate"), client.make("StreamCreateWithFlags", 1)
    filled = graph.fill(address, 1)
    recorded = graph.add("EventRecordNode", [filled], event)
    waiting = Graph(client)
    waits = waiting.add("EventWaitNode", [], event)
    waiting.fill(address, 2, waits)
    client.ok("GraphLaunch", graph.instantiate(), 0)
    client.ok("GraphLaunch", waiting.instantiate(), stream)
    client.ok("StreamSynchronize", stream)
    assert bytes_at(address) == b"\2"
    found = ctypes.c_void_p()
    client.ok("GraphEventRecordNodeGetEvent", recorded, ctypes.byref(found))
    assert found.value == event
    assert rules(client) == []


def test_an_executable_graph_is_changed_and_the_graph_is_not(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    node = graph.fill(address, 1)
    executable = graph.instantiate()
    client.ok("GraphExecMemsetNodeSetParams", executable, node, ctypes.byref(fill_of(client, address, 2)), None)
    launch(client, executable)
    assert bytes_at(address) == b"\2"
    client.ok("GraphMemsetNodeSetParams", node, ctypes.byref(fill_of(client, address, 3)))
    launch(client, executable)
    assert bytes_at(address) == b"\2"
    launch(client, graph.instantiate())
    assert bytes_at(address) == b"\3"
    told = fill_of(client, 0, 0)
    client.ok("GraphMemsetNodeGetParams", node, ctypes.byref(told))
    assert (told.to, told.value, told.width, told.height) == (address, 3, BYTES, 1)
    assert client.call("GraphExecHostNodeSetParams", executable, node, (ctypes.c_void_p * 2)(address, 0)) == 1
    other = Graph(client).fill(address, 1)
    changed = ctypes.byref(fill_of(client, address, 2))
    assert client.call("GraphExecMemsetNodeSetParams", executable, other, changed, None) == 1


def test_a_node_is_switched_off_and_on(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    first = graph.fill(address, 1)
    second = graph.fill(address, 2, first)
    executable, enabled = graph.instantiate(), ctypes.c_uint(9)
    client.ok("GraphNodeSetEnabled", executable, second, 0)
    client.ok("GraphNodeGetEnabled", executable, second, ctypes.byref(enabled))
    assert enabled.value == 0
    launch(client, executable)
    assert bytes_at(address) == b"\1"
    client.ok("GraphNodeSetEnabled", executable, second, 1)
    launch(client, executable)
    assert bytes_at(address) == b"\2"


def test_a_node_is_found_in_a_clone(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    first = graph.fill(address, 1)
    second = graph.fill(address, 2, first)
    clone = client.make("GraphClone", graph.handle)
    found = client.make("GraphNodeFindInClone", second, clone)
    kind = ctypes.c_int()
    client.ok("GraphNodeGetType", found, ctypes.byref(kind))
    assert (found != second, kind.value) == (True, FILL)
    client.ok("GraphMemsetNodeSetParams", found, ctypes.byref(fill_of(client, address, 7)))
    launch(client, client.make("GraphInstantiateWithFlags", clone, ctypes.c_uint64(0)))
    assert bytes_at(address) == b"\7"
    assert client.call("GraphNodeFindInClone", ctypes.byref(ctypes.c_void_p()), found, clone) == 1


def test_what_is_no_node_of_graphs_here_is_refused_by_name(client: Any) -> None:
    if client.machine.ledger.version == 11:
        pytest.skip("CUDA 11 has no function for nodes of any kind")
    graph, wanted = Graph(client), Other(type=13)
    data = [None] if client.machine.ledger.version == 13 else []
    answer = client.call(
        "GraphAddNode",
        ctypes.byref(ctypes.c_void_p()),
        graph.handle,
        None,
        *data,
        ctypes.c_size_t(),
        ctypes.byref(wanted),
    )
    assert answer == NOT_SUPPORTED
    assert [record.function.endswith("GraphAddNode") for record in client.seen(Seen.NOT_SIMULATED)] == [True]


@pytest.mark.parametrize("flavour", ["cuda:12", "cuda:13"])
def test_every_kind_of_node_is_added_and_described_by_one_function(flavour: str, start: Any) -> None:
    client = start(flavour)
    address, graph, wanted, told = client.make("Malloc", BYTES), Graph(client), Other(type=FILL), Other()
    ctypes.memmove(ctypes.byref(wanted, 16), ctypes.byref(fill_of(client, address, 5)), ctypes.sizeof(Memset))
    data = [None] if flavour == "cuda:13" else []
    node = client.make("GraphAddNode", graph.handle, None, *data, ctypes.c_size_t(), ctypes.byref(wanted))
    client.ok("GraphNodeGetParams", node, ctypes.byref(told))
    assert (told.type, bytes(told)[16 : 16 + ctypes.sizeof(Memset)]) == (FILL, bytes(wanted)[16:56])
    launch(client, graph.instantiate())
    assert bytes_at(address) == b"\5"
    ctypes.memmove(ctypes.byref(wanted, 16), ctypes.byref(fill_of(client, address, 6)), ctypes.sizeof(Memset))
    client.ok("GraphNodeSetParams", node, ctypes.byref(wanted))
    launch(client, graph.instantiate())
    assert bytes_at(address) == b"\6"


def test_tools_know_graphs_and_nodes_by_numbers(start: Any) -> None:
    client = start("cuda:13")
    graph, other = Graph(client), Graph(client)
    nodes = [graph.add("EmptyNode", []), graph.add("EmptyNode", []), other.add("EmptyNode", [])]
    numbers = []
    for node in nodes:
        number = ctypes.c_uint64()
        client.ok("GraphNodeGetToolsId", node, ctypes.byref(number))
        numbers.append(number.value)
        found = ctypes.c_void_p()
        client.ok("GraphNodeGetContainingGraph", node, ctypes.byref(found))
        assert found.value == (other if node == nodes[2] else graph).handle
    assert len(set(numbers)) == 3


def test_a_graph_is_drawn(client: Any, tmp_path: Any) -> None:
    address, graph, path = client.make("Malloc", BYTES), Graph(client), tmp_path / "graph.dot"
    first = graph.fill(address, 1)
    graph.add("EmptyNode", [first])
    client.ok("GraphDebugDotPrint", graph.handle, str(path).encode(), 0)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("digraph")
    assert (text.count("label="), text.count("->")) == (2, 1)
    assert client.call("GraphDebugDotPrint", graph.handle, b"/nowhere/graph.dot", 0) == 304
