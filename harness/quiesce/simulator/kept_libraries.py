"""Libraries that are the same in every run: for linkers, and runtimes of other flavours that a program may open.

They depend on nothing but the simulated runtime and this package, and are kept beside the runtime.

For a linker (Triton calls ``gcc … -lcuda``, CuPy's users ``-lcudart``) the look-alikes of a run would not do: they
define little themselves and bring along a library of this machine. So these are like the stubs that a vendor ships for
its linker: the name that programs are to ask for, and every function.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from quiesce.simulator.flavours import KNOWN, Simulated
from quiesce.simulator.kept_files import is_folder_whole, seal_folder

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
        from quiesce.simulator.stubs import Simulator, write_stubs  # only where nothing is kept

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
    return max(path.stat().st_mtime_ns for path in Path(__file__).parent.glob("*.py"))


def _write_for_linkers(folder: Path, runtime: Path, simulated: Simulated) -> None:
    from quiesce.simulator.elf_reading import read_defined_names  # only where nothing is kept
    from quiesce.simulator.elf_writing import StubFunction, StubLibrary, write_library
    from quiesce.simulator.known_functions import functions_of
    from quiesce.simulator.vendor_libraries import answer, owns

    simulated_names = read_defined_names(runtime)
    for soname in simulated.sonames:
        names = {name for name in simulated_names if owns(soname, name)} | functions_of(soname, simulated.release)
        functions = tuple(StubFunction(name, answer(soname, name)) for name in sorted(names))
        library = write_library(StubLibrary(soname, functions))
        for name in (soname, f"{soname.partition('.so')[0]}.so"):  # Triton asks for -l:libcuda.so.1
            (folder / name).write_bytes(library)
