"""What is about to run: the ELF files whose vendor libraries have to be stood in for.

For a program that is an ELF file, the file and what it is linked with beside it. For a Python interpreter, or a script
of one, the extension modules of its environment as well: an import decides only later which of them are loaded.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from quiesce.errors import ConfigurationError
from quiesce.simulator.elf import ElfFile, read_elf

VENDOR_LIBRARY: Final = re.compile(
    r"lib(amdhip64|hip(blas|blaslt|fft|rand|sparse|sparselt|solver|rtc|tensor|dnn)\w*|"
    r"roc(blas|fft|rand|sparse|solver|alution|tx64|tracer64|profiler\w*|m_smi64)|rccl|MIOpen|amd_comgr|hsa-runtime64|"
    r"cu(da|dart|blas|blasLt|fft|fftw|rand|solver|solverMg|sparse|sparseLt|tensor|dnn\w*|pti|file|tensorMg)|"
    r"nv(rtc|JitLink|ToolsExt|vm|fatbin|idia-ml|shmem\w*)|nccl|npp\w*)\.so(\.|$)"
)
"""The file names of what the vendors' runtimes are made of, and of the libraries on top of them."""

_PYTHON: Final = re.compile(r"python(\d+(\.\d+)?)?$")


def find_program(words: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Return the file that a command runs. Raises :class:`quiesce.errors.ConfigurationError` where there is none."""
    found = shutil.which(words[0], path=environment.get("PATH"))
    if found is None:
        raise ConfigurationError(f"there is no program '{words[0]}'; write its path, or install it")
    return Path(found)


def clients_of(program: Path, environment: Mapping[str, str]) -> list[ElfFile]:
    """Return the files among what may be loaded that need a vendor's library."""
    interpreter = _interpreter_of(program)
    files = [program] if interpreter is None else _extension_modules(interpreter, environment)
    return [file for path in _with_neighbours(files, environment) if (file := _client(path)) is not None]


def _client(path: Path) -> ElfFile | None:
    """Read a file's libraries first: most files need none of a vendor's, and reading symbols costs more."""
    brief = read_elf(path, symbols=False)
    if brief is None or not any(map(VENDOR_LIBRARY.match, brief.needed)):
        return None
    return read_elf(path)


def _interpreter_of(program: Path) -> Path | None:
    """Return the Python interpreter that a program is, or that its first line names."""
    if _PYTHON.match(program.name):
        return program
    with program.open("rb") as opened:
        first = opened.readline(512)
    if not first.startswith(b"#!"):
        return None
    words = shlex.split(os.fsdecode(first[2:]).strip())
    if words and Path(words[0]).name == "env":
        words = words[1:]
    named = shutil.which(words[0]) if words else None
    return Path(named) if named and _PYTHON.match(Path(named).name) else None


def _extension_modules(interpreter: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    folders = {*_site_folders(interpreter), *map(Path, filter(None, environment.get("PYTHONPATH", "").split(":")))}
    for folder in sorted(folders):
        for root, directories, names in os.walk(folder):
            directories[:] = sorted(name for name in directories if name != "__pycache__")
            yield from (Path(root, name) for name in sorted(names) if ".so" in name)


def _site_folders(interpreter: Path) -> Iterator[Path]:
    """Return where an environment keeps its packages: a virtual one below its own prefix, without running it."""
    for folder in dict.fromkeys((interpreter.parent, interpreter.resolve().parent)):
        prefix = folder.parent
        for library in ("lib", "lib64", "local/lib"):
            for pattern in ("python3*/site-packages", "python3*/dist-packages", "python3/dist-packages"):
                yield from (prefix / library).glob(pattern)
        settings = prefix / "pyvenv.cfg"
        if settings.exists() and "include-system-site-packages = true" not in settings.read_text(encoding="utf-8"):
            return


def _with_neighbours(files: Iterable[Path], environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files and the libraries beside them that they are linked with, each once."""
    seen: set[Path] = set()
    library_path = [Path(part) for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path
        brief = read_elf(path, symbols=False)
        if brief is None or not (brief.search_paths or library_path):
            continue
        folders = [Path(part.replace("$ORIGIN", str(path.parent))) for part in brief.search_paths]
        for name in brief.needed:
            waiting.extend(folder / name for folder in (*folders, *library_path) if (folder / name).is_file())
