"""What loader and linker are told, so that they find the libraries of one run: files in its folder, and variables.

A user's own settings stay: folders come after those of the run, modules before the run's own.

Libraries that are the same in every run are kept beside the runtime: for linkers, and runtimes of other flavours that a
program may open. They depend on nothing but the simulated runtime and this package. For a linker (Triton calls
``gcc … -lcuda``, CuPy's users ``-lcudart``) the look-alikes of a run would not do: they define little themselves and
bring along a library of this machine. So these are like the stubs that a vendor ships for its linker: the name that
programs are to ask for, and every function.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.cache import is_folder_whole, seal_folder, sources_of_libraries
from quiesce.simulator.runtime.flavours import KNOWN, Simulated

_SEARCHED: Final = "lib64"
_ALIASES: Final = {"lib": "lib64", "lib64/x86_64-linux-gnu": "."}
"""GCC searches the folders of LIBRARY_PATH after the system's, but ``../lib``, ``../lib64`` or Debian's subfolder of
each of them before: through these links ours comes before an installed runtime."""


def link_folder(runtime: Path, simulated: Simulated) -> Path:
    """Return a folder for the linker, and fill it where that was not done yet."""

    def fill(made: Path) -> None:
        (made / _SEARCHED).mkdir()
        for alias, target in _ALIASES.items():
            (made / alias).symlink_to(target)
        _write_for_linkers(made / _SEARCHED, runtime, simulated)

    return _kept(runtime, f"link-{simulated.flavour}-{simulated.version}", fill) / _SEARCHED


def runtimes_folder(runtime: Path) -> Path:
    """Return a folder with the runtimes of all flavours as programs load them, and fill it where that was not done."""

    def fill(made: Path) -> None:
        from quiesce.simulator.runtime.stubs import Simulator, write_stubs  # only where nothing is kept

        releases = {simulated.runtime: simulated.release for simulated in KNOWN}
        write_stubs([], made, Simulator(runtime, tuple(releases), releases=releases))

    return _kept(runtime, "runtimes", fill)


def _kept(runtime: Path, name: str, fill: Callable[[Path], None]) -> Path:
    folder = runtime.with_name(f"{name}-{_written():x}")
    if not is_folder_whole(folder):
        made = Path(tempfile.mkdtemp(dir=runtime.parent))
        fill(made)
        seal_folder(made)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            made.rename(folder)  # at once: another process may be doing the same
        except OSError:
            shutil.rmtree(made)
    return folder


@cache
def _written() -> int:
    return max(path.stat().st_mtime_ns for path in sources_of_libraries())


def _write_for_linkers(folder: Path, runtime: Path, simulated: Simulated) -> None:
    from quiesce.simulator.runtime.elf_reading import read_defined_names  # only where nothing is kept
    from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, write_library
    from quiesce.simulator.runtime.vendor_libraries import answer, functions_of, owns

    simulated_names = read_defined_names(runtime)
    for soname in simulated.sonames:
        names = {name for name in simulated_names if owns(soname, name)} | functions_of(soname, simulated.release)
        functions = tuple(StubFunction(name, answer(soname, name)) for name in sorted(names))
        library = write_library(StubLibrary(soname, functions))
        for name in (soname, f"{soname.partition('.so')[0]}.so"):  # Triton asks for -l:libcuda.so.1
            (folder / name).write_bytes(library)


_ASSEMBLER: Final = """\
#!/bin/sh
# The PTX itself is what runs: it is written in place of machine code.
for word; do
    case "$before" in
        -o | --output-file) to=$word ;;
        *) case "$word" in
            --version | -V) echo "ptxas of quiesce: Cuda compilation tools, release 12.9, V12.9.0"; exit ;;
            --output-file=*) to=${word#*=} ;;
            -*) ;;
            *) if [ -f "$word" ]; then from=$word; fi ;;
        esac ;;
    esac
    before=$word
done
exec cp -- "$from" "${to:-elf.o}"
"""
_OTHERS: Final = "others"
"""Where ``audit/audit.c`` has runtimes that are not the flavour's, for programs that open an installed one."""
_ROOM: Final = "glibc.rtld.optional_static_tls"
_ROOM_BYTES: Final = 4096
"""Where there is an audit module, the static thread-local storage of the libraries that a program starts with must fit
in this surplus. glibc's own 512 bytes are not enough for jemalloc; ``audit/thread_storage.c`` says more."""
_ROOM_SINCE: Final = (2, 33)


def loader_variables(
    folder: Path,
    runtime: Path,
    audit: Path,
    simulated: Simulated,
    environment: Mapping[str, str],
    *,
    redirects: bool = True,
    kernels: bool = False,
    computed: Sequence[str] = (),
    follows: bool = False,
) -> dict[str, str]:
    """Write what ``audit`` reads into the run's folder, and return the variables that lead to it and to ``lib``.

    ``computed`` are the libraries beside the runtime whose functions compute.
    """
    served = simulated.served(redirects=redirects, kernels=kernels, computed=computed, follows=follows)
    (folder / "served").write_text(served, encoding="utf-8")
    if follows:
        (folder / "lib" / _OTHERS).symlink_to(runtimes_folder(runtime))
    linked = str(link_folder(runtime, simulated))
    made = {
        "LD_LIBRARY_PATH": _joined(str(folder / "lib"), environment.get("LD_LIBRARY_PATH", "")),
        "LIBRARY_PATH": _joined(linked, environment.get("LIBRARY_PATH", "")),
        # Without it Triton links with the first folder above, whose libraries define little themselves.
        "TRITON_LIBCUDA_PATH": environment.get("TRITON_LIBCUDA_PATH") or linked,
        "LD_AUDIT": _joined(environment.get("LD_AUDIT", ""), str(audit)),
    }
    if kernels:
        assembler = _write_assembler(folder)
        made |= {name: str(assembler) for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")}
        made["PATH"] = _joined(environment.get("PATH", os.defpath), str(assembler.parent))
    tunables = environment.get("GLIBC_TUNABLES", "")
    if _ROOM not in tunables and _c_library() >= _ROOM_SINCE:
        (folder / "room").write_text(str(_ROOM_BYTES), encoding="utf-8")
        made["GLIBC_TUNABLES"] = _joined(tunables, f"{_ROOM}={_ROOM_BYTES}")
    return made


def _write_assembler(folder: Path) -> Path:
    """Write a program that Triton takes for NVIDIA's assembler. Its version is part of the keys of Triton's cache.

    XLA looks for one on the path, and where its packages have one; ``audit/execs.c`` then runs this one instead.
    """
    path = folder / "programs" / "ptxas"
    path.parent.mkdir()
    path.write_text(_ASSEMBLER, encoding="utf-8")
    path.chmod(0o755)
    return path


def _joined(*parts: str) -> str:
    return ":".join(filter(None, parts))


def _c_library() -> tuple[int, ...]:
    """Return the version of glibc; empty for another C library."""
    try:
        named = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        return ()
    return tuple(map(int, re.findall(r"\d+", named)))
