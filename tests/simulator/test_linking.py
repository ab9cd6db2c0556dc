"""Linking: what goes in can be found in the module that comes out, and nothing else where that can be told."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.conftest import Client, MakeImage, Start

from quiesce.simulator.runtime.ledger import Seen, Thing

INVALID_VALUE, INVALID_IMAGE, INVALID_PTX, FILE_NOT_FOUND, INVALID_HANDLE, NOT_FOUND = 1, 200, 218, 301, 400, 500
NOT_SUPPORTED = 801
CUBIN, PTX, FATBINARY, OBJECT, BITCODE = 0, 1, 2, 3, 100
SCALE: Final = b".version 8.0\n.target sm_80\n.global .u32 factor = 9;\n.visible .entry scale() { ret; }\n"
SHIFT: Final = b".version 8.0\n.target sm_80\n.visible .entry shift() { ret; }\n"


class Linker:
    """A linker, under the names of its flavour."""

    def __init__(self, client: Client) -> None:
        client.ok("Free", None)  # whoever calls the runtime has a context
        self.library, self.hip = client.machine.library, client.machine.ledger.flavour.value == "hip"
        self.handle = ctypes.c_void_p()
        assert self.call("LinkCreate", 0, None, None, ctypes.byref(self.handle)) == 0

    def call(self, function: str, *arguments: Any) -> int:
        versioned = function in ("LinkCreate", "LinkAddData", "LinkAddFile") and not self.hip
        name = ("hip" if self.hip else "cu") + function + ("_v2" if versioned else "")
        return int(getattr(self.library, name)(*arguments))

    def add(self, kind: int, content: bytes, size: int | None = None) -> int:
        size_bytes = ctypes.c_size_t(len(content) if size is None else size)
        return self.call("LinkAddData", self.handle, kind, content, size_bytes, b"name", 0, None, None)

    def add_file(self, kind: int, path: Path) -> int:
        return self.call("LinkAddFile", self.handle, kind, str(path).encode(), 0, None, None)

    def complete(self) -> bytes:
        """Return the image, which is loaded from where it lies too."""
        place, size = ctypes.c_void_p(), ctypes.c_size_t()
        assert self.call("LinkComplete", self.handle, ctypes.byref(place), ctypes.byref(size)) == 0
        again = ctypes.c_void_p()
        assert self.call("LinkComplete", self.handle, ctypes.byref(again), None) == 0
        assert again.value == place.value
        return ctypes.string_at(place.value or 0, size.value)

    def load(self, made: bytes) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        load = self.library.hipModuleLoadData if self.hip else self.library.cuModuleLoadData
        assert load(ctypes.byref(module), made) == 0
        return module

    def function(self, module: ctypes.c_void_p, name: bytes) -> int:
        get = self.library.hipModuleGetFunction if self.hip else self.library.cuModuleGetFunction
        return int(get(ctypes.byref(ctypes.c_void_p()), module, name))


@pytest.mark.parametrize("flavour", ["cuda:11", "cuda:12", "cuda:13"])
def test_functions_and_variables_of_all_inputs_are_in_the_module(
    start: Start,
    tmp_path: Path,
    image: MakeImage,
    flavour: str,
) -> None:
    client, path = start(flavour), tmp_path / "shift.ptx"
    linker = Linker(client)
    path.write_bytes(SHIFT)
    assert linker.add(PTX, SCALE + b"\0") == 0
    assert linker.add_file(PTX, path) == 0
    assert linker.add(CUBIN, image("cubin")) == 0
    made = linker.complete()
    assert linker.call("LinkDestroy", linker.handle) == 0
    module, address = linker.load(made), ctypes.c_void_p()
    assert [linker.function(module, name) for name in (b"scale", b"shift", b"twist")] == [0, 0, NOT_FOUND]
    for name, value in ((b"factor", 9), (b"counter", 7)):
        assert client.machine.library.cuModuleGetGlobal_v2(ctypes.byref(address), None, module, name) == 0
        assert ctypes.string_at(address.value or 0, 4) == struct.pack("<I", value)
    path.write_bytes(made)
    assert client.machine.library.cuModuleLoad(ctypes.byref(module), str(path).encode()) == 0, (
        "it can be kept in a file"
    )
    again = Linker(client)
    assert again.add(CUBIN, made) == 0
    assert linker.function(linker.load(again.complete()), b"shift") == 0


@pytest.mark.parametrize(
    ("flavour", "kind"), [("cuda:12", OBJECT), ("cuda:12", FATBINARY), ("hip:6", BITCODE), ("hip:7", BITCODE)]
)
def test_an_input_that_cannot_be_looked_through_denies_no_name(start: Start, flavour: str, kind: int) -> None:
    client = start(flavour)
    linker, address = Linker(client), ctypes.c_void_p()
    if flavour == "cuda:12":
        assert linker.add(PTX, SCALE) == 0
    assert linker.add(kind, b"BC\xc0\xde" + bytes(100)) == 0
    module = linker.load(linker.complete())
    assert linker.function(module, b"anything") == 0
    get = client.machine.library.hipModuleGetGlobal if linker.hip else client.machine.library.cuModuleGetGlobal_v2
    assert get(ctypes.byref(address), None, module, b"factor") == NOT_SUPPORTED


def test_what_is_no_input_is_refused(start: Start, tmp_path: Path) -> None:
    linker = Linker(start())
    assert linker.add(PTX, b"\x7fELF\x02" + bytes(100)) == INVALID_PTX
    assert linker.add(PTX, b"no text") == INVALID_PTX
    assert linker.add(CUBIN, SCALE) == INVALID_IMAGE
    assert linker.add(CUBIN, b"\x7fELF\x02" + b"\xff" * 100) == INVALID_IMAGE
    assert linker.add(CUBIN, b"\x7fELF\x02") == INVALID_IMAGE
    assert linker.add(6, SCALE) == INVALID_VALUE
    assert linker.add(BITCODE, SCALE) == INVALID_VALUE, "another vendor's"
    assert linker.add(PTX, SCALE, 0) == INVALID_VALUE
    assert linker.add_file(PTX, tmp_path / "absent") == FILE_NOT_FOUND
    assert linker.add_file(PTX, tmp_path) == INVALID_IMAGE, "a folder"
    assert linker.add(PTX, SCALE) == 0
    linker.complete()
    assert linker.add(PTX, SHIFT) == INVALID_VALUE, "it is complete"


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:7"])
def test_a_linker_has_to_be_destroyed_once(start: Start, flavour: str) -> None:
    client = start(flavour, recycle="never")
    linker = Linker(client)
    (left,) = client.machine.ledger.live()
    assert (left.thing, left.address) == (Thing.LINKER, linker.handle.value)
    assert linker.call("LinkDestroy", linker.handle) == 0
    assert linker.call("LinkDestroy", linker.handle) == INVALID_HANDLE
    assert linker.add(PTX, SCALE) == INVALID_HANDLE
    assert {record.thing for record in client.seen(Seen.DEAD_HANDLE)} == {Thing.LINKER}
    Linker(client)
    client.ok("DeviceReset")
    assert list(client.machine.ledger.live()) == []


def test_no_messages_are_said(start: Start) -> None:
    library = Linker(start()).library
    log, linker = ctypes.create_string_buffer(b"left over", 16), ctypes.c_void_p()
    options = (ctypes.c_int * 3)(5, 6, 2)  # the buffer for errors, its size, the time that it took
    values = (ctypes.c_void_p * 3)(ctypes.addressof(log), 16, 99)
    assert library.cuLinkCreate_v2(3, options, values, ctypes.byref(linker)) == 0
    assert (log.value, values[1], values[2]) == (b"", None, None)
    assert library.cuLinkCreate_v2(3, None, values, ctypes.byref(linker)) == INVALID_VALUE
