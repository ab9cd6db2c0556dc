"""What meters of libraries have in common: objects of Python are what keeps the memory, and have a place."""

from __future__ import annotations

from quiesce.leaks.quantities import Quantity


class LibraryMeter:
    """What meters of libraries have in common. An object is what keeps a block, and its place is known from Python."""

    family = ""

    def settle(self) -> None:
        """Do nothing: there is nothing that is merely cached."""

    def observe(self) -> None:
        """Do nothing."""

    def rest(self) -> None:
        """Do nothing."""

    def origin(self, quantity: Quantity) -> str:
        """Leave it to Python's memory."""
        return ""

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""
