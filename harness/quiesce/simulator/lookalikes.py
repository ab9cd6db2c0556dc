"""The look-alike libraries of one run: the simulated runtime under the vendor's names, and stubs for its neighbours.

They lie in a folder of the run's own, which only the run's loader path names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from quiesce.simulator.clients import VENDOR_LIBRARY
from quiesce.simulator.elf import ElfFile, read_elf
from quiesce.simulator.flavours import Simulated
from quiesce.simulator.stubs import write_stub_library

_INTERPRETERS_OWN: Final = re.compile(r"_?Py[A-Z_]")
"""Functions that the interpreter itself defines; its extension modules name no library for them."""


def plan_stubs(clients: Iterable[ElfFile], simulated: Simulated, implemented: frozenset[str]) -> Mapping[str, set[str]]:
    """Return, for each library that has to be stood in for, the functions that nobody else defines.

    A symbol belongs to the library that its version names. One without a version may be in any of the libraries that
    its file needs, and is put into each; what the clients define themselves is left out, and so is what is
    ``implemented``, which the look-alikes find in the simulated runtime below them.
    """
    known = list(clients)
    own = frozenset[str]().union(*(client.defined for client in known))
    stubs: dict[str, set[str]] = {name: set() for name in simulated.libraries}
    for client in known:
        stood_in = [name for name in client.needed if VENDOR_LIBRARY.match(name)]
        for name in stood_in:
            stubs.setdefault(name, set())
        for symbol, library in client.undefined.items():
            if symbol in implemented or symbol in own or _INTERPRETERS_OWN.match(symbol):
                continue
            if library and library not in stubs:
                continue
            for name in [library] if library else stood_in:
                stubs[name].add(symbol)
    return stubs


def write_lookalikes(folder: Path, runtime: Path, simulated: Simulated, clients: Iterable[ElfFile]) -> tuple[str, ...]:
    """Fill ``folder`` and return the names of the libraries in it."""
    read = read_elf(runtime)
    assert read is not None, "it was just compiled"
    stubs = plan_stubs(clients, simulated, read.defined)
    for name, functions in stubs.items():
        (folder / name).write_bytes(write_stub_library(name, functions, str(runtime)))
    return tuple(sorted(stubs))
