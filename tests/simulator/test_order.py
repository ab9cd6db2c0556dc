"""Streams, events, schedules, captures and graphs of the simulated runtime."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest

from quiesce.simulator.runtime.ledger import Flag, Seen, Thing

INVALID_VALUE, INVALID_HANDLE, NOT_READY, NOT_SUPPORTED = 1, 400, 600, 801
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def fill(client: Any, address: int, value: int, stream: int) -> None:
    client.ok("MemsetAsync", address, value, 8, stream)


def first_byte(address: int) -> int:
    return ctypes.string_at(address, 1)[0]


def test_the_eager_schedule_runs_work_at_once(start: Any) -> None:
    client = start()
    address, stream = client.make("Malloc", 8), client.make("StreamCreate")
    fill(client, address, 7, stream)
    assert first_byte(address) == 7
    assert client.call("StreamQuery", stream) == 0


def test_the_lazy_schedule_runs_work_when_somebody_waits(start: Any) -> None:
    client = start(schedule="lazy")
    address, stream = client.make("Malloc", 8), client.make("StreamCreate")
    fill(client, address, 7, stream)
    assert first_byte(address) == 0
    client.ok("StreamSynchronize", stream)
    assert first_byte(address) == 7


def test_polling_comes_to_an_end_under_the_lazy_schedule(start: Any) -> None:
    client = start(schedule="lazy")
    address, stream = client.make("Malloc", 8), client.make("StreamCreate")
    for value in range(5):
        fill(client, address, value, stream)
    answers = [client.call("StreamQuery", stream) for _ in range(6)]
    assert answers == [NOT_READY] * 4 + [0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_a_seeded_schedule_is_the_same_again(start: Any, seed: int) -> None:
    def run() -> list[int]:
        client = start(schedule="seeded", seed=seed)
        address, streams = client.make("Malloc", 8), [client.make("StreamCreate") for _ in range(3)]
        bytes_seen = []
        for value in range(30):
            fill(client, address, value, streams[value % 3])
            bytes_seen.append(first_byte(address))
        client.machine.close()
        return bytes_seen

    assert run() == run()


def test_seeds_differ(start: Any) -> None:
    seen = set()
    for seed in range(8):
        client = start(schedule="seeded", seed=seed)
        address, streams = client.make("Malloc", 8), [client.make("StreamCreate") for _ in range(3)]
        for value, stream in enumerate(streams, 1):
            fill(client, address, value, stream)
        seen.add(first_byte(address))
        client.machine.close()
    assert len(seen) > 1


def test_the_legacy_default_stream_waits_and_is_waited_for(start: Any) -> None:
    client = start(schedule="lazy")
    blocking, free = client.make("StreamCreate"), client.make("StreamCreateWithFlags", 1)
    address, other = client.make("Malloc", 8), client.make("Malloc", 8)
    fill(client, address, 1, blocking)
    fill(client, other, 1, free)
    fill(client, address, 2, 0)
    client.ok("StreamSynchronize", 0)
    assert first_byte(address) == 2
    assert first_byte(other) == 0, "a nonblocking stream has no part in it"


def test_a_threads_own_default_stream_is_another_than_the_legacy_one(start: Any) -> None:
    client = start(schedule="lazy")
    address = client.make("Malloc", 8)
    client.ok("MemsetAsync_ptsz", address, 5, 8, 0)
    assert len(client.seen(Seen.CREATED)) == 1
    answers = []
    thread = threading.Thread(target=lambda: answers.append(client.call("StreamQuery_ptsz", 0)))
    thread.start()
    thread.join()
    assert answers == [0], "another thread's is idle"
    assert len(client.seen(Seen.CREATED)) == 2


def test_a_wait_holds_only_what_comes_behind_it(start: Any) -> None:
    client = start(schedule="lazy")
    first, second = (client.make("StreamCreateWithFlags", 1) for _ in range(2))
    address, event = client.make("Malloc", 8), client.make("EventCreate")
    fill(client, address, 1, first)
    client.ok("EventRecord", event, first)
    client.ok("StreamWaitEvent", second, event, 0)
    fill(client, address, 2, second)
    client.ok("StreamSynchronize", second)
    assert first_byte(address) == 2
    assert client.call("EventQuery", event) == 0


def test_an_event_that_was_never_recorded_holds_nothing(start: Any) -> None:
    client = start(schedule="lazy")
    event, stream = client.make("EventCreate"), client.make("StreamCreate")
    client.ok("EventSynchronize", event)
    client.ok("EventQuery", event)
    client.ok("StreamWaitEvent", stream, event, 0)


def test_a_record_with_flags_is_a_record(start: Any) -> None:
    client = start(schedule="lazy")
    stream, address, event = client.make("StreamCreate"), client.make("Malloc", 8), client.make("EventCreate")
    fill(client, address, 1, stream)
    client.ok("EventRecordWithFlags", event, stream, 0)
    client.ok("EventSynchronize", event)
    assert first_byte(address) == 1
    client.ok("EventRecordWithFlags", event, stream, 1)
    assert client.call("EventRecordWithFlags", event, stream, 2) == INVALID_VALUE
    client.ok("StreamBeginCapture", stream, 0)
    client.ok("EventRecordWithFlags", event, stream, 0)


def test_events_are_destroyed_while_work_waits_for_them(start: Any) -> None:
    client = start()
    first, second = client.make("StreamCreate"), client.make("StreamCreate")
    address, event = client.make("Malloc", 8), client.make("EventCreate")
    assert client.machine.control("stall", ctypes.c_void_p(first)) == 0
    client.ok("EventRecord", event, first)
    client.ok("StreamWaitEvent", second, event, 0)
    fill(client, address, 3, second)
    client.ok("EventDestroy", event)
    assert first_byte(address) == 0
    client.ok("StreamSynchronize", second)
    assert first_byte(address) == 3


@pytest.mark.parametrize(("flavour", "waits"), [("cuda:12", False), ("hip:7", True)])
def test_a_stream_is_destroyed_with_work_in_flight(start: Any, flavour: str, waits: bool) -> None:
    client = start(flavour, schedule="lazy")
    address, stream = client.make("Malloc", 8), client.make("StreamCreate")
    fill(client, address, 9, stream)
    client.ok("StreamDestroy", stream)
    assert (first_byte(address) == 9) is waits
    client.ok("DeviceSynchronize")
    assert first_byte(address) == 9
    assert client.machine.ledger.counted(Thing.STREAM) == (0, 0)


def test_a_wait_for_an_event_of_a_dead_stream_is_marked(start: Any) -> None:
    client = start("hip:7")
    stream, event = client.make("StreamCreate"), client.make("EventCreate")
    client.ok("EventRecord", event, stream)
    client.ok("EventSynchronize", event)
    client.ok("StreamDestroy", stream)
    client.ok("EventSynchronize", event)
    flags = [record.flags for record in client.seen(Seen.EVENT_WAITED)]
    assert flags == [Flag(0), Flag.STREAM_DEAD]


def test_destroyed_handles_are_refused_and_seen(start: Any) -> None:
    client = start(recycle="never")
    stream, event = client.make("StreamCreate"), client.make("EventCreate")
    client.ok("StreamDestroy", stream)
    assert client.call("StreamSynchronize", stream) == INVALID_HANDLE
    assert client.call("EventRecord", event, stream) == INVALID_HANDLE
    assert client.call("StreamDestroy", event) == INVALID_HANDLE, "an event is no stream"
    assert client.call("StreamDestroy", 0) == INVALID_HANDLE, "the default stream can't be destroyed"
    assert [record.thing for record in client.seen(Seen.DEAD_HANDLE)] == [Thing.STREAM] * 2


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
def test_a_host_function_may_wait_for_what_its_caller_does_next(start: Any, schedule: str) -> None:
    client = start(schedule=schedule)
    stream, told, done = client.make("StreamCreate"), threading.Event(), []

    def wait(_: int | None) -> None:
        done.append(told.wait(60))

    function = HOST_FUNCTION(wait)
    client.ok("LaunchHostFunc", stream, function, 0)
    assert client.call("StreamQuery", stream) == NOT_READY
    told.set()
    client.ok("StreamSynchronize", stream)
    assert done == [True]


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
def test_a_host_function_may_take_a_lock_that_its_caller_holds(start: Any, schedule: str) -> None:
    client = start(schedule=schedule)
    stream, lock, called = client.make("StreamCreate"), threading.Lock(), []

    def count(_: int | None) -> None:
        with lock:
            called.append(threading.get_ident())

    function = HOST_FUNCTION(count)
    for _ in range(3):
        with lock:
            client.ok("LaunchHostFunc", stream, function, 0)
    client.ok("StreamSynchronize", stream)
    assert len(called) == 3
    assert threading.get_ident() not in called


def test_work_behind_a_host_function_that_waits_runs_once_it_returned(start: Any) -> None:
    client = start()
    address, stream, told = client.make("Malloc", 8), client.make("StreamCreate"), threading.Event()
    function = HOST_FUNCTION(lambda _: told.wait(60) and None)
    client.ok("LaunchHostFunc", stream, function, 0)
    fill(client, address, 7, stream)
    assert first_byte(address) == 0
    told.set()
    client.ok("StreamSynchronize", stream)
    assert first_byte(address) == 7


def test_host_functions_run_in_order_and_without_the_lock(start: Any) -> None:
    client = start(schedule="lazy")
    stream, called = client.make("StreamCreate"), []

    def allocate(data: int | None) -> None:
        called.append(data)
        client.make("Malloc", 64)

    function = HOST_FUNCTION(allocate)
    client.ok("LaunchHostFunc", stream, function, 1)
    client.ok("LaunchHostFunc", stream, function, 2)
    assert called == []
    client.ok("StreamSynchronize", stream)
    assert called == [1, 2]
    assert client.machine.ledger.counted(Thing.DEVICE)[0] == 2


def test_a_host_function_can_not_wait_for_its_own_stream(start: Any) -> None:
    client = start()
    stream, answers = client.make("StreamCreate"), []
    function = HOST_FUNCTION(lambda _: answers.append(client.call("StreamSynchronize", stream)))
    client.ok("LaunchHostFunc", stream, function, 0)
    client.ok("StreamSynchronize", stream)
    assert answers == [800]


@pytest.mark.parametrize(
    ("flavour", "flags", "answer"),
    [
        *(("cuda:12", flags, 0) for flags in (0, 1, 2, 3, 6)),
        *(("cuda:12", flags, 1) for flags in (4, 8, 0x20000000)),
        *(("hip:7", flags, 0) for flags in (0, 2, 0x20000000, 0x40000000, 0x80000000)),
        *(("hip:7", flags, 1) for flags in (4, 8)),
    ],
)
def test_flags_that_an_event_can_not_have_are_refused(start: Any, flavour: str, flags: int, answer: int) -> None:
    event = ctypes.c_void_p()
    assert start(flavour).call("EventCreateWithFlags", ctypes.byref(event), ctypes.c_uint(flags)) == answer


def test_elapsed_time_counts_work(start: Any) -> None:
    client = start()
    stream, begin, end = client.make("StreamCreate"), client.make("EventCreate"), client.make("EventCreate")
    untimed = client.make("EventCreateWithFlags", 2)
    address, milliseconds = client.make("Malloc", 8), ctypes.c_float()
    client.ok("EventRecord", begin, stream)
    fill(client, address, 1, stream)
    client.ok("EventRecord", end, stream)
    client.ok("EventElapsedTime", ctypes.byref(milliseconds), begin, end)
    assert milliseconds.value == pytest.approx(0.002)
    client.ok("DeviceSynchronize")
    for event in (begin, end):  # on a stream that has nothing to do, too, time goes on
        client.ok("EventRecord", event, stream)
    client.ok("EventElapsedTime", ctypes.byref(milliseconds), begin, end)
    assert milliseconds.value == pytest.approx(0.001)
    assert client.call("EventElapsedTime", ctypes.byref(milliseconds), begin, untimed) == INVALID_HANDLE


def test_a_graph_runs_what_was_captured_each_time_that_it_is_launched(start: Any) -> None:
    client = start()
    stream, address = client.make("StreamCreate"), client.make("Malloc", 8)
    client.ok("StreamBeginCapture", stream, 0)
    fill(client, address, 4, stream)
    assert first_byte(address) == 0
    graph = ctypes.c_void_p()
    client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    count, nodes = ctypes.c_size_t(7), (ctypes.c_void_p * 3)(1, 1, 1)
    client.ok("GraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value == 1
    count.value = len(nodes)
    client.ok("GraphGetNodes", graph, nodes, ctypes.byref(count))
    assert (count.value, bool(nodes[0]), nodes[1], nodes[2]) == (1, True, None, None)
    executable = client.make("GraphInstantiateWithFlags", graph, 0)
    client.ok("GraphDestroy", graph)
    for _ in range(2):
        client.ok("GraphLaunch", executable, stream)
        assert first_byte(address) == 4
        ctypes.memset(address, 0, 8)
    client.ok("GraphExecDestroy", executable)
    assert client.machine.ledger.counted(Thing.GRAPH, Thing.GRAPH_EXEC) == (0, 0)


@pytest.mark.parametrize(
    ("mode", "thread_mode", "status"), [(0, 0, 900), (1, 0, 900), (2, 0, 0), (0, 2, 0), (1, 1, 900)]
)
def test_which_captures_forbid_an_allocation(start: Any, mode: int, thread_mode: int, status: int) -> None:
    client = start()
    stream, exchanged = client.make("StreamCreate"), ctypes.c_int(thread_mode)
    client.ok("StreamBeginCapture", stream, mode)
    client.ok("ThreadExchangeStreamCaptureMode", ctypes.byref(exchanged))
    assert client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 8) == status
    client.ok("ThreadExchangeStreamCaptureMode", ctypes.byref(exchanged))
    assert client.call("StreamEndCapture", stream, ctypes.byref(ctypes.c_void_p())) == (901 if status else 0)


@pytest.mark.parametrize(("mode", "status"), [(0, 900), (1, 0), (2, 0)])
def test_only_a_global_capture_concerns_other_threads(start: Any, mode: int, status: int) -> None:
    client = start()
    stream, answers = client.make("StreamCreate"), []
    client.ok("StreamBeginCapture", stream, mode)
    thread = threading.Thread(target=lambda: answers.append(client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 8)))
    thread.start()
    thread.join()
    assert answers == [status]


def test_errors_are_kept_until_they_are_read(start: Any) -> None:
    client = start()
    assert client.call("GetLastError") == 0
    assert client.call("StreamDestroy", 12) == INVALID_HANDLE
    client.make("Malloc", 8)
    assert client.call("PeekAtLastError") == INVALID_HANDLE
    assert client.call("GetLastError") == INVALID_HANDLE
    assert client.call("GetLastError") == 0


def test_queues_are_finite(start: Any) -> None:
    client = start(schedule="lazy")
    stream, address = client.make("StreamCreate"), client.make("Malloc", 8)
    for value in range(5000):
        fill(client, address, value % 256, stream)
    assert first_byte(address) != 0, "behind so much work the oldest runs"
