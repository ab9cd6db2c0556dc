"""Plans and writes the libraries that a program needs beside the simulated runtime, into a folder of one run.

Python loads extension modules with RTLD_NOW: each function that a module refers to must exist when it is loaded, also
those that are never called, and the loader looks for it only in the module's own scope, that is the program, the module
and the libraries that these need, directly or not. So the dynamic symbols of what is about to run are read, and each
function that nobody would define is defined, to fail by name, in a library of the scope that misses it.

Two kinds of library are written. A *stub* stands for a vendor's library that is not on this machine. A *front* stands
for the runtime itself (``libamdhip64.so.7``, say): it brings along the one simulator library that defines what is
simulated, and defines, to fail by name, what a client wants beyond that, or may look up while it runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from quiesce.model.errors import ConfigurationError, UnreadableObject
from quiesce.simulator.runtime.elf_reading import (
    Dependencies,
    Symbol,
    SymbolKind,
    find_library,
    places_searched,
    read_defined_names,
    read_dependencies,
    read_undefined,
)
from quiesce.simulator.runtime.elf_writing import Forward, StubFunction, StubLibrary, StubObject, write_library
from quiesce.simulator.runtime.flavours import is_simulated
from quiesce.simulator.runtime.vendor_libraries import (
    COMPUTED_PREFIX,
    SIMULATED_PREFIX,
    answer,
    asks_for_a_compiler,
    family_of,
    functions_of,
    interface_of,
    owns,
    plain_name,
    releases_of_functions,
    simulated_name,
)

_OBJECT_BYTES: Final = 4096
"""The room for a variable: a reference does not say how large the variable is."""
_LIBRARY_NAME: Final = re.compile(r".*\.so(?:\.[0-9.]+)?")
_PLAIN_NAME: Final = re.compile(r"[\w+-][\w.+-]*")

Definitions: TypeAlias = list[frozenset[str]]
"""The names that some libraries define, one set for each."""


@dataclass(frozen=True, slots=True)
class Simulator:
    """The library that simulates a runtime, and the names under which programs ask for it."""

    library: Path
    answers_to: tuple[str, ...]
    offered: tuple[str, ...] = ()
    """Libraries that programs may open by name while they run: where there is none of such a name, one is written."""
    releases: Mapping[str, int] = field(default_factory=dict)
    """By the names above, the release whose functions a driver or runtime has; all functions where none is named."""
    computes: bool = False
    """Whether functions of other libraries compute."""

    def answers(self, name: str) -> bool:
        """Say whether it stands for a library of this name, a bundled copy's included, wherever its client has it."""
        wanted = interface_of(name.rpartition("/")[2])
        return any(interface_of(own) == wanted for own in self.answers_to)


@dataclass(frozen=True, slots=True)
class Stubs:
    """What was written, and what was not."""

    folder: Path
    libraries: tuple[StubLibrary, ...]
    left_real: Mapping[str, Path]
    """Vendor libraries that exist on this machine: they will run as they are."""
    taken_as_loaded: Mapping[str, Path]
    """Those of them that some client does not find by itself, but would if another one loaded it before, and then all
    others, which these may need."""
    missing: Mapping[Path, tuple[str, ...]]
    """Files, and libraries that they need, exist nowhere and are no GPU vendor's: they can't be loaded."""
    looked_at: frozenset[Path]
    """The files that were read, and those and the folders that were asked for: the answer depends on nothing else."""


@dataclass(frozen=True, slots=True)
class Modules:
    """The shared objects below some folders that need a GPU vendor's library, sorted, and all that was looked at."""

    files: tuple[Path, ...]
    looked_at: frozenset[Path]


def gpu_modules(folders: Sequence[Path]) -> Modules:
    """Look through folders for the shared objects that need a GPU vendor's library."""
    found: set[Path] = set()
    looked_at: set[Path] = set(folders)
    for folder in folders:
        for place, inner, names in os.walk(folder):
            inner[:] = [name for name in inner if name != "__pycache__"]
            looked_at.add(Path(place))
            for name in names:
                if ".so" in name and _LIBRARY_NAME.fullmatch(name):
                    path = Path(place, name)
                    looked_at.add(path)
                    if _needs_a_vendors_library(path):
                        found.add(path)
    return Modules(tuple(sorted(found)), frozenset(looked_at))


def _needs_a_vendors_library(path: Path) -> bool:
    try:
        is_found = any(family_of(each) for each in read_dependencies(path).needed)
        if is_found:
            read_undefined(path)
    except UnreadableObject:
        return False  # a linker script, another machine's, or broken: nobody asked for it yet
    return is_found


def stubs_needed(program: Path, simulator: Simulator, library_path: Sequence[str] = ()) -> bool:
    """Say whether an executable needs a library that has to be written, by itself or through what it needs."""
    return bool(_Closure([program], simulator, library_path).scope(program).stubs)


@dataclass(frozen=True, slots=True)
class Process:
    """The files that a process may load, and its executable: what that and its libraries define is not stubbed.

    Without an executable, only functions that are named as the vendor's are.
    """

    files: Sequence[Path]
    program: Path | None = None


