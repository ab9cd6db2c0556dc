"""The C library, compiled when it is first needed and kept in a cache.

It is not compiled by the installation: the wheel stays one for every platform, and an installation works where there is
no compiler. The cache is named after the sources, the compiler and the flags, so that it is never stale.
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
from pathlib import Path
from typing import Final

from quiesce.errors import BackendUnavailable

SOURCES: Final = Path(__file__).with_name("native")
LIBRARY_NAME: Final = "libquiesce-simulator.so"
FLAGS: Final = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-O3", "-g", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"),
    "-ftls-model=initial-exec",  # a few bytes, for which loaders keep room
    *("-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{LIBRARY_NAME}", "-Wl,-z,nodelete"),
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
    """Return the path of the library, compiled with ``extra_flags`` beside the usual ones if it is not in the cache.

    Raises :class:`quiesce.errors.BackendUnavailable` where it can't be compiled.
    """
    require_platform()
    compiler = find_compiler()
    sources = sorted(path for path in SOURCES.iterdir() if path.suffix in (".c", ".h", ".inc"))
    command = [*compiler, *FLAGS, *extra_flags]
    digest = hashlib.sha256("\0".join(command).encode())
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = cache_folder() / digest.hexdigest()[:24]
    library = folder / LIBRARY_NAME
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _compile([*command, *(str(path) for path in sources if path.suffix == ".c")], library)
    return library


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


def cache_folder() -> Path:
    """Return where what was compiled, or found out about an environment, is kept."""
    base = os.environ.get("QUIESCE_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "quiesce" / "simulator"
