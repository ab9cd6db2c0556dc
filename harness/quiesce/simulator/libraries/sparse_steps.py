"""Work of cuSPARSE that takes several calls, as its object in the client's memory has it.

``native/libraries/sparse_work.c`` makes and ends such an object. It keeps what each step was given, and later steps
read it there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.sparse_operands import require
from quiesce.simulator.libraries.table import Call

_STEPS: Final = struct.Struct("<2q5Q5Q2q")
_UPDATED_AT, _BUFFERS_AT, _PRODUCTS_AT = 8, 16, 96


@dataclass(frozen=True, slots=True)
class Steps:
    """What is known of the work."""

    operand: str
    address: int
    done: int
    """The last step."""
    is_updated: bool
    buffers: tuple[int, ...]
    """What each step was given, from the first one."""
    products: int
    """Products of two elements that the result takes."""
    count: int
    """Elements of the result."""

    @classmethod
    def of(cls, call: Call[Any], operand: str, address: int, *, done: int = 0) -> Steps:
        """Read it in the host's memory. Refuses work of which a step before this one isn't done."""
        require(address != 0)
        values = _STEPS.unpack(call.host(operand, address, np.uint8, _STEPS.size).tobytes())
        require(values[0] >= done)
        return cls(operand, address, values[0], bool(values[1]), values[2:7], *values[12:])

    def tell(self, call: Call[Any], done: int, **buffers: int) -> None:
        """Say that a step is done, and which buffers it was given, each by its number (``buffer_1``)."""
        call.tell_host(self.operand, self.address, np.array([done, 0], np.int64))
        for name, buffer in buffers.items():
            at = self.address + _BUFFERS_AT + 8 * (int(name.rpartition("_")[2]) - 1)
            call.tell_host(self.operand, at, np.array([buffer], np.uint64))

    def tell_update(self, call: Call[Any]) -> None:
        """Say that values were given after the last step."""
        call.tell_host(self.operand, self.address + _UPDATED_AT, np.array([1], np.int64))

    def give_counts(self, call: Call[Any], products: int, count: int) -> None:
        """Say what was found, for calls that come later."""
        call.give_to_host(self.operand, self.address + _PRODUCTS_AT, np.array([products, count], np.int64))
