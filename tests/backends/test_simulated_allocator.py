"""An allocator above the simulated runtime: a correct one passes the corpus, each faulty one is found by its ledger."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest

from quiesce.allocators.cases.catalogue import corpus_directory, load
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.backends.simulated import OUT_OF_MEMORY
from quiesce.backends.simulated_allocator import (
    AllocatorContext,
    Owned,
    Refused,
    Unable,
    describe_allocator,
    start_machine,
)
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, Capability, Context, Description, DeviceProfile, Flavour, Promise
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingAllocated
from quiesce.model.operations import MemoryKind, Slot
from quiesce.model.outcomes import ILLEGAL_STATE, INVALID_HANDLE, INVALID_VALUE, Allocated, Done, Rejected, Unsupported
from quiesce.model.requests import parse_request
from quiesce.model.results import Result, Verdict
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.flavours import Simulated
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.machine import Machine

CUDA = Simulated(Flavour.CUDA, 12)


class SmallPool(AllocatorContext):
    """Keeps freed blocks by size; one is handed out again once the device was waited for."""

    waits: ClassVar[bool] = True
    trims: ClassVar[bool] = True
    forgets_bytes: ClassVar[int] = 0

    def __init__(self, machine: Machine, described: Description) -> None:
        super().__init__(machine, described)
        self.used: dict[int, int] = {}
        self.cache: dict[int, list[int]] = {}

    def obtain(self, wanted: ops.Allocate, stream: int) -> tuple[int, object]:
        if wanted.kind is not MemoryKind.DEVICE:
            raise Unable("device memory only")
        if wanted.size_bytes >= 1 << 62:
            raise MemoryError
        size = -(-wanted.size_bytes // 512) * 512
        if self.cache.get(size):
            if self.waits:
                self._machine.call("DeviceSynchronize")
            address = self.cache[size].pop()
        else:
            address = self.take(size)
        if size:
            self.used[address] = size
        return address, size

    def take(self, size: int) -> int:
        made = ctypes.c_void_p()
        for attempt in range(2):
            status = self._machine.call("Malloc", ctypes.byref(made), ctypes.c_size_t(size))
            if not status:
                return made.value or 0
            if status != OUT_OF_MEMORY:
                raise Refused
            if not attempt:
                self.trim(MemoryKind.DEVICE, None)
        raise MemoryError

    def give_back(self, block: Owned, stream: int) -> None:
        if block.address:
            self.cache.setdefault(self.used.pop(block.address), []).append(block.address)

    def trim(self, kind: MemoryKind, pool: Slot | None) -> None:
        for addresses in self.cache.values() if self.trims else ():
            for address in addresses:
                self._machine.call("Free", ctypes.c_void_p(address))
        if self.trims:
            self.cache.clear()

    def shut(self) -> None:
        self.trim(MemoryKind.DEVICE, None)

    def claims(self) -> Mapping[Gauge, int]:
        cached = sum(size * len(addresses) for size, addresses in self.cache.items())
        return {
            Gauge.LIVE: sum(self.used.values()),
            Gauge.RESERVED: sum(self.used.values()) + cached - self.forgets_bytes * bool(cached),
        }


class Hasty(SmallPool):
    waits = False


class Hoarder(SmallPool):
    trims = False


class Miscounting(SmallPool):
    forgets_bytes = 512


@dataclass(frozen=True)
class Pool:
    kind: type[SmallPool] = SmallPool

    def describe(self) -> Description:
        return describe_allocator(
            "small-pool",
            "1",
            frozenset({Capability.POOL, Capability.INJECTION}),
            frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.TRIMS_TO_ZERO, Promise.CAPACITY_LIMIT})
            | frozenset({Promise.EXACT_FOOTPRINT, Promise.TRACKS_USES}),
            frozenset({Gauge.LIVE, Gauge.RESERVED}),
            without=frozenset({Gauge.GRAPHS}),
            alignment_bytes=256,
            chunk_bytes=0,
            footprint_factor=1,
        )

    def open(self, profile: DeviceProfile) -> Context:
        return self.kind(start_machine(profile, CUDA), self.describe())


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def context() -> Iterator[Context]:
    opened = Pool().open(DeviceProfile(capacity_bytes=1 << 20))
    yield opened
    opened.close()


def ask(context: Context, line: str) -> object:
    return context.perform(parse_request(line)).outcome


def run(backend: Backend, *paths: str) -> list[Result]:
    return [run_case(case, backend) for case in load([corpus_directory() / path for path in paths]).cases]


@pytest.mark.long
def test_a_correct_allocator_passes_the_corpus() -> None:
    results = run(Pool(), "pool", "reuse", "sizes", "counters", "controls", "events")
    assert {result.case: result.findings for result in results if result.verdict.is_failure} == {}
    assert sum(result.verdict is Verdict.PASSED for result in results) >= 30


@pytest.mark.parametrize("hostile", [False, True])
def test_generated_sequences_find_nothing_on_a_correct_allocator(hostile: bool) -> None:
    result = run_campaign(Pool(), seed=3, operations=800, hostile=hostile)
    assert result.discovery is None
    assert result.operations >= 800


@pytest.mark.parametrize(
    ("kind", "case", "rule"),
    [
        (Hasty, "reuse/reuse_waits_for_the_last_use", "memory_is_reused_only_after_its_last_use"),
        (Hoarder, "pool/trim_returns_large_blocks", "trim_returns_what_nobody_uses"),
        (Miscounting, "counters/reserved_follows_backing", "claims_agree_with_the_ledger"),
    ],
)
def test_a_faulty_allocator_is_found(kind: type[SmallPool], case: str, rule: str) -> None:
    (result,) = run(Pool(kind), f"{case}.case")
    assert {finding.rule for finding in result.findings} == {rule}


def test_blocks_come_from_the_allocator_and_are_seen_below_it(context: Context) -> None:
    reply = context.perform(parse_request("a = allocate 1000"))
    assert isinstance(reply.outcome, Allocated)
    assert [type(seen) for seen in reply.observations] == [BackingAllocated]
    assert ask(context, "free a") == Done()
    assert context.perform(parse_request("b = allocate 1000")).observations[:0] == ()
    readings = context.readings()
    assert readings[Gauge.RESERVED, Source.LEDGER] == readings[Gauge.RESERVED, Source.CLAIM] == 1024
    assert (Gauge.GRAPHS, Source.LEDGER) not in readings
    assert (Gauge.BLOCKS, Source.CLAIM) not in readings


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("free nothing", Rejected(INVALID_VALUE)),
        ("a = allocate 8 on nowhere", Rejected(INVALID_HANDLE)),
        ("a = allocate 8 pinned", Unsupported("device memory only")),
        ("d = stage nothing", Rejected(INVALID_VALUE)),
        ("p = create pool", Unsupported("there is one allocator")),
        ("fail bookkeeper 1", Unsupported("its own bookkeeping cannot be made to fail")),
        ("launch reads=nothing", Rejected(INVALID_VALUE)),
    ],
)
def test_misuse_is_an_answer(context: Context, line: str, outcome: object) -> None:
    assert ask(context, line) == outcome


def test_what_the_allocator_refuses_is_a_rejection(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Refused("illegal-state")

    monkeypatch.setattr(SmallPool, "trim", refuse)
    assert ask(context, "trim") == Rejected(ILLEGAL_STATE)
    monkeypatch.undo()


def test_another_flavour_is_unavailable() -> None:
    with pytest.raises(BackendUnavailable, match="built for cuda"):
        Pool().open(DeviceProfile(flavour=Flavour.HIP))


STARTED = """
import ctypes
from quiesce.model.backend import DeviceProfile, Flavour
from quiesce.backends.simulated_allocator import start_machine
from quiesce.simulator.runtime.flavours import Simulated

