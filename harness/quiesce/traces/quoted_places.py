"""The lines of source that findings about kernels quote, and what to do where a kernel has none."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

from quiesce.findings import Quotation
from quiesce.quoting import quote_file, quote_text
from quiesce.simulator.access_log import LoggedAccess
from quiesce.simulator.program_sources import ProgramSources

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
