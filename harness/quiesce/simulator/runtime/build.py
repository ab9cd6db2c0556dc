"""The two C libraries, compiled when they are first needed and kept in a cache: the runtime, and the loader's audit.

They are not compiled by the installation: the wheel stays one for every platform, and an installation works where there
is no compiler. The cache is named after the sources, the compiler and the flags, so that it is never stale. What is in
it needs no compiler, and processes that find it empty at once compile it once.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from quiesce.files import private_folder
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.cache import alone, cache_folder, cache_folders, is_whole, keep

SOURCES: Final = Path(__file__).parents[1] / "native"
AUDIT_SOURCES: Final = Path(__file__).parents[1] / "audit"
LIBRARY_NAME: Final = "libquiesce-simulator.so"
AUDIT_NAME: Final = "libquiesce-audit.so"
COUNTED: Final = ("malloc", "calloc", "realloc", "strdup", "strndup", "free")
"""Functions of the C library that the runtime calls through ``own_heap.c``, which counts what they allocate."""
_FLAGS: Final = ("-std=gnu11", "-D_GNU_SOURCE", "-g", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
WARNINGS_NAME: Final = "warnings.txt"
"""What the compiler said of a library, beside it: nothing, as a test holds for the compilers that we know. A newer one
may have more to say, and what it makes is used all the same."""
_WHOLE_PROGRAM: Final = (("-flto=auto",), ("-flto",))
"""A call passes through a dozen files: seen together they take a quarter less time. Not every compiler can do it."""
_COMPILERS: Final = ("cc", "gcc", "clang")
_COMPILING: Final = "compiling the simulated runtime; this is done once and takes half a minute"
_WAITING: Final = "waiting for another process, which compiles the simulated runtime; this is done once"
_FORM: Final = "with a checksum"
"""How libraries are kept (``kept_files``): earlier releases would not find theirs."""
Tell: TypeAlias = Callable[[str], object]
"""Says to a user what takes long."""


@dataclass(frozen=True, slots=True)
class _Library:
    """What one of them is made of, and how. The linker gets ``flags`` too."""

    name: str
    folder: Path
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    def sources(self) -> list[Path]:
        """Return every file that it depends on."""
        return sorted(path for path in self.folder.rglob("*") if path.suffix in (".c", ".h", ".inc"))


_RUNTIME: Final = _Library(
    LIBRARY_NAME,
    SOURCES,
    (*_FLAGS, "-O3", "-pthread", "-ftls-model=initial-exec"),  # a few bytes, for which loaders keep room
    ("-Wl,-z,nodelete", *(f"-Wl,--wrap={name}" for name in COUNTED)),
)
_AUDIT: Final = _Library(
    AUDIT_NAME,
    AUDIT_SOURCES,
    (
        *(*_FLAGS, "-O2", "-ffreestanding"),
        "-fno-stack-protector",  # it needs thread-local storage
        "-fno-tree-loop-distribute-patterns",  # loops would become calls of the C library
    ),
    ("-nostdlib", "-Wl,-z,defs"),
)

_ALL: Final = (_RUNTIME, _AUDIT)


def require_platform() -> None:
    """Raise :class:`BackendUnavailable` where the runtime can't be simulated at all."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise BackendUnavailable(
            "simulated",
            f"the runtime is simulated on Linux x86-64, and this is {sys.platform} {platform.machine()}",
            "run it there, or choose --backend reference",
        )


def find_compiler() -> list[str]:
    """Return the words of ``$CC``, or the first compiler on the path. Raises BackendUnavailable without one."""
    commands = _commands()
    for command in commands:
        if shutil.which(command[0]):
            return command
    names = ", ".join(command[0] for command in commands)
    raise BackendUnavailable("simulated", f"no C compiler was found ({names})", "install gcc or clang, or set CC")


def _commands() -> list[list[str]]:
    """Return the compilers that may be used, whether they are there or not."""
    chosen = shlex.split(os.environ.get("CC", ""))
    return [chosen] if chosen else [[name] for name in _COMPILERS]


