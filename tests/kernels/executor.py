"""Compiled kernels, run in the process of the tests: blocks in order, threads that wait by a small scheduler.

The runtime has a loader and a scheduler of its own. These are short, for tests of the compiler, and share no line.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")
pytest.importorskip("numpy")

import llvmlite.binding as llvm
import numpy as np
from tests.kernels import shadow
from tests.kernels.compiling import compile_kernel

from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.runtime.build import SOURCES, find_compiler

FRAME: Final = 64
THREAD: Final = np.dtype(
    {
        "names": [
            *("state", "index", "lane", "warp", "operation", "mask", "value"),
            *("b", "c", "result", "predicate", "status"),
        ],
        "formats": ["u4", ("u4", 3), "u4", "u4", "u4", "u4", "u8", "u4", "u4", "u8", "u4", "u4"],
    }
)
CONTEXT: Final = np.dtype(
    {
        "names": [
            *("grid", "block", "block_index", "dynamic", "shared_base", "parameters"),
            *("shared_bytes", "reserved", "checks", "runtime", "grid_workspace", "frames", "touched"),
            "shared_words",
        ],
        "formats": [("u4", 3), ("u4", 3), ("u4", 3), "u4", "u8", "u8", "u4", "u4", "u8", "u8", "u8", "u8", "u8", "u8"],
    }
)
READY, WAITING, DONE = range(3)
_SOURCES: Final = ("arithmetic", "formats", "matrix", "texel", "sampling")
ARRIVE, ACTIVE_MASK, YIELD, MATRICES = 5, 61, 70, 80


wide = [False]
"""Whether kernels are compiled for rows of threads where that is possible."""
tuned = [False]
"""Whether kernels are compiled for all threads of a block together: a fixture runs each test both ways."""


class Trapped(Exception):
    """A thread stopped the kernel."""


class Deadlocked(Exception):
    """Threads of a block wait for each other for ever."""


printed: list[bytes] = []
"""What kernels printed: the bytes of their formats."""


def _print(context: int, text: bytes, arguments: int) -> int:
    values = np.ctypeslib.as_array((ctypes.c_int32 * 4).from_address(arguments)).tolist() if arguments else []
    printed.append(text + b" " + str(values).encode())
    return len(values)


def _assert(context: int, message: bytes, file: bytes, line: int, function: bytes, thread: int) -> None:
    printed.append(b"%s:%d: %s: %s" % (file, line, function, message))


allocated: dict[int, Any] = {}


def _malloc(context: int, bytes_: int) -> int:
    block = ctypes.create_string_buffer(bytes_)
    allocated[ctypes.addressof(block)] = block
    return ctypes.addressof(block)


def _free(context: int, address: int) -> None:
    del allocated[address]


_CALLBACKS: Final[dict[str, Any]] = {
    "quiesce_kernel_print": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)(_print),
    "quiesce_kernel_assert": ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint32
    )(_assert),
    "quiesce_kernel_malloc": ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)(_malloc),
    "quiesce_kernel_free": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)(_free),
    "quiesce_kernel_follows": ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(lambda context: 0),
}


@cache
def _arithmetic() -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp(prefix="quiesce-kernels-"))
    sources = [str(SOURCES / "kernels" / f"{name}.c") for name in _SOURCES]
    library = folder / "arithmetic.so"
    command = [
        *find_compiler(),
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-O2",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    subprocess.run([*command, f"-I{SOURCES}", *sources, "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.kernel_arithmetic_find.restype = ctypes.c_void_p
    shutil.rmtree(folder)
    return loaded


def add_functions(functions: dict[str, Any]) -> None:
    """Let kernels call these too."""
    _CALLBACKS.update(functions)


def find_function(name: str) -> Any:
    """Return a function of the runtime's that has no part of its state."""
    return getattr(_arithmetic(), name)


def find_helper(name: str) -> int | None:
    """Return the address of a function that compiled kernels may call."""
    if name in _CALLBACKS:
        return ctypes.cast(_CALLBACKS[name], ctypes.c_void_p).value
    found: int | None = _arithmetic().kernel_arithmetic_find(name.encode())
    return found


