"""What is kept of the uses of a block tells every conflict that a list of all of them tells, for the cost of a few."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from quiesce.allocators.oracle.clocks import Clock, HappensBefore, StreamState
from quiesce.simulator.judge.races import Use, Uses
from quiesce.simulator.runtime.kernel_logs import Touch
from quiesce.simulator.runtime.ledger import Flag, Record, Seen, Thing


@dataclass(frozen=True)
class Entered:
    """A use as the list keeps it."""

    start: int
    end: int
    use: Use


class Program:
    """Three streams, the uses of one block, and beside what is kept of them a list of all."""

    def __init__(self, order: HappensBefore) -> None:
        self.order = order
        self.streams = [order.new_stream(name, 0, nonblocking=True) for name in "abc"]
        self.recorded: Clock = {}
        self.all: list[Entered] = []
        self.uses = Uses(order)

    def perform(self, name: str, stream: StreamState) -> None:
        if name == "record":
            self.recorded = self.order.record(stream)
        elif name == "wait":
            self.order.wait(stream, self.recorded)
        else:
            self.order.complete(self.order.encompassed(stream))

    def use(self, stream: StreamState, start: int, end: int, *, writes: bool) -> tuple[set[int], set[int]]:
        """Enter a use; return the numbers of those that it conflicts with, by the list and by what is kept."""
        touch = Touch.WRITE if writes else Touch.READ
        use = Use(stream, self.order.enqueue(stream), touch, record(len(self.all)))
        listed = {
            each.use.record.number
            for each in self.all
            if each.start < end and start < each.end and (writes or each.use.touch.writes)
            if not each.use.is_before(self.order, stream)
        }
        kept = {each.record.number for each, _, _ in self.uses.unordered(start, end, use)}
        self.uses.enter(start, end, use)
        self.all.append(Entered(start, end, use))
        return listed, kept


def record(number: int) -> Record:
    return Record(number, Seen.WRITTEN, Thing.DEVICE, 0, 0, "", Flag(0), 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("size", [12, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_a_use_conflicts_where_one_of_all_uses_does(size: int, seed: int) -> None:
    draw = random.Random(seed)
    program = Program(HappensBefore(legacy_default_stream=True))
    conflicts = 0
    for _ in range(1000):
        stream = draw.choice(program.streams)
        if draw.random() < 0.3:
            program.perform(draw.choices(("record", "wait", "synchronize"), (9, 9, 1))[0], stream)
            continue
        start = draw.randrange(size)
        end = min(size, start + draw.randint(1, 8))
        listed, kept = program.use(stream, start, end, writes=draw.random() < 0.5)
        assert kept <= listed
        assert bool(kept) == bool(listed)
        conflicts += bool(listed)
    assert 50 < conflicts < 900


def test_a_conflict_says_which_bytes_both_touch() -> None:
    program = Program(HappensBefore(legacy_default_stream=True))
    first, second, _ = program.streams
    program.use(first, 0, 8, writes=True)
    program.use(first, 2, 4, writes=True)
    later = Use(second, program.order.enqueue(second), Touch.READ, record(2))
    found = [(use.record.number, low, count) for use, low, count in program.uses.unordered(3, 9, later)]
    assert found == [(0, 4, 4), (1, 3, 1)]


@pytest.mark.parametrize("parts", [1, 1000], ids=["the whole block", "different parts"])
@pytest.mark.parametrize("waits", [False, True], ids=["nobody waits", "the host waits"])
def test_a_use_costs_what_it_touches(parts: int, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    is_before = Use.is_before

    def counting(use: Use, order: HappensBefore, stream: StreamState | None) -> bool:
        nonlocal asked
        asked += 1
        return is_before(use, order, stream)

    monkeypatch.setattr(Use, "is_before", counting)
    order = HappensBefore(legacy_default_stream=True)
    first, second = order.new_stream("a", 0, nonblocking=True), order.new_stream("b", 0, nonblocking=True)
    uses = Uses(order)
    for number in range(4000):
        stream = (first, second)[number & 1]
        if waits and number % 100 == 99:
            order.complete(order.encompassed(stream))
        use = Use(stream, order.enqueue(stream), Touch.WRITE, record(number))
        start = number % parts * 10
        list(uses.unordered(start, start + 10, use))
        uses.enter(start, start + 10, use)
    assert asked < 10 * 4000
