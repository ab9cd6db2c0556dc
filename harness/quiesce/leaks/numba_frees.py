"""Numba's pending frees, if the tested code has loaded Numba; nothing here ever imports it.

What a dropped array held is freed with others, ten at a time or once a fifth of the device waits for it, and within
``defer_cleanup`` not at all. ``deallocations.clear()`` is what Numba calls itself where memory runs out.
"""

from __future__ import annotations

import sys
from typing import Any, Final

_PACKAGE: Final = "numba.cuda.cudadrv"
"""In Numba itself as in numba-cuda, the package that took its place."""


def finish_numbas_frees() -> None:
    """Have Numba free what it put off, on the devices on which it has a context.

    Its driver knows the devices that it has looked for. To ask its list of devices would make it look for them.
    """
    driver = getattr(sys.modules.get(f"{_PACKAGE}.driver"), "driver", None)
    devices = getattr(sys.modules.get(f"{_PACKAGE}.devices"), "gpus", None)
    if driver is None or devices is None:
        return
    known: dict[int, Any] = vars(driver).get("devices", {})  # any other name it would ask the CUDA driver for
    for number, device in list(known.items()):
        context = device.primary_context
        pending = () if context is None else (context.deallocations, context.memory_manager.deallocations)
        if any(map(len, pending)):
            with devices[number]:
                for each in pending:
                    each.clear()
