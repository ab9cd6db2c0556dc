"""Contexts: an error of a kernel that stays, and a reset that empties a device."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest

from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.ledger import Seen, Thing

ILLEGAL_ADDRESS = 700


class Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


def launch(client: Any, threads: int = 1) -> int:
    function, none = ctypes.c_void_p(0x1234), ctypes.c_void_p()
    grid, block = Dim3(1, 1, 1), Dim3(threads, 1, 1)
    return int(client.call("LaunchKernel", function, grid, block, none, ctypes.c_size_t(0), none))


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
@pytest.mark.parametrize("error", [700, 702, 710, 719])
def test_an_error_of_a_kernel_stays(start: Any, flavour: str, error: int) -> None:
    client = start(flavour, schedule="lazy", devices=2, fail=f"launch:2={error}")
    block = client.make("Malloc", 64)
    assert launch(client) == launch(client) == 0, "the device has not come to it"
    assert client.call("DeviceSynchronize") == error
    assert client.call("Free", block) == client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 8) == error
    stays = error if flavour == "hip:7" else 0
    assert [client.call(f"{how}LastError") for how in ("PeekAt", "Get", "Get")] == [error, error, stays]
    client.call("SetDevice", 1)
    client.make("Malloc", 64)
    assert client.call("SetDevice", 0) == stays
    assert client.call("DeviceReset") == stays
    assert client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 8) == (stays or 46), "it is not to be had any more"
    (broken,) = client.seen(Seen.CONTEXT_BROKEN)
    assert (broken.device, broken.other) == (0, error)


def test_what_a_broken_device_holds_is_not_judged(start: Any) -> None:
    client = start(devices=2, fail="launch:1=700")
    client.make("Malloc", 64)
    launch(client)
    judgement = judge(client.machine.ledger, AtExit.ALL)
    assert [finding.rule for finding in judgement.findings] == []
    assert (
        "device 0 became unusable with error 700: memory and handles that were on it are not judged" in judgement.notes
    )


def test_an_ordinary_failure_of_a_launch_does_not_stay(start: Any) -> None:
    client = start(fail="launch:1=999")
    assert (launch(client), launch(client)) == (999, 0)
    assert client.call("GetLastError") == 999
    assert client.call("GetLastError") == 0
    assert launch(client, threads=1025) == 9, "more threads than a block can have"


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_a_reset_destroys_what_a_device_has(start: Any, flavour: str) -> None:
    client = start(flavour, devices=2)
    client.ok("SetDevice", 1)
    other = client.make("Malloc", 64)
    client.ok("SetDevice", 0)
    block, stream, event = client.make("Malloc", 64), client.make("StreamCreate"), client.make("EventCreate")
    client.make("MallocAsync", 64, stream)
    client.make("MallocManaged", 64, 1)
    client.ok("EventRecord", event, stream)
    client.ok("DeviceSetLimit", 2, ctypes.c_size_t(1 << 20))
    client.ok("DeviceReset")
    left = [(thing.thing, thing.address) for thing in client.machine.ledger.live()]
    assert left == [(Thing.DEVICE, other)]
    assert client.call("StreamSynchronize", stream) == 400
    assert client.call("Free", block) == 1
    limit = ctypes.c_size_t()
    client.ok("DeviceGetLimit", ctypes.byref(limit), 2)
    assert limit.value == 8 << 20
    client.ok("Free", client.make("Malloc", 64))


def test_a_reset_is_refused_while_a_stream_captures(start: Any) -> None:
    client = start()
    stream = client.make("StreamCreate")
    client.ok("StreamBeginCapture", stream, 2)
    assert client.call("DeviceReset") == 900


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_a_threads_own_stream_is_nobodys_to_destroy(start: Any, flavour: str) -> None:
    client = start(flavour)
    block, function = client.make("Malloc", 8), "MemsetAsync_ptsz" if flavour == "cuda:12" else "MemsetAsync_spt"
    for _ in range(3):
        thread = threading.Thread(target=lambda: client.ok(function, block, 0, 8, 0))
        thread.start()
        thread.join()
    assert client.machine.ledger.counted(Thing.STREAM) == (0, 0)
    assert len(client.seen(Seen.CREATED)) == 3


def test_threads_own_streams_survive_a_reset(start: Any) -> None:
    client = start()
    client.ok("MemsetAsync_ptsz", client.make("Malloc", 8), 0, 8, 0)
    client.ok("DeviceReset")
    client.ok("MemsetAsync_ptsz", client.make("Malloc", 8), 0, 8, 0)
    assert not client.seen(Seen.DEAD_HANDLE)
