"""How long contexts live, and what goes with them; an H200 answered so (``device_answers_calls.cu``)."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any, Final

import pytest
from tests.simulator.test_driver_contexts import current

from quiesce.simulator.runtime.ledger import Seen, Thing

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, IS_DESTROYED = 1, 201, 400, 709


def state(library: ctypes.CDLL) -> int:
    """Return whether the primary context of the first device exists."""
    flags, active = ctypes.c_uint(), ctypes.c_int()
    assert library.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
    return active.value


def allocated(library: ctypes.CDLL) -> ctypes.c_uint64:
    block = ctypes.c_uint64()
    assert library.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(4096)) == 0
    return block


def retained(library: ctypes.CDLL) -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    return context


@pytest.fixture
def driver(start: Any) -> ctypes.CDLL:
    library: ctypes.CDLL = start().machine.library
    assert library.cuInit(0) == 0
    return library


def test_the_last_release_of_a_primary_context_takes_its_things_along(start: Any) -> None:
    client = start()
    driver = client.machine.library
    assert (driver.cuInit(0), state(driver), driver.cuDevicePrimaryCtxRelease_v2(0)) == (0, 0, INVALID_CONTEXT)
    context = retained(driver)
    assert retained(driver).value == context.value == 1
    assert driver.cuCtxSetCurrent(context) == 0
    block = allocated(driver)
    for function in ("StreamCreate", "EventCreate"):
        assert getattr(driver, f"cu{function}")(ctypes.byref(ctypes.c_void_p()), 0) == 0
    assert (driver.cuDevicePrimaryCtxRelease_v2(0), state(driver)) == (0, 1)
    assert driver.cuMemsetD8_v2(block, 0, ctypes.c_size_t(16)) == 0
    assert (driver.cuDevicePrimaryCtxRelease_v2(0), state(driver)) == (0, 0)
    assert [*client.machine.ledger.live()] == []
    assert current(driver) == context.value
    assert driver.cuMemFree_v2(block) == driver.cuCtxSynchronize() == IS_DESTROYED
    (seen,) = client.seen(Seen.DEAD_HANDLE)
    assert (seen.function, seen.thing) == ("cuMemFree_v2", Thing.CONTEXT)
    assert retained(driver).value == context.value
    assert driver.cuMemFree_v2(allocated(driver)) == 0, "it lives again"


def test_a_reset_of_a_primary_context_does_not_release_it(driver: ctypes.CDLL) -> None:
    assert driver.cuCtxSetCurrent(retained(driver)) == 0
    block = allocated(driver)
    assert (driver.cuDevicePrimaryCtxReset_v2(0), state(driver)) == (0, 0)
    assert driver.cuMemFree_v2(block) == IS_DESTROYED
    assert [driver.cuDevicePrimaryCtxRelease_v2(0) for _ in range(2)] == [0, INVALID_CONTEXT]


def test_the_runtime_retains_the_primary_context_and_makes_it_anew(start: Any) -> None:
    client = start()
    driver = client.machine.library
    block = client.make("Malloc", 64)
    assert (driver.cuInit(0), state(driver)) == (0, 1)
    retained(driver)
    assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0
    client.ok("Memset", block, 0, ctypes.c_size_t(64))
    assert (driver.cuDevicePrimaryCtxRelease_v2(0), state(driver)) == (0, 0)
    assert client.call("Free", block) == 1
    client.ok("Free", client.make("Malloc", 64))
    client.ok("DeviceReset")
    assert state(driver) == 0
    client.ok("DeviceSynchronize")
    assert state(driver) == 1


def test_contexts_that_are_created_have_things_of_their_own(start: Any) -> None:
    client = start()
    driver, contexts, blocks = client.machine.library, [], [ctypes.c_uint64(client.make("Malloc", 4096))]
    for _ in range(2):
        contexts.append(ctypes.c_void_p())
        assert driver.cuCtxCreate_v2(ctypes.byref(contexts[-1]), 0, 0) == 0
        blocks.append(allocated(driver))
    event = ctypes.c_void_p()
    assert driver.cuEventCreate(ctypes.byref(event), 0) == 0
    assert driver.cuCtxDestroy_v2(contexts[1]) == 0
    assert current(driver) == contexts[0].value
    answers = [driver.cuMemsetD8_v2(block, 0, ctypes.c_size_t(16)) for block in blocks]
    assert answers == [0, 0, INVALID_VALUE]
    assert driver.cuEventRecord(event, None) == INVALID_HANDLE, "it went with its context"
    assert driver.cuCtxDestroy_v2(contexts[1]) == INVALID_CONTEXT
    assert driver.cuCtxDestroy_v2(contexts[0]) == 0
    assert [thing.thing for thing in client.machine.ledger.live()] == [Thing.DEVICE], "the runtime's"
    assert current(driver) == 1
    assert driver.cuCtxDestroy_v2(ctypes.c_void_p(1)) == INVALID_CONTEXT, "a primary one is released"


def test_an_event_is_recorded_in_streams_of_its_context(driver: ctypes.CDLL) -> None:
    stream, event, context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0
    assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    assert driver.cuEventCreate(ctypes.byref(event), 0) == 0
    assert (driver.cuEventRecord(event, stream), driver.cuEventRecord(event, None)) == (INVALID_HANDLE, 0)


def test_any_number_of_contexts_is_made_one_after_another(driver: ctypes.CDLL) -> None:
    context = ctypes.c_void_p()
    for _ in range(300):
        assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == driver.cuCtxDestroy_v2(context) == 0


@pytest.mark.parametrize("flavour", ["hip:5", "hip:7"])
def test_rocm_keeps_contexts_for_ever(flavour: str, start: Any) -> None:
    """hipamd/src/hip_context.cpp: a context is its device."""
    client = start(flavour)
    context, active, block = client.make("DevicePrimaryCtxRetain", 0), ctypes.c_int(), client.make("Malloc", 64)
    assert client.make("CtxCreate", 0, 0) == context
    for function, argument in (("DevicePrimaryCtxRelease", 0), ("DevicePrimaryCtxReset", 0), ("CtxDestroy", context)):
        client.ok(function, argument)
    client.ok("DevicePrimaryCtxGetState", 0, None, ctypes.byref(active))
    assert active.value == 1
    client.ok("Memset", block, 0, ctypes.c_size_t(64))
    client.ok("Free", block)
    assert client.call("DevicePrimaryCtxSetFlags", 0, 0) == 216
    assert [*client.machine.ledger.live()] == []


LEFT: Final = """
import ctypes
driver, context, block = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
driver.cuInit(0)
def make():
    {make}
    assert driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(64)) == driver.cuMemFree_v2(block) == 0
