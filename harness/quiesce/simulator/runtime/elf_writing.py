"""Writes a small ELF shared object from nothing, without a compiler: every function in it fails by name when called.

What a call of such a function does:

1. it prints one line to standard error, once for each function and process:
   ``quiesce: rocblas_dgemm (librocblas.so.4) is not simulated: it returns 2; …``;
2. it calls ``quiesce_not_simulated(name)``, each time, where a loaded library defines that: the simulator writes the
   call into its ledger;
3. it gives the answer that :class:`StubFunction` names, or ends the process with ``abort`` where no answer is honest.
   ``abort`` and not ``exit``: no destructor of a client runs on half-made state, a debugger stops at the caller, and
   Python's fault handler prints where it was.

The loader's rules that shape the file (glibc's ``elf/dl-lookup.c`` and ``dl-version.c``): a library without any version
table makes it abort in ``check_match`` when a client names a version, so the tables are always there; a library that
defines versions must define each one that a client names, while its *symbols* may keep the base version, which answers
to any. No page is both writable and executable, the stack is not executable, and no relocation touches code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.simulator.runtime import stub_code

C_LIBRARY: Final = "libc.so.6"
_C_LIBRARY_VERSION: Final = "GLIBC_2.2.5"  # the first of glibc on x86-64


class Names:
    """A table of names that end with NUL."""

    def __init__(self) -> None:
        self._content = bytearray(b"\0")
        self._offsets: dict[str, int] = {"": 0}

    def add(self, name: str) -> int:
        """Return where a name stands in the table."""
        if name not in self._offsets:
            self._offsets[name] = len(self._content)
            self._content += name.encode("utf-8", "surrogateescape") + b"\0"
        return self._offsets[name]

    def content(self) -> bytes:
        """Return the table."""
        return bytes(self._content)


def elf_hash(name: str) -> int:
    """Return the hash of the System V ABI."""
    value = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value


def versions_defined(names: Names, versions: Sequence[str]) -> tuple[bytes, int]:
    """Return the versions that a library defines, its own name first, and how many there are."""
    made = b""
    for number, name in enumerate(versions, 1):
        following = 28 if number < len(versions) else 0
        made += struct.pack("<HHHHIII", 1, int(number == 1), number, 1, elf_hash(name), 20, following)
        made += struct.pack("<II", names.add(name), 0)
    return made, len(versions)


def version_wanted(names: Names, number: int) -> bytes:
    """Return the one version of the C library that is needed, which has this number in the library."""
    version = struct.pack("<IHHII", elf_hash(_C_LIBRARY_VERSION), 0, number, names.add(_C_LIBRARY_VERSION), 0)
    return struct.pack("<HHIII", 1, 1, names.add(C_LIBRARY), 16, 0) + version


_PAGE_BYTES: Final = 4096
_FILE_HEADER_BYTES: Final = 64
_SEGMENT_BYTES: Final = 56
_OF_C_LIBRARY: Final = frozenset({"write", "abort"})
_OBJECT_ALIGNMENT_BYTES: Final = 64
_ALLOCATED: Final = 2
_WRITABLE: Final = 1 | _ALLOCATED
_EXECUTABLE: Final = 4 | _ALLOCATED


@dataclass(frozen=True, slots=True)
class StubFunction:
    """A function to define, and what a call of it returns: a number, a text, or nothing, as it ends the process."""

    name: str
    answer: int | str | None = None


@dataclass(frozen=True, slots=True)
class Forward:
    """A function to define that goes on in a function of a needed library, which has another name there."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class StubObject:
    """A variable to define. It is zero: reading memory can't fail by name."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StubLibrary:
    """What a library is called, what it defines, and which libraries it brings along."""

    soname: str
    functions: tuple[StubFunction, ...] = ()
    objects: tuple[StubObject, ...] = ()
    needed: tuple[str, ...] = ()
    """Names, or absolute paths, which the loader opens as they are."""
    versions: tuple[str, ...] = ()
    """The versions that clients name when they refer to it. They apply to the library as a whole."""
    forwards: tuple[Forward, ...] = ()


def write_library(library: StubLibrary) -> bytes:
    """Return the shared object. Raises ValueError for a name that is empty, holds a NUL, or is defined twice."""
    names = _defined_names(library)
    for name in (library.soname, *names, *library.needed, *library.versions):
        if not name or "\0" in name:
            raise ValueError(f"{library.soname!r}: {name!r} can't be a name; write one without NUL characters")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{library.soname!r}: {twice!r} is defined twice; name it once")
    return _file(_sections(library))


def _defined_names(library: StubLibrary) -> list[str]:
    functions = [each.name for each in library.functions] + [each.name for each in library.forwards]
    return functions + [each.name for each in library.objects]


def _imported_names(library: StubLibrary) -> tuple[str, ...]:
    return (*stub_code.IMPORTS, *(forward.target for forward in library.forwards))


@dataclass(frozen=True, slots=True)
class _Section:
    """A section whose size is known before the addresses are that its content refers to."""

    name: str
    kind: int
    flags: int
    size_bytes: int
    content: Callable[[Mapping[str, int]], bytes]
    alignment_bytes: int = 8
    entry_bytes: int = 0
    link: str = ""
    information: int = 0


def _fixed(
    name: str,
    kind: int,
    content: bytes,
    alignment_bytes: int = 8,
    entry_bytes: int = 0,
    link: str = "",
    information: int = 0,
) -> _Section:
    return _Section(
        name, kind, _ALLOCATED, len(content), lambda _: content, alignment_bytes, entry_bytes, link, information
    )


def _sections(library: StubLibrary) -> list[_Section]:
    names = Names()
    symbols = _Symbols(library, names)
    defined, defined_count = versions_defined(names, tuple(dict.fromkeys((library.soname, *library.versions))))
    wanted = version_wanted(names, number=defined_count + 1)
    needed = [(1, names.add(name)) for name in dict.fromkeys((*library.needed, C_LIBRARY))]
    needed.append((14, names.add(library.soname)))
    records = _Records(library, names)
    own = names.content()
    functions, forwards, pointers = len(library.functions), len(library.forwards), len(_imported_names(library))
    read_only = [
        _fixed(".hash", 5, symbols.hash_table(), 8, 4, ".dynsym"),
        symbols.section(),
        _fixed(".dynstr", 3, own, 1),
        _fixed(".gnu.version", 0x6FFFFFFF, symbols.versions(defined_count + 1), 2, 2, ".dynsym"),
        _fixed(".gnu.version_d", 0x6FFFFFFD, defined, 8, 0, ".dynstr", defined_count),
        _fixed(".gnu.version_r", 0x6FFFFFFE, wanted, 8, 0, ".dynstr", 1),
        _Section(".rela.dyn", 4, _ALLOCATED, 24 * pointers, lambda at: _relocations(at, pointers), 8, 24, ".dynsym"),
        _Section(".rodata", 1, _ALLOCATED, records.size_bytes, records.content),
        *_frame_sections(functions + forwards),
    ]
    ends = [function.answer is None for function in library.functions]
    code = _Section(
        ".text", 1, _EXECUTABLE, stub_code.text_bytes(functions + forwards),
        lambda at: stub_code.text(_places(at), ends, forwards), 16,
    )  # fmt: skip
    dynamic = _dynamic(needed, len(own), defined_count, pointers)
    objects_bytes = sum(_object_bytes(each) for each in library.objects)
    writable = [
        dynamic,
        _Section(".got", 1, _WRITABLE, 8 * pointers, lambda _: bytes(8 * pointers), 8, 8),
        _Section(".bss", 8, _WRITABLE, _said_bytes(functions) + objects_bytes, lambda _: b"", _OBJECT_ALIGNMENT_BYTES),
    ]
    return [*read_only, code, *writable]


def _said_bytes(functions: int) -> int:
    return -(-functions // _OBJECT_ALIGNMENT_BYTES) * _OBJECT_ALIGNMENT_BYTES


def _object_bytes(each: StubObject) -> int:
    return -(-each.size_bytes // _OBJECT_ALIGNMENT_BYTES) * _OBJECT_ALIGNMENT_BYTES


def _frame_sections(functions: int) -> Iterator[_Section]:
    header, frames = stub_code.frames(0, 0, functions)

    def placed(at: Mapping[str, int]) -> tuple[bytes, bytes]:
        return stub_code.frames(at[".eh_frame_hdr"], at[".text"], functions)

    yield _Section(".eh_frame_hdr", 1, _ALLOCATED, len(header), lambda at: placed(at)[0], 4)
    yield _Section(".eh_frame", 1, _ALLOCATED, len(frames), lambda at: placed(at)[1], 4)


def _places(at: Mapping[str, int]) -> stub_code.Places:
    pointers = {name: at[".got"] + 8 * index for index, name in enumerate(stub_code.IMPORTS)}
    return stub_code.Places(at[".text"], at[".rodata"], at[".bss"], pointers, at[".got"] + 8 * len(pointers))


class _Symbols:
    """The table of dynamic symbols: those imported first, then the functions, forwards included, then the objects."""

    def __init__(self, library: StubLibrary, names: Names) -> None:
        self._imported = _imported_names(library)
        self._imports = [names.add(name) for name in self._imported]
        self._stubs = len(library.functions)
        self._functions = [names.add(each.name) for each in library.functions]
        self._functions += [names.add(each.name) for each in library.forwards]
        self._objects = [(names.add(each.name), each.size_bytes, _object_bytes(each)) for each in library.objects]
        self._names = [*self._imported, *_defined_names(library)]

    def hash_table(self) -> bytes:
        count = 1 + len(self._names)
        buckets, chain = [0] * count, [0] * count
        for index, name in enumerate(self._names, 1):
            bucket = elf_hash(name) % count
            chain[index], buckets[bucket] = buckets[bucket], index
        return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chain)

    def versions(self, of_c_library: int) -> bytes:
        # 1 is the base version: unversioned, and global
        numbers = [0, *(of_c_library if name in _OF_C_LIBRARY else 1 for name in self._imported)]
        numbers += [1] * (len(self._functions) + len(self._objects))
        return struct.pack(f"<{len(numbers)}H", *numbers)

    def section(self) -> _Section:
        return _Section(".dynsym", 11, _ALLOCATED, 24 * (1 + len(self._names)), self._content, 8, 24, ".dynstr", 1)

    def _content(self, at: Mapping[str, int]) -> bytes:
        pack = struct.Struct("<IBBHQQ").pack
        made = [bytes(24)]
        for name, offset in zip(self._imported, self._imports, strict=True):
            made.append(pack(offset, 0x20 if name == "quiesce_not_simulated" else 0x12, 0, 0, 0, 0))
        address = at[".text"] + stub_code.ENTRIES_OFFSET
        for offset in self._functions:
            made.append(pack(offset, 0x12, 0, at["index:.text"], address, 13))
            address += stub_code.ENTRY_BYTES
        address = at[".bss"] + _said_bytes(self._stubs)
        for offset, size_bytes, taken_bytes in self._objects:
            made.append(pack(offset, 0x11, 0, at["index:.bss"], address, size_bytes))
            address += taken_bytes
        return b"".join(made)


def _relocations(at: Mapping[str, int], pointers: int) -> bytes:
    glob_dat = 6  # R_X86_64_GLOB_DAT: the symbol's address
    return b"".join(
        struct.pack("<QQq", at[".got"] + 8 * index, (index + 1) << 32 | glob_dat, 0) for index in range(pointers)
    )


class _Records:
    """What the code knows of each function, the messages, and the texts to return."""

    def __init__(self, library: StubLibrary, names: Names) -> None:
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._texts = bytearray()
        start = stub_code.RECORD.size * len(library.functions)
        offsets: dict[str, int] = {}
        for function in library.functions:
            message = _message(function, library.soname)
            at = start + len(self._texts)
            self._texts += message
            text = 0
            if isinstance(function.answer, str):
                if function.answer not in offsets:
                    offsets[function.answer] = start + len(self._texts)
                    self._texts += function.answer.encode() + b"\0"
                text = offsets[function.answer]
            number = function.answer if isinstance(function.answer, int) else 0
            self._rows.append((names.add(function.name), at, len(message), text, number))
        self.size_bytes = start + len(self._texts)

    def content(self, at: Mapping[str, int]) -> bytes:
        own, strings, pack = at[".rodata"], at[".dynstr"], stub_code.RECORD.pack
        rows = [
            pack(strings + name, own + message, length, own + text if text else 0, number)
            for name, message, length, text, number in self._rows
        ]
        return b"".join(rows) + bytes(self._texts)


def _message(function: StubFunction, soname: str) -> bytes:
    match function.answer:
        case None:
            then = "what it returns is not known, so the program ends here"
        case str():
            then = "it returns a text that says so"
        case number:
            then = f"it returns {number}"
    line = (
        f"quiesce: {function.name} ({soname}) is not simulated: {then}; leave out what calls it, or run it on a GPU\n"
    )
    return line.encode("utf-8", "surrogateescape")


def _dynamic(needed: Sequence[tuple[int, int]], strings_bytes: int, versions: int, relocations: int) -> _Section:
    numbers = [*needed, (10, strings_bytes), (11, 24), (8, 24 * relocations), (9, 24)]
    numbers += [(0x6FFFFFFD, versions), (0x6FFFFFFF, 1)]
    places = [(4, ".hash"), (5, ".dynstr"), (6, ".dynsym"), (7, ".rela.dyn")]
    places += [(0x6FFFFFF0, ".gnu.version"), (0x6FFFFFFC, ".gnu.version_d"), (0x6FFFFFFE, ".gnu.version_r")]

    def content(at: Mapping[str, int]) -> bytes:
        entries = [*numbers, *((tag, at[name]) for tag, name in places), (0, 0)]
        return b"".join(struct.pack("<qQ", *entry) for entry in entries)

    return _Section(".dynamic", 6, _WRITABLE, 16 * (len(numbers) + len(places) + 1), content, 8, 16, ".dynstr")


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    flags: int  # 1 execute, 2 write, 4 read
    sections: tuple[str, ...]
    alignment_bytes: int


def _segments(sections: Sequence[_Section]) -> list[_Segment]:
    def named(flags: int) -> tuple[str, ...]:
        return tuple(section.name for section in sections if section.flags == flags)

    return [
        _Segment(1, 4, named(_ALLOCATED), _PAGE_BYTES),
        _Segment(1, 5, named(_EXECUTABLE), _PAGE_BYTES),
        _Segment(1, 6, named(_WRITABLE), _PAGE_BYTES),
        _Segment(2, 6, (".dynamic",), 8),
        _Segment(0x6474E550, 4, (".eh_frame_hdr",), 4),
        _Segment(0x6474E551, 6, (), 16),  # the stack: not executable
    ]


def _file(sections: Sequence[_Section]) -> bytes:
    segments = _segments(sections)
    at: dict[str, int] = {}
    position, flags = _FILE_HEADER_BYTES + _SEGMENT_BYTES * len(segments), _ALLOCATED
    for number, section in enumerate(sections, 1):
        alignment_bytes = section.alignment_bytes if section.flags == flags else _PAGE_BYTES
        flags = section.flags
        position = -(-position // alignment_bytes) * alignment_bytes
        at[section.name], at["index:" + section.name] = position, number
        position += section.size_bytes
    sizes = {section.name: section.size_bytes for section in sections}
    made = bytearray(_FILE_HEADER_BYTES)
    for segment in segments:
        made += _program_header(segment, at, sizes)
    for section in sections:
        content = section.content(at)
        if content:
            made += bytes(at[section.name] - len(made)) + content
    return _with_section_headers(made, sections, at, len(segments))


def _program_header(segment: _Segment, at: Mapping[str, int], sizes: Mapping[str, int]) -> bytes:
    if not segment.sections:
        return struct.pack("<IIQQQQQQ", segment.kind, segment.flags, 0, 0, 0, 0, 0, segment.alignment_bytes)
    first, last = segment.sections[0], segment.sections[-1]
    start = 0 if first == ".hash" else at[first]  # the first segment holds the headers too
    end = at[last] + sizes[last]
    file_end = max(at[name] + sizes[name] for name in segment.sections if name != ".bss")
    return struct.pack(
        "<IIQQQQQQ", segment.kind, segment.flags, start, start, start, file_end - start, end - start,
        segment.alignment_bytes,
    )  # fmt: skip


def _with_section_headers(made: bytearray, sections: Sequence[_Section], at: Mapping[str, int], segments: int) -> bytes:
    names = Names()
    rows = [bytes(64)]
    file_end = len(made)
    for section in sections:
        link = at.get("index:" + section.link, 0)
        offset = min(at[section.name], file_end) if section.kind == 8 else at[section.name]
        rows.append(
            struct.pack("<IIQQQQIIQQ", names.add(section.name), section.kind, section.flags, at[section.name], offset,
                        section.size_bytes, link, section.information, section.alignment_bytes, section.entry_bytes)
        )  # fmt: skip
    own_name = names.add(".shstrtab")
    content = names.content()
    rows.append(struct.pack("<IIQQQQIIQQ", own_name, 3, 0, 0, file_end, len(content), 0, 0, 1, 0))
    made += content
    made += bytes(-len(made) % 8)
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16sHHIQQQIHHHHHH", identity, 3, 62, 1, 0, _FILE_HEADER_BYTES, len(made), 0,
                         _FILE_HEADER_BYTES, _SEGMENT_BYTES, segments, 64, len(rows), len(rows) - 1)  # fmt: skip
    made[: len(header)] = header
    return bytes(made) + b"".join(rows)
