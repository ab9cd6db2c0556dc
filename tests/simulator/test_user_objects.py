"""User objects of graphs: whose references they are, and when and where their destructors run."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, Start
from tests.simulator.programs import compile_client

from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Seen, Thing, open_ledger

NO_DESTRUCTOR_SYNC, MOVE = 1, 1
INVALID_VALUE, ILLEGAL_STATE, NOT_PERMITTED, UPDATE_FAILURE = 1, 401, 800, 910
FLAVOURS: Final = ["cuda:11", "cuda:12", "cuda:13", "hip:5", "hip:6", "hip:7"]
Destructor: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Resource:
    """What a user object stands for: says when, and on which thread, it was destroyed."""

    def __init__(self) -> None:
        self.destroyed = threading.Event()
        self.times, self.thread = 0, 0
        self.destructor = Destructor(self._destroy)

    def _destroy(self, _: object) -> None:
        self.times += 1
        self.thread = threading.get_native_id()
        self.destroyed.set()

    def wait(self) -> None:
        """Return once it was destroyed."""
        self.destroyed.wait()
        assert self.times == 1


class Objects:
    """A client's functions for user objects, of the runtime or (``driver``) of CUDA's driver."""

    def __init__(self, client: Client, *, driver: bool = False) -> None:
        self.client = client
        self.driver = driver
        client.ok("Free", None)  # whoever calls the runtime has a context

    def call(self, function: str, *arguments: Any) -> int:
        if not self.driver:
            return self.client.call(function, *arguments)
        passed = [ctypes.c_void_p(each) if isinstance(each, int) and each > 0xFFFF else each for each in arguments]
        return int(getattr(self.client.machine.library, "cu" + function)(*passed))

    def ok(self, function: str, *arguments: Any) -> None:
        assert self.call(function, *arguments) == 0, function

    def make(self, resource: Resource, count: int = 1) -> int:
        made = ctypes.c_void_p()
        self.ok("UserObjectCreate", ctypes.byref(made), None, resource.destructor, count, NO_DESTRUCTOR_SYNC)
        return made.value or 0

    def graph(self, stream: int) -> int:
        """Return a graph of one fill, whose block is left to the machine."""
        graph, block = ctypes.c_void_p(), self.client.make("Malloc", 8)
        self.client.ok("StreamBeginCapture", stream, 2)
        self.client.ok("MemsetAsync", block, 5, 8, stream)
        self.client.ok("StreamEndCapture", stream, ctypes.byref(graph))
        return graph.value or 0

    def executable(self, graph: int) -> int:
        return self.client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))

    @property
    def live(self) -> int:
        return self.client.machine.ledger.counted(Thing.USER_OBJECT)[0]


@pytest.fixture(params=[*FLAVOURS, "driver"])
def objects(request: pytest.FixtureRequest, start: Start) -> Objects:
    driver = request.param == "driver"
    return Objects(start("cuda:12" if driver else request.param, recycle="never"), driver=driver)


def test_the_destructor_runs_with_the_last_reference_on_another_thread(objects: Objects) -> None:
    resource = Resource()
    handle = objects.make(resource, 2)
    objects.ok("UserObjectRetain", handle, 3)
    assert objects.live == 1
    objects.ok("UserObjectRelease", handle, 4)
    assert (resource.times, objects.live) == (0, 1)
    objects.ok("UserObjectRelease", handle, 1)
    resource.wait()
    assert resource.thread != threading.get_native_id()
    assert objects.live == 0
    assert objects.client.seen(Seen.DEAD_HANDLE) == []
    assert objects.call("UserObjectRetain", handle, 1) == INVALID_VALUE
    (record,) = objects.client.seen(Seen.DEAD_HANDLE)
    assert (record.thing, record.address) == (Thing.USER_OBJECT, handle)


def test_graphs_clones_and_executables_hold_references_of_their_own(objects: Objects) -> None:
    client, resource = objects.client, Resource()
    handle, graph = objects.make(resource), objects.graph(client.make("StreamCreate"))
    objects.ok("GraphRetainUserObject", graph, handle, 1, MOVE)
    assert objects.live == 0, "the client has nothing to give back"
    clone = client.make("GraphClone", graph)
    executable = objects.executable(clone)
    for function, each in (("GraphDestroy", graph), ("GraphDestroy", clone)):
        client.ok(function, each)
        assert not resource.times
    client.ok("GraphExecDestroy", executable)
    resource.wait()


def test_a_reference_that_a_graph_owns_can_be_taken_from_it(objects: Objects) -> None:
    resource = Resource()
    handle, graph = objects.make(resource), objects.graph(objects.client.make("StreamCreate"))
    objects.ok("GraphRetainUserObject", graph, handle, 2, 0)
    objects.ok("UserObjectRelease", handle, 1)
    assert (resource.times, objects.live) == (0, 0)
    objects.ok("UserObjectRetain", handle, 1)
    assert objects.live == 1, "the client owns one again"
    objects.ok("GraphReleaseUserObject", graph, handle, 2)
    assert not resource.times
    assert objects.call("GraphReleaseUserObject", graph, handle, 1) == INVALID_VALUE, "it has none left"
    objects.ok("UserObjectRelease", handle, 1)
    resource.wait()
    assert (objects.live, objects.client.seen(Seen.DEAD_HANDLE)) == (0, [])


def test_references_of_others_cannot_be_given_back(objects: Objects) -> None:
    client, resource = objects.client, Resource()
    handle, graph = objects.make(resource), objects.graph(client.make("StreamCreate"))
    objects.ok("GraphRetainUserObject", graph, handle, 1, 0)
    assert objects.call("GraphRetainUserObject", graph, handle, 2, MOVE) == INVALID_VALUE
    assert objects.call("UserObjectRelease", handle, 2) == INVALID_VALUE
    objects.ok("UserObjectRelease", handle, 1)
    assert objects.call("UserObjectRelease", handle, 1) == INVALID_VALUE, "the one that is left is the graph's"
    assert [(record.thing, record.address) for record in client.seen(Seen.DEAD_HANDLE)] == 3 * [
        (Thing.USER_OBJECT, handle)
    ]
    assert not resource.times
    client.ok("GraphDestroy", graph)
    resource.wait()


def test_what_is_no_reference_is_refused(objects: Objects) -> None:
    client, resource = objects.client, Resource()
    handle, stream = objects.make(resource), client.make("StreamCreate")
    graph, made = objects.graph(stream), ctypes.byref(ctypes.c_void_p())
    for arguments in (
        (None, None, resource.destructor, 1, 1),
        (made, None, None, 1, 1),
        (made, None, resource.destructor, 0, 1),
        (made, None, resource.destructor, 1, 0),
        (made, None, resource.destructor, ctypes.c_uint(1 << 31), 1),
    ):
        assert objects.call("UserObjectCreate", *arguments) == INVALID_VALUE
    for function in ("UserObjectRetain", "UserObjectRelease"):
        assert objects.call(function, handle, 0) == INVALID_VALUE
        assert objects.call(function, handle, ctypes.c_uint(1 << 31)) == INVALID_VALUE
        assert objects.call(function, stream, 1) == INVALID_VALUE
    assert objects.call("GraphRetainUserObject", graph, handle, 1, 2) == INVALID_VALUE
    assert objects.call("GraphRetainUserObject", graph, graph, 1, 0) == INVALID_VALUE
    assert objects.call("GraphRetainUserObject", handle, handle, 1, 0) == INVALID_VALUE
    assert objects.call("GraphReleaseUserObject", graph, handle, 1) == INVALID_VALUE
    assert (resource.times, objects.live) == (0, 1)


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_a_launch_under_way_holds_what_its_graph_held(start: Start, flavour: str) -> None:
    objects, resource = Objects(start(flavour, schedule="lazy")), Resource()
    client, handle = objects.client, objects.make(resource)
    stream = client.make("StreamCreateWithFlags", 1)
    graph = objects.graph(stream)
    objects.ok("GraphRetainUserObject", graph, handle, 1, MOVE)
    executable = objects.executable(graph)
    client.ok("GraphLaunch", executable, stream)
    client.ok("GraphDestroy", graph)
    client.ok("GraphExecDestroy", executable)
    assert not resource.times, "its work is still to come"
    client.ok("StreamSynchronize", stream)
    resource.wait()


@pytest.mark.parametrize("flavour", ["cuda:11", "cuda:12", "hip:7"])
def test_an_update_replaces_what_the_executable_holds(start: Start, flavour: str) -> None:
    objects, first, second = Objects(start(flavour, schedule="lazy")), Resource(), Resource()
    client, result = objects.client, (ctypes.c_int * 6)()
    stream = client.make("StreamCreateWithFlags", 1)
    graph, other = objects.graph(stream), objects.graph(stream)
    objects.ok("GraphRetainUserObject", graph, objects.make(first), 1, MOVE)
    objects.ok("GraphRetainUserObject", other, objects.make(second), 1, MOVE)
    executable = objects.executable(graph)
    client.ok("GraphDestroy", graph)
    client.ok("GraphLaunch", executable, stream)
    client.ok("GraphExecUpdate", executable, other, result, None)
    client.ok("GraphDestroy", other)
    assert not first.times, "the launch before the update holds it"
    client.ok("StreamSynchronize", stream)
    first.wait()
    client.ok("GraphExecDestroy", executable)
    second.wait()


def test_a_graph_that_is_captured_can_hold_them(objects: Objects) -> None:
    client, resource = objects.client, Resource()
    stream, handle = client.make("StreamCreate"), objects.make(resource)
    client.ok("StreamBeginCapture", stream, 2)
    graph = captured_graph(client, stream)
    assert captured_graph(client, stream) == graph
    assert client.machine.ledger.counted(Thing.GRAPH)[0] == 0, "it is the capture's"
    objects.ok("GraphRetainUserObject", graph, handle, 1, MOVE)
    assert client.call("GraphDestroy", graph) == ILLEGAL_STATE
    made = ctypes.c_void_p()
    client.ok("StreamEndCapture", stream, ctypes.byref(made))
    assert made.value == graph
    assert client.machine.ledger.counted(Thing.GRAPH)[0] == 1
    assert not resource.times
    client.ok("GraphDestroy", graph)
    resource.wait()


def captured_graph(client: Client, stream: int) -> int:
    """Return the graph that a stream captures into."""
    machine, state, graph = client.machine, ctypes.c_int(), ctypes.c_void_p()
    function = "StreamGetCaptureInfo" if machine.ledger.version == 13 else "StreamGetCaptureInfo_v2"
    client.ok(function, stream, ctypes.byref(state), None, ctypes.byref(graph), None, None, None)
    assert state.value == 1
    return graph.value or 0


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
@pytest.mark.parametrize("ends", [True, False])
def test_a_capture_that_comes_to_nothing_lets_go(start: Start, flavour: str, ends: bool) -> None:
    objects, resource = Objects(start(flavour, recycle="never")), Resource()
    client, handle = objects.client, objects.make(resource)
    stream = client.make("StreamCreate")
    client.ok("StreamBeginCapture", stream, 0)
    graph = captured_graph(client, stream)
    objects.ok("GraphRetainUserObject", graph, handle, 1, MOVE)
    if ends:
        assert client.call("StreamSynchronize", stream) == 900
        assert client.call("StreamEndCapture", stream, ctypes.byref(ctypes.c_void_p())) == 901
    else:
        client.ok("StreamDestroy", stream)
    resource.wait()
    assert client.call("GraphDestroy", graph) == INVALID_VALUE
    assert [record.thing for record in client.seen(Seen.DEAD_HANDLE)] == [Thing.GRAPH]


def test_a_graph_that_is_launched_into_a_capture_hands_on_what_it_holds(start: Start) -> None:
    objects, resource = Objects(start()), Resource()
    client, handle = objects.client, objects.make(resource)
    stream, outer = client.make("StreamCreate"), ctypes.c_void_p()
    graph = objects.graph(stream)
    objects.ok("GraphRetainUserObject", graph, handle, 1, MOVE)
    executable = objects.executable(graph)
    client.ok("StreamBeginCapture", stream, 2)
    client.ok("GraphLaunch", executable, stream)
    client.ok("StreamEndCapture", stream, ctypes.byref(outer))
    client.ok("GraphExecDestroy", executable)
    client.ok("GraphDestroy", graph)
    assert not resource.times
    client.ok("GraphDestroy", outer)
    resource.wait()


def test_calls_of_a_destructor_are_refused(start: Start) -> None:
    objects, answers = Objects(start()), list[int]()
    client, over = objects.client, threading.Event()

    def destroy(_: object) -> None:
        answers.append(client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 8))
        over.set()

    destructor, made = Destructor(destroy), ctypes.c_void_p()
    client.ok("UserObjectCreate", ctypes.byref(made), None, destructor, 1, NO_DESTRUCTOR_SYNC)
    client.ok("UserObjectRelease", made, 1)
    over.wait()
    assert answers == [NOT_PERMITTED]
    client.make("Malloc", 8)


def test_nobody_has_to_wait_for_a_destructor(start: Start) -> None:
    objects, may_end, over = Objects(start()), threading.Event(), threading.Event()

    def destroy(_: object) -> None:
        may_end.wait()
        over.set()

    destructor, made = Destructor(destroy), ctypes.c_void_p()
    objects.ok("UserObjectCreate", ctypes.byref(made), None, destructor, 1, NO_DESTRUCTOR_SYNC)
    objects.ok("UserObjectRelease", made, 1)
    objects.client.ok("DeviceSynchronize")
    assert not over.is_set()
    may_end.set()
    over.wait()


def test_a_reset_lets_go_of_what_graphs_hold_and_of_nothing_else(start: Start) -> None:
    objects, held, kept = Objects(start()), Resource(), Resource()
    client, other = objects.client, objects.make(kept)
    graph = objects.graph(client.make("StreamCreate"))
    objects.ok("GraphRetainUserObject", graph, objects.make(held), 1, MOVE)
    client.ok("DeviceReset")
    held.wait()
    assert (kept.times, objects.live) == (0, 1), "it is of no device"
    objects.ok("UserObjectRelease", other, 1)
    kept.wait()


def test_a_machine_that_is_closed_runs_no_destructor(start: Start) -> None:
    objects, resources = Objects(start()), [Resource() for _ in range(3)]
    client, stream = objects.client, objects.client.make("StreamCreate")
    graph, handles = objects.graph(stream), [objects.make(resource) for resource in resources]
    objects.ok("GraphRetainUserObject", graph, handles[0], 1, MOVE)
    objects.ok("GraphRetainUserObject", graph, handles[1], 1, 0)
    objects.executable(graph)
    live = [thing for thing in client.machine.ledger.live() if thing.thing is Thing.USER_OBJECT]
    assert [thing.address for thing in live] == handles[1:], "what the client never released"
    assert {thing.function for thing in live} == {"cudaUserObjectCreate"}
    client.machine.close()
    assert [resource.times for resource in resources] == [0, 0, 0]


LEAVES: Final = """
    int cudaUserObjectCreate(void **, void *, void (*)(void *), unsigned, unsigned);
    int cudaGraphRetainUserObject(void *, void *, unsigned, unsigned), cudaGraphDestroy(void *);
    int cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **);
    void *object, *stream;
    static void *graph;  // which can be reached at the end
    int told = 0;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, 2), cudaStreamEndCapture(stream, &graph);
    cudaUserObjectCreate(&object, &told, tell, 1, 1);
    cudaGraphRetainUserObject(graph, object, 1, atoi(words[1]));
    object = NULL;
    cudaStreamDestroy(stream);
    return told;
"""


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("moves", [False, True])
def test_what_a_client_never_released_is_a_leak_and_what_a_graph_holds_is_none(tmp_path: Path, moves: bool) -> None:
    path = compile_client(tmp_path, LEAVES)
    with run_program([str(path), str(int(moves))], MachineSettings(parse_flavour("cuda:12")), os.environ) as end:
        (each,) = end.ledgers
        with open_ledger(each) as ledger:
            findings = judge(ledger, AtExit.LOST).findings
    assert end.status == 0
    lost = "1 user object from cudaUserObjectCreate on device 0, no pointer to it left"
    assert [finding.observed for finding in findings] == ([] if moves else [lost])
