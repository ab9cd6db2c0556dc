"""What glibc says of its own heap."""

from __future__ import annotations

import ctypes
import platform
import sys


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc's malloc.h."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


class GlibcHeap:
    """The heap of this process. ``absent`` says why it cannot be asked; then nothing else may be called."""

    def __init__(self) -> None:
        self.absent = _why_absent()
        if not self.absent:
            self.library = ctypes.PyDLL(None)
            self.library.mallinfo2.restype = _Mallinfo2
            self.library.malloc_trim.argtypes = [ctypes.c_size_t]

    def in_use_bytes(self) -> int:
        """Return what is in use in every arena and in mappings of their own; what malloc keeps at hand counts."""
        info = self.library.mallinfo2()
        return int(info.uordblks + info.hblkhd)

    def trim(self) -> None:
        """Give the pages back to the system on which nothing is in use."""
        self.library.malloc_trim(0)


def _why_absent() -> str:
    if sys.platform != "linux":
        return f"{platform.system()} does not count it"
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        return "this C library has no mallinfo2; glibc has it since 2.33"
    return ""
