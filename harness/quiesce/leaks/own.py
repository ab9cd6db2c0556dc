"""What a test counts itself: gauges that it names and knows how to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quiesce.leaks.owners import frame_text
from quiesce.leaks.quantities import Quantity

OWN: Final = "own"


class OwnMeter:
    """Reads the functions that the tested code gave it."""

    family = OWN

    def __init__(self) -> None:
        self._readers: dict[Quantity, Callable[[], int]] = {}

    def add(self, name: str, read: Callable[[], int], unit: str) -> None:
        """Count what ``read`` returns under ``name``; a later round replaces the function of an earlier one."""
        self._readers[Quantity(OWN, name, unit)] = read

    def absent(self) -> str:
        """Be there always."""
        return ""

    def settle(self) -> None:
        """Do nothing."""

    def read(self) -> Mapping[Quantity, int]:
        """Read them all."""
        return {quantity: int(read()) for quantity, read in self._readers.items()}

    def observe(self) -> None:
        """Do nothing."""

    def rest(self) -> None:
        """Do nothing."""

    def origin(self, quantity: Quantity) -> str:
        """Name the function that counts it."""
        code = getattr(self._readers[quantity], "__code__", None)
        return "" if code is None else frame_text((code.co_filename, code.co_firstlineno))

    def evidence(self, quantity: Quantity) -> str:
        """Know nothing more."""
        return ""
