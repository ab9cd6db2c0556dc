"""A meter that reads what a test tells it to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quiesce.leaks.meters.memory import HEAP
from quiesce.leaks.quantities import C_HEAP, DESCRIPTORS, Quantity


@dataclass
class ToldMeter:
    """Reads what ``tell`` returns."""

    tell: Callable[[], int]
    family: str = DESCRIPTORS
    unit: str = "things"
    why_absent: str = ""
    calls: list[str] = field(default_factory=list)

    @property
    def quantity(self) -> Quantity:
        return Quantity(self.family, f"told of {self.family}", self.unit)

    def absent(self) -> str:
        return self.why_absent

    def settle(self) -> None:
        self.calls.append("settle")

    def read(self) -> Mapping[Quantity, int]:
        self.calls.append("read")
        return {self.quantity: self.tell()}

    def observe(self) -> None:
        self.calls.append("observe")

    def rest(self) -> None:
        self.calls.append("rest")

    def origin(self, quantity: Quantity) -> str:
        return f"origin of {quantity.family}"

    def evidence(self, quantity: Quantity) -> str:
        return ""


@dataclass
class ToldListing(ToldMeter):
    """Reads it as so many things that can be told apart."""

    def present(self) -> frozenset[int]:
        return frozenset(range(self.tell()))


@dataclass
class ToldHeap(ToldMeter):
    """Reads it as bytes of the C heap."""

    family: str = C_HEAP

    @property
    def quantity(self) -> Quantity:
        return HEAP
