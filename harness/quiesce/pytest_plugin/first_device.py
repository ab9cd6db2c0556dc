"""The first device that this process may see: what identifies it, and how much memory it has.

A vendor's driver is asked in a process of its own, for it would keep this one from forking. It answers for what
``CUDA_VISIBLE_DEVICES`` and its kin show.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Final

from quiesce.pytest_plugin.keys import EXEC_SETTINGS

SECONDS_MAX: Final = 60

SIMULATED_BYTES: Final = 16 << 30
"""The memory of a simulated device that was given no capacity (``machine/settings.c``)."""

QUESTION: Final = """
import ctypes
free, size, device = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_int()
name, bus = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(64)

def cuda(driver):
    if driver.cuInit(0) == driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
        driver.cuDeviceGetUuid(name, device)
        return driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0

def hip(runtime):
    if runtime.hipMemGetInfo(ctypes.byref(free), ctypes.byref(size)) == 0:
        return runtime.hipDeviceGetPCIBusId(bus, len(bus), 0) == 0

for library, ask in ("libcuda.so.1", cuda), *((f"libamdhip64.so.{release}", hip) for release in (7, 6, 5)):
    try:
        if ask(ctypes.CDLL(library)):
            print(bus.value.decode() or bytes(name).hex(), size.value)
            break
    except OSError:
        pass
"""
"""A program that prints the identifier and the bytes of the first device, or nothing where there is none."""


@dataclass(frozen=True, slots=True)
class FirstDevice:
    """One device. ``name`` is the same in each process that sees it."""

    name: str
    total_bytes: int


@cache
def first_device() -> FirstDevice | None:
    """Return the device, or None where there is none. Under ``quiesce exec`` it is the simulated one."""
    if text := os.environ.get(EXEC_SETTINGS):
        settings = dict(word.partition("=")[::2] for word in text.split(";"))
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("HIP_VISIBLE_DEVICES", "0"))
        name = f"simulated {settings['folder']} {visible.partition(',')[0]}"
        return FirstDevice(name, int(settings.get("capacity", SIMULATED_BYTES)))
    asked = subprocess.run(  # noqa: S603 - this interpreter, and a text of this file
        [sys.executable, "-I", "-S", "-c", QUESTION], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )
    answer = asked.stdout.split()
    return FirstDevice(answer[0], int(answer[1])) if len(answer) == 2 and int(answer[1]) else None
