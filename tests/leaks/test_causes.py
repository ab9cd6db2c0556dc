"""One growth for each cause: what follows from another is a line of its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from quiesce.leaks.explaining.causes import Causes
from quiesce.leaks.explaining.lines import Opened
from quiesce.leaks.meters.ledger import NOWHERE, Located, Place
from quiesce.leaks.meters.tracing import Site, Tracing
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, CUPY, DEVICE, FREE_MEMORY, MODULES, STREAMS, Quantity
from quiesce.leaks.readings import Readings
from quiesce.model.findings import CallSite, Frame

from .meters import ToldMeter

ROUNDS: Final = 6
LINE: Final = ("test_it.py", 5)
OTHER_LINE: Final = ("test_it.py", 9)


@dataclass(frozen=True)
class Case:
    """What grows per round, by family, the lines that keep Python's memory, and what is then told."""

    growth: dict[str, int]
    told: tuple[str, ...]
    sites: tuple[tuple[str, int], ...] = ()
    located: tuple[str, ...] = ()
    is_held: bool = False


CASES: Final = {
    "device memory of CuPy's pools": Case({CUPY: 512, DEVICE: 512}, (CUPY,), located=(DEVICE,)),
    "more of it than they have": Case({CUPY: 512, DEVICE: 600}, (CUPY, DEVICE), located=(DEVICE,)),
    "a stream and the C heap": Case({STREAMS: 1, C_HEAP: 70}, (STREAMS,), located=(STREAMS,)),
    "the C heap alone": Case({C_HEAP: 70}, (C_HEAP,)),
    "a native leak next to lines of Python": Case({C_HEAP: 32}, ("python", C_HEAP), (LINE,)),
    "less than a block of malloc next to them": Case({C_HEAP: 31}, ("python",), (LINE,)),
    "less than a block of malloc alone": Case({C_HEAP: 31}, (C_HEAP,)),
    "a stream and a block": Case({STREAMS: 1, DEVICE: 64}, (DEVICE, STREAMS), located=(STREAMS, DEVICE)),
    "an object made where the block was": Case({DEVICE: 64}, (DEVICE,), (LINE,), (DEVICE,)),
    "an object made elsewhere beside a lost block": Case({DEVICE: 64}, (DEVICE, "python"), (OTHER_LINE,), (DEVICE,)),
    "an object made elsewhere that holds it": Case({DEVICE: 64}, (DEVICE,), (OTHER_LINE,), (DEVICE,), is_held=True),
    "an array of CuPy's on a real GPU": Case({CUPY: 512, FREE_MEMORY: 512, C_HEAP: 9}, (CUPY,), (OTHER_LINE,)),
    "the driver's figure alone": Case({FREE_MEMORY: 4 << 20}, (FREE_MEMORY,)),
    "variables of a module": Case({MODULES: 1, DEVICE: 4}, (MODULES,), located=(MODULES,)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_cause_is_told_once(case: Case) -> None:
    units = {STREAMS: "streams", MODULES: "modules"}
    counts = dict.fromkeys(case.growth, 0)
    meters = [ToldMeter(partial(counts.__getitem__, name), name, units.get(name, "bytes")) for name in counts]
    readings = Readings(meters, Plan())
    for _ in range(ROUNDS):
        readings.take()
        for name, growth in case.growth.items():
            counts[name] += growth
    quantities = {meter.family: meter.quantity for meter in meters}
    site = CallSite("allocated by", "cudaMalloc", 3, (Frame("test", *LINE),))
    places: dict[Quantity, list[Place]] = {
        quantities[family]: [Place(site, count=8, size_bytes=64, rounds=8)] for family in case.located
    }
    sites = [Site(line, 100.0, 1.0) for line in case.sites]
    located = Located(places, case.is_held) if places else NOWHERE
    causes = Causes(readings, Tracing(Owners([])), list(quantities.values()), sites, located, Opened(), Owners([]))
    growths = causes.growths(endured=ROUNDS, untraced=ROUNDS)
    assert tuple(growth.quantity.family for growth in growths) == case.told
    first = growths[0]
    assert ("at the same time, Python's memory grows by 100 bytes per round" in first.evidence) == (
        bool(case.sites) and "python" not in case.told
    )
    assert ("at the same time, told of c-heap grows by" in first.evidence) == (
        C_HEAP in case.growth and C_HEAP not in case.told
    )
    assert any(growth.call_sites for growth in growths) == bool(case.located)
