"""Lines of source around a place, quoted when a finding is made: a report holds them, and opens no file.

Findings about kernels quote the lines that their kernels were compiled from, or say what to do where there are none.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from quiesce.files import open_regular
from quiesce.model.findings import Finding, Quotation
from quiesce.simulator.runtime import LoggedAccess, ProgramSources

AROUND: Final = 1
"""How many lines are quoted before the place, and after it."""
FILE_BYTES_MAX: Final = 1 << 20
LINE_LENGTH_MAX: Final = 160


def quote_file(path: str, line: int, recorded: str = "") -> Quotation | None:
    """Return the lines around one of a file, or None where that is no text, has no such line or is too long.

    ``recorded`` is the line as it was when the code ran, if that is known: no other one is quoted.
    """
    content = _read(path)
    return None if content is None else quote_text(path, line, content, recorded)


def quote_text(path: str, line: int, text: str, recorded: str = "") -> Quotation | None:
    """Return the lines around one of a text that a file of that name had."""
    lines = text.splitlines()
    if not 1 <= line <= len(lines) or (recorded and lines[line - 1].strip() != recorded):
        return None
    first = max(1, line - AROUND)
    shown = lines[first - 1 : min(len(lines), line + AROUND)]
    indent = min((len(each) - len(each.lstrip()) for each in shown if each.strip()), default=0)
    return Quotation(path, line, first, tuple(_shortened(each[indent:].expandtabs(4).rstrip()) for each in shown))


def with_allocation_quoted(finding: Finding) -> Finding:
    """Return a finding with the lines around the place in its ``allocated_by``, if that says what the line was."""
    path, _, number = finding.allocated.rpartition(":")
    recorded = finding.allocated_by.partition(f"{finding.allocated}: ")[2].partition("\n")[0].strip()
    if not path or not recorded or not number.isdecimal():
        return finding
    quotation = quote_file(path, int(number), recorded)
    return finding if quotation is None else replace(finding, quoted=(quotation,))


def _read(path: str) -> str | None:
    """Return the text of a file; nothing is waited for, as that of a pipe, and nothing without an end is read."""
    try:
        with os.fdopen(open_regular(path, follows=True), "rb") as stream:
            content = stream.read(FILE_BYTES_MAX + 1)
            return content.decode("utf-8") if len(content) <= FILE_BYTES_MAX else None
    except (OSError, ValueError):
        return None


def _shortened(line: str) -> str:
    return line if len(line) <= LINE_LENGTH_MAX else f"{line[:LINE_LENGTH_MAX]}…"


_LINES: Final = (
    (re.compile(r"B\d+v\d+B|cudapy"), "write @cuda.jit(lineinfo=True)"),
    (re.compile(r"_cuda_kernel_(?:forward|backward)$"), "set warp.config.lineinfo = True before the kernels are built"),
    (re.compile(""), "compile with nvcc -lineinfo (NVRTC: --generate-line-info)"),
)
"""How clients are told to write lines into PTX, by the names that they give to kernels: numba, Warp, any other."""


def quotations(logged: LoggedAccess, sources: ProgramSources) -> tuple[Quotation, ...]:
    """Return the lines of source around an access, and around the one that it meets."""
    places = (logged.place, *([logged.other.place] if logged.other else ()))
    return quoted_places([place.source for place in places], logged.kernel, sources)


def quoted_places(places: Iterable[str], kernel: str, sources: ProgramSources) -> tuple[Quotation, ...]:
    """Return the lines around places, which are FILE:LINE or empty, in the code of a kernel."""
    return tuple(filter(None, (_quotation(place, kernel, sources) for place in dict.fromkeys(places))))


@functools.lru_cache(1024)
def _quotation(place: str, kernel: str, sources: ProgramSources) -> Quotation | None:
    file, _, line = place.rpartition(":")
    if not file or not line.isdecimal():
        return None
    text = sources.text(file, kernel)
    return quote_text(file, int(line), text) if text is not None else quote_file(file, int(line))


def how_to_get_lines(symbol: str) -> str:
    """Return how the compiler of a kernel is asked for lines."""
    how = next((how for pattern, how in _LINES if pattern.search(symbol)), "")
    return f"its PTX has no lines of the source; to see them, {how}"
