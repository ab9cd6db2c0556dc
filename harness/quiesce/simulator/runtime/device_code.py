"""What is known of the device code of a process: names of kernels and variables, and sources that no file holds.

The compiler mangles names: ``fill<float>`` is ``_Z4fillIfEvPT_i`` in its objects, and findings say the first. A
variable is a block of memory that a module makes when it is loaded, or when it is used first;
``native/code/variable.c`` writes their names into a log next to the ledger. What a program gave to NVRTC is kept in the
folder of the run: the compiler of kernels finds it in the PTX (``kernels/ptx/module.py``), also where a client's cache
had that.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_ABI_TAG = re.compile(r"\[abi:\w*\]")
_STATIC: Final = re.compile(r"__nv_static_(\d+)_")
_LONGEST = 120
"""Characters of a name that is shown with the arguments of its templates: those of CUB take thousands."""


@cache
def readable_kernel_name(name: str) -> str:
    """Return the name without the types that it takes and returns; as it is, if it is none of C++ or nobody can tell.

    C++ names are mangled as the Itanium C++ ABI says, those of numba as well.
    """
    demangled = _demangled(name)
    if not demangled:
        return name
    return _without_types(_ABI_TAG.sub("", demangled))


def readable_variable_name(name: str) -> str:
    """Return the last part of the name of a variable: ``sums`` of ``total(int*)::sums``; as it is, if nobody can tell.

    Compilers of other languages, and those of older names, write a name that has no parts.
    """
    demangled = _demangled(name)
    return demangled.rpartition("::")[2] or name


def _demangled(name: str) -> str:
    """Return a name of C++ as it is written, empty for any other.

    nvcc writes the number of characters that tell the file, and these, before static names of relocatable device code.
    """
    static = _STATIC.match(name)
    mangled = name[static.end() + int(static[1]) + 1 :] if static else name
    return _demangler()(mangled) if mangled.startswith("_Z") else ""


def _without_types(declared: str) -> str:
    """Return ``inner::fill<float>`` of ``void inner::fill<float>(float*, int)``."""
    begin = _opening(declared) if declared.endswith(")") else len(declared)
    name = declared[:begin].removeprefix("void ").strip() or declared
    return name if len(name) <= _LONGEST else _without_template_arguments(name)


def _without_template_arguments(name: str) -> str:
    """Return ``cub::Reduce<…>`` of ``cub::Reduce<cub::Policy<int>, int*>``."""
    kept, depth = [], 0
    for character in name:
        depth -= character == ">"
        if not depth:
            kept.append("…>" if character == ">" else character)
        depth += character == "<"
    return "".join(kept)


def _opening(text: str) -> int:
    """Return where the bracket is that the last character closes."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if not depth:
            return at
    return len(text)


@cache
def _demangler() -> Callable[[str], str]:
    """Return the function of libstdc++ that gcc and binutils use, or one that knows no name where it is missing."""
    try:
        library, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
    except OSError:
        return lambda _: ""
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    libc.free.argtypes = [ctypes.c_void_p]

    def demangled(name: str) -> str:
        text = demangle(name.encode(), None, None, None)
        if not text:
            return ""
        found = ctypes.string_at(text).decode("utf-8", "replace")
        libc.free(text)
        return found

    return demangled


_FOLDER: Final = "sources"
_BYTES_MAX: Final = 16 << 20
"""How much of them a run keeps."""


def keep_sources(run: Path, sources: Mapping[str, str]) -> None:
    """Keep texts by the names of their files; those that find no room are left out."""
    if not sources:
        return
    import hashlib  # the judge of a run reads only

    folder = run / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    used = sum(each.stat().st_size for each in os.scandir(folder))
    for name, text in sources.items():
        content = f"{name}\n{text}".encode("utf-8", "replace")
        path = folder / hashlib.sha256(content).hexdigest()
        if path.exists() or used + len(content) > _BYTES_MAX:
            continue
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(content)
        part.replace(path)
        used += len(content)


class ProgramSources:
    """The texts that a run keeps, which may still become more; without a folder there are none."""

    def __init__(self, run: Path | None) -> None:
        self._folder = run / _FOLDER if run is not None else None
        self._read: set[str] = set()
        self._texts: dict[str, list[str]] = {}

    def text(self, file: str, kernel: str) -> str | None:
        """Return the text of a file that a kernel was compiled from; None where none is kept, or it can't be told."""
        self._look()
        found = self._texts.get(file) or [
            text for name, texts in self._texts.items() if file.endswith(f"/{name}") for text in texts
        ]
        if len(found) > 1:  # programs may all have one name
            word = re.compile(rf"\b{re.escape(_plain(kernel))}\b")
            found = [text for text in found if word.search(text)]
        return found[0] if len(found) == 1 else None

    def _look(self) -> None:
        if self._folder is None or not self._folder.is_dir():
            return
        for entry in os.scandir(self._folder):
            if entry.name in self._read or "." in entry.name:
                continue
            self._read.add(entry.name)
            name, _, text = Path(entry.path).read_text(encoding="utf-8").partition("\n")
            self._texts.setdefault(name, []).append(text)


def _plain(kernel: str) -> str:
    """Return ``scale`` of ``inner::scale<float>``."""
    return kernel.partition("<")[0].rpartition("::")[2]


_FIELDS: Final = 3
_SCOPE_OF_A_FILE: Final = re.compile(r"\b_INTERNAL_\w+::")
"""What nvcc puts before the name of what only one file knows."""


@dataclass(frozen=True, slots=True)
class NamedVariable:
    """A variable of device code. ``number`` is that of the record of its allocation."""

    number: int
    address: int
    name: str


class VariableLog:
    """The names of the variables of a process, which may still run and make more; without a ledger there are none."""

    def __init__(self, ledger: Path | None) -> None:
        self._path = ledger.with_suffix(".variables") if ledger is not None else None
        self._read_bytes = 0
        self._by_number: dict[int, str] = {}
        self._by_address: dict[int, list[NamedVariable]] = {}

    def name(self, number: int) -> str:
        """Return the name of the variable that the record of a number allocated, or an empty text."""
        self._read()
        return self._by_number.get(number, "")

    def name_at(self, address: int, number: int) -> str:
        """Return the name of the last variable that began at an address before a record of a number."""
        self._read()
        return next((each.name for each in reversed(self._by_address.get(address, ())) if each.number < number), "")

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._read_bytes)
                whole, ending, _ = stream.read().rpartition(b"\n")  # of a process that was killed the last may be cut
        except FileNotFoundError:
            return
        self._read_bytes += len(whole) + len(ending)
        for each in _parsed(whole.decode("utf-8", "replace")):
            self._by_number[each.number] = each.name
            self._by_address.setdefault(each.address, []).append(each)


class DeviceCode:
    """What is known of the device code of a process, by its ledger; the process may still run."""

    def __init__(self, ledger: Path | None) -> None:
        self.variables = VariableLog(ledger)
        self.sources = ProgramSources(ledger.parent if ledger is not None else None)


NO_CODE: Final = DeviceCode(None)


def _parsed(text: str) -> Iterator[NamedVariable]:
    for line in text.split("\n"):
        words = line.split("\t")
        if len(words) == _FIELDS:
            yield NamedVariable(int(words[0]), int(words[1], 16), name_in_source(words[2]))


def name_in_source(name: str) -> str:
    """Return the name of a variable as its source has it: ``settings::table``."""
    return _SCOPE_OF_A_FILE.sub("", readable_kernel_name(name))
