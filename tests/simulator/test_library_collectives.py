"""NCCL of one rank copies what it is told, on the stream, and multiplies where an operation has a factor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.simulator.conftest import Start
from tests.simulator.library_programs import Array, Libraries

from quiesce.model.rules import Kind

pytest.importorskip("scipy")

MakeLibraries = Callable[..., Any]
INT8, INT32, INT64, HALF, FLOAT, DOUBLE, BFLOAT = 0, 2, 4, 6, 7, 8, 9  # ncclDataType_t
SUM, AVERAGE = 0, 4  # ncclRedOp_t
INTERNAL, WRONG, INVALID_USAGE = 3, 4, 5


class UniqueId(ctypes.Structure):
    """ncclUniqueId."""

    _fields_ = (("content", ctypes.c_char * 128),)


class Collectives(Libraries):
    """A device with a communicator of one rank."""

    def __init__(self, start: Start, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(start, folder, options)
        made = ctypes.c_void_p()
        assert self.driver.simulated_ncclCommInitRank(ctypes.byref(made), 1, UniqueId(), 0) == 0
        self.communicator = made.value or 0

    def group(self, *calls: tuple[Any, ...]) -> tuple[list[int], int]:
        """Make calls in a group; return their statuses and that of its end."""
        assert self.driver.simulated_ncclGroupStart() == 0
        statuses = [self.call(*each) for each in calls]
        return statuses, self.driver.simulated_ncclGroupEnd()


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Collectives]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Collectives)
    yield made
    assert made.findings() == ()


X: Array = np.arange(-3, 5).astype(np.float32)


@pytest.mark.parametrize("operation", range(5))
def test_what_one_rank_reduces_it_copies(on: Collectives, operation: int) -> None:
    for name, more in (("AllReduce", ()), ("ReduceScatter", ()), ("Reduce", (0,))):
        to = on.room(32)
        assert on.call(f"nccl{name}", on.put(X), to, 8, FLOAT, operation, *more, on.communicator, 0) == 0
        assert (on.get(to, np.float32, 8) == X).all()


@pytest.mark.parametrize(("name", "more"), [("AllGather", ()), ("AlltoAll", ()), ("Broadcast", (0,)), ("Gather", (0,)),
                                            ("Scatter", (0,))])  # fmt: skip
def test_what_one_rank_gathers_it_copies(on: Collectives, name: str, more: tuple[int, ...]) -> None:
    to = on.room(32)
    assert on.call(f"nccl{name}", on.put(X), to, 8, FLOAT, *more, on.communicator, 0) == 0
    assert (on.get(to, np.float32, 8) == X).all()
    if more:
        assert on.call(f"nccl{name}", on.put(X), to, 8, FLOAT, 1, on.communicator, 0) == WRONG


def test_a_root_keeps_what_it_broadcasts(on: Collectives) -> None:
    at = on.put(X)
    assert on.call("ncclBcast", at, 8, FLOAT, 0, on.communicator, 0) == 0
    assert on.call("ncclAllReduce", at, at, 8, FLOAT, SUM, on.communicator, 0) == 0
    assert (on.get(at, np.float32, 8) == X).all()


@pytest.mark.parametrize(("kind", "dtype"), [(INT8, np.int8), (INT32, np.int32), (INT64, np.int64), (HALF, np.float16),
                                             (FLOAT, np.float32), (DOUBLE, np.float64)])  # fmt: skip
def test_an_operation_may_have_a_factor(on: Collectives, kind: int, dtype: Any) -> None:
    x, to, number = X.astype(dtype), on.room(64), ctypes.c_int()
    create = on.driver.computed_ncclRedOpCreatePreMulSum
    communicator = ctypes.c_void_p(on.communicator)
    factor = ctypes.c_void_p(on.host(3, dtype=dtype))
    assert create(ctypes.byref(number), factor, kind, 1, communicator) == 0
    assert on.call("ncclAllReduce", on.put(x), to, 8, kind, number.value, on.communicator, 0) == 0
    assert (on.get(to, dtype, 8) == 3 * x).all()
    destroy = on.driver.computed_ncclRedOpDestroy
    assert [destroy(number, communicator), destroy(number, communicator)] == [0, WRONG]
    assert on.call("ncclAllReduce", on.put(x), to, 8, kind, number.value, on.communicator, 0) == WRONG


def test_a_rank_sends_to_itself_in_a_group(on: Collectives) -> None:
    y = X + 10
    first, second = on.room(32), on.room(32)
    send, receive = ("ncclSend", "ncclRecv")
    tail = (8, FLOAT, 0, on.communicator, 0)
    calls = [(send, on.put(X), *tail), (send, on.put(y), *tail), (receive, first, *tail), (receive, second, *tail)]
    assert on.group(*calls) == ([0, 0, 0, 0], 0)
    assert (on.get(first, np.float32, 8) == X).all()
    assert (on.get(second, np.float32, 8) == y).all()
    assert on.group((receive, first, *tail), (send, on.put(y), *tail)) == ([0, 0], 0)
    assert (on.get(first, np.float32, 8) == y).all()
    assert on.group((send, on.put(X), *tail)) == ([0], INVALID_USAGE)
    assert on.call(send, on.put(X), *tail) == INVALID_USAGE


def test_a_communicator_is_split(on: Collectives) -> None:
    made = ctypes.c_void_p()
    communicator = ctypes.c_void_p(on.communicator)
    assert on.driver.simulated_ncclCommSplit(communicator, 0, 0, ctypes.byref(made), None) == 0
    to = on.room(32)
    assert on.call("ncclAllReduce", on.put(X), to, 8, FLOAT, AVERAGE, made.value or 0, 0) == 0
    assert (on.get(to, np.float32, 8) == X).all()
    assert on.driver.simulated_ncclCommSplit(communicator, -1, 0, ctypes.byref(made), None) == 0
    assert made.value is None


def test_memory_is_registered(on: Collectives) -> None:
    made, communicator = ctypes.c_void_p(), ctypes.c_void_p(on.communicator)
    block = ctypes.c_void_p(on.room(64))
    assert on.driver.simulated_ncclCommRegister(communicator, block, ctypes.c_size_t(64), ctypes.byref(made)) == 0
    assert on.driver.simulated_ncclCommDeregister(communicator, made) == 0


def test_several_ranks_fail_by_name(libraries: MakeLibraries, capfd: Any) -> None:
    on = libraries(Collectives, devices=2)
    made = (ctypes.c_void_p * 2)()
    assert on.driver.simulated_ncclCommInitAll(made, 2, None) == 0
    assert on.call("ncclAllReduce", on.put(X), on.room(32), 8, FLOAT, SUM, made[0], 0) == INTERNAL
    assert on.call("ncclAllReduce", on.put(X), on.room(32), 8, 11, SUM, on.communicator, 0) == INTERNAL
    assert on.group(("ncclSend", on.put(X), 8, FLOAT, 1, made[0], 0)) == ([INTERNAL], 0)
    said = capfd.readouterr().err
    assert "ncclAllReduce is not simulated" in said
    assert "ncclSend is not simulated; for more than one rank" in said


def test_a_short_buffer_is_found(libraries: MakeLibraries) -> None:
    on = libraries(Collectives, redzone=4096)
    on.call("ncclAllReduce", on.put(X), on.room(28), 8, FLOAT, SUM, on.communicator, 0)
    on.wait()
    (finding,) = on.findings()
    assert finding.kind == Kind.OUT_OF_BOUNDS
    assert "ncclAllReduce writes 4 bytes" in finding.observed
    assert "its operand recvbuff" in finding.observed


@pytest.mark.parametrize("wrong", [False, True])
def test_a_race_with_another_stream_is_found(libraries: MakeLibraries, wrong: bool) -> None:
    on = libraries(Collectives)
    at, to, first, second = on.put(X), on.room(32), on.stream(), on.stream()
    on.wait()
    assert on.call("ncclAllReduce", at, to, 8, FLOAT, SUM, on.communicator, first) == 0
    on.client.ok("MemsetAsync", at, 0, ctypes.c_size_t(32), ctypes.c_void_p(second if wrong else first))
    on.wait()
    assert [each.kind for each in on.findings()] == ([Kind.RACE] if wrong else [])
