"""The look-alike libraries of one run; what environments of Python packages need is kept for the next.

To look through an environment and to read what its modules need takes longer than the rest of a run's start. What is
written depends on files and folders alone, so it is kept beside the compiled library, with the state of everything
that was looked at, and written anew where any of that changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quiesce.model.errors import ConfigurationError, UnreadableObject
from quiesce.simulator.runtime.cache import cache_folder, cache_folders, find, keep, sources_of_libraries
from quiesce.simulator.runtime.clients import Command, likely_interpreters, package_folders
from quiesce.simulator.runtime.flavours import Simulated

if TYPE_CHECKING:
    from quiesce.simulator.runtime.stubs import Simulator

_SETTLED_SECONDS: Final = 2
"""What was changed more recently may be changed again without a new time, for a file system's clock is coarse."""

_LAST: Final = "last-"
"""Begins the name of a link to a real library, which ``audit/audit.c`` takes where a client finds none: one that
another client brings along, and which it would find if that were loaded before."""

_State = tuple[int, int] | None
"""When a file or folder was changed, in nanoseconds, and its size in bytes; None where it does not exist."""


def write_lookalikes(
    folder: Path,
    runtime: Path,
    simulated: Simulated,
    command: Command,
    others: tuple[str, ...] = (),
    *,
    computes: bool = False,
) -> None:
    """Fill ``folder`` with what ``command`` needs, beside ``runtime`` under the names of what is simulated.

    ``others`` are more libraries that the runtime has as well, of which an installed one is never meant: compilers, and
    those whose functions compute. ``computes`` says whether any do.

    Raises :class:`UnreadableObject` for a program or module that is no readable ELF file.
    """
    library_path = [part for part in command.environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    interpreters, programs = command.interpreters, command.programs
    if not interpreters:
        from quiesce.simulator.runtime.stubs import Process, Simulator, write_stubs  # only where nothing is kept

        names = (*simulated.libraries, *others)
        simulator = Simulator(runtime, names, simulated.offered, simulated.releases, computes)
        clients = _clients(programs, command.program, simulator, library_path)
        if clients:
            write_stubs([Process((each,), each) for each in clients], folder, simulator, library_path)
            return
        interpreters, programs = likely_interpreters(command), ()
    planned = Command(command.program, programs, interpreters, command.environment)
    kept = _Kept(planned, runtime, simulated, library_path, others, computes)
    libraries = kept.read()
    if libraries is None:
        libraries = kept.make(folder)
    for name, content in libraries.items():
        if name.startswith(_LAST):
            (folder / name).symlink_to(os.fsdecode(content))
        else:
            (folder / name).write_bytes(content)


def _clients(programs: Sequence[Path], first: Path, simulator: Simulator, library_path: list[str]) -> list[Path]:
    """Return the programs that need a library which has to be written; `first` is the one that has to be readable."""
    from quiesce.simulator.runtime.stubs import stubs_needed

    found = []
    for program in programs:
        try:
            if stubs_needed(program, simulator, library_path):
                found.append(program)
        except UnreadableObject:
            if program == first:
                raise
            # a word that names a core file, or a program for another machine
    return found


class _Kept:
    """What one command needs, in one file of the cache: a line of JSON, and then the libraries."""

    def __init__(
        self,
        command: Command,
        runtime: Path,
        simulated: Simulated,
        library_path: list[str],
        others: tuple[str, ...],
        computes: bool,
    ) -> None:
        self._command, self._others, self._computes = command, others, computes
        self._packages = {each: package_folders(each, command.environment) for each in command.interpreters}
        self._runtime, self._simulated, self._library_path = runtime, simulated, library_path
        own = [(path.name, _state(path)) for path in sources_of_libraries()]
        asked = repr((command.programs, self._packages, runtime, simulated, library_path, others, computes, own))
        self._name = f"{hashlib.sha256(asked.encode()).hexdigest()[:24]}.stubs"

    def read(self) -> dict[str, bytes] | None:
        """Return the libraries by name, or None where there are none, or something was changed since."""
        found = (_read(folder / self._name) for folder in cache_folders())
        return next((libraries for libraries in found if libraries is not None), None)

    def make(self, folder: Path) -> dict[str, bytes]:
        """Write the libraries into ``folder``, keep them, and return them."""
        from quiesce.simulator.runtime.stubs import Process, Simulator, gpu_modules, write_stubs

        command, paths = self._command, self._library_path
        modules_of = {interpreter: gpu_modules(packages) for interpreter, packages in self._packages.items()}
        installed = {path.name for modules in modules_of.values() for path in modules.looked_at}
        offered = tuple(name for name in self._simulated.offered if name not in installed)
        names = (*self._simulated.libraries, *self._others)
        simulator = Simulator(self._runtime, names, offered, self._simulated.releases, self._computes)
        processes = [Process((each,), each) for each in _clients(command.programs, command.program, simulator, paths)]
        looked_at = frozenset(command.programs)
        for interpreter, modules in modules_of.items():
            processes.append(Process(modules.files, interpreter))
            looked_at |= modules.looked_at
        made = write_stubs(processes, folder, simulator, paths)
        libraries = {library.soname: (folder / library.soname).read_bytes() for library in made.libraries}
        libraries |= {_LAST + name: os.fsencode(path.absolute()) for name, path in made.taken_as_loaded.items()}
        self._keep(libraries, looked_at | made.looked_at)
        return libraries

    def _keep(self, libraries: Mapping[str, bytes], looked_at: Iterable[Path]) -> None:
        states = {str(path): _state(path) for path in looked_at}
        settled = time.time_ns() - _SETTLED_SECONDS * 10**9
        if any(state is not None and state[0] > settled for state in states.values()):
            return
        head = json.dumps([states, {name: len(content) for name, content in libraries.items()}])
        with contextlib.suppress(ConfigurationError, OSError):  # a cache may be read-only, or its disk full
            keep(cache_folder() / self._name, head.encode() + b"\n" + b"".join(libraries.values()))


def _read(path: Path) -> dict[str, bytes] | None:
    kept = find(path)
    if kept is None:
        return None
    head, _, content = kept.partition(b"\n")
    states, sizes = json.loads(head)
    if any(_state(each) != (state and tuple(state)) for each, state in states.items()):
        return None
    libraries = {}
    for name, size in sizes.items():
        libraries[name], content = content[:size], content[size:]
    return libraries


def _state(path: str | Path) -> _State:
    try:
        seen = os.stat(path)  # noqa: PTH116 - called for thousands of paths
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size
