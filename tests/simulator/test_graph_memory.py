"""Memory that captured calls allocate and free: a graph's own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.graph_programs import Graph

from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.ledger import Seen, Thing

computing = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

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


@pytest.mark.parametrize(("ordered", "at_once"), [(True, 2), (False, 4)])
def test_memory_is_used_again_only_behind_its_free(client: Any, ordered: bool, at_once: int) -> None:
    """A device takes 3 GiB for three allocations that no edges order, and 1 GiB if they do, NVIDIA/warp#1157."""
    each, graph = 64 << 20, Graph(client)
    before: tuple[int, ...] = ()
    graph.allocate(size_bytes=each)  # which stays
    for _ in range(3):
        node, address = graph.allocate(*before, size_bytes=each)
        freed = graph.add("MemFreeNode", [node], address)
        before = (freed,) if ordered else ()
    client.ok("GraphLaunch", client.make("GraphInstantiateWithFlags", graph.handle, ctypes.c_uint64(0)), 0)
    client.ok("DeviceSynchronize")
    assert (attribute(client, USED_HIGH), attribute(client, RESERVED)) == (at_once * each, at_once * each)
    client.ok("DeviceGraphMemTrim", 0)
    assert (attribute(client, USED), attribute(client, RESERVED)) == (each, each)


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


def test_a_graph_with_memory_is_instantiated_once_at_a_time_and_not_cloned(
    client: Any, request: pytest.FixtureRequest
) -> None:
    _, graph, _ = capture(client, frees=True)
    executable, other = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0)), ctypes.c_void_p()
    refused = 801 if request.node.callspec.params["client"] == "cuda:12" else 1
    assert client.call("GraphInstantiateWithFlags", ctypes.byref(other), graph, ctypes.c_uint64(0)) == refused
    assert client.call("GraphClone", ctypes.byref(other), graph) == refused
    client.ok("GraphExecDestroy", executable)
    client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))


@pytest.mark.parametrize("how", ["Free", "FreeAsync"])
def test_every_launch_allocates_what_was_freed_outside_where_it_lay(client: Any, how: str) -> None:
    stream, graph, address = capture(client, frees=False)
    executable = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    for others in range(3):
        client.ok("GraphLaunch", executable, stream)
        assert client.machine.ledger.counted(Thing.DEVICE) == (1 + others, (1 + others) << 16)
        assert client.call("GraphLaunch", executable, stream) == 1, "it was not freed since"
        client.ok("StreamSynchronize", stream)
        assert ctypes.string_at(address, 4) == b"\x07" * 4
        client.ok(how, address, *([stream] if how == "FreeAsync" else []))
        assert client.make("Malloc", 1 << 16) != address, "it is the graph's"
    assert attribute(client, USED_HIGH) == 1 << 16
    client.ok("GraphExecDestroy", executable)
    client.ok("GraphDestroy", graph)
    assert client.machine.ledger.counted(Thing.DEVICE) == (3, 3 << 16)
    assert not client.seen(Seen.USED_AFTER_FREE, Seen.FREED_TWICE, Seen.FREED_FOREIGN)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
def test_a_launch_behind_a_free_in_its_stream_is_not_accused(start: Any, schedule: str) -> None:
    client = start("cuda:12", schedule=schedule)
    stream, graph, address = capture(client, frees=False)
    executable = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    for _ in range(3):
        client.ok("GraphLaunch", executable, stream)
        client.ok("FreeAsync", address, stream)
    client.ok("StreamSynchronize", stream)
    for function, each in (("StreamDestroy", stream), ("GraphExecDestroy", executable), ("GraphDestroy", graph)):
        client.ok(function, each)
    assert len(client.seen(Seen.ALLOCATED)) == 3, "the first launch takes what was captured"
    assert judge(client.machine.ledger, AtExit.ALL).findings == ()


def test_a_launch_that_finds_no_memory_leaves_none(start: Any) -> None:
    client = start("hip:7", capacity=1 << 17)
    stream, graph = client.make("StreamCreate"), ctypes.c_void_p()
    client.ok("StreamBeginCapture", stream, 2)
    addresses = [client.make("MallocAsync", 1 << 16, stream) for _ in range(2)]
    client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    executable = client.make("GraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    client.ok("GraphLaunch", executable, stream)
    for address in addresses:
        client.ok("Free", address)
    client.ok("DeviceGraphMemTrim", 0)
    other = client.make("Malloc", 1 << 16)
    assert client.call("GraphLaunch", executable, stream) == 2
    assert client.machine.ledger.counted(Thing.DEVICE) == (1, 1 << 16)
    client.ok("Free", other)
    client.ok("GraphLaunch", executable, stream)
    assert client.machine.ledger.counted(Thing.DEVICE) == (2, 1 << 17)


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


def test_addresses_of_graphs_are_given_to_nobody_else(client: Any) -> None:
    """Its memory was freed outside before it was launched."""
    _, graph, address = capture(client, frees=False)
    client.ok("Free", address)
    other = client.make("Malloc", 1 << 16)
    assert other != address
    client.ok("GraphDestroy", graph)
    assert client.machine.ledger.counted(Thing.DEVICE) == (1, 1 << 16)
    assert client.call("Free", address) == 1
    assert client.seen(Seen.FREED_TWICE)


def launch_captured(checked: Callable[..., Checked], *steps: str, graphs: int = 1, launches: int = 2) -> list[str]:
    """Capture a stream's steps, split over so many graphs; launch these, and return the rules that were broken."""
    device = checked()
    client, stream, address, made = device.client, device.client.make("StreamCreate"), 0, ctypes.c_void_p()
    each, executables = len(steps) // graphs, []
    for first in range(0, len(steps), each):
        client.ok("StreamBeginCapture", stream, 2)
        for step in steps[first : first + each]:
            if step == "allocate":
                address = client.make("MallocAsync", 4096, stream)
            elif step == "fill":
                client.ok("MemsetAsync", address, 0, 4096, stream)
            elif step == "free":
                client.ok("FreeAsync", address, stream)
            else:
                device.work(BODIES[step], address, stream=stream)
        client.ok("StreamEndCapture", stream, ctypes.byref(made))
        executables.append(client.make("GraphInstantiateWithFlags", made.value, ctypes.c_uint64(0)))
    for executable in executables * launches:
        client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)
    return device.rules()


