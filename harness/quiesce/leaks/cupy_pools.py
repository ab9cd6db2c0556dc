"""CuPy's memory pools, if the tested code has loaded CuPy; nothing here ever imports it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from quiesce.leaks.quantities import CUPY, Quantity

USED: Final = Quantity(CUPY, "memory in use of CuPy's pool")
HELD: Final = Quantity(CUPY, "memory held by CuPy's pool after a trim")
PINNED: Final = Quantity(CUPY, "free pinned blocks of CuPy's pool after a trim", "blocks")


class CupyMeter:
    """Reads the default pools of the current device, as CuPy counts them."""

    family = CUPY

    def absent(self) -> str:
        """Say so as long as CuPy is not loaded."""
        return "" if _cupy() is not None else "CuPy is not loaded"

    def settle(self) -> None:
        """Wait for the device, so that blocks in flight come back, and give back what the pools merely cache."""
        cupy = _cupy()
        if cupy is None:
            return
        cupy.cuda.runtime.deviceSynchronize()
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def read(self) -> Mapping[Quantity, int]:
        """Read what is used and what is held."""
        cupy = _cupy()
        if cupy is None:
            return {}
        pool = cupy.get_default_memory_pool()
        return {
            USED: int(pool.used_bytes()),
            HELD: int(pool.total_bytes()),
            PINNED: int(cupy.get_default_pinned_memory_pool().n_free_blocks()),
        }

    def observe(self) -> None:
        """Do nothing: an array's place is known from Python's memory."""

    def rest(self) -> None:
        """Do nothing."""

    def origin(self, quantity: Quantity) -> str:
        """Leave it to Python's memory: what keeps a block of the pool is an object."""
        return ""

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""


def _cupy() -> Any:
    """Return CuPy once its import is complete, or None."""
    cupy = sys.modules.get("cupy")
    return cupy if hasattr(cupy, "get_default_memory_pool") else None
