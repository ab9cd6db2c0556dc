"""Machines to try things on, and programs that load what was written; they skip where neither can be."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from quiesce.errors import BackendUnavailable
from quiesce.simulator.build import build_library, find_compiler, require_platform
from quiesce.simulator.flavours import parse_flavour
from quiesce.simulator.launch import MachineSettings
from quiesce.simulator.ledger import Record, Seen
from quiesce.simulator.machine import Machine


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
