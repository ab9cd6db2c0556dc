"""The reader of the log of kernels' wrong accesses, which lies next to a ledger; ``kernels/access_log.h`` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.simulator.damage import refusing_damage
from quiesce.simulator.kernel_names import readable_kernel_name, readable_variable_name

FIELDS: Final = 21


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction is: ``source`` and ``caller``, which inlines it, are FILE:LINE, or empty if not known."""

    source: str
    caller: str
    ptx_line: int
    instruction: str


@dataclass(frozen=True, slots=True)
class OtherAccess:
    """The access of another thread that a wrong access meets."""

    block: tuple[int, ...]
    thread: tuple[int, ...]
    writes: bool
    place: Place


@dataclass(frozen=True, slots=True)
class LoggedAccess:
    """A wrong access: the first of its kind of one instruction, in launches from one place by one test.

    ``launch`` is the number of the launch's record. ``test`` is the test of pytest that launched the kernel, or empty.
    ``symbol`` is the kernel's name as its compiler wrote it. ``made`` and ``freed`` are the numbers of the lines that
    say who allocated the block of a device's heap which is missed, and who freed it.
    """

    launch: int
    test: str
    kernel: str
    block: tuple[int, ...]
    thread: tuple[int, ...]
    place: Place
    other: OtherAccess | None
    count: int
    arrays: tuple[str, str] = ("", "")
    """The array of shared memory that it has to stay in, and the one that it uses; empty: none."""
    symbol: str = ""
    made: int | None = None
    freed: int | None = None


def read_accesses(ledger: Path) -> tuple[LoggedAccess, ...]:
    """Return the wrong accesses of a process, in the order of the observations that name them by number.

    Raises :class:`quiesce.errors.QuiesceError` for a log that is damaged.
    """
    path = ledger.with_suffix(".accesses")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ()
    lines = (line.split("\t") for line in text.split("\n"))  # the last one of a killed process may be cut
    with refusing_damage(path):
        return tuple(_access(line) for line in lines if len(line) == FIELDS)


def _access(fields: list[str]) -> LoggedAccess:
    count, launch, test, kernel, block, thread, *places, array, used, made, freed = fields
    other_block, other, writes = places[4:7]
    return LoggedAccess(
        int(launch),
        test,
        readable_kernel_name(kernel),
        _index(block),
        _index(thread),
        _place(places[:4]),
        OtherAccess(_index(other_block), _index(other), writes == "1", _place(places[7:])) if other else None,
        int(count),
        (readable_variable_name(array), readable_variable_name(used)),
        kernel,
        _line(made),
        _line(freed),
    )


def _line(text: str) -> int | None:
    return int(text) if text else None


def _place(fields: list[str]) -> Place:
    source, caller, ptx_line, instruction = fields
    return Place(source, caller, int(ptx_line), instruction)


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))
