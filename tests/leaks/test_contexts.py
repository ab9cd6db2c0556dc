"""Contexts that tested code opened: how many are open, what they hold, and who asked for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import quiesce
from quiesce.backends.reference import backend as reference
from quiesce.leaks.meters.contexts import OPEN, ContextMeter, WatchedContext
from quiesce.leaks.owners import Owners
from quiesce.leaks.quantities import CONTEXTS, Quantity
from quiesce.model import operations as ops
from quiesce.model.backend import BackendFault, Capability, Closing, Context, Description, DeviceProfile, Reply
from quiesce.model.gauges import Gauge, Readings
from quiesce.model.operations import Operation

MIB = 1 << 20
LIVE = Quantity(CONTEXTS, f"'{Gauge.LIVE}' of open contexts", "bytes")
RESERVED = Quantity(CONTEXTS, f"'{Gauge.RESERVED}' of open contexts", "bytes")
STREAMS = Quantity(CONTEXTS, f"'{Gauge.STREAMS}' of open contexts", "things")


@pytest.fixture
def meter() -> ContextMeter:
    return ContextMeter(Owners([str(Path(quiesce.__file__).parent)]))


def opened(meter: ContextMeter) -> WatchedContext:
    context = meter.watch(reference()).open(DeviceProfile())
    assert isinstance(context, WatchedContext)
    return context


def line_of(function: object) -> int:
    return function.__code__.co_firstlineno  # type: ignore[attr-defined, no-any-return]


def test_contexts_count_until_they_are_closed(meter: ContextMeter) -> None:
    assert (meter.absent(), meter.read()) == ("", {OPEN: 0})
    first, second = opened(meter), opened(meter)
    assert meter.read()[OPEN] == 2
    first.close()
    assert meter.read()[OPEN] == 1
    second.close()
    second.close()
    assert meter.read() == {OPEN: 0}


def test_what_they_hold_is_added_up(meter: ContextMeter) -> None:
    contexts = [opened(meter) for _ in range(2)]
    for context in contexts:
        context.perform(ops.Allocate("a", MIB))
        context.perform(ops.CreateStream("s"))
    counted = meter.read()
    assert (counted[LIVE], counted[STREAMS]) == (2 * MIB, 2)
    assert contexts[0].readings() != {}
    contexts[0].perform(ops.Free("a"))
    counted = meter.read()
    assert counted[LIVE] == MIB
    assert counted[RESERVED] > MIB, "it is cached"
    meter.settle()
    assert meter.read()[RESERVED] < counted[RESERVED], "what is cached is given back"


def test_a_backend_and_a_context_answer_like_themselves(meter: ContextMeter) -> None:
    backend = meter.watch(reference())
    assert backend.describe() == reference().describe()
    assert backend.name == "reference"  # type: ignore[attr-defined]
    dead = Dead()
    context = meter.watch(dead).open(DeviceProfile())
    assert context.performed is dead.performed  # type: ignore[attr-defined]


def test_who_asked_for_what_is_still_there(meter: ContextMeter) -> None:
    old = opened(meter)
    old.perform(ops.Allocate("before", 64))
    meter.observe()
    assert (meter.origin(OPEN), meter.origin(LIVE)) == ("", "")
    new = opened(meter)
    new.perform(ops.Allocate("a", 64))
    old.perform(ops.Allocate("b", 64))
    new.perform(ops.Free("a"))
    here = line_of(test_who_asked_for_what_is_still_there)
    asked = "context = meter.watch(reference()).open(DeviceProfile())"
    assert meter.origin(OPEN) == f"{__file__}:{line_of(opened) + 1}: {asked}"
    assert meter.origin(LIVE) == f"{__file__}:{here + 7}: old.perform(ops.Allocate('b', 64))".replace("'", '"')
    assert meter.evidence(LIVE) == meter.origin(LIVE)
    meter.rest()
    assert meter.origin(OPEN) != "", "those that are new may still be closed"


def test_the_same_line_is_told_once(meter: ContextMeter) -> None:
    meter.observe()
    for _ in range(3):
        opened(meter)
    assert meter.evidence(OPEN) == meter.origin(OPEN)


def test_only_what_is_new_is_closed(meter: ContextMeter) -> None:
    opened(meter)
    meter.observe()
    opened(meter)
    opened(meter)
    meter.close_new()
    assert meter.read()[OPEN] == 1


class Dead:
    """A context whose driver has died, and its backend."""

    foresees = False

    def __init__(self) -> None:
        self.performed: list[Operation] = []

    def describe(self) -> Description:
        return Description("dead", "1", frozenset({Capability.POOL, Capability.PINNED}))

    def open(self, profile: DeviceProfile) -> Context:
        return self

    def perform(self, operation: Operation) -> Reply:
        self.performed.append(operation)
        raise BackendFault("subject_survives", "it died")

    def readings(self) -> Readings:
        raise BackendFault("subject_survives", "it died")

    def close(self) -> Closing:
        raise BackendFault("subject_survives", "it died")


def test_one_that_died_keeps_nothing_from_the_others(meter: ContextMeter) -> None:
    dead = Dead()
    meter.watch(dead).open(DeviceProfile())
    alive = opened(meter)
    alive.perform(ops.Allocate("a", MIB))
    alive.perform(ops.Free("a"))
    meter.settle()
    counted = meter.read()
    assert (counted[OPEN], counted[RESERVED]) == (2, 0)
    assert [type(each) for each in dead.performed] == [ops.Trim], "it has no streams to wait for, and then it is dead"
    meter.close_new()
    assert meter.read() == {OPEN: 0}
