"""The two C libraries, compiled when they are first needed and kept in a cache: the runtime, and the loader's audit.

They are not compiled by the installation: the wheel stays one for every platform, and an installation works where there
is no compiler. The cache is named after the sources, the compiler and the flags, so that it is never stale.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quiesce.errors import BackendUnavailable
from quiesce.simulator.cache import cache_folder, cache_folders

SOURCES: Final = Path(__file__).with_name("native")
AUDIT_SOURCES: Final = Path(__file__).with_name("audit")
LIBRARY_NAME: Final = "libquiesce-simulator.so"
AUDIT_NAME: Final = "libquiesce-audit.so"
COUNTED: Final = ("malloc", "calloc", "realloc", "strdup", "strndup", "free")
"""Functions of the C library that the runtime calls through ``own_heap.c``, which counts what they allocate."""
_FLAGS: Final = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-g",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
)
FLAGS: Final = (
    *_FLAGS,
    *("-O3", "-pthread"),
    "-ftls-model=initial-exec",  # a few bytes, for which loaders keep room
    *(f"-Wl,-soname,{LIBRARY_NAME}", "-Wl,-z,nodelete"),
    *(f"-Wl,--wrap={name}" for name in COUNTED),
)
AUDIT_FLAGS: Final = (
    *_FLAGS,
    *("-O2", "-ffreestanding", "-nostdlib", f"-Wl,-soname,{AUDIT_NAME}", "-Wl,-z,defs"),
    "-fno-stack-protector",  # it needs thread-local storage
    "-fno-tree-loop-distribute-patterns",  # loops would become calls of the C library
)
_WHOLE_PROGRAM: Final = "-flto"
"""A call passes through a dozen files: seen together they take a quarter less time. Not every compiler can do it."""
_COMPILERS: Final = ("cc", "gcc", "clang")


def require_platform() -> None:
    """Raise :class:`quiesce.errors.BackendUnavailable` where the runtime can't be simulated at all."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise BackendUnavailable(
            "simulated",
            f"the runtime is simulated on Linux x86-64, and this is {sys.platform} {platform.machine()}",
            "run it there, or choose --backend reference",
        )


def find_compiler() -> list[str]:
    """Return the words of ``$CC``, or the first compiler on the path. Raises BackendUnavailable without one."""
    chosen = shlex.split(os.environ.get("CC", ""))
    names = [chosen[0]] if chosen else list(_COMPILERS)
    for name in names:
        if shutil.which(name):
            return chosen or [name]
    raise BackendUnavailable(
        "simulated", f"no C compiler was found ({', '.join(names)})", "install gcc or clang, or set CC"
    )


def build_library(*extra_flags: str) -> Path:
    """Return the path of the runtime, compiled with ``extra_flags`` beside the usual ones if it is not in the cache.

    Raises :class:`quiesce.errors.BackendUnavailable` where it can't be compiled.
    """
    return _built(SOURCES, LIBRARY_NAME, (*FLAGS, *extra_flags))


def build_audit() -> Path:
    """Return the path of the module for the loader, compiled if it is not in the cache; raises like the other."""
    return _built(AUDIT_SOURCES, AUDIT_NAME, AUDIT_FLAGS)


def is_built() -> bool:
    """Say whether both libraries are in the cache; raises like the others."""
    return _find(SOURCES, LIBRARY_NAME, FLAGS).exists() and _find(AUDIT_SOURCES, AUDIT_NAME, AUDIT_FLAGS).exists()


def _built(folder: Path, name: str, flags: Sequence[str]) -> Path:
    library = _find(folder, name, flags)
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        sources = (str(path) for path in _sources(folder) if path.suffix == ".c")
        _compile([*find_compiler(), *flags, f"-I{folder}", *sources], library)
    return library


def _find(folder: Path, name: str, flags: Sequence[str]) -> Path:
    """Return where a library is kept, or else is to be written."""
    require_platform()
    digest = hashlib.sha256("\0".join([*find_compiler(), *flags]).encode())
    for path in _sources(folder):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    kept = Path(digest.hexdigest()[:24], name)
    found = (each / kept for each in cache_folders())
    return next((each for each in found if each.exists()), None) or cache_folder() / kept


def _sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".c", ".h", ".inc"))


def _compile(command: list[str], library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        for options in ([_WHOLE_PROGRAM], []):
            done = subprocess.run(  # noqa: S603 - a list, no shell
                [*command, *options, "-o", str(made)], capture_output=True, text=True, check=False
            )
            if not done.returncode:
                break
        if done.returncode:
            raise BackendUnavailable(
                "simulated",
                f"{command[0]} could not compile the library: {done.stderr.strip()[:2000]}",
                "choose another compiler with CC",
            )
        made.replace(library)  # at once: another process may be doing the same