def write_stubs(
    processes: Sequence[Process], folder: Path, simulator: Simulator, library_path: Sequence[str] = ()
) -> Stubs:
    """Write into `folder` all that the files of `processes` need to be loaded, and say what that was.

    `library_path` is what LD_LIBRARY_PATH will hold after `folder`.
    Raises :class:`UnreadableObject` for a file that is none, and
    :class:`ConfigurationError` for a name that is a path or a folder that does not exist.
    """
    for name in simulator.answers_to:
        if not _PLAIN_NAME.fullmatch(name):
            raise ConfigurationError(f"the simulator can't answer to {name!r}: write a file name, as libcudart.so.12")
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is no folder, so nothing can be written there; make it first")
    files = [file for process in processes for file in process.files]
    plan = _Plan(simulator, _Closure(files, simulator, library_path))
    for process in processes:
        plan.add_files(process.files, None if process.program is None else process.program.resolve())
    plan.offer_libraries()
    libraries = tuple(plan.libraries())
    for library in libraries:
        target = folder / library.soname
        target.unlink(missing_ok=True)  # a link there must not lead the write elsewhere
        with target.open("xb") as file:
            file.write(write_library(library))
    closure = plan.closure
    taken_as_loaded = closure.taken_as_loaded and closure.left_real | closure.taken_as_loaded
    return Stubs(folder, libraries, closure.left_real, taken_as_loaded, closure.missing, closure.looked_at())


class _Closure:
    """The libraries that files bring along, as the loader will find them once the stubs are in place."""

    def __init__(self, files: Sequence[Path], simulator: Simulator, library_path: Sequence[str]) -> None:
        self.left_real: dict[str, Path] = {}
        self.taken_as_loaded: dict[str, Path] = {}
        self.missing: dict[Path, tuple[str, ...]] = {}
        self._simulator = simulator
        self._paths = tuple(library_path)
        self._by_name = {file.name: file for file in files}
        self._dependencies: dict[Path, Dependencies] = {}
        self._names: dict[Path, frozenset[str]] = {}
        self._definitions: dict[Path, Definitions] = {}
        self._scopes: dict[Path, _Scope] = {}
        self._found: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], Path | None] = {}
        self._searched: set[Path] = set()
        for file in files:
            self.scope(file)
        self._scopes.clear()  # what one file finds is real for all: a stub would come before it

    def looked_at(self) -> frozenset[Path]:
        """Return the files that were read, and where others were looked for."""
        return frozenset((*self._dependencies, *self._names, *self._searched))

    def dependencies(self, path: Path) -> Dependencies:
        if path not in self._dependencies:
            self._dependencies[path] = read_dependencies(path)
        return self._dependencies[path]

    def definitions(self, file: Path) -> Definitions:
        """Return what each real library in the scope of a file defines."""
        if file not in self._definitions:
            self._definitions[file] = [self._defined(path) for path in self.scope(file).real]
        return self._definitions[file]

    def has(self, name: str) -> bool:
        """Say whether a library of this name exists: in a client's place, among the files, or where all look."""
        if name in self.left_real or name in self._by_name:
            return True
        nobody = Dependencies("", (), (), ())
        self._searched.update(places_searched(Path("/"), nobody, self._paths))
        return find_library(name, Path("/"), nobody, self._paths) is not None

    def _defined(self, path: Path) -> frozenset[str]:
        if path not in self._names:
            self._names[path] = read_defined_names(path)
        return self._names[path]

    def scope(self, file: Path) -> _Scope:
        """Return what is searched for the symbols of a file, in the loader's order: breadth first."""
        if file not in self._scopes:
            scope = _Scope()
            queue, seen = [file], {file}
            for client in queue:
                for name in self.dependencies(client).needed:
                    found = self._resolve(client, name, scope)
                    if found is not None and found not in seen:
                        seen.add(found)
                        queue.append(found)
            scope.real.extend(queue)
            self._scopes[file] = scope
        return self._scopes[file]

    def _resolve(self, client: Path, name: str, scope: _Scope) -> Path | None:
        found = self._find(client, name)
        vendors = family_of(name) is not None
        if self._simulator.answers(name) or is_simulated(plain_name(name.rpartition("/")[2])):
            scope.add_stub(name.rpartition("/")[2])
            return None
        if found is not None:
            if vendors:
                self.left_real[name] = found
            return found
        # another client's, or a library of the same package, which will be loaded before
        loaded = self.left_real.get(name) or self._by_name.get(name)
        if loaded is not None:
            if vendors:
                self.taken_as_loaded[name] = loaded
            return loaded
        if vendors:
            scope.add_stub(name)
            return None
        self.missing[client] = tuple(dict.fromkeys((*self.missing.get(client, ()), name)))
        scope.complete = False
        return None

    def _find(self, client: Path, name: str) -> Path | None:
        dependencies = self.dependencies(client)
        key = name, os.path.dirname(client), dependencies.rpath, dependencies.runpath  # noqa: PTH120 - called often
        if key not in self._found:
            self._found[key] = find_library(name, client, dependencies, self._paths)
            self._searched.update(places_searched(client, dependencies, self._paths))
        return self._found[key]


