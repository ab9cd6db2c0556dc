"""Graphs that are built node by node: what their nodes do, and in which order."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import pytest

from quiesce.model.findings import Finding
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.ledger import Seen, Thing

BYTES: Final = 64
BY_ADDRESS: Final = 4
KERNEL, COPY, FILL, HOST, CHILD, EMPTY, AWAIT, RECORD, ALLOCATE, FREE = (*range(8), 10, 11)
NOT_SUPPORTED: Final = 801


@pytest.fixture(params=["cuda:11", "cuda:12", "cuda:13", "hip:7"])
def client(request: pytest.FixtureRequest, start: Any) -> Any:
    return start(request.param)


class Memset(ctypes.Structure):
    """``cudaMemsetParams``; HIP has its fields in another order."""

    _fields_ = (
        ("to", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("value_bytes", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class MemsetOfHip(ctypes.Structure):
    """``hipMemsetParams``."""

    _fields_ = (
        ("to", ctypes.c_void_p),
        ("value_bytes", ctypes.c_uint),
        ("height", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("width", ctypes.c_size_t),
    )


class Allocation(ctypes.Structure):
    """``cudaMemAllocNodeParams`` and HIP's like it."""

    _fields_ = (
        ("allocation", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", ctypes.c_int),
        ("ordinal", ctypes.c_int),
        ("others", ctypes.c_char * 72),
        ("access", ctypes.c_void_p),
        ("access_count", ctypes.c_size_t),
        ("size_bytes", ctypes.c_size_t),
        ("address", ctypes.c_void_p),
    )


class Other(ctypes.Structure):
    """``cudaGraphNodeParams`` with parameters of some kind."""

    _fields_ = (("type", ctypes.c_int), ("reserved", ctypes.c_int * 3), ("parameters", ctypes.c_char * 240))


def is_hip(client: Any) -> bool:
    return bool(client.machine.ledger.flavour == "hip")


def fill_of(client: Any, address: int, value: int, size_bytes: int = BYTES) -> ctypes.Structure:
    kind = MemsetOfHip if client.machine.ledger.version <= 7 else Memset
    return kind(to=address, pitch=0, value=value, value_bytes=1, width=size_bytes, height=1)


class Graph:
    """A graph of a client's, to which nodes are added."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.handle = client.make("GraphCreate", 0)

    def add(self, kind: str, before: Sequence[int], *arguments: Any) -> int:
        node = self.client.make(f"GraphAdd{kind}", *self._place(before), *arguments)
        assert isinstance(node, int)
        return node

    def refuses(self, kind: str, before: Sequence[int], *arguments: Any) -> int:
        answer = self.client.call(f"GraphAdd{kind}", ctypes.byref(ctypes.c_void_p()), *self._place(before), *arguments)
        assert isinstance(answer, int)
        return answer

    def _place(self, before: Sequence[int]) -> tuple[Any, ...]:
        return self.handle, (ctypes.c_void_p * len(before))(*before), ctypes.c_size_t(len(before))

    def fill(self, address: int, value: int, *before: int, size_bytes: int = BYTES) -> int:
        return self.add("MemsetNode", before, ctypes.byref(fill_of(self.client, address, value, size_bytes)))

    def copy(self, to: Any, source: Any, *before: int, size_bytes: int = BYTES) -> int:
        return self.add("MemcpyNode1D", before, to, source, ctypes.c_size_t(size_bytes), BY_ADDRESS)

    def allocate(self, *before: int, size_bytes: int = BYTES) -> tuple[int, int]:
        """Return the node and the address."""
        wanted = Allocation(allocation=1, location=1, ordinal=0, size_bytes=size_bytes)
        node = self.add("MemAllocNode", before, ctypes.byref(wanted))
        return node, wanted.address or 0

    def connect(self, *edges: tuple[int, int], how: str = "Add") -> int:
        count = len(edges)
        sources, targets = ((ctypes.c_void_p * count)(*ends) for ends in zip(*edges, strict=True))
        data = [None] if self.client.machine.ledger.version == 13 else []
        answer = self.client.call(
            f"Graph{how}Dependencies", self.handle, sources, targets, *data, ctypes.c_size_t(count)
        )
        assert isinstance(answer, int)
        return answer

    def nodes(self, which: str = "Nodes") -> list[int]:
        nodes, count = (ctypes.c_uint64 * 16)(), ctypes.c_size_t(16)
        self.client.ok(f"GraphGet{which}", self.handle, nodes, ctypes.byref(count))
        return list(nodes)[: count.value]

    def edges(self) -> list[tuple[int, int]]:
        sources, targets, count = (ctypes.c_uint64 * 16)(), (ctypes.c_uint64 * 16)(), ctypes.c_size_t(16)
        data = [None] if self.client.machine.ledger.version == 13 else []
        self.client.ok("GraphGetEdges", self.handle, sources, targets, *data, ctypes.byref(count))
        return list(zip(sources, targets, strict=True))[: count.value]

    def instantiate(self) -> int:
        made = self.client.make("GraphInstantiateWithFlags", self.handle, ctypes.c_uint64(0))
        assert isinstance(made, int)
        return made


def launch(client: Any, executable: int, stream: int = 0) -> None:
    client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)


def bytes_at(address: int) -> bytes:
    return ctypes.string_at(address, 1)


def findings(client: Any) -> tuple[Finding, ...]:
    return judge(client.machine.ledger, AtExit.NONE).findings


def rules(client: Any) -> list[str]:
    return [finding.rule for finding in findings(client)]


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
