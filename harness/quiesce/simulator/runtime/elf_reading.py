"""Reads what the dynamic loader would read: names, needs and dynamic symbols of an ELF file for Linux x86-64.

The layout is that of the System V ABI ("gABI", generic and AMD64 supplement) and, for versions and ``DT_GNU_HASH``, of
the Linux Standard Base. Section headers are a hint only: the loader does without them, and so does this. A file is
mapped, never read as a whole, because a vendor's library can have a gigabyte. Whatever is in it, a reader either
answers or raises :class:`UnreadableObject`, and takes time in proportion to the file's size.

``Symbols`` knows the functions of a file by their places, for call stacks. The end finds the file that the loader would
open for a needed library, in the order of ld.so(8). The system's own folders are known from the loader's cache, whose
format is glibc's (``sysdeps/generic/dl-cache.h``).
"""

from __future__ import annotations

import bisect
import enum
import mmap
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from quiesce.model.errors import UnreadableObject

_FILE_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC: Final = struct.Struct("<qQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_VERSION_NEEDED: Final = struct.Struct("<HHIII")
_VERSION_WANTED: Final = struct.Struct("<IHHII")
_VERSION_DEFINED: Final = struct.Struct("<HHHHIII")

_MACHINE_X86_64: Final = 62
_KIND_EXECUTABLE: Final = 2
_KIND_SHARED: Final = 3
_SEGMENT_LOAD: Final = 1
_SEGMENT_DYNAMIC: Final = 2
_SECTION_SYMBOLS: Final = 2
_SECTION_DYNAMIC_SYMBOLS: Final = 11
_FUNCTIONS: Final = (2, 10)  # and those that are resolved when the program is loaded
_BINDING_LOCAL: Final = 0
_BINDING_WEAK: Final = 2
_VERSION_INDEX: Final = 0x7FFF  # the other bit hides a version from references that name none
_VERSIONS_MAX: Final = 0x8000  # their numbers have 15 bits
_NAME_BYTES_MAX: Final = 1 << 16  # bounds the work that a damaged table of names can cause


class Tag(enum.IntEnum):
    """The entries of the dynamic section that are read."""

    NULL = 0
    NEEDED = 1
    HASH = 4
    STRTAB = 5
    SYMTAB = 6
    STRSZ = 10
    SYMENT = 11
    SONAME = 14
    RPATH = 15
    RUNPATH = 29
    GNU_HASH = 0x6FFFFEF5
    VERSYM = 0x6FFFFFF0
    VERDEF = 0x6FFFFFFC
    VERDEFNUM = 0x6FFFFFFD
    VERNEED = 0x6FFFFFFE
    VERNEEDNUM = 0x6FFFFFFF


class SymbolKind(enum.IntEnum):
    """What a symbol stands for. An undefined symbol is UNKNOWN where the linker did not see its definition."""

    UNKNOWN = 0
    OBJECT = 1
    FUNCTION = 2
    SECTION = 3
    FILE = 4
    COMMON = 5
    THREAD_LOCAL = 6
    INDIRECT_FUNCTION = 10


class Symbol(NamedTuple):
    """One global or weak dynamic symbol."""

    name: str
    kind: int
    """A :class:`SymbolKind`, or a number that is none."""
    defined: bool
    weak: bool
    size_bytes: int
    version: str
    """``GLIBC_2.2.5``; empty where the symbol has none."""
    version_file: str
    """The SONAME of the library whose version it is; empty where it has none, or the file itself defines it.

    A program that copies a library's variable defines the variable, with the library's version.
    """


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a file calls itself, and which libraries it asks the loader for, from where."""

    soname: str
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]


def read_dependencies(path: Path) -> Dependencies:
    """Return the names in a file's dynamic section; all are empty for a static executable."""
    with _opened(path) as image:
        return image.dependencies()


def read_symbols(path: Path) -> tuple[Symbol, ...]:
    """Return the global and weak dynamic symbols in the order of the file."""
    with _opened(path) as image:
        return tuple(image.symbols())


def read_undefined(path: Path) -> tuple[Symbol, ...]:
    """Return those dynamic symbols that another library must define."""
    with _opened(path) as image:
        return tuple(image.symbols(defined=False))


def read_defined_names(path: Path) -> frozenset[str]:
    """Return the names of the dynamic symbols that a file defines; faster than :func:`read_symbols`."""
    with _opened(path) as image:
        return frozenset(image.defined_names())


@contextmanager
def _opened(path: Path) -> Iterator[_Image]:
    if not path.is_file():
        raise UnreadableObject(path, "there is no such file" if not path.exists() else "it is no regular file")
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) == 0:
                raise UnreadableObject(path, "it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield _Image(path, content)
    except (OSError, ValueError) as error:
        raise UnreadableObject(path, getattr(error, "strerror", None) or str(error)) from None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A part of the file that is mapped at an address."""

    address: int
    offset: int
    size_bytes: int


class _Image:
    """One mapped file. Every read goes through :meth:`_at`, which knows where the file ends."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self._path = path
        self._content = content
        self._size_bytes = len(content)
        header = self._file_header()
        self._section_headers = header[6], header[11], header[12]
        self._loaded: list[_Loaded] = []
        self._entries: list[tuple[int, int]] = []
        self._read_segments(offset=header[5], entry_bytes=header[9], count=header[10])
        self._tags = dict(reversed(self._entries))
        self._versions_left = 3 * _VERSIONS_MAX  # those wanted, the files that they are wanted from, those defined
        self._names = self._name_table()

    def _wrong(self, what: str) -> UnreadableObject:
        return UnreadableObject(self._path, what)

    def _at(self, offset: int, size_bytes: int, what: str) -> bytes:
        if offset < 0 or size_bytes < 0 or offset + size_bytes > self._size_bytes:
            raise self._wrong(f"{what} ends after the end of the file ({self._size_bytes} bytes)")
        return self._content[offset : offset + size_bytes]

    def _file_header(self) -> tuple[int, ...]:
        if self._content[:4] != b"\x7fELF":
            raise self._wrong("it does not begin as ELF files do")
        header = _FILE_HEADER.unpack(self._at(0, _FILE_HEADER.size, "the file header"))
        if header[0][4:6] != b"\x02\x01" or header[2] != _MACHINE_X86_64:
            raise self._wrong("it is not for x86-64")
        if header[1] not in (_KIND_EXECUTABLE, _KIND_SHARED):
            raise self._wrong("it is neither an executable nor a shared object")
        return header

    def _read_segments(self, offset: int, entry_bytes: int, count: int) -> None:
        if count and entry_bytes != _SEGMENT.size:
            raise self._wrong(f"its program headers have {entry_bytes} bytes each instead of {_SEGMENT.size}")
        table = self._at(offset, count * _SEGMENT.size, "the table of program headers")
        for kind, _, start, address, _, size_bytes, _, _ in _SEGMENT.iter_unpack(table):
            if kind == _SEGMENT_LOAD:
                self._loaded.append(_Loaded(address, start, size_bytes))
            elif kind == _SEGMENT_DYNAMIC and not self._entries:
                entries = self._at(start, size_bytes - size_bytes % _DYNAMIC.size, "the dynamic section")
                for tag, number in _DYNAMIC.iter_unpack(entries):
                    if tag == Tag.NULL:
                        break
                    self._entries.append((tag, number))

    def _offset(self, address: int, what: str) -> int:
        for part in self._loaded:
            if part.address <= address < part.address + part.size_bytes:
                return part.offset + address - part.address
        raise self._wrong(f"{what} is at {address:#x}, where no segment is loaded")

    def _name_table(self) -> bytes:
        if Tag.STRTAB not in self._tags:
            if any(tag in self._tags for tag in (Tag.NEEDED, Tag.SYMTAB, Tag.SONAME)):
                raise self._wrong("its dynamic section has no table of names")
            return b""
        offset = self._offset(self._tags[Tag.STRTAB], "the table of names")
        return self._at(offset, self._tags.get(Tag.STRSZ, 0), "the table of names")

    def _name(self, offset: int) -> str:
        end = self._names.find(b"\0", offset, offset + _NAME_BYTES_MAX)
        if end < 0:
            raise self._wrong(f"the name at {offset} of {len(self._names)} bytes of names has no end")
        return self._names[offset:end].decode("utf-8", "surrogateescape")

    def dependencies(self) -> Dependencies:
        def names(wanted: Tag) -> tuple[str, ...]:
            return tuple(self._name(number) for tag, number in self._entries if tag == wanted)

        def folders(wanted: Tag) -> tuple[str, ...]:
            return tuple(folder for text in names(wanted) for folder in text.split(":") if folder)

        soname = "".join(names(Tag.SONAME)[:1])
        return Dependencies(soname, names(Tag.NEEDED), folders(Tag.RPATH), folders(Tag.RUNPATH))

    def symbols(self, defined: bool | None = None) -> Iterator[Symbol]:
        """Yield the global and weak symbols; `defined` leaves only those that are, or are not."""
        table = self._symbol_table()
        versions = self._versions(len(table) // _SYMBOL.size)
        wanted, offered = self._versions_wanted(), self._versions_defined()
        for index, (name, info, _, section, _, size_bytes) in enumerate(_SYMBOL.iter_unpack(table)):
            binding = info >> 4
            if binding == _BINDING_LOCAL or (defined is not None and defined != (section != 0)):
                continue
            number = versions[index] & _VERSION_INDEX if versions else 0
            version, file = wanted.get(number) or (offered.get(number, ""), "")
            weak = binding == _BINDING_WEAK
            yield Symbol(self._name(name), info & 15, section != 0, weak, size_bytes, version, file)

    def defined_names(self) -> Iterator[str]:
        for name, info, _, section, _, _ in _SYMBOL.iter_unpack(self._symbol_table()):
            if section and info >> 4 != _BINDING_LOCAL:
                yield self._name(name)

    def _symbol_table(self) -> bytes:
        if Tag.SYMTAB not in self._tags:
            return b""
        if self._tags.get(Tag.SYMENT, _SYMBOL.size) != _SYMBOL.size:
            raise self._wrong(f"its symbols have {self._tags[Tag.SYMENT]} bytes each instead of {_SYMBOL.size}")
        offset = self._offset(self._tags[Tag.SYMTAB], "the table of symbols")
        return self._at(offset, self._symbol_count() * _SYMBOL.size, "the table of symbols")

    def _symbol_count(self) -> int:
        """Count the symbols: nothing states it but a hash table, or the section header where there is one."""
        if Tag.HASH in self._tags:
            offset = self._offset(self._tags[Tag.HASH], "the hash table")
            return int(struct.unpack("<I", self._at(offset + 4, 4, "the hash table"))[0])
        by_section = self._symbol_count_of_section()
        return self._symbol_count_of_gnu_hash() if by_section is None else by_section

    def _symbol_count_of_section(self) -> int | None:
        offset, entry_bytes, count = self._section_headers
        size_bytes = count * _SECTION.size
        if entry_bytes != _SECTION.size or offset + size_bytes > self._size_bytes:
            return None
        for section in _SECTION.iter_unpack(self._content[offset : offset + size_bytes]):
            if section[1] == _SECTION_DYNAMIC_SYMBOLS and section[3] == self._tags[Tag.SYMTAB]:
                return int(section[5]) // _SYMBOL.size
        return None

    def _symbol_count_of_gnu_hash(self) -> int:
        what = "the GNU hash table"
        if Tag.GNU_HASH not in self._tags:
            raise self._wrong("it has symbols, but neither a hash table nor a section that says how many")
        offset = self._offset(self._tags[Tag.GNU_HASH], what)
        buckets, first, words, _ = struct.unpack("<IIII", self._at(offset, 16, what))
        offset += 16 + 8 * words
        last = max(struct.unpack(f"<{buckets}I", self._at(offset, 4 * buckets, what)), default=0)
        if last < first:
            return int(first)
        offset += 4 * buckets
        while True:  # a chain ends with an odd hash, or, in a damaged file, where the file does
            (value,) = struct.unpack("<I", self._at(offset + 4 * (last - first), 4, what))
            last += 1
            if value & 1:
                return int(last)

    def _versions(self, count: int) -> tuple[int, ...]:
        if Tag.VERSYM not in self._tags:
            return ()
        offset = self._offset(self._tags[Tag.VERSYM], "the table of versions")
        return struct.unpack(f"<{count}H", self._at(offset, 2 * count, "the table of versions"))

    def _chain(self, tag: Tag, count_tag: Tag, layout: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the offset and the fields of each entry of a chain; the last field leads to the next entry."""
        if tag not in self._tags:
            return
        offset = self._offset(self._tags[tag], "a table of versions")
        yield from self._linked(offset, self._tags.get(count_tag, 0), layout)

    def _linked(self, offset: int, count: int, layout: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
        for _ in range(count):
            self._versions_left -= 1
            if self._versions_left < 0:
                raise self._wrong("it has more versions than there are numbers for them")
            fields = layout.unpack(self._at(offset, layout.size, "a table of versions"))
            yield offset, fields
            if not fields[-1]:
                return
            if fields[-1] < layout.size:
                raise self._wrong("entries of a table of versions overlap")
            offset += fields[-1]

    def _versions_wanted(self) -> dict[int, tuple[str, str]]:
        wanted = {}
        for offset, (_, count, file, first, _) in self._chain(Tag.VERNEED, Tag.VERNEEDNUM, _VERSION_NEEDED):
            for _, (_, _, number, name, _) in self._linked(offset + first, count, _VERSION_WANTED):
                wanted[number & _VERSION_INDEX] = self._name(name), self._name(file)
        return wanted

    def _versions_defined(self) -> dict[int, str]:
        defined = {}
        for offset, (_, flags, number, count, _, first, _) in self._chain(Tag.VERDEF, Tag.VERDEFNUM, _VERSION_DEFINED):
            if count and not flags & 1:  # the base version names the file, not a symbol
                (name,) = struct.unpack("<I", self._at(offset + first, 4, "a table of versions"))
                defined[number & _VERSION_INDEX] = self._name(name)
        return defined


class _Function(NamedTuple):
    start: int
    end: int
    name: str


class Symbols:
    """The functions of one file, local ones as well; none of a file that changed, went away or was never one.

    They are read through the section headers, for the loader's own tables know no local functions. Where a file was
    stripped, the dynamic symbols are what is left.
    """

    def __init__(self, path: Path) -> None:
        self._segments: list[tuple[int, int, int]] = []
        self._functions: list[_Function] = []
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                self._segments = list(_segments(content))
                self._functions = sorted(_functions(content))
        except (OSError, struct.error, IndexError, ValueError):
            return

    def address(self, offset: int) -> int | None:
        """Return the address that the file itself gives the byte at ``offset``, or None where none is loaded there."""
        for start, size, address in self._segments:
            if start <= offset < start + size:
                return offset - start + address
        return None

    def name(self, offset: int) -> str | None:
        """Return the name of the function that has the byte at ``offset`` of the file, or None."""
        address = self.address(offset)
        return None if address is None else self._name_at(address)

    def _name_at(self, address: int) -> str | None:
        place = bisect.bisect_right(self._functions, address, key=lambda each: each.start)
        # a shorter function may begin inside a longer one, such as an alias of its second half
        for function in reversed(self._functions[max(0, place - 8) : place]):
            if address < function.end:
                return function.name
        return None


def _segments(content: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    fields = _FILE_HEADER.unpack_from(content)
    if fields[0][:5] != b"\x7fELF\x02":
        raise ValueError("no ELF file of 64 bits")
    for number in range(fields[10]):
        kind, _, offset, address, _, size, _, _ = _SEGMENT.unpack_from(content, fields[5] + number * _SEGMENT.size)
        if kind == _SEGMENT_LOAD:
            yield offset, size, address


def _functions(content: mmap.mmap) -> Iterator[_Function]:
    fields = _FILE_HEADER.unpack_from(content)
    sections = [_SECTION.unpack_from(content, fields[6] + number * _SECTION.size) for number in range(fields[12])]
    for kind in (_SECTION_SYMBOLS, _SECTION_DYNAMIC_SYMBOLS):
        for section in sections:
            if section[1] == kind:
                names = sections[section[6]][4]
                yield from _functions_in(content[section[4] : section[4] + section[5]], content, names)


def _functions_in(table: bytes, content: mmap.mmap, names: int) -> Iterator[_Function]:
    for name, information, _, section, address, size in _SYMBOL.iter_unpack(table[: len(table) // 24 * 24]):
        if information & 15 in _FUNCTIONS and section and size:
            start = names + name
            end = content.find(b"\0", start)
            yield _Function(address, address + size, content[start:end].decode("utf-8", "replace"))


_CACHE: Final = Path("/etc/ld.so.cache")
_CACHE_MAGIC: Final = b"glibc-ld.so.cache1.1"
_CACHE_HEADER_BYTES: Final = 48
_CACHE_ENTRY: Final = struct.Struct("<iIIIQ")
_FOR_X86_64: Final = 0x0300
_TRUSTED: Final = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


def find_library(name: str, client: Path, dependencies: Dependencies, paths: Sequence[str] = ()) -> Path | None:
    """Return what the loader opens for `name`, needed by `client`; `paths` is what LD_LIBRARY_PATH will hold."""
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    rpath = () if dependencies.runpath else dependencies.rpath
    for folder in (*rpath, *paths, *dependencies.runpath):
        if (path := _inside(folder, name, client)) is not None:
            return path
    cached = system_libraries().get(name)
    if cached is not None and Path(cached).is_file():
        return Path(cached)
    return next((path for folder in _TRUSTED if (path := _inside(folder, name, client))), None)


def places_searched(client: Path, dependencies: Dependencies, paths: Sequence[str] = ()) -> Iterator[Path]:
    """Yield everything whose change can change an answer of :func:`find_library`: folders, and the loader's cache."""
    for folder in (*dependencies.rpath, *paths, *dependencies.runpath):
        yield Path(_expanded(folder, client))
    yield from (_CACHE, *map(Path, _TRUSTED))


def _expanded(folder: str, client: Path) -> str:
    if "$" not in folder:
        return folder
    # a link's own folder, as the loader has it
    origin = os.path.dirname(os.path.abspath(client))  # noqa: PTH100, PTH120
    return folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)


def _inside(folder: str, name: str, client: Path) -> Path | None:
    path = f"{_expanded(folder, client)}/{name}"
    return Path(path) if os.path.isfile(path) else None  # noqa: PTH113 - called thousands of times


@cache
def system_libraries() -> Mapping[str, str]:
    """Return the 64-bit libraries in the loader's cache: SONAME to path. Empty where there is no such cache."""
    try:
        content = _CACHE.read_bytes()
    except OSError:
        return {}
    return read_cache(content)


def read_cache(content: bytes) -> Mapping[str, str]:
    """Return the libraries in the text of a cache; what is damaged in it is left out."""
    start = content.find(_CACHE_MAGIC)
    if start < 0 or len(content) < start + _CACHE_HEADER_BYTES:
        return {}
    table = content[start:]
    (count,) = struct.unpack_from("<I", table, len(_CACHE_MAGIC))
    found: dict[str, str] = {}
    end = min(len(table), _CACHE_HEADER_BYTES + count * _CACHE_ENTRY.size)
    for offset in range(_CACHE_HEADER_BYTES, end - _CACHE_ENTRY.size + 1, _CACHE_ENTRY.size):
        flags, name, path, _, _ = _CACHE_ENTRY.unpack_from(table, offset)
        if flags & 0xFF00 == _FOR_X86_64:
            found.setdefault(_text(table, name), _text(table, path))
    return found


def _text(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    return os.fsdecode(table[offset:end]) if end >= 0 else ""
