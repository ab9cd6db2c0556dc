"""Graphs that a client builds node by node, and what is found of them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from quiesce.model.findings import Finding
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge

BYTES: Final = 64
BY_ADDRESS: Final = 4
KERNEL, COPY, FILL, HOST, CHILD, EMPTY, AWAIT, RECORD, ALLOCATE, FREE = (*range(8), 10, 11)
NOT_SUPPORTED: Final = 801


class Memset(ctypes.Structure):
    """``cudaMemsetParams``; HIP has its fields in another order."""

    _fields_ = (
        ("to", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("value_bytes", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class MemsetOfHip(ctypes.Structure):
    """``hipMemsetParams``."""

    _fields_ = (
        ("to", ctypes.c_void_p),
        ("value_bytes", ctypes.c_uint),
        ("height", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("width", ctypes.c_size_t),
    )


class Allocation(ctypes.Structure):
    """``cudaMemAllocNodeParams`` and HIP's like it."""

    _fields_ = (
        ("allocation", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", ctypes.c_int),
        ("ordinal", ctypes.c_int),
        ("others", ctypes.c_char * 72),
        ("access", ctypes.c_void_p),
        ("access_count", ctypes.c_size_t),
        ("size_bytes", ctypes.c_size_t),
        ("address", ctypes.c_void_p),
    )


class Other(ctypes.Structure):
    """``cudaGraphNodeParams`` with parameters of some kind."""

    _fields_ = (("type", ctypes.c_int), ("reserved", ctypes.c_int * 3), ("parameters", ctypes.c_char * 240))


def fill_of(client: Any, address: int, value: int, size_bytes: int = BYTES) -> ctypes.Structure:
    kind = MemsetOfHip if client.machine.ledger.version <= 7 else Memset
    return kind(to=address, pitch=0, value=value, value_bytes=1, width=size_bytes, height=1)


class Graph:
    """A graph of a client's, to which nodes are added."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.handle = client.make("GraphCreate", 0)

    def add(self, kind: str, before: Sequence[int], *arguments: Any) -> int:
        node = self.client.make(f"GraphAdd{kind}", *self._place(before), *arguments)
        assert isinstance(node, int)
        return node

    def refuses(self, kind: str, before: Sequence[int], *arguments: Any) -> int:
        answer = self.client.call(f"GraphAdd{kind}", ctypes.byref(ctypes.c_void_p()), *self._place(before), *arguments)
        assert isinstance(answer, int)
        return answer

    def _place(self, before: Sequence[int]) -> tuple[Any, ...]:
        return self.handle, (ctypes.c_void_p * len(before))(*before), ctypes.c_size_t(len(before))

    def fill(self, address: int, value: int, *before: int, size_bytes: int = BYTES) -> int:
        return self.add("MemsetNode", before, ctypes.byref(fill_of(self.client, address, value, size_bytes)))

    def copy(self, to: Any, source: Any, *before: int, size_bytes: int = BYTES) -> int:
        return self.add("MemcpyNode1D", before, to, source, ctypes.c_size_t(size_bytes), BY_ADDRESS)

    def allocate(self, *before: int, size_bytes: int = BYTES) -> tuple[int, int]:
        """Return the node and the address."""
        wanted = Allocation(allocation=1, location=1, ordinal=0, size_bytes=size_bytes)
        node = self.add("MemAllocNode", before, ctypes.byref(wanted))
        return node, wanted.address or 0

    def connect(self, *edges: tuple[int, int], how: str = "Add") -> int:
        count = len(edges)
        sources, targets = ((ctypes.c_void_p * count)(*ends) for ends in zip(*edges, strict=True))
        data = [None] if self.client.machine.ledger.version == 13 else []
        answer = self.client.call(
            f"Graph{how}Dependencies", self.handle, sources, targets, *data, ctypes.c_size_t(count)
        )
        assert isinstance(answer, int)
        return answer

    def nodes(self, which: str = "Nodes") -> list[int]:
        nodes, count = (ctypes.c_uint64 * 16)(), ctypes.c_size_t(16)
        self.client.ok(f"GraphGet{which}", self.handle, nodes, ctypes.byref(count))
        return list(nodes)[: count.value]

    def edges(self) -> list[tuple[int, int]]:
        sources, targets, count = (ctypes.c_uint64 * 16)(), (ctypes.c_uint64 * 16)(), ctypes.c_size_t(16)
        data = [None] if self.client.machine.ledger.version == 13 else []
        self.client.ok("GraphGetEdges", self.handle, sources, targets, *data, ctypes.byref(count))
        return list(zip(sources, targets, strict=True))[: count.value]

    def instantiate(self) -> int:
        made = self.client.make("GraphInstantiateWithFlags", self.handle, ctypes.c_uint64(0))
        assert isinstance(made, int)
        return made


def launch(client: Any, executable: int, stream: int = 0) -> None:
    client.ok("GraphLaunch", executable, stream)
    client.ok("StreamSynchronize", stream)


def bytes_at(address: int) -> bytes:
    return ctypes.string_at(address, 1)


def findings(client: Any) -> tuple[Finding, ...]:
    return judge(client.machine.ledger, AtExit.NONE).findings


def rules(client: Any) -> list[str]:
    return [finding.rule for finding in findings(client)]
