"""The compiler as a process: clients at once, kernels that it can't compile, and its end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")

from quiesce.simulator.kernels.object_cache import KeptObjects
from quiesce.simulator.kernels.protocol import Answer, Asked, Packing, Request, read_answer
from quiesce.simulator.kernels.server import KERNEL_SECONDS_VARIABLE, Service
from quiesce.simulator.runtime.kernel_compiler import SOCKET, kernel_compiler

MODULE = b".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 counter = 7;\n" + b"".join(
    b".visible .entry %b() { ret; }\n" % name for name in (b"good", b"better", b"crash", b"hang", b"timed")
)
STRANGE = """
import os, signal, sys
from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels import compiler, server
usual = compiler.compile_kernel
def compile_kernel(module, name, *how):
    if name == "timed":
        timers = [signal.getitimer(each)[0] for each in (signal.ITIMER_REAL, signal.ITIMER_PROF)]
        raise RefusedKernel(" ".join(str(timer > 0) for timer in timers))
    while name == "hang":
        pass
    return os.abort() if name == "crash" else usual(module, name, *how)
compiler.compile_kernel = compile_kernel
server.main(sys.argv[1:])
"""
"""A compiler that does not come to its end with some kernels."""


class Client:
    """A connection to a compiler, told of one module."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(60)
        connection.sendall(Request(Asked.MODULE, 1, MODULE).encode())

    def ask(self, name: bytes, asked: Asked = Asked.KERNEL) -> Answer | None:
        self.connection.sendall(Request(asked, 1, name).encode())
        return read_answer(self.connection)


