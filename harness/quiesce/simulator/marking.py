"""``quiesce.mark``: a program says where one of its iterations ends; nothing happens outside of ``quiesce exec``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

_SETTINGS: Final = "QUIESCE_SIMULATOR"
"""What ``quiesce exec`` sets for its program."""
_LIBRARY: Final = "libquiesce-simulator.so"
_found: list[Callable[[bytes], int]] = []


def mark(name: object) -> None:
    """Mark a moment, such as the end of an iteration: from mark to mark of one name, no more may be held.

    The name is taken as ``str`` writes it, and is the same at each mark of a loop.

    Under ``quiesce exec``, what grows is a finding with the line that allocated it. Without it, and before the program
    has loaded a CUDA or HIP runtime, nothing happens.
    """
    text = str(name)
    if not os.environ.get(_SETTINGS):
        return
    if not _found and (function := _look()) is not None:
        _found.append(function)
    if _found:
        _found[0](text.encode("utf-8", "backslashreplace"))


def _look() -> Callable[[bytes], int] | None:
    """Return the function of the simulated runtime, under whatever name the program loaded that."""
    import ctypes

    try:
        library = ctypes.CDLL(_LIBRARY, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except (OSError, AttributeError):  # no program loaded it yet; or the system is none on which there is one
        return None
    function = library.quiesce_mark
    function.argtypes = [ctypes.c_char_p]
    return function
