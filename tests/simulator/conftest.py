"""Machines to try things on, and programs that load what was written; they skip where neither can be."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.kernels.server import ONE_BY_ONE_VARIABLE
from quiesce.simulator.runtime.build import build_library, find_compiler, require_platform
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.kernel_compiler import kernel_compiler
from quiesce.simulator.runtime.launch import MachineSettings
from quiesce.simulator.runtime.ledger import Record, Seen
from quiesce.simulator.runtime.library_server import library_server
from quiesce.simulator.runtime.machine import Machine


class Client:
    """A client of a machine: calls by name, with what they write as results."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def call(self, function: str, *arguments: Any) -> int:
        """Call and return the status; integers of 64 bits and bytes are passed as such."""
        return self.machine.call(function, *map(_passed, arguments))

    def ok(self, function: str, *arguments: Any) -> None:
        assert self.call(function, *arguments) == 0, function

    def make(self, function: str, *arguments: Any) -> int:
        """Call a function that writes an address or a handle to its first argument; return that."""
        made = ctypes.c_void_p()
        assert self.call(function, ctypes.byref(made), *arguments) == 0, function
        return made.value or 0

    def seen(self, *kinds: Seen) -> list[Record]:
        return [record for record in self.machine.ledger.records() if record.seen in kinds]


def _passed(argument: Any) -> Any:
    return ctypes.c_uint64(argument) if type(argument) is int and argument > 0x7FFFFFFF else argument


Start = Callable[..., Client]


@pytest.fixture
def start() -> Iterator[Start]:
    """A function that starts a machine: ``start("hip:7", schedule="lazy", capacity=…)``."""
    machines: list[Machine] = []

    def start_machine(flavour: str = "cuda:12", *, schedule: str = "eager", seed: int = 0, **options: Any) -> Client:
        try:
            machine = Machine(MachineSettings(parse_flavour(flavour), schedule, seed, options))
        except BackendUnavailable as error:
            pytest.skip(str(error))
        machines.append(machine)
        return Client(machine)

    yield start_machine
    for machine in machines:
        machine.close()


@pytest.fixture
def library() -> str:
    """The path of the built library."""
    try:
        return str(build_library())
    except BackendUnavailable as error:
        pytest.skip(str(error))


Compile: TypeAlias = Callable[..., Path]
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def compile_c(tmp_path: Path) -> Compile:
    """Return a function that compiles a text of C with the flags given, into a file of that name."""
    try:
        compiler = find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))

    def compiled(name: str, source: str, *flags: str) -> Path:
        text, made = tmp_path / f"{name}.c", tmp_path / name
        made.parent.mkdir(exist_ok=True)
        text.write_text(source)
        subprocess.run([*compiler, "-o", str(made), str(text), *flags], check=True, cwd=tmp_path)
        return made

    return compiled


MakeImage: TypeAlias = Callable[[str], bytes]
MACHINES: Final = {"cubin": 190, "code object": 224}
MODULE: Final = """
#define AT(name) __attribute__((section(name)))
int counter AT(INITIAL) = 7, zeros[100] AT(ZEROS), *pointer AT(INITIAL) = &counter;
short table[3] AT(CONSTANT) = {1, -2, 3};
static int hidden AT(INITIAL) = 5;
char local[16] AT(SHARED) = {1}, descriptor[64] __asm__("scale.kd") AT(INITIAL) = {1};
int scale(void) { return hidden; }
"""
SECTIONS: Final = {
    "cubin": (".nv.global.init", ".nv.global", ".nv.constant3", ".nv.shared.scale"),
    "code object": (".data", ".bss", ".table", ".data"),
}


@pytest.fixture
def image(compile_c: Compile) -> MakeImage:
    """A function that makes an ELF file like those of a vendor's compiler: of its machine, with its sections."""

    def make(kind: str) -> bytes:
        names = zip(("INITIAL", "ZEROS", "CONSTANT", "SHARED"), SECTIONS[kind], strict=True)
        defined = [f'-D{name}="{section}"' for name, section in names]
        content = bytearray(compile_c("module", MODULE, "-w", "-shared", "-nostdlib", "-fPIC", *defined).read_bytes())
        struct.pack_into("<H", content, 18, MACHINES[kind])
        return bytes(content)

    return make


@pytest.fixture
def run_python() -> Run:
    """Return a function that runs Python code in a process of its own, which may load anything and die."""
    try:
        require_platform()
    except BackendUnavailable as error:
        pytest.skip(str(error))

    def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a run, with what computes kernels and functions of libraries.

    Its path is longer than the address of a socket may be.
    """
    made = tmp_path_factory.mktemp("run") / ("x" * 100)
    made.mkdir()
    with kernel_compiler(made), library_server(made):
        yield made


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a run whose compiler starts while its variable is set, and so reads it."""
    made = tmp_path_factory.mktemp("run")
    with kernel_compiler(made):
        yield made


@pytest.fixture
def device(start: Start, folder: Path) -> Callable[..., Any]:
    """A function that starts a machine whose kernels compute."""
    from tests.simulator.kernel_programs import Device

    return lambda **options: Device(start("cuda:12", kernels=1, folder=str(folder), **options))


@pytest.fixture
def checked(start: Start, folder: Path, one_by_one: Path) -> Iterator[Callable[..., Any]]:
    """A function that starts a machine whose kernels compute, and are judged.

    Where the variable of the compiler is set then, no kernel is compiled for all threads of a block together.
    """
    from tests.simulator.checked_kernels import Checked

    def made(**options: Any) -> Checked:
        return Checked(start, one_by_one if ONE_BY_ONE_VARIABLE in os.environ else folder, options)

    yield made
    for each in (folder, one_by_one):
        for log in (*each.glob("*.accesses"), *each.glob("*.variables")):
            log.unlink()


@pytest.fixture
def libraries(start: Start, folder: Path) -> Iterator[Callable[..., Any]]:
    """A function that starts a machine (of a class) on which functions of libraries compute, and are judged."""
    pytest.importorskip("scipy")
    from tests.simulator.library_programs import Libraries

    yield lambda kind=Libraries, **options: kind(start, folder, options)
    for log in (*folder.glob("*.accesses"), *folder.glob("*.variables")):
        log.unlink()
