"""The cost of an operation does not grow with how many blocks live: counted steps, never time."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from quiesce.allocators.reference.machine import Machine
from quiesce.allocators.reference.world import Parts
from quiesce.model import operations as ops
from quiesce.model.backend import DeviceProfile
from quiesce.model.gauges import Gauge, Source
from quiesce.model.outcomes import Allocated, Done

FEW: Final = 1_000
MANY: Final = 100_000
TURNS: Final = 3_000


def _size(random: Random, kind: str) -> int:
    return random.randrange(1, 20_000) if kind == "small" else (1 << 20) + random.randrange(1, 200_000) * 512


def _steps_per_operation(kind: str, live: int) -> float:
    """Return the counted steps of freeing a random block and allocating another, while ``live`` blocks live."""
    machine = Machine(DeviceProfile(capacity_bytes=1 << 50), Parts())
    random = Random(7)
    slots = [f"a{i}" for i in range(live)]
    for slot in slots:
        assert isinstance(machine.perform(ops.Allocate(slot, _size(random, kind))).outcome, Allocated)
    random.shuffle(slots)
    for _ in range(live // 10):  # what is freed and cached lies between what lives
        assert machine.perform(ops.Free(slots.pop())).outcome == Done()
    before = machine.readings()[Gauge.COST, Source.LEDGER]
    for turn in range(TURNS):
        place = random.randrange(len(slots))
        slots[place], slots[-1] = slots[-1], slots[place]
        machine.perform(ops.Free(slots.pop()))
        machine.perform(ops.Allocate(f"b{turn}", _size(random, kind)))
        slots.append(f"b{turn}")
    return (machine.readings()[Gauge.COST, Source.LEDGER] - before) / (2 * TURNS)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["small", "oversized"])
def test_steps_per_operation_do_not_grow_with_live_blocks(kind: str) -> None:
    few, many = _steps_per_operation(kind, FEW), _steps_per_operation(kind, MANY)
    assert 0 < many <= 2 * few