def _undefined_symbols(code: bytes) -> Iterator[str]:
    """Yield the names that an object wants from elsewhere (a 64-bit ELF file's symbol table)."""
    header = np.frombuffer(code, "<u8", 1, 0x28)[0]
    count = np.frombuffer(code, "<u2", 1, 0x3C)[0]
    sections = [np.frombuffer(code, "<u4", 16, int(header) + 64 * number) for number in range(count)]
    for section in sections:
        if section[1] == 2:
            start, size, link = int(section[6]), int(section[8]), int(section[10])
            names = int(sections[link][6])
            for at in range(start, start + size, 24):
                name_at = int(np.frombuffer(code, "<u4", 1, at)[0])
                if name_at and not np.frombuffer(code, "<u2", 1, at + 6)[0]:
                    yield code[names + name_at : code.index(b"\0", names + name_at)].decode()


class Kernel:
    """One kernel, loaded. Variables of its module are arrays, by name."""

    def __init__(
        self,
        text: str,
        entry: str,
        variables: dict[str, np.ndarray[Any, Any]] | None = None,
        checks: dict[str, Any] | None = None,
    ) -> None:
        """``checks``: the functions that judge accesses; without them nothing is judged."""
        code = compile_kernel(Module(text), entry, tuned[0], checks is not None, shadow.MEMORY_BASE, wide[0])
        self._functions, self.places = checks or {}, dict[str, int]()
        for name in _undefined_symbols(code):
            function = self._functions.get(name)
            address = ctypes.cast(function, ctypes.c_void_p).value if function else find_helper(name)
            assert address, f"'{name}' is called, but there is no such function"
            llvm.add_symbol(name, address)
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small", jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        (_, self.waits, self.frame_bytes, self.parameter_bytes, count, self.shared_bytes, self.local_bytes) = (
            self._numbers("info", 7)
        )
        self.sites = self._numbers("info", 9)[7]
        self.array_bytes, states = self._numbers("info", 11)[9:]
        self.states = np.array(self._numbers("states", 2 * states), "u4").view("i4").reshape(-1, 2)
        self.together = b"quiesce_kernel_together\0" in code
        self._parameters = self._numbers("parameters", 2 * count)
        self._set_variables(variables or {}, self._numbers("info", 9)[8])

    def _address(self, name: str) -> int:
        return int(self._engine.get_global_value_address(f"quiesce_kernel_{name}"))

    def _numbers(self, name: str, count: int) -> list[int]:
        return list((ctypes.c_uint32 * count).from_address(self._address(name)))

    def site(self, number: int) -> tuple[int, ...]:
        """Return line, file and line of the source, and file and line that inline it (0 if none), of an access."""
        return tuple(self._numbers("sites", 6 * self.sites)[6 * number : 6 * number + 5])

    def _set_variables(self, variables: dict[str, np.ndarray[Any, Any]], count: int) -> None:
        pairs = list((ctypes.c_uint64 * (2 * count)).from_address(self._address("variables"))) if count else []
        for name, slot in zip(pairs[::2], pairs[1::2], strict=True):
            ctypes.c_uint64.from_address(slot).value = variables[ctypes.string_at(name).decode()].ctypes.data

    def launch(
        self, grid: int | Sequence[int], block: int | Sequence[int], *arguments: Any, dynamic_shared_bytes: int = 0
    ) -> None:
        """Run the kernel. Arrays are passed by address, other values as they are."""
        block_memory = np.zeros(max(1, self.parameter_bytes) + 16, "u1")
        assert len(arguments) == len(self._parameters) // 2
        for argument, offset, size in zip(arguments, self._parameters[::2], self._parameters[1::2], strict=True):
            value = np.uint64(argument.ctypes.data) if isinstance(argument, np.ndarray) and argument.ndim else argument
            raw = np.frombuffer(np.asarray(value).tobytes(), "u1")
            assert len(raw) == size
            block_memory[offset : offset + size] = raw
        shared = np.zeros(self.shared_bytes + dynamic_shared_bytes + 64, "u1")
        context = np.zeros(1, CONTEXT)
        context["grid"] = sizes = three(grid)
        context["block"] = three(block)
        context["dynamic"] = dynamic_shared_bytes
        context["shared_base"] = -(-shared.ctypes.data // 64) * 64
        context["shared_bytes"] = self.shared_bytes + dynamic_shared_bytes
        context["parameters"] = block_memory.ctypes.data
        bits = np.zeros(64, "u1")  # of addresses that none is kept for, and nothing is known
        words = np.full(3, -1, "i8")  # the number of no block: kernels note no accesses to shared memory by themselves
        for name, place in {"checks": bits.ctypes.data, "shared_words": words.ctypes.data, **self.places}.items():
            context[name] = place
        frames = np.zeros(self.array_bytes + 64, "u1")
        context["frames"] = frames.ctypes.data
        for z, y, x in itertools.product(*(range(size) for size in reversed(sizes))):
            context["block_index"] = (x, y, z)
            self._run_block(context)

    def _run_block(self, context: np.ndarray[Any, Any]) -> None:
        if self.waits:
            function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(self._address("thread"))
            block = Block(context, self.frame_bytes, function)
            if not self.together or self._run_together(context, block, 0):
                block.run(lambda: self._again(context, block))
            return
        status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._address("block"))(context.ctypes.data)
        if status:
            raise Trapped(status)

    def _again(self, context: np.ndarray[Any, Any], block: Block) -> None:
        """Run threads that are all at one barrier together."""
        states = np.unique(block.threads["state"])
        ready = (block.threads["status"] == READY).all() and len(states) == 1 and int(states[0])
        if self.together and ready and self.states[int(states[0]) - 1][1] >= 0:
            self._run_together(context, block, int(states[0]))

    def _run_together(self, context: np.ndarray[Any, Any], block: Block, state: int) -> bool:
        """Run all threads of a block from a state on; say whether each has to go on by itself then."""
        arguments = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
        function = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(self._address("together"))
        end = function(context.ctypes.data, int(context["frames"][0]), state)
        if end < 0:
            raise Trapped(end)
        threads = block.threads
        if not end:
            threads["status"] = DONE
            return False
        frames = (ctypes.c_int32 * len(threads)).from_address(int(context["frames"][0]))
        for number, state in enumerate(frames):
            thread = threads[number]
            waits = state > 0 and self.states[state - 1][1] >= 0
            operation, barrier = self.states[state - 1].tolist() if waits else (0, 0)
            thread["status"] = DONE if state < 0 else WAITING if operation else READY
            thread["state"], thread["operation"], thread["b"], thread["c"] = max(state, 0), operation, barrier, 0
        return True