def build_library(*extra_flags: str) -> Path:
    """Return the path of the runtime, compiled with ``extra_flags`` beside the usual ones if it is not in the cache.

    Raises :class:`BackendUnavailable` where it can't be compiled.
    """
    return _built(replace(_RUNTIME, flags=(*_RUNTIME.flags, *extra_flags)))


def build_audit() -> Path:
    """Return the path of the module for the loader, compiled if it is not in the cache; raises like the other."""
    return _built(_AUDIT)


def build_all(tell: Tell) -> None:
    """Compile what is not in the cache, and ``tell`` what is waited for, if anything is; raises like the others."""
    if all(is_whole(_find(each)) for each in _ALL):
        return
    with alone(cache_folder() / "compiling", lambda: tell(_WAITING)):
        if not all(is_whole(_find(each)) for each in _ALL):  # whoever was waited for may have ended before it was done
            tell(_COMPILING)
        for each in _ALL:
            _built(each)


def is_library_built() -> bool:
    """Say whether the runtime is in the cache; raises like the others."""
    return is_whole(_find(_RUNTIME))


def _built(library: _Library) -> Path:
    path = _find(library)
    if not is_whole(path):
        private_folder(path.parent)
        with alone(path.with_suffix(".lock")):
            if not is_whole(path):
                _compile(library, path)
    return path


def _find(library: _Library) -> Path:
    """Return where a library is kept, by whichever compiler it was made, or else is to be written."""
    require_platform()

    def kept_by(compiler: Sequence[str]) -> Path:
        words = "\0".join([*compiler, *library.flags, *library.link_flags, _digest_of(library), _FORM])
        return Path(hashlib.sha256(words.encode()).hexdigest()[:24], library.name)

    found = (folder / kept_by(command) for command in _commands() for folder in cache_folders())
    return next((each for each in found if is_whole(each)), None) or cache_folder() / kept_by(find_compiler())


@functools.cache
def _digest_of(library: _Library) -> str:
    sources = hashlib.sha256()
    for path in library.sources():
        sources.update(path.relative_to(library.folder).as_posix().encode() + b"\0" + path.read_bytes())
    return sources.hexdigest()


def _compile(library: _Library, path: Path) -> None:
    """Compile each source by itself, as many at a time as there are processors, and link them."""
    compiler = find_compiler()
    sources = [each for each in library.sources() if each.suffix == ".c"]
    link = ["-shared", f"-Wl,-soname,{library.name}", *library.link_flags]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        made = Path(folder) / library.name
        objects = [str(Path(folder) / f"{number}.o") for number in range(len(sources))]
        for options in (*_WHOLE_PROGRAM, ()):
            start = [*compiler, *library.flags, *options]
            compiling = ([*start, f"-I{library.folder}", "-c", str(each)] for each in sources)
            said = list(pool.map(_run, ([*words, "-o", to] for words, to in zip(compiling, objects, strict=True))))
            if all(each.succeeded for each in said):
                said.append(_run([*start, *link, *objects, "-o", str(made)]))
            problem = next((each.text for each in said if not each.succeeded), "")
            if not problem:
                break
        else:
            raise BackendUnavailable(
                "simulated",
                f"{compiler[0]} could not compile the library: {problem[:2000]}",
                "choose another compiler with CC",
            )
        path.with_name(WARNINGS_NAME).write_text("".join(f"{each.text}\n" for each in said if each.text))
        keep(path, made.read_bytes())  # at once: where there are no locks, another process may be doing the same


@dataclass(frozen=True, slots=True)
class _Said:
    """What a compiler said, and whether it could do what it was asked."""

    succeeded: bool
    text: str


def _run(command: list[str]) -> _Said:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a list, no shell
    text = done.stderr.strip()
    return _Said(not done.returncode, text or (f"it ended with {done.returncode}" if done.returncode else ""))
