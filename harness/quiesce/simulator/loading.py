"""What loader and linker are told, so that they find the libraries of one run: files in its folder, and variables.

A user's own settings stay: folders come after those of the run, modules before the run's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quiesce.simulator.flavours import Simulated
from quiesce.simulator.kept_libraries import link_folder, runtimes_folder

_ASSEMBLER: Final = """\
#!/bin/sh
# The PTX itself is what runs: it is written in place of machine code.
for word; do
    case "$before$word" in
        --version) echo "ptxas of quiesce: Cuda compilation tools, release 12.9, V12.9.0"; exit ;;
        *.ptx) from=$word ;;
    esac
    case "$before" in -o) to=$word ;; esac
    before=
    case "$word" in -o) before=$word ;; esac
done
exec cp -- "$from" "$to"
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
    follows: bool = False,
) -> dict[str, str]:
    """Write what ``audit`` reads into the run's folder, and return the variables that lead to it and to ``lib``."""
    served = simulated.served(redirects=redirects, kernels=kernels, follows=follows)
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
        assembler = str(_write_assembler(folder))
        made |= {"TRITON_PTXAS_PATH": assembler, "TRITON_PTXAS_BLACKWELL_PATH": assembler}
    tunables = environment.get("GLIBC_TUNABLES", "")
    if _ROOM not in tunables and _c_library() >= _ROOM_SINCE:
        (folder / "room").write_text(str(_ROOM_BYTES), encoding="utf-8")
        made["GLIBC_TUNABLES"] = _joined(tunables, f"{_ROOM}={_ROOM_BYTES}")
    return made


def _write_assembler(folder: Path) -> Path:
    """Write a program that Triton takes for NVIDIA's assembler. Its version is part of the keys of Triton's cache."""
    path = folder / "ptxas"
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