def three(size: int | Sequence[int]) -> list[int]:
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes + [1] * (3 - len(sizes))


class Block:
    """The threads of one block, each at the point where it waits."""

    def __init__(self, context: np.ndarray[Any, Any], frame_bytes: int, function: Any) -> None:
        sizes = [int(size) for size in context["block"][0]]
        dtype = np.dtype({"names": ["head"], "formats": [THREAD], "itemsize": FRAME + max(16, frame_bytes)})
        self._memory = np.zeros(sizes[0] * sizes[1] * sizes[2], dtype)
        self.threads = self._memory["head"]
        for number, (z, y, x) in enumerate(itertools.product(*(range(size) for size in reversed(sizes)))):
            self.threads[number]["index"] = (x, y, z)
            self.threads[number]["lane"], self.threads[number]["warp"] = number % 32, number // 32
        self._context = context
        self._function = function
        self._arrived: Counter[int] = Counter()

    def run(self, passed: Callable[[], None]) -> None:
        """Run all threads to their ends; ``passed`` is called after each barrier."""
        threads = self.threads
        while (threads["status"] != DONE).any():
            ready = np.flatnonzero(threads["status"] == READY)
            for number in ready:
                address = self._memory.ctypes.data + int(number) * self._memory.itemsize
                status = self._function(self._context.ctypes.data, address)
                if status < 0:
                    raise Trapped(status)
                threads[number]["operation"] = status
                if status == ARRIVE:
                    self._arrived[int(threads[number]["b"])] += 1
                threads[number]["status"] = DONE if not status else READY if status in (ARRIVE, YIELD) else WAITING
            warps = [threads[start : start + 32] for start in range(0, len(threads), 32)]
            resolved = [_resolve_warp(warp) for warp in warps]
            if not len(ready) and not any(resolved):
                if not self._resolve_barriers():
                    raise Deadlocked
                passed()

    def _resolve_barriers(self) -> bool:
        threads = self.threads
        waiting = (threads["status"] == WAITING) & (threads["operation"] < 10)
        for number in np.unique(threads["b"][waiting]):
            here = waiting & (threads["b"] == number)
            wanted = int(threads["c"][here].max()) or int((threads["status"] != DONE).sum())
            if here.sum() + self._arrived[int(number)] >= wanted:
                self._arrived[int(number)] = 0
                _finish(threads, here, _reduce_predicates(int(threads["operation"][here][0]), threads["value"][here]))
                return True
        return False


