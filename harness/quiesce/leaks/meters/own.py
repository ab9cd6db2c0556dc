"""What a test counts itself: gauges that it names and knows how to read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

from quiesce.leaks.owners import frame_text
from quiesce.leaks.quantities import BaseMeter, Quantity, Unreadable

OWN: Final = "own"

_EXAMPLES: Final = {"name": "rows", "unit": "bytes"}


class OwnMeter(BaseMeter):
    """Reads the functions that the tested code gave it."""

    family = OWN

    def __init__(self) -> None:
        self._readers: dict[Quantity, Callable[[], int]] = {}

    def add(self, name: str, read: Callable[[], int], unit: str) -> None:
        """Count what ``read`` returns under ``name``; a later round replaces the function of an earlier one.

        Raises :class:`TypeError` for what is no name, no function or no unit.
        """
        for role, text in (("name", name), ("unit", unit)):
            if not isinstance(text, str) or not text:
                raise TypeError(f"a gauge's {role} is {text!r}; write a text, such as {_EXAMPLES[role]!r}")
        if not callable(read):
            raise TypeError(f"gauge {name!r}: {read!r} cannot be called; give a function that returns a whole number")
        self._readers[Quantity(OWN, name, unit)] = read

    def read(self) -> Mapping[Quantity, int]:
        """Read them all. Raises :class:`Unreadable` for one that gives no whole number."""
        return {quantity: _number(quantity, read) for quantity, read in self._readers.items()}

    def origin(self, quantity: Quantity) -> str:
        """Name the function that counts it."""
        code = getattr(self._readers[quantity], "__code__", None)
        return "" if code is None else frame_text((code.co_filename, code.co_firstlineno))


def _number(quantity: Quantity, read: Callable[[], int]) -> int:
    try:
        return operator.index(read())
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise Unreadable(f"{quantity.name!r}: {said}; have its function return a whole number each time") from error
