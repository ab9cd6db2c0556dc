"""The reader of the calls of a process that failed, in a file next to its ledger; ``native/ledger/failed_calls.h``."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from quiesce.errors import QuiesceError
from quiesce.simulator.build import build_library

MAGIC: Final = 0x31444C4941465551
LAYOUT: Final = 1
HEADER: Final = struct.Struct("<QIIQ")
CALL: Final = struct.Struct("<64s3QIiI4x")
_INJECTED, _AFTERWARDS = 1, 2
_SURFACES: Final = ("cuda", "cu", "hip")
"""How the names of functions begin; of two that fit, the longer one comes first."""


@dataclass(frozen=True, slots=True)
class LoggedFailure:
    """One function that failed with one error at one place.

    ``unnoticed`` is how often the program neither fetched the error nor asked what it means. ``number`` counts the
    records that were made before the first failure; ``stack`` is in the log of call stacks, 0 where none was kept.
    ``is_injected`` says that the run asked for the failure, ``is_afterwards`` that the device was unusable.
    """

    function: str
    answer: int
    count: int
    unnoticed: int
    number: int
    stack: int
    is_injected: bool
    is_afterwards: bool


@dataclass(frozen=True, slots=True)
class FailureLog:
    """All failures of a process. ``lost`` counts those that found no room."""

    failures: tuple[LoggedFailure, ...]
    lost: int


def read_failures(ledger: Path) -> FailureLog:
    """Return the calls of a process that failed, in the order in which each failed first; its ledger need not exist.

    Raises :class:`quiesce.errors.QuiesceError` for a file of another layout.
    """
    path = ledger.with_suffix(".failed")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return FailureLog((), 0)
    magic, layout, count, lost = HEADER.unpack_from(data) if len(data) >= HEADER.size else (0, 0, 0, 0)
    if not magic:  # the process was killed while it made the file
        return FailureLog((), 0)
    if (magic, layout) != (MAGIC, LAYOUT):
        raise QuiesceError(f"{path}: this is no file of failed calls of layout {LAYOUT}")
    return FailureLog(tuple(_failures(data, min(count, (len(data) - HEADER.size) // CALL.size))), lost)


def _failures(data: bytes, count: int) -> Iterator[LoggedFailure]:
    for number in range(count):
        fields = CALL.unpack_from(data, HEADER.size + number * CALL.size)
        function, times, unnoticed, first, stack, answer, flags = fields
        name = function.split(b"\0", 1)[0].decode("utf-8", "replace")
        yield LoggedFailure(
            name, answer, times, unnoticed, first, stack, bool(flags & _INJECTED), bool(flags & _AFTERWARDS)
        )


def error_name(function: str, answer: int) -> str:
    """Return what the library of a function calls an error, such as ``cudaErrorInvalidValue``; empty if unknown.

    Raises :class:`quiesce.errors.BackendUnavailable` where the runtime can't be compiled.
    """
    surface = next((each for each in _SURFACES if function.startswith(each)), "")
    return _error_name(surface, answer) if surface else ""


@cache
def _error_name(surface: str, answer: int) -> str:
    library = ctypes.CDLL(str(build_library()))
    if surface == "cu":
        name = ctypes.c_char_p()
        library.cuGetErrorName(answer, ctypes.byref(name))
        return (name.value or b"").decode()
    ask = getattr(library, f"{surface}GetErrorName")
    ask.restype = ctypes.c_char_p
    text: bytes = ask(answer)
    return text.decode() if b" " not in text else ""