def _reduce_predicates(operation: int, values: np.ndarray[Any, Any]) -> int:
    return {1: 0, 2: int((values != 0).sum()), 3: int((values != 0).all()), 4: int((values != 0).any())}[operation]


def _finish(threads: np.ndarray[Any, Any], here: np.ndarray[Any, Any], result: Any) -> None:
    threads["result"][here] = result
    threads["status"][here] = READY


def _resolve_warp(warp: np.ndarray[Any, Any]) -> bool:
    """Give the threads of a warp their results, where all of a mask have come."""
    for thread in warp[(warp["status"] == WAITING) & (warp["operation"] >= 10)]:
        lanes = [lane for lane in range(len(warp)) if int(thread["mask"]) >> lane & 1 and warp["status"][lane] != DONE]
        same = (warp["operation"] == thread["operation"]) & (warp["mask"] == thread["mask"])
        if thread["operation"] == ACTIVE_MASK:
            lanes = np.flatnonzero(same & (warp["state"] == thread["state"]) & (warp["status"] == WAITING)).tolist()
        if all(same[lane] and warp["status"][lane] == WAITING for lane in lanes):
            here = np.zeros(len(warp), bool)
            here[lanes] = True
            if thread["operation"] >= MATRICES:
                if len(lanes) < 32:
                    continue
                pointers = (ctypes.c_void_p * 32)(*(warp.ctypes.data + lane * warp.strides[0] for lane in lanes))
                _arithmetic().matrix_run(pointers)
                _finish(warp, here, 0)
                return True
            results = [_warp_result(warp, lane, lanes) for lane in lanes]
            warp["predicate"][here] = [predicate for _, predicate in results]
            _finish(warp, here, np.array([value for value, _ in results], "u8"))
            return True
    return False


def _warp_result(warp: np.ndarray[Any, Any], lane: int, lanes: list[int]) -> tuple[int, int]:
    operation = int(warp["operation"][lane])
    values = {each: int(warp["value"][each]) for each in lanes}
    own = values[lane]
    ballot = sum(1 << each for each in lanes if values[each])
    everybody = sum(1 << each for each in lanes)
    if operation in range(10, 14):
        return _shuffled(warp, lane, values)
    if operation in range(20, 24):
        return (int(ballot != 0), int(ballot == everybody), int(ballot in (0, everybody)), ballot)[operation - 20], 0
    if operation in (30, 31):
        same = sum(1 << each for each in lanes if values[each] == own)
        return (same, 0) if operation == 30 else (same if same == everybody else 0, int(same == everybody))
    if operation in (60, ACTIVE_MASK):
        return everybody, 0
    return _reduced(operation, list(values.values())), 0


def _shuffled(warp: np.ndarray[Any, Any], lane: int, values: dict[int, int]) -> tuple[int, int]:
    """Return what the ISA's pseudo code for 'shfl' gives."""
    operation, b, c = (int(warp[field][lane]) for field in ("operation", "b", "c"))
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    limit = (lane & segment) | (clamp & ~segment)
    source = {10: lane - b, 11: lane + b, 12: lane ^ b, 13: lane & segment | (b & ~segment)}[operation]
    inside = source >= limit if operation == 10 else source <= limit
    return values.get(source if inside else lane, 0), int(inside)


def _reduced(operation: int, values: list[int]) -> int:
    signed = [value - (1 << 32) if value >> 31 else value for value in values]
    array = np.array(values, "u8")
    results = {
        **{40: sum(values), 41: min(values), 42: max(values)},
        **{43: np.bitwise_and.reduce(array), 44: np.bitwise_or.reduce(array), 45: np.bitwise_xor.reduce(array)},
        **{50: min(signed), 51: max(signed)},
    }
    return int(results[operation]) & 0xFFFFFFFF
