"""What is found of graphs: branches that race, memory and events that are gone, what graphs retain."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from tests.simulator.graph_programs import BYTES, NOT_SUPPORTED, Allocation, Graph, findings, rules

from quiesce.simulator.runtime.ledger import Thing


@pytest.fixture(params=["cuda:11", "cuda:12", "cuda:13", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any) -> Any:
    return start(request.param)


# -- races -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [False, True])
def test_branches_without_an_edge_race(client: Any, ordered: bool) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    first = graph.fill(address, 1, size_bytes=8)
    one = graph.fill(address, 2, first)
    graph.fill(address, 3, one if ordered else first)
    executable = graph.instantiate()
    for _ in range(2):
        client.ok("GraphLaunch", executable, 0)
    client.ok("DeviceSynchronize")
    found = findings(client)
    assert {finding.rule for finding in found} == (set() if ordered else {"conflicting_uses_are_ordered"})
    if not ordered:
        assert all(finding.expected.count("on a branch of a graph") == 2 for finding in found)
        assert all("GraphAddMemsetNode" in finding.expected for finding in found)


def test_roots_race_and_a_launch_ends_when_all_branches_have(client: Any) -> None:
    blocks, graph = [client.make("Malloc", BYTES) for _ in range(3)], Graph(client)
    stream = client.make("StreamCreateWithFlags", 1)
    for address in blocks:
        graph.fill(address, 1)
    client.ok("MemsetAsync", blocks[2], 5, BYTES, stream)
    client.ok("GraphLaunch", graph.instantiate(), stream)
    client.ok("MemsetAsync", blocks[1], 5, BYTES, stream)
    client.ok("StreamSynchronize", stream)
    assert rules(client) == []
    graph.fill(blocks[0], 2)
    client.ok("GraphLaunch", graph.instantiate(), stream)
    assert rules(client) == ["conflicting_uses_are_ordered"]


def test_launches_of_one_executable_graph_are_in_order(client: Any) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    streams = [client.make("StreamCreateWithFlags", 1) for _ in range(2)]
    graph.fill(address, 1)
    executable = graph.instantiate()
    for stream in streams * 2:
        client.ok("GraphLaunch", executable, stream)
    assert rules(client) == []
    client.ok("GraphLaunch", graph.instantiate(), streams[0])
    assert rules(client) == ["conflicting_uses_are_ordered"]


# -- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["", "frees first", "uses first"])
def test_memory_of_a_graph_is_used_between_its_nodes(client: Any, fault: str) -> None:
    graph = Graph(client)
    allocated, address = graph.allocate()
    filled = graph.fill(address, 1, *([] if fault == "uses first" else [allocated]))
    graph.add("MemFreeNode", [allocated] if fault == "frees first" else [allocated, filled], address)
    executable = graph.instantiate()
    for _ in range(2):
        client.ok("GraphLaunch", executable, 0)
    client.ok("DeviceSynchronize")
    found = findings(client)
    assert {finding.rule for finding in found} == ({"freed_memory_is_not_used"} if fault else set())
    assert all("node added by" in [site.role for site in finding.call_sites] for finding in found)
    client.ok("GraphExecDestroy", executable)
    client.ok("GraphDestroy", graph.handle)
    assert client.machine.ledger.counted(Thing.DEVICE) == (0, 0)


@pytest.mark.parametrize("ordered", [True, False])
def test_branches_race_in_memory_of_their_graph(client: Any, ordered: bool) -> None:
    graph = Graph(client)
    allocated, address = graph.allocate()
    first = graph.fill(address, 1, allocated)
    second = graph.fill(address, 1, first if ordered else allocated)
    graph.add("MemFreeNode", [first, second], address)
    executable = graph.instantiate()
    for _ in range(2):
        client.ok("GraphLaunch", executable, 0)
    assert set(rules(client)) == (set() if ordered else {"conflicting_uses_are_ordered"})


def test_a_graph_with_memory_keeps_its_nodes(client: Any) -> None:
    graph = Graph(client)
    node, address = graph.allocate()
    told = Allocation()
    client.ok("GraphMemAllocNodeGetParams", node, ctypes.byref(told))
    assert (told.size_bytes, told.address) == (BYTES, address)
    freed = graph.add("MemFreeNode", [node], address)
    found = ctypes.c_void_p()
    client.ok("GraphMemFreeNodeGetParams", freed, ctypes.byref(found))
    assert found.value == address
    assert client.call("GraphDestroyNode", freed) == NOT_SUPPORTED
    assert graph.connect((node, freed), how="Remove") == NOT_SUPPORTED
    assert Graph(client).refuses("ChildGraphNode", [], graph.handle) == NOT_SUPPORTED


@pytest.mark.parametrize("freed", [False, True])
def test_what_the_last_launch_allocated_outlives_its_graph(client: Any, freed: bool) -> None:
    """A flag frees what the launch before left; nothing frees what the last one left, NVIDIA/warp#1429."""
    free_on_launch, graph = ctypes.c_uint64(1), Graph(client)
    _, address = graph.allocate()
    executable = client.make("GraphInstantiateWithFlags", graph.handle, free_on_launch)
    for _ in range(3):
        client.ok("GraphLaunch", executable, 0)
    client.ok("DeviceSynchronize")
    client.ok("GraphExecDestroy", executable)
    client.ok("GraphDestroy", graph.handle)
    if freed:
        client.ok("Free", address)
    left = [thing.function for thing in client.machine.ledger.live() if thing.thing is Thing.DEVICE]
    assert [function.endswith("GraphAddMemAllocNode") for function in left] == [True] * (not freed)


