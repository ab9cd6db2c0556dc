"""The whole machine: every operation has a handler, and random sequences neither raise nor leave anything."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quiesce.allocators.reference.machine import MACHINE_GAUGES, Machine
from quiesce.allocators.reference.world import Parts
from quiesce.model import operations as ops
from quiesce.model.backend import DeviceProfile
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import HandleKind
from quiesce.model.operations import Operation
from quiesce.model.outcomes import INVALID_HANDLE, INVALID_VALUE, Allocated, Done, OutOfMemory, Rejected

from .bench import Bench
from .sequences import PROFILES, Sequence


def test_every_operation_has_a_handler() -> None:
    assert set(Machine(DeviceProfile(), Parts())._handlers) == set(get_args(Operation))


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (ops.Allocate("a", 1, stream="x"), INVALID_HANDLE),
        (ops.Allocate("a", 1, pool="x"), INVALID_HANDLE),
        (ops.Free("x"), INVALID_VALUE),
        (ops.Trim(pool="x"), INVALID_HANDLE),
        (ops.Copy("x", "y"), INVALID_VALUE),
        (ops.Stage("a", "x"), INVALID_VALUE),
        (ops.Fill("x", 1), INVALID_VALUE),
        (ops.Launch(reads=("x",)), INVALID_VALUE),
        (ops.Launch(stream="x"), INVALID_HANDLE),
        (ops.Launch(instance="x"), INVALID_HANDLE),
        (ops.DestroyPool("x"), INVALID_HANDLE),
        (ops.DestroyStream("x"), INVALID_HANDLE),
        (ops.SynchronizeStream("x"), INVALID_HANDLE),
        (ops.QueryStream("x"), INVALID_HANDLE),
        (ops.DestroyEvent("x"), INVALID_HANDLE),
        (ops.RecordEvent("x"), INVALID_HANDLE),
        (ops.WaitEvent("x"), INVALID_HANDLE),
        (ops.QueryEvent("x"), INVALID_HANDLE),
        (ops.SynchronizeEvent("x"), INVALID_HANDLE),
        (ops.Stall("x"), INVALID_HANDLE),
        (ops.Release("x"), INVALID_HANDLE),
        (ops.BeginCapture("x"), INVALID_HANDLE),
        (ops.EndCapture("g", "x"), INVALID_HANDLE),
        (ops.LaunchGraph("x"), INVALID_HANDLE),
        (ops.DestroyGraph("x"), INVALID_HANDLE),
        (ops.CreateInstance("i", "x"), INVALID_HANDLE),
        (ops.DestroyInstance("x"), INVALID_HANDLE),
        (ops.Partition(("i",), "x"), INVALID_HANDLE),
        (ops.CreatePolicy("x"), INVALID_HANDLE),
        (ops.Node("n", ("x",)), INVALID_VALUE),
        (ops.Hold("x"), INVALID_VALUE),
        (ops.Drop("x"), INVALID_VALUE),
        (ops.Backward("x"), INVALID_VALUE),
    ],
)
def test_an_unknown_slot_is_refused_and_changes_nothing(operation: Operation, code: str) -> None:
    machine = Machine(DeviceProfile(), Parts())
    before = machine.readings()
    assert machine.perform(operation).outcome == Rejected(code)
    assert machine.readings() == before


def test_the_readings_are_those_that_are_announced() -> None:
    announced = {(gauge, source) for gauge, sources in MACHINE_GAUGES.items() for source in sources}
    assert set(Machine(DeviceProfile(), Parts()).readings()) == announced


def test_readings_follow_what_is_owned(bench: Bench) -> None:
    bench.make("a = allocate 600", "b = allocate 600 pinned", "c = allocate 600 pageable", "d = allocate 600 managed")
    bench.make("s = create stream", "e = create event", "x = create instance on s", "n = node", "m = node of n")
    assert bench.gauge(Gauge.LIVE) == 4 * 1024
    assert bench.gauge(Gauge.BLOCKS) == 4
    assert bench.gauge(Gauge.STREAMS) == bench.gauge(Gauge.EVENTS) == bench.gauge(Gauge.INSTANCES) == 1
    assert bench.gauge(Gauge.NODES) == 2
    assert bench.gauge(Gauge.RETAINED) == 4 + 3 + 2
    assert bench.gauge(Gauge.BACKING_CALLS) == 4


def test_closing_twice_says_the_same_and_afterwards_everything_is_refused(bench: Bench) -> None:
    bench.make("a = allocate 600", "s = create stream", "stall s", "launch on s writes=a")
    first = bench.machine.close()
    second = bench.machine.close()
    assert first.observations
    assert second.observations == ()
    assert first.readings == second.readings
    assert bench("b = allocate 600") == "rejected invalid-value"
    assert bench.machine.readings() == first.readings


@pytest.mark.parametrize("mode", ["global", "relaxed"])
def test_a_machine_is_closed_in_the_middle_of_a_capture(bench: Bench, mode: str) -> None:
    bench.make("p = allocate 600 pinned", "d = allocate 600", "s = create stream", "t = create stream nonblocking")
    bench.make(
        "stall t", "copy p to d on t", f"begin capture on s mode={mode}", "launch on s writes=d", "free p", "free d"
    )
    readings = bench.machine.close().readings
    assert readings[Gauge.RESERVED, Source.LEDGER] == readings[Gauge.PINNED, Source.LEDGER] == 0
    assert readings[Gauge.EVENTS, Source.LEDGER] == 0


def _check(readings: Readings) -> None:
    assert min(readings.values()) >= 0
    for (gauge, source), value in readings.items():
        if source is Source.CLAIM and (gauge, Source.LEDGER) in readings:
            assert value == readings[gauge, Source.LEDGER]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), profile=st.sampled_from(PROFILES), length=st.integers(0, 150))
def test_random_sequences_never_raise_and_leave_nothing(seed: int, profile: DeviceProfile, length: int) -> None:
    machine = Machine(profile, Parts())
    for operation in Sequence(Random(seed)).operations(length):
        reply = machine.perform(operation)
        assert isinstance(reply.outcome, Allocated | Done | OutOfMemory | Rejected), operation
        _check(machine.readings())
    world = machine._world
    for stream in list(world.captures.active):
        machine.perform(ops.EndCapture(f"g_{stream.name}", stream.name))
    for slot in list(world.blocks):
        assert machine.perform(ops.Free(slot)).outcome == Done(), slot
    assert machine.readings()[Gauge.LIVE, Source.CLAIM] == machine.readings()[Gauge.BLOCKS, Source.CLAIM] == 0
    last = machine.close().readings
    assert last[Gauge.RESERVED, Source.LEDGER] == last[Gauge.PINNED, Source.LEDGER] == 0
    owned = sum(event.alive for event in world.event_slots.values())
    assert last[Gauge.EVENTS, Source.LEDGER] == owned  # the library's own are gone
    assert world.ledger.handles[HandleKind.GRAPH] == len(world.graphs)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), profile=st.sampled_from(PROFILES))
def test_the_same_sequence_does_the_same_twice(seed: int, profile: DeviceProfile) -> None:
    operations = Sequence(Random(seed)).operations(100)
    first, second = (Machine(profile, Parts()) for _ in range(2))
    assert [first.perform(operation) for operation in operations] == [second.perform(o) for o in operations]
    assert first.close() == second.close()
