"""Bounds of the compiler's input: lengths that lie, texts that unpack without end, kernels with many branches."""

from __future__ import annotations

import random
import socket
import tracemalloc

import pytest

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")

from tests.kernels.compiling import translate_kernel

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.fatbins import unpack
from quiesce.simulator.kernels.protocol import Asked, Packing, Request, read_request
from quiesce.simulator.kernels.ptx.function import Function, Instruction, Label
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.ptx.operands import Symbol
from quiesce.simulator.kernels.ptx.parsing import parse_function
from quiesce.simulator.kernels.translation.spin_loops import spinning_branches

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<3>;\n"
REGISTERS = ".reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n"
_LENGTH = slice(16, 24)
"""Where a request says how long its content is: behind two numbers of 4 bytes and one of 8."""
TEXT = b".version 8.0\n" * 1000


def peak_bytes(length: int, sent: bytes) -> int:
    """Return how much a request costs that says a length and sends less."""
    head = bytearray(Request(Asked.MODULE, 1, b"").encode())
    head[_LENGTH] = length.to_bytes(8, "little")
    client, server = socket.socketpair()
    with client, server:
        client.sendall(bytes(head) + sent)
        client.shutdown(socket.SHUT_WR)
        tracemalloc.start()
        try:
            assert read_request(server) is None
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_a_length_alone_costs_nothing() -> None:
    assert peak_bytes((1 << 30) - 1, b"x" * 1000) < 4 << 20


def test_a_length_beyond_all_modules_is_refused() -> None:
    with pytest.raises(ValueError, match="1,073,741,825 bytes"):
        peak_bytes((1 << 30) + 1, b"")


def test_a_request_of_several_pieces_is_read_whole() -> None:
    client, server = socket.socketpair()
    request = Request(Asked.KERNEL, 5, b"k" * 100_000)
    with client, server:
        client.sendall(request.encode())
        assert read_request(server) == request


class TestPackedTexts:
    """Texts in LZ4 blocks and Zstandard frames: as long as they say, or damaged."""

    def test_zstandard(self) -> None:
        zstandard = pytest.importorskip("zstandard")
        packed = zstandard.ZstdCompressor().compress(TEXT)
        streamed = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
        for each in (packed, streamed):
            assert unpack(each, Packing.ZSTD, len(TEXT)) == TEXT.decode()
            for told in (0, 100, len(TEXT) - 1, len(TEXT) + 1):
                with pytest.raises(RefusedKernel, match="damaged"):
                    unpack(each, Packing.ZSTD, told)
        with pytest.raises(RefusedKernel, match="damaged"):
            unpack(packed[:-4], Packing.ZSTD, len(TEXT))

    def test_a_frame_that_unpacks_to_more_than_it_says_costs_what_it_says(self) -> None:
        zstandard = pytest.importorskip("zstandard")
        packed = zstandard.ZstdCompressor().compress(bytes(64 << 20))
        assert len(packed) < 10_000
        tracemalloc.start()
        try:
            with pytest.raises(RefusedKernel, match="damaged"):
                unpack(packed, Packing.ZSTD, 100)
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()

    def test_lz4(self) -> None:
        block = pytest.importorskip("lz4.block")
        packed = block.compress(TEXT, store_size=False)
        assert unpack(packed, Packing.LZ4, len(TEXT)) == TEXT.decode()
        for told in (100, 1 << 27):
            with pytest.raises(RefusedKernel, match="damaged"):
                unpack(packed, Packing.LZ4, told)

    @pytest.mark.parametrize("packing", [Packing.LZ4, Packing.ZSTD])
    def test_a_text_beyond_all_modules_is_refused(self, packing: Packing) -> None:
        with pytest.raises(RefusedKernel, match="2,147,483,648 bytes"):
            unpack(b"\x1f\0\1\0" + b"\xff" * 1000, packing, 1 << 31)


def spinning_by_definition(function: Function) -> set[int]:
    """Return the branches back over a volatile load that is in no loop inside of theirs."""
    places = {item.name: place for place, item in enumerate(function.items) if isinstance(item, Label)}
    loops = []
    for end, item in enumerate(function.items):
        if isinstance(item, Instruction) and item.opcode == "bra" and isinstance(item.operands[0], Symbol):
            start = places[item.operands[0].name]
            if start < end:
                loops.append((start, end))
    found = set()
    for start, end in loops:
        inner = [each for each in loops if start < each[0] and each[1] < end]
        own = [at for at in range(start, end) if not any(first <= at < last for first, last in inner)]
        items = [function.items[at] for at in own]
        if any(isinstance(each, Instruction) and "volatile" in each.modifiers for each in items):
            found.add(end)
    return found


def test_loops_that_look_again_are_found_whatever_their_nesting() -> None:
    chosen = random.Random(7)
    spinning = 0
    for _ in range(200):
        labels = [f"L{number}" for number in range(chosen.randrange(1, 8))]
        body = [
            chosen.choice(
                ["ld.volatile.global.u32 %r1,[%rd1];", "add.u32 %r1,%r1,1;", f"@%p1 bra {chosen.choice(labels)};"]
            )
            for _ in range(chosen.randrange(3, 25))
        ]
        for label in labels:
            body.insert(chosen.randrange(len(body) + 1), f"{label}:")
        module = Module("\n".join([HEAD, REGISTERS, *body, "ret;\n}\n"]))
        function = parse_function(module, module.functions["k"])
        found = spinning_branches(function)
        assert found == spinning_by_definition(function), body
        spinning += bool(found)
    assert spinning > 50


def test_a_kernel_of_thousands_of_branches_is_translated() -> None:
    count = 3000
    body = "".join(
        f"L{number}:\nsetp.eq.u32 %p1,%r1,{number};\n@%p1 bra L{number * 7919 % count};\nadd.u32 %r1,%r1,1;\n"
        for number in range(count)
    )
    module = Module(f"{HEAD}{REGISTERS}mov.u32 %r1,%tid.x;\n{body}ret;\n}}\n")
    assert translate_kernel(module, "k").count("icmp eq") >= count