Connect = Callable[[Path], Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A function that connects to the compiler in a folder."""
    with ExitStack() as opened:

        def connect_to(folder: Path) -> Client:
            made = opened.enter_context(socket.socket(socket.AF_UNIX))
            made.connect(str(folder / SOCKET))
            return Client(made)

        yield connect_to


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIESCE_CACHE", str(tmp_path / "cache"))


@contextmanager
def strange_compiler(folder: Path, seconds: int) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / SOCKET))
        listening.listen()
        server = subprocess.Popen(
            [sys.executable, "-c", STRANGE, str(listening.fileno()), str(folder / "objects"), str(folder)],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            env={**os.environ, KERNEL_SECONDS_VARIABLE: str(seconds)},
        )
    with server:
        yield
        server.communicate(timeout=10)
    assert server.returncode == 0


def test_objects_are_kept_for_the_next_run(tmp_path: Path, connect: Connect) -> None:
    found = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with kernel_compiler(folder):
            found.append(connect(folder).ask(b"good"))
    assert found[0] == found[1]
    assert found[0] is not None
    assert not found[0].is_refused
    assert found[0].content.startswith(b"\x7fELF")
    (kept,) = (tmp_path / "cache").rglob("*.o")
    assert kept.read_bytes().startswith(found[0].content)


def test_two_clients_are_served_at_once(tmp_path: Path, connect: Connect) -> None:
    with kernel_compiler(tmp_path):
        first, second = connect(tmp_path), connect(tmp_path)
        answers = [client.ask(b"good") for client in (second, first)]
        assert answers[0] == answers[1]
        second.connection.close()
        assert first.ask(b"better") is not None


@pytest.mark.parametrize("name", [b"crash", b"hang"])
def test_a_kernel_that_ends_the_compiler_is_refused_alone(tmp_path: Path, name: bytes, connect: Connect) -> None:
    with strange_compiler(tmp_path, seconds=1):
        client = connect(tmp_path)
        assert client.ask(b"good") is not None
        assert client.ask(name) is None
        again = connect(tmp_path).ask(b"good")
        assert again is not None
        assert not again.is_refused


def test_the_time_of_a_kernel_is_that_of_the_processor(tmp_path: Path, connect: Connect) -> None:
    with strange_compiler(tmp_path, seconds=1):
        assert connect(tmp_path).ask(b"timed") == Answer(True, b"False True")


def test_what_is_no_request_ends_the_connection_alone(tmp_path: Path, connect: Connect) -> None:
    with kernel_compiler(tmp_path):
        client = connect(tmp_path)
        client.connection.sendall(b"\xff" * 64)
        assert read_answer(client.connection) is None
        assert connect(tmp_path).ask(b"good") is not None


def test_a_compiler_that_nobody_asks_is_not_started(tmp_path: Path) -> None:
    with kernel_compiler(tmp_path):
        pass
    assert not (tmp_path / "cache").exists() or not list((tmp_path / "cache").rglob("*.o"))


class Nothing:
    """Keeps no objects."""

    def find(self, key: str) -> bytes | None:
        return None

    def keep(self, key: str, content: bytes) -> None:
        pass

    def alone(self, key: str) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.mark.parametrize("packing", [Packing.LZ4, Packing.ZSTD])
def test_texts_of_fatbins_are_unpacked(packing: Packing, tmp_path: Path) -> None:
    block, zstandard = pytest.importorskip("lz4.block"), pytest.importorskip("zstandard")
    lz4, zstd = block.compress(MODULE, store_size=False), zstandard.ZstdCompressor().compress(MODULE)
    packed = lz4 if packing is Packing.LZ4 else zstd
    service = Service(Nothing())
    assert service.answer(Request(Asked.MODULE, 1, packed, packing, len(MODULE))) is None
    told = service.answer(Request(Asked.DECLARATIONS, 1, b""))
    assert told is not None
    assert b".global .u32 counter = 7;" in told.content
    assert b"entry" not in told.content
    assert service.answer(Request(Asked.MODULE, 2, packed[:-9], packing, len(MODULE))) is None
    damaged = service.answer(Request(Asked.KERNEL, 2, b"good"))
    assert damaged == Answer(True, b"its compressed PTX is damaged")


def test_what_is_not_known_is_refused_in_words() -> None:
    service = Service(Nothing())
    assert service.answer(Request(Asked.KERNEL, 1, b"good")) == Answer(True, b"its module is not known to the compiler")
    service.answer(Request(Asked.MODULE, 1, MODULE))
    answer = service.answer(Request(Asked.KERNEL, 1, b"best"))
    assert answer is not None
    assert answer.is_refused
    assert b"'best'" in answer.content


class Counting(KeptObjects):
    """Objects in a folder, which all clients find missing before the first keeps one."""

    def __init__(self, folder: Path, clients: int) -> None:
        super().__init__(folder)
        self.kept: list[str] = []
        self._all = threading.Barrier(clients)
        self._own = threading.local()

    def find(self, key: str) -> bytes | None:
        found = super().find(key)
        if not hasattr(self._own, "has_asked"):
            self._own.has_asked = True
            self._all.wait()
        return found

    def keep(self, key: str, content: bytes) -> None:
        self.kept.append(key)
        super().keep(key, content)


def test_clients_that_want_one_kernel_at_once_compile_it_once(tmp_path: Path) -> None:
    counting, answers = Counting(tmp_path, 4), []

    def ask() -> None:
        service = Service(counting)
        service.answer(Request(Asked.MODULE, 1, MODULE))
        answers.append(service.answer(Request(Asked.KERNEL, 1, b"good")))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counting.kept) == 1
    assert len(answers) == 4
    assert len(set(answers)) == 1


WARM = """
import sys
from pathlib import Path
from quiesce.simulator.kernels.object_cache import KeptObjects
from quiesce.simulator.kernels.protocol import Asked, Request
from quiesce.simulator.kernels.server import Service
service = Service(KeptObjects(Path(sys.argv[1])))
service.answer(Request(Asked.MODULE, 1, b".version 8.0\\n.target sm_80\\n.entry good() { ret; }\\n"))
answer = service.answer(Request(Asked.KERNEL, 1, b"good"))
print(answer.is_refused, any(name.startswith("llvmlite") for name in sys.modules))
"""


def test_a_kernel_in_the_cache_needs_no_llvm(tmp_path: Path) -> None:
    cold, warm = (
        subprocess.run([sys.executable, "-c", WARM, str(tmp_path)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert (cold, warm) == ("False True\n", "False False\n")


def test_a_packed_module_is_unpacked_only_for_what_is_not_in_the_cache(tmp_path: Path) -> None:
    packed = pytest.importorskip("lz4.block").compress(MODULE, store_size=False)

    def answers(content: bytes, module: int) -> list[Answer | None]:
        service = Service(KeptObjects(tmp_path))
        service.answer(Request(Asked.MODULE, module, content, Packing.LZ4, len(MODULE)))
        wanted = ((Asked.CHECKED_KERNEL, b"good"), (Asked.KERNEL, b"counter"), (Asked.DECLARATIONS, b""))
        return [service.answer(Request(asked, module, name)) for asked, name in wanted]

    first = answers(packed, 1)
    assert all(each is not None and not each.is_refused for each in first)
    assert len({each.content for each in first if each}) == len(first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quiesce.simulator.kernels.server.unpack", lambda *_: pytest.fail("it was unpacked"))
        assert answers(packed, 2) == first
    damaged = answers(packed[:-9], 1)
    assert damaged == [Answer(True, b"its compressed PTX is damaged")] * len(damaged)


def test_a_damaged_object_is_compiled_again(
    tmp_path: Path, connect: Connect, capfd: pytest.CaptureFixture[str]
) -> None:
    found, said = [], []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        with kernel_compiler(folder):
            found.append(connect(folder).ask(b"good"))
        said.append(capfd.readouterr().err)
        (kept,) = (tmp_path / "cache").rglob("*.o")
        if number == 0:
            kept.write_bytes(b"")
    assert found[0] == found[1] == found[2]
    assert said == ["", f"quiesce: '{kept}' in the cache is damaged; it is made again\n", ""]


def test_a_cache_that_can_only_be_read_has_objects_too(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kernel_compiler(tmp_path):
        first = connect(tmp_path).ask(b"good")
    (kept,) = (tmp_path / "cache").rglob("*.o")
    (tmp_path / SOCKET).unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    before = kept.stat().st_mtime_ns
    with kernel_compiler(tmp_path):
        assert connect(tmp_path).ask(b"good") == first
    assert kept.stat().st_mtime_ns == before


def test_objects_and_the_socket_are_closed_to_others(tmp_path: Path, connect: Connect) -> None:
    before = os.umask(0)
    try:
        with kernel_compiler(tmp_path):
            assert connect(tmp_path).ask(b"good") is not None
            assert (tmp_path / SOCKET).stat().st_mode & 0o077 == 0
    finally:
        os.umask(before)
    below = [*(tmp_path / "cache").rglob("*")]
    assert any(path.suffix == ".o" for path in below)
    assert [path for path in below if path.stat().st_mode & 0o077] == []
