"""Numba's pending frees, if the tested code has loaded Numba; nothing here ever imports it.

What a dropped array held is freed with others, ten at a time or once a fifth of the device waits for it, and within
``defer_cleanup`` not at all. ``deallocations.clear()`` is what Numba calls itself where memory runs out.
"""

from __future__ import annotations

import sys


def finish_numbas_frees() -> None:
    """Have Numba free what it put off, on the devices on which it has a context."""
    devices = getattr(sys.modules.get("numba.cuda.cudadrv.devices"), "gpus", None)
    if devices is None or "lst" not in vars(devices):  # it has not looked for devices yet
        return
    for device in devices:
        context = device.primary_context
        pending = () if context is None else (context.deallocations, context.memory_manager.deallocations)
        if any(map(len, pending)):
            with device:
                for each in pending:
                    each.clear()
