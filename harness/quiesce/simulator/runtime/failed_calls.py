"""The readers of two files next to a ledger: calls of a process that failed, and requests for a device that got none.

``native/ledger/failed_calls.h`` writes the first and ``native/ledger/refusals.h`` the second.
"""

from __future__ import annotations

import ctypes
import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from quiesce.model.errors import QuiesceError
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.run_folder import refusing_damage

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

    Raises :class:`QuiesceError` for a file of another layout.
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

    Raises :class:`BackendUnavailable` where the runtime can't be compiled.
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


class RefusalKind(enum.StrEnum):
    """Why a call was refused."""

    NOT_SIMULATED = "not simulated"
    """The function exists by name only."""
    FAILED = "failed"
    """The call failed, and nothing had been made before."""
    ARMED = "armed"
    """The run asked for that failure (``--fail``)."""
    FORKED = "forked"
    """The process is a child of ``fork()``, which inherits no device."""
    NOT_STARTED = "not started"
    """The simulated machine can't start in the process, which ends; the caller is a sentence that says why."""
    NOT_INSTALLED = "not installed"
    """NVIDIA's compiler was asked for and is not installed; the function is a sentence that says what to install."""
    MISSING = "missing"
    """No function was called: one was looked for that the driver or runtime of this release does not have."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One function that was refused. ``caller`` is the file that the call came from, empty where that is not known."""

    kind: RefusalKind
    function: str
    status: int
    caller: str = ""


def read_refusals(ledger: Path) -> tuple[Refusal, ...]:
    """Return what one process was refused, in the order in which it was; its ledger need not exist.

    A function that is not simulated says so itself and fails as any other: it is told once, with its callers where
    these are known. Raises :class:`QuiesceError` for a log that is damaged.
    """
    path = ledger.with_suffix(".refusals")
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ()
    with refusing_damage(path):
        refusals = tuple(dict.fromkeys(_parsed(text)))
    missing = {refusal.function for refusal in refusals if refusal.kind is RefusalKind.NOT_SIMULATED}
    called = {refusal.function for refusal in refusals if refusal.caller}
    return tuple(
        refusal
        for refusal in refusals
        if not (refusal.kind is RefusalKind.FAILED and refusal.function in missing)
        and (refusal.caller or refusal.function not in called)
    )


def _parsed(text: str) -> Iterator[Refusal]:
    for line in text.split("\n"):
        words = line.split("\t", 3)
        if len(words) == 4:  # the last line of a process that was killed may be cut
            yield Refusal(RefusalKind(words[0]), words[1], int(words[2]), words[3])