@pytest.mark.parametrize("kept", ["nothing", "the graph", "the executable graph"])
def test_an_object_lives_as_long_as_what_retains_it(client: Any, kept: str) -> None:
    """What leaks is the graph: the objects are its own."""
    ended: list[int] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ended.append)
    graph = Graph(client)
    graph.add("EmptyNode", [])
    made = client.make("UserObjectCreate", 7, function, 1, 1)
    client.ok("GraphRetainUserObject", graph.handle, made, 1, 1)
    executable = graph.instantiate()
    client.ok("GraphLaunch", executable, 0)
    client.ok("DeviceSynchronize")
    if kept != "the graph":
        client.ok("GraphDestroy", graph.handle)
    if kept != "the executable graph":
        client.ok("GraphExecDestroy", executable)
    assert ended == [7] * (kept == "nothing")
    left = {thing.thing for thing in client.machine.ledger.live()} & {Thing.GRAPH, Thing.GRAPH_EXEC, Thing.USER_OBJECT}
    assert left == {"nothing": set(), "the graph": {Thing.GRAPH}, "the executable graph": {Thing.GRAPH_EXEC}}[kept]


@pytest.mark.parametrize("freed", [False, True])
def test_a_node_that_outlives_its_buffer_is_found_at_the_launch(client: Any, freed: bool) -> None:
    address, graph = client.make("Malloc", BYTES), Graph(client)
    graph.fill(address, 1)
    executable = graph.instantiate()
    if freed:
        client.ok("Free", address)
    client.ok("GraphLaunch", executable, 0)
    found = findings(client)
    assert [finding.rule for finding in found] == ["freed_memory_is_not_used"] * freed
    sites = [
        (site.role, site.call.removeprefix("cuda").removeprefix("hip"))
        for finding in found
        for site in finding.call_sites
    ]
    assert sites[-2:] == [("node added by", "GraphAddMemsetNode"), ("used by", "GraphLaunch")][: 2 * freed]


@pytest.mark.parametrize("destroyed", [False, True])
def test_a_node_that_outlives_its_event_is_found_at_the_launch(client: Any, destroyed: bool) -> None:
    event, graph = client.make("EventCreate"), Graph(client)
    graph.add("EventRecordNode", [], event)
    executable = graph.instantiate()
    if destroyed:
        client.ok("EventDestroy", event)
    assert client.call("GraphLaunch", executable, 0) == destroyed
    assert rules(client) == ["destroyed_handles_are_not_used"] * destroyed
