"""The process that computes functions of libraries: whatever becomes of it, a call fails by name and others go on."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from tests.simulator.conftest import Start
from tests.simulator.library_programs import Libraries

pytest.importorskip("scipy")

from quiesce.simulator.judge.unchecked import kernels_unfinished
from quiesce.simulator.libraries.server import CALL_SECONDS_VARIABLE
from quiesce.simulator.runtime.kernel_logs import read_uncomputed
from quiesce.simulator.runtime.library_server import SOCKET, library_server

STRANGE: Final = """
import os, sys, socket
from dataclasses import replace
from quiesce.simulator.libraries import server, conversation
from quiesce.simulator.libraries.table import TABLE

def misbehave(call, how):
    client = call._client
    if how == 11: os.abort()
    if how == 12:
        while True: pass
    if how == 13: client._connection.sendall(b"\\xff" * 80)
    if how == 14: raise RuntimeError("a mistake of a row")
    if how == 15: client._ask(2, 0, 4, call.arguments.A, 4, 1, 0, 1 << 40)
    if how == 16: client._ask(2, 0, 4, call.arguments.A, 1 << 60, 1 << 60, 1 << 60, 0)
    if how == 17: client._ask(2, 999, 4, call.arguments.A, 1, 1, 0, 0)
    if how == 18: client._connection.sendall(b"short")
    if how == 19: client._ask(2, 0, 3, call.arguments.A, 1, 1, 0, 0)
    client._connection.recv(1)

def operation(call):
    of, usual = call.arguments, USUAL.operation
    work = usual(call)
    if of.n > 20:
        misbehave(call, of.n - 10)
    return (lambda: misbehave(call, of.k)) if of.k > 10 else work

USUAL = TABLE["cublasSgemm_v2"]
TABLE["cublasSgemm_v2"] = type(USUAL)(USUAL.name, operation, USUAL.signature, USUAL.about)
server.main(sys.argv[1:])
"""
"""A process that does not do its work for some numbers: of columns when the function is called, inner ones later."""
KINDS: Final = {
    11: "crash", 12: "hang", 13: "garbage", 14: "mistake", 15: "outside", 16: "huge", 17: "operand", 18: "short",
    19: "element",
}  # fmt: skip
NOT_SUPPORTED, LAUNCH_FAILURE = 15, 719


@contextmanager
def strange_server(folder: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(folder / SOCKET))
        listening.listen()
        server = subprocess.Popen(
            [sys.executable, "-c", STRANGE, str(listening.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            env={**os.environ, CALL_SECONDS_VARIABLE: "1"},
        )
    with server:
        yield
        server.communicate(timeout=30)
    assert server.returncode == 0


@pytest.fixture(scope="module")
def strange_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("strange")
    with strange_server(made):
        yield made


@pytest.fixture
def strange(start: Start, strange_folder: Path) -> Iterator[Libraries]:
    yield Libraries(start, strange_folder, {})
    for left in strange_folder.glob("*.*"):
        left.unlink()


def product(on: Libraries, columns: int = 4, inner: int = 4) -> tuple[int, int]:
    """Multiply a matrix of ones and another one; return the status, and the address of the product."""
    at, bt = on.put(np.ones((4, inner), np.float32)), on.put(np.ones((inner, columns), np.float32))
    ct = on.room(16 * columns)
    one, zero = on.host(1), on.host(0)
    on.wait()
    return on.call("cublasSgemm_v2", on.blas, 0, 0, 4, columns, inner, one, at, 4, bt, inner, zero, ct, 4), ct


def expect_a_product(on: Libraries) -> None:
    status, ct = product(on)
    assert status == 0
    assert (on.get(ct, np.float32, 4, 4) == 4).all()


@pytest.mark.parametrize("kind", [each for each in KINDS if each != 14], ids=KINDS.get)
def test_a_call_that_ends_the_process_fails_by_name(strange: Libraries, kind: int, capfd: Any) -> None:
    expect_a_product(strange)
    status, _ = product(strange, columns=kind + 10)
    assert status == NOT_SUPPORTED
    assert "quiesce: cublasSgemm_v2 is not simulated; the process that computes" in capfd.readouterr().err
    expect_a_product(strange)
    assert strange.findings() == ()


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_work_that_ends_the_process_fails_by_name(
    strange: Libraries, kind: int, strange_folder: Path, capfd: Any
) -> None:
    expect_a_product(strange)
    status, _ = product(strange, inner=kind)
    assert status == 0
    assert strange.client.call("DeviceSynchronize") == LAUNCH_FAILURE
    said = "did not compute: the process that computes functions of libraries has failed"
    assert f"quiesce: kernel 'cublasSgemm_v2' {said}" in capfd.readouterr().err
    (ledger,) = strange_folder.glob("*.ledger")
    assert "cublasSgemm_v2" in kernels_unfinished(read_uncomputed(ledger))


def children_of(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


@pytest.fixture
def killed(start: Start, tmp_path: Path) -> Iterator[tuple[Libraries, Callable[[], None]]]:
    """A machine, and what kills the copy of the process that serves it."""
    started: list[int] = []

    def kill() -> None:
        (child,) = children_of(started[0])
        waited = os.pidfd_open(child)
        os.kill(child, signal.SIGKILL)
        select.select([waited], [], [])
        os.close(waited)

    with library_server(tmp_path, started.append):
        yield Libraries(start, tmp_path, {"schedule": "lazy"}), kill


def test_a_process_that_was_killed_between_two_calls_is_replaced(
    killed: tuple[Libraries, Callable[[], None]],
) -> None:
    on, kill = killed
    expect_a_product(on)
    kill()
    expect_a_product(on)


def test_work_that_waits_outlives_its_process(killed: tuple[Libraries, Callable[[], None]]) -> None:
    on, kill = killed
    on.setting("cublasSetStream_v2", on.blas, on.stream())
    status, ct = product(on)
    assert status == 0
    kill()
    on.wait()
    assert (on.get(ct, np.float32, 4, 4) == 4).all()


def test_without_the_process_a_call_fails_by_name(start: Start, tmp_path: Path, capfd: Any) -> None:
    on = Libraries(start, tmp_path, {})
    status, _ = product(on)
    assert status == NOT_SUPPORTED
    assert "cublasSgemm_v2 is not simulated; the process that computes" in capfd.readouterr().err


def test_what_is_no_client_ends_its_connection_alone(start: Start, tmp_path: Path) -> None:
    with library_server(tmp_path):
        for content in (b"x", b"", b"\xff" * 4096):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
                made.connect(str(tmp_path / SOCKET))
                made.settimeout(60)
                made.send(content)
                assert made.recv(1) == b""
        expect_a_product(Libraries(start, tmp_path, {}))


def test_large_operands_share_memory_that_grows(start: Start, tmp_path: Path) -> None:
    with library_server(tmp_path):
        on = Libraries(start, tmp_path, {})
        for size in (8, 700, 16):
            a = np.arange(size * size, dtype=np.float32).reshape(size, size, order="F") % 7
            at, ct = on.put(a), on.room(a.nbytes)
            on.ok_blas("Sgemm_v2", 0, 1, size, size, size, on.host(1), at, size, at, size, on.host(0), ct, size)
            assert (on.get(ct, np.float32, size, size) == a @ a.T).all()
        assert on.findings() == ()