make()
{then}
"""
CREATED: Final = "assert driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0"
RETAINED: Final = (
    "assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == driver.cuCtxSetCurrent(context) == 0"
)


@pytest.mark.parametrize(
    ("make", "then", "at_exit", "code", "told"),
    [
        (CREATED, "context = None", "lost", 0, "held at exit: 1 context from cuCtxCreate_v2 on device 0, created"),
        (CREATED, "context = None", "all", 1, "1 context from cuCtxCreate_v2 on device 0"),
        (CREATED, "driver.cuCtxPopCurrent_v2(None)", "lost", 0, "held at exit: 1 context from cuCtxCreate_v2"),
        (CREATED, "driver.cuCtxPopCurrent_v2(None); context = None", "lost", 1, "no pointer to it left"),
        (RETAINED, "context = None", "all", 0, "held at exit: 1 context from cuDevicePrimaryCtxRetain on device 0"),
        (RETAINED, "driver.cuDevicePrimaryCtxRelease_v2(0)", "all", 0, "no failures"),
    ],
    ids=["current", "current, all", "kept", "lost", "retained", "released"],
)
@pytest.mark.usefixtures("library")
def test_contexts_that_are_never_destroyed_are_listed(make: str, then: str, at_exit: str, code: int, told: str) -> None:
    text = LEFT.format(make=make, then=then)
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12", "--at-exit", at_exit, "--"]
    done = subprocess.run([*command, sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stdout + done.stderr