machine = start_machine(DeviceProfile(capacity_bytes=1 << 20), Simulated(Flavour.CUDA, 12))
client = ctypes.CDLL("libcudart.so.12")  # as what an allocator under test is linked with
made = ctypes.c_void_p()
assert client.cudaMalloc(ctypes.byref(made), ctypes.c_size_t(512)) == 0
assert client.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20)) == 2, "the device of the profile"
assert machine.ledger.made == 1, "one library, one ledger"
content = ctypes.c_ubyte.from_address(made.value)
assert client.cudaMemsetAsync(made, 1, ctypes.c_size_t(512), None) == 0
assert content.value != 1, "the schedule of the process"
assert client.cudaDeviceSynchronize() == 0
assert content.value == 1
machine.close()
"""


def test_a_process_that_was_started_has_one_runtime_with_its_schedule() -> None:
    with run_program([sys.executable, "-c", STARTED], MachineSettings(CUDA, "lazy"), os.environ) as ended:
        assert ended.status == 0


def test_a_closed_context_refuses_and_reads_zeros(context: Context) -> None:
    ask(context, "a = allocate 8")
    closing = context.close()
    assert set(closing.readings.values()) == {0}
    assert context.close() is closing
    assert ask(context, "trim") == Rejected(ILLEGAL_STATE)
