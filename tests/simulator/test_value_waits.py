"""Streams that wait until a word of memory holds a value."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Final

import pytest

from quiesce.simulator.runtime.build import build_library

INVALID_VALUE, INVALID_HANDLE, NOT_READY = 1, 400, 600
GREATER_OR_EQUAL, EQUAL, AND, NOR = range(4)
FLAVOURS: Final = ("hip:7", "cuda:12")
EIGHT: Final = ctypes.c_size_t(8)


class Waiter:
    """A client with a stream and a word, which is 0 at first."""

    def __init__(self, client: Any, flavour: str) -> None:
        self.client = client
        self._hip = flavour.startswith("hip")
        self.stream = client.make("StreamCreate")
        signal, portable = 2, 1
        self.address = (
            client.make("ExtMallocWithFlags", EIGHT, signal) if self._hip else client.make("HostAlloc", EIGHT, portable)
        )
        self.word = ctypes.c_uint32.from_address(self.address)
        self.word.value = 0

    def wait(self, value: int, comparison: int, *, address: int | None = None, stream: int | None = None) -> int:
        """Have the stream wait for the word; return the status."""
        handle = ctypes.c_void_p(self.stream if stream is None else stream)
        place = ctypes.c_void_p(self.address if address is None else address)
        library, wanted = ctypes.CDLL(str(build_library())), ctypes.c_uint32(value)
        if self._hip:
            return int(library.hipStreamWaitValue32(handle, place, wanted, comparison, ctypes.c_uint32(0xFFFFFFFF)))
        return int(library.cuStreamWaitValue32_v2(handle, place, wanted, comparison))

    def passes(self) -> bool:
        """Whether the stream's queue is empty."""
        status = self.client.call("StreamQuery", self.stream)
        assert status in (0, NOT_READY)
        return bool(status == 0)


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
def test_work_behind_it_runs_when_the_value_is_there(start: Any, flavour: str, schedule: str) -> None:
    waiter = Waiter(start(flavour, schedule=schedule), flavour)
    block = waiter.client.make("Malloc", EIGHT)
    ctypes.memset(block, 0, 8)
    assert waiter.wait(1, GREATER_OR_EQUAL) == 0
    waiter.client.ok("MemsetAsync", block, 7, 8, waiter.stream)
    assert not waiter.passes()
    assert ctypes.string_at(block, 8) == bytes(8)
    waiter.word.value = 1
    waiter.client.ok("StreamSynchronize", waiter.stream)
    assert ctypes.string_at(block, 8) == b"\7" * 8


@pytest.mark.parametrize(
    ("comparison", "wanted", "too_little", "enough"),
    [(GREATER_OR_EQUAL, 5, 4, 6), (EQUAL, 5, 6, 5), (AND, 6, 8, 4), (NOR, 0xFFFFFFFE, 1, 2)],
)
def test_comparisons(start: Any, flavour: str, comparison: int, wanted: int, too_little: int, enough: int) -> None:
    waiter = Waiter(start(flavour), flavour)
    waiter.word.value = too_little
    assert waiter.wait(wanted, comparison) == 0
    assert not waiter.passes()
    waiter.word.value = enough
    assert waiter.passes()


def test_cuda_compares_cyclically_and_hip_does_not(start: Any, flavour: str) -> None:
    waiter = Waiter(start(flavour), flavour)
    waiter.word.value = 3  # 8 more than wanted, or far less
    assert waiter.wait(0xFFFFFFFB, GREATER_OR_EQUAL) == 0
    assert waiter.passes() is (flavour == "cuda:12")
    waiter.word.value = 0xFFFFFFFF
    assert waiter.passes()


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_another_streams_work_can_write_the_value(start: Any, flavour: str, schedule: str) -> None:
    waiter = Waiter(start(flavour, schedule=schedule), flavour)
    other = waiter.client.make("StreamCreate")
    assert waiter.wait(0x01010101, EQUAL) == 0
    waiter.client.ok("MemsetAsync", waiter.address, 1, 4, other)
    waiter.client.ok("StreamSynchronize", waiter.stream)
    assert waiter.passes()


def test_another_thread_can_write_the_value_while_the_host_waits(start: Any, flavour: str) -> None:
    waiter = Waiter(start(flavour), flavour)
    assert waiter.wait(1, EQUAL) == 0
    about_to_wait = threading.Event()

    def write() -> None:
        about_to_wait.wait()
        waiter.word.value = 1

    thread = threading.Thread(target=write)
    thread.start()
    about_to_wait.set()
    waiter.client.ok("StreamSynchronize", waiter.stream)
    thread.join()
    assert waiter.passes()


def test_what_cannot_be_waited_for_is_refused(start: Any, flavour: str) -> None:
    waiter = Waiter(start(flavour), flavour)
    pageable = ctypes.c_uint64()
    assert waiter.wait(1, EQUAL, address=ctypes.addressof(pageable)) == INVALID_VALUE
    assert waiter.wait(1, EQUAL, address=waiter.address + 2) == INVALID_VALUE
    assert waiter.wait(1, EQUAL, address=waiter.address + 8) == INVALID_VALUE
    assert waiter.wait(1, 4) == INVALID_VALUE
    assert waiter.wait(1, EQUAL, stream=12345) == INVALID_HANDLE
    assert waiter.passes()


def test_signal_memory_has_eight_bytes(start: Any) -> None:
    client, made = start("hip:7"), ctypes.c_void_p()
    assert client.call("ExtMallocWithFlags", ctypes.byref(made), ctypes.c_size_t(16), 2) == INVALID_VALUE
    client.ok("Free", client.make("ExtMallocWithFlags", ctypes.c_size_t(16), 1))
