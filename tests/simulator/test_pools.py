"""Memory pools of the simulated runtime, and failures on demand."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.runtime.ledger import Flag, Seen

OUT_OF_MEMORY = 2
CHUNK = 32 << 20
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8


def value_of(client: Any, pool: int, attribute: int) -> int:
    value = ctypes.c_uint64()
    client.ok("MemPoolGetAttribute", pool, attribute, ctypes.byref(value))
    return value.value


def keep_everything(client: Any, pool: int) -> None:
    client.ok("MemPoolSetAttribute", pool, THRESHOLD, ctypes.byref(ctypes.c_uint64((1 << 64) - 1)))


def test_freed_memory_stays_reserved_up_to_the_threshold(start: Any) -> None:
    client = start()
    stream, pool = client.make("StreamCreate"), client.make("DeviceGetDefaultMemPool", 0)
    address = client.make("MallocAsync", 4096, stream)
    assert (value_of(client, pool, USED), value_of(client, pool, RESERVED)) == (4096, CHUNK)
    client.ok("FreeAsync", address, stream)
    assert (value_of(client, pool, USED), value_of(client, pool, RESERVED)) == (0, CHUNK)
    client.ok("StreamSynchronize", stream)
    assert value_of(client, pool, RESERVED) == 0
    keep_everything(client, pool)
    client.ok("FreeAsync", client.make("MallocAsync", 4096, stream), stream)
    client.ok("StreamSynchronize", stream)
    assert value_of(client, pool, RESERVED) == CHUNK
    client.ok("MemPoolTrimTo", pool, 1000)
    assert value_of(client, pool, RESERVED) == 1000
    assert (value_of(client, pool, RESERVED_HIGH), value_of(client, pool, USED_HIGH)) == (CHUNK, 4096)
    client.ok("MemPoolSetAttribute", pool, USED_HIGH, ctypes.byref(ctypes.c_uint64(0)))
    assert value_of(client, pool, USED_HIGH) == 0


def test_memory_is_used_again_when_its_stream_has_come_to_the_free(start: Any) -> None:
    client = start(schedule="lazy")
    stream, pool = client.make("StreamCreate"), client.make("DeviceGetDefaultMemPool", 0)
    address = client.make("MallocAsync", 4096, stream)
    client.ok("MemsetAsync", address, 1, 4096, stream)
    client.ok("FreeAsync", address, stream)
    assert value_of(client, pool, USED) == 0, "it is no more the client's"
    assert client.make("MallocAsync", 4096, stream) != address
    client.ok("StreamSynchronize", stream)
    assert value_of(client, pool, USED) == value_of(client, pool, RESERVED) == 4096
    assert client.call("FreeAsync", address, stream) == 1, "it was freed before"
    ordered = [bool(record.flags & Flag.ORDERED) for record in client.seen(Seen.ALLOCATED, Seen.FREED)]
    assert ordered == [True] * 3


def test_another_pool_takes_what_one_has_cached_and_an_ordinary_allocation_waits_for_a_synchronisation(
    start: Any,
) -> None:
    client = start(capacity=8192)
    stream, other = client.make("StreamCreate"), client.make("MemPoolCreate", (ctypes.c_int * 22)(1, 0, 1, 0))
    client.ok("FreeAsync", client.make("MallocAsync", 8192, stream), stream)
    assert client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 4096) == OUT_OF_MEMORY
    client.ok("FreeAsync", client.make("MallocFromPoolAsync", 8192, other, stream), stream)
    client.ok("StreamSynchronize", stream)
    client.make("Malloc", 8192)


def test_hips_pools_take_what_they_need(start: Any) -> None:
    client = start("hip:7")
    pool = client.make("DeviceGetDefaultMemPool", 0)
    client.make("MallocAsync", 4096, 0)
    assert value_of(client, pool, RESERVED) == 4096


def test_pending_frees_are_waited_for_before_a_pool_runs_out(start: Any) -> None:
    client = start(capacity=8192, schedule="lazy")
    stream = client.make("StreamCreate")
    client.ok("FreeAsync", client.make("MallocAsync", 8192, stream), stream)
    client.make("MallocAsync", 8192, stream)


def test_a_pool_is_destroyed_with_blocks_in_use(start: Any) -> None:
    client = start(capacity=8192)
    properties = (ctypes.c_int * 22)(1, 0, 1, 0)
    pool = client.make("MemPoolCreate", properties)
    address = client.make("MallocFromPoolAsync", 8192, pool, 0)
    client.ok("MemPoolDestroy", pool)
    assert client.call("MallocFromPoolAsync", ctypes.byref(ctypes.c_void_p()), 64, pool, 0) == 1
    client.ok("Free", address)
    client.make("Malloc", 8192)


def test_the_default_pool_can_not_be_destroyed(start: Any) -> None:
    client = start()
    assert client.call("MemPoolDestroy", client.make("DeviceGetDefaultMemPool", 0)) == 1


@pytest.mark.parametrize(
    ("fail", "answers"),
    [
        ("device:2", [0, 2, 0, 0]),
        ("device:2+", [0, 2, 2, 2]),
        ("device:1=4", [4, 0, 0, 0]),
        ("device:0%", [0, 0, 0, 0]),
        ("device:100%=46", [46, 46, 46, 46]),
        ("pinned:1,device:3", [0, 0, 2, 0]),
    ],
)
def test_failures_on_demand(start: Any, fail: str, answers: list[int]) -> None:
    client = start(fail=fail)
    assert [client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 64) for _ in answers] == answers


def test_memory_of_whatever_kind_is_counted_together(start: Any) -> None:
    client = start(fail="memory:3,pinned:2")
    made = ctypes.byref(ctypes.c_void_p())
    calls = [("Malloc", made, 8), ("HostAlloc", made, 8, 0), ("MallocManaged", made, 8, 1), ("HostAlloc", made, 8, 0)]
    assert [client.call(*each) for each in calls] == [0, 0, OUT_OF_MEMORY, OUT_OF_MEMORY]


def test_failures_by_chance_follow_the_seed(start: Any) -> None:
    runs = []
    for seed in (1, 1, 2):
        client = start(fail="event:50%", seed=seed)
        runs.append([client.call("EventCreate", ctypes.byref(ctypes.c_void_p())) for _ in range(64)])
        client.machine.close()
    assert runs[0] == runs[1] != runs[2]
    assert set(runs[0]) == {0, OUT_OF_MEMORY}


@pytest.mark.parametrize("kind", ["pinned", "managed", "stream", "event", "copy", "launch", "synchronize", "graph"])
def test_every_kind_of_call_can_fail(start: Any, kind: str) -> None:
    client = start(fail=f"{kind}:1")
    made, buffer = ctypes.byref(ctypes.c_void_p()), ctypes.create_string_buffer(8)
    stream = 0
    if kind == "graph":
        stream = client.make("StreamCreate")
        client.ok("StreamBeginCapture", stream, 0)
        graph = ctypes.c_void_p()
        client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    calls = {
        "pinned": lambda: client.call("HostAlloc", made, 8, 0),
        "managed": lambda: client.call("MallocManaged", made, 8, 1),
        "stream": lambda: client.call("StreamCreate", made),
        "event": lambda: client.call("EventCreate", made),
        "copy": lambda: client.call("Memcpy", buffer, buffer, 8, 4),
        "launch": lambda: client.machine.control("launch", ctypes.c_void_p(0), 0, None, None, None),
        "synchronize": lambda: client.call("DeviceSynchronize"),
        "graph": lambda: client.call("GraphInstantiateWithFlags", made, graph, 0),
    }
    assert [calls[kind]() != 0, calls[kind]()] == [True, 0]


@pytest.mark.parametrize(
    "fail", ["device", "device:", "device:0", "device:101%", "nothing:1", "device:1=x", "device:1 "]
)
def test_a_failure_that_is_written_wrong_is_said(start: Any, fail: str) -> None:
    start().machine.close()  # or skip
    with pytest.raises(ConfigurationError, match="KIND:N"):
        start(fail=fail)


def test_a_word_that_is_wrong_is_said_with_those_that_are_right(start: Any) -> None:
    start().machine.close()
    with pytest.raises(ConfigurationError, match="'schedule' can't be 'late': write eager or lazy or seeded"):
        start(schedule="late")


@pytest.mark.parametrize("option", [{"ring": 1}, {"devices": 9}, {"recycle": "often"}, {"unknown": 1}])
def test_a_setting_that_is_wrong_is_said(start: Any, option: dict[str, Any]) -> None:
    start().machine.close()
    ((name, value),) = option.items()
    with pytest.raises(ConfigurationError, match=f"'{name}' can't be '{value}'"):
        start(**option)
