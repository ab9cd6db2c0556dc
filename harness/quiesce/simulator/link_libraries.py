"""What a linker takes for the runtime while a program runs: Triton calls ``gcc … -lcuda``, CuPy's users ``-lcudart``.

The look-alikes of a run would not do: they define little themselves and bring along a library of this machine. So these
are like the stubs that a vendor ships for its linker: the name that programs are to ask for, and every function. They
depend on nothing but the simulated runtime and this package, and are kept beside the runtime.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from quiesce.simulator.flavours import Simulated

_SEARCHED: Final = "lib64"
_ALIASES: Final = {"lib": "lib64", "lib64/x86_64-linux-gnu": "."}
"""GCC searches the folders of LIBRARY_PATH after the system's, but ``../lib``, ``../lib64`` or Debian's subfolder of
each of them before: through these links ours comes before an installed runtime."""


def link_folder(runtime: Path, simulated: Simulated) -> Path:
    """Return a folder for the linker, and fill it where that was not done yet."""
    written = max(path.stat().st_mtime_ns for path in Path(__file__).parent.glob("*.py"))
    folder = runtime.with_name(f"link-{simulated.flavour}-{simulated.version}-{written:x}")
    if not folder.exists():
        made = Path(tempfile.mkdtemp(dir=runtime.parent))
        (made / _SEARCHED).mkdir()
        for alias, target in _ALIASES.items():
            (made / alias).symlink_to(target)
        for name, content in _libraries(runtime, simulated).items():
            (made / _SEARCHED / name).write_bytes(content)
        made.chmod(0o755)
        try:
            made.rename(folder)  # at once: another process may be doing the same
        except OSError:
            shutil.rmtree(made)
    return folder / _SEARCHED


def _libraries(runtime: Path, simulated: Simulated) -> dict[str, bytes]:
    from quiesce.simulator.elf_reading import read_defined_names  # only where nothing is kept
    from quiesce.simulator.elf_writing import StubFunction, StubLibrary, write_library
    from quiesce.simulator.known_functions import functions_of
    from quiesce.simulator.vendor_libraries import answer, owns

    simulated_names = read_defined_names(runtime)
    made = {}
    for soname in simulated.sonames:
        names = {name for name in simulated_names if owns(soname, name)} | functions_of(soname)
        functions = tuple(StubFunction(name, answer(soname, name)) for name in sorted(names))
        library = write_library(StubLibrary(soname, functions))
        made[f"{soname.partition('.so')[0]}.so"] = made[soname] = library  # Triton asks for -l:libcuda.so.1
    return made