@dataclass(slots=True)
class _Scope:
    """Where the loader looks for the symbols of one file."""

    real: list[Path] = field(default_factory=list)
    stubs: list[str] = field(default_factory=list)
    complete: bool = True

    def add_stub(self, soname: str) -> None:
        if soname not in self.stubs:
            self.stubs.append(soname)


class _Plan:
    """Which library is to define what."""

    def __init__(self, simulator: Simulator, closure: _Closure) -> None:
        self.closure = closure
        self._simulator = simulator
        self._simulated = read_defined_names(simulator.library)
        prefixes = (SIMULATED_PREFIX, COMPUTED_PREFIX) if simulator.computes else (SIMULATED_PREFIX,)
        self._of_libraries = tuple(name for name in self._simulated if name.startswith(prefixes))
        self._symbols: dict[str, dict[str, Symbol]] = {soname: {} for soname in simulator.answers_to}
        self._versions: dict[str, dict[str, None]] = {}
        self._undefined: dict[Path, tuple[Symbol, ...]] = {}

    def add_files(self, files: Sequence[Path], program: Path | None) -> None:
        of_program = None if program is None else self.closure.definitions(program)
        done: set[tuple[Path, tuple[str, ...]]] = set()
        for file in (*files, *([] if program is None else [program])):
            for client in self.closure.scope(file).real:
                # a library that names no vendor's among its needs can still call one, found in its user's scope
                searched = client if self.closure.scope(client).stubs else file
                key = client, tuple(self.closure.scope(searched).stubs)
                if key[1] and key not in done:
                    done.add(key)
                    self._add_client(client, searched, of_program)

    def _add_client(self, client: Path, searched: Path, of_program: Definitions | None) -> None:
        scope = self.closure.scope(searched)
        for soname in scope.stubs:
            self._symbols.setdefault(soname, {})
        placed = [self._symbols[soname] for soname in scope.stubs]
        for symbol in self._undefined_in(client):
            if symbol.version:
                self._versions.setdefault(symbol.version_file, {})[symbol.version] = None
            if symbol.weak or symbol.name in self._simulated or any(symbol.name in names for names in placed):
                continue
            place = self._place(symbol, client, searched, of_program)
            if place is not None:
                self._symbols[place][symbol.name] = symbol

    def _undefined_in(self, client: Path) -> tuple[Symbol, ...]:
        if client not in self._undefined:
            self._undefined[client] = read_undefined(client)
        return self._undefined[client]

    def _place(self, symbol: Symbol, client: Path, searched: Path, of_program: Definitions | None) -> str | None:
        """Return the stub or front that must define a symbol, or None where somebody else does."""
        scope = self.closure.scope(searched)
        if symbol.version_file:
            return symbol.version_file if symbol.version_file in scope.stubs else None
        if of_program is not None and any(symbol.name in names for names in of_program):
            return None
        owner = next((soname for soname in scope.stubs if owns(soname, symbol.name)), None)
        if owner is None and (of_program is None or not scope.complete or searched != client):
            return None  # whose it is can't be told
        if any(symbol.name in names for names in self.closure.definitions(searched)):
            return None
        return owner or scope.stubs[0]

    def offer_libraries(self) -> None:
        """Write libraries also for programs that open them by name while they run."""
        for soname in self._simulator.offered:
            if not self.closure.has(soname):
                self._symbols.setdefault(soname, {})

    def libraries(self) -> Iterator[StubLibrary]:
        for soname, symbols in sorted(self._symbols.items()):
            family = family_of(soname)
            variables = {name for name, symbol in symbols.items() if symbol.kind == SymbolKind.OBJECT}
            targets = self._targets(soname, variables)
            # also the runtime of another flavour must not hide what is simulated: it is the one that is loaded then
            known = functions_of(plain_name(soname), self._simulator.releases.get(plain_name(soname)))
            functions = symbols.keys() | (known - self._simulated)
            functions -= variables | targets.keys()
            yield StubLibrary(
                soname,
                tuple(StubFunction(name, answer(soname, name)) for name in sorted(functions)),
                tuple(StubObject(name, _OBJECT_BYTES) for name in sorted(variables)),
                (str(self._simulator.library.absolute()),),
                tuple(self._versions.get(soname, ())) + (family.versions if family else ()),
                tuple(Forward(name, target) for name, target in sorted(targets.items())),
            )

    def _targets(self, soname: str, variables: set[str]) -> dict[str, str]:
        """Return the functions of a library that are simulated under a name of their own."""
        if asks_for_a_compiler(soname) and not self._simulator.answers(soname):
            return {}  # kernels do not run, and nobody would answer
        named = ((simulated_name(soname, target), target) for target in self._of_libraries)
        since, release = releases_of_functions(soname), self._simulator.releases.get(plain_name(soname))
        return {
            name: target
            for name, target in named
            if name and name not in variables and (release is None or since.get(name, 0) <= release)
        }
