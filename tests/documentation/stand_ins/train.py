"""A program that allocates, fills and frees memory of a device, where there is a runtime to ask for it."""

from __future__ import annotations

import ctypes
from contextlib import suppress

RUNTIMES = (("libcudart.so.12", "cuda"), ("libcudart.so.13", "cuda"), ("libamdhip64.so.7", "hip"))


def runtime() -> tuple[ctypes.CDLL, str] | None:
    """Return the first runtime that is there, and how its functions begin."""
    for name, prefix in RUNTIMES:
        with suppress(OSError):
            return ctypes.CDLL(name), prefix
    return None


def step(size: int = 1 << 20) -> bool:
    """Fill a block of memory and free it; return whether there was memory."""
    found = runtime()
    if found is None:
        return False
    library, prefix = found
    block = ctypes.c_void_p()
    if getattr(library, f"{prefix}Malloc")(ctypes.byref(block), ctypes.c_size_t(size)):
        return False
    getattr(library, f"{prefix}Memset")(block, 0, ctypes.c_size_t(size))
    getattr(library, f"{prefix}Free")(block)
    return True


if __name__ == "__main__":
    for _ in range(3):
        step()
