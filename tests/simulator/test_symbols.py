"""Variables of a client's own device code: registered by their shadows, copied to and from in the order of a stream."""

from __future__ import annotations

import ctypes

import pytest
from tests.simulator.conftest import Start

from quiesce.simulator.runtime.ledger import Seen

TO_DEVICE, TO_HOST = 1, 2
INVALID_VALUE, INVALID_SYMBOL = 1, 13
SIZE = 256


SHADOWS: list[ctypes.Array[ctypes.c_char]] = []
"""Registered for as long as the library is loaded, as those of a program are; so nobody else may get their memory."""


def registered(library: str, prefix: str) -> ctypes.Array[ctypes.c_char]:
    shadow = ctypes.create_string_buffer(SIZE)
    SHADOWS.append(shadow)
    register = ctypes.CDLL(library)[f"__{prefix}RegisterVar"]
    register.restype = None
    register(None, shadow, b"variable", b"variable", 0, ctypes.c_size_t(SIZE), 1, 0)
    return shadow


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_copies_to_and_from_a_variable(flavour: str, schedule: str, library: str, start: Start) -> None:
    client = start(flavour, schedule=schedule)
    shadow = registered(library, flavour.partition(":")[0])
    source, target = ctypes.create_string_buffer(b"a" * 64, 64), ctypes.create_string_buffer(64)
    client.ok("MemcpyToSymbol", ctypes.addressof(shadow), ctypes.addressof(source), 64, 8, TO_DEVICE)
    client.ok("MemcpyFromSymbol", ctypes.addressof(target), ctypes.addressof(shadow), 64, 8, TO_HOST)
    assert target.raw == source.raw


def test_an_asynchronous_copy_out_of_pinned_memory_is_ordered_by_its_stream(library: str, start: Start) -> None:
    client = start("hip:7", schedule="lazy")
    shadow, stream = registered(library, "hip"), client.make("StreamCreate")
    pinned = client.make("HostMalloc", SIZE, 0)
    ctypes.memset(pinned, 7, SIZE)
    client.ok("MemcpyToSymbolAsync", ctypes.addressof(shadow), pinned, SIZE, 0, TO_DEVICE, stream)
    variable = client.make("GetSymbolAddress", ctypes.addressof(shadow))
    assert ctypes.string_at(variable, SIZE) == bytes(SIZE)
    client.ok("StreamSynchronize", stream)
    assert ctypes.string_at(variable, SIZE) == bytes([7]) * SIZE
    (copied,) = client.seen(Seen.COPIED)
    assert (copied.address, copied.other, copied.size_bytes) == (variable, pinned, SIZE)


@pytest.mark.parametrize(("size", "offset"), [(SIZE + 1, 0), (SIZE, 1), (0, SIZE + 1), (2**63, 2**63)])
def test_what_lies_beyond_a_variable_is_refused(size: int, offset: int, library: str, start: Start) -> None:
    client = start("cuda:12")
    shadow = registered(library, "cuda")
    other = ctypes.addressof(ctypes.create_string_buffer(SIZE))
    assert client.call("MemcpyToSymbol", ctypes.addressof(shadow), other, size, offset, TO_DEVICE) == INVALID_VALUE


def test_what_nobody_registered_is_no_variable(start: Start) -> None:
    client = start("hip:6")
    other = ctypes.addressof(ctypes.create_string_buffer(SIZE))
    assert client.call("MemcpyToSymbol", other, other, 8, 0, TO_DEVICE) == INVALID_SYMBOL


@pytest.mark.parametrize("flavour", ["cuda:13", "hip:7"])
def test_a_stream_knows_its_device(flavour: str, start: Start) -> None:
    client = start(flavour, devices=2)
    ordinal = ctypes.c_int(-1)
    client.ok("SetDevice", 1)
    stream = client.make("StreamCreate")
    client.ok("SetDevice", 0)
    client.ok("StreamGetDevice", stream, ctypes.byref(ordinal))
    assert ordinal.value == 1
    client.ok("StreamGetDevice", None, ctypes.byref(ordinal))
    assert ordinal.value == 0
    client.ok("StreamDestroy", stream)
    assert client.call("StreamGetDevice", stream, ctypes.byref(ordinal)) == 400