BODIES: Final = {
    "write": "st.global.u32 [%rd1+4092], 1;",
    "read": "ld.global.u32 %r2, [%rd1];",
    "write behind": "st.global.u32 [%rd1+4096], 1;",
}


@computing
@pytest.mark.parametrize(
    ("steps", "graphs"),
    [
        (("allocate", "write", "free"), 1),
        (("allocate", "fill", "read", "free"), 1),
        (("allocate", "write", "free", "allocate", "write", "free"), 1),
        (("allocate", "write", "write", "free"), 2),
    ],
)
def test_a_kernel_may_use_what_its_graph_frees_later(
    steps: tuple[str, ...], graphs: int, checked: Callable[..., Checked]
) -> None:
    assert launch_captured(checked, *steps, graphs=graphs) == []


@computing
@pytest.mark.parametrize(
    ("steps", "rule"),
    [
        (("allocate", "write", "free", "write"), "kernels_use_live_memory"),
        (("allocate", "write behind", "free"), "kernels_stay_inside_blocks"),
        (("allocate", "read", "free"), "kernels_read_what_was_written"),
    ],
)
def test_a_kernel_of_a_graph_that_is_wrong_is_found(
    steps: tuple[str, ...], rule: str, checked: Callable[..., Checked]
) -> None:
    assert set(launch_captured(checked, *steps)) == {rule}


def play(device: Checked, graphs: dict[str, tuple[str, ...]], order: str) -> list[str]:
    """Capture graphs by name, then launch them and do other steps in that order; return the rules that were broken."""
    client, stream, address, made = device.client, device.client.make("StreamCreate"), 0, ctypes.c_void_p()
    executables: dict[str, int] = {}

    def step(name: str) -> None:
        nonlocal address
        if name == "allocate":
            address = client.make("MallocAsync", 4096, stream)
        elif name == "free":
            client.ok("FreeAsync", address, stream)
        elif name == "fill":
            client.ok("MemsetAsync", address, 0, 4096, stream)
        elif name == "wait":
            client.ok("StreamSynchronize", stream)
        else:
            device.work(BODIES[name], address, stream=stream)

    for word in order.split():
        name = word.rstrip("~!")
        if name not in graphs:
            step(name)
            continue
        if name not in executables:
            client.ok("StreamBeginCapture", stream, 2)
            for each in graphs[name]:
                step(each)
            client.ok("StreamEndCapture", stream, ctypes.byref(made))
            executables[name] = client.make("GraphInstantiateWithFlags", made.value, ctypes.c_uint64(0))
            client.ok("GraphDestroy", made.value)
        if word.endswith("~"):
            client.ok("GraphExecDestroy", executables[name])
        elif word.endswith("!"):
            assert client.call("GraphLaunch", executables[name], stream) == 1
        else:
            client.ok("GraphLaunch", executables[name], stream)
    client.ok("StreamSynchronize", stream)
    return device.rules()


MAKES: Final = {"make": ("allocate", "write"), "end": ("free",), "use": ("write",), "use-end": ("write", "free")}


@computing
@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
@pytest.mark.parametrize(
    "order",
    [
        "make write fill read end make fill write end",
        "make use-end make write use-end",
        "make use use end make use end",
        "make write wait end make wait write end",
        "make make~ write end end~",
        "make write free make end",
    ],
)
def test_memory_that_another_graph_frees_is_the_clients_in_between(
    order: str, schedule: str, checked: Callable[..., Checked]
) -> None:
    device = checked(schedule=schedule)
    assert play(device, MAKES, order) == []
    assert device.client.machine.ledger.counted(Thing.DEVICE) == (0, 0)


@computing
@pytest.mark.parametrize(
    ("order", "rule"),
    [
        ("make end write", "kernels_use_live_memory"),
        ("make use end use", "kernels_use_live_memory"),
        ("make end end!", "memory_is_freed_once"),
        ("make free end!", "memory_is_freed_once"),
    ],
)
def test_memory_that_another_graph_has_freed_is_nobodys(order: str, rule: str, checked: Callable[..., Checked]) -> None:
    assert play(checked(), MAKES, order) == [rule]


@computing
def test_memory_that_another_graph_did_not_free_is_left(checked: Callable[..., Checked]) -> None:
    device = checked()
    assert play(device, MAKES, "make end make make! end~ make~") == []
    assert device.client.machine.ledger.counted(Thing.DEVICE) == (1, 4096)
