"""Processes of a run's own that are started when the first client asks for them.

Each is reached by a socket in the run's folder, so that a client may be any program. It ends with the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import SocketKind
from typing import Final, NoReturn

_CLIENTS_WAITING: Final = 64
_END_SECONDS: Final = 5
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)


@dataclass(frozen=True, slots=True)
class Server:
    """A module that serves a socket, whose number is its first word; ``words`` are the others."""

    module: str
    socket: str
    """The name of the socket in the run's folder, which the C sources have too."""
    kind: SocketKind
    words: Sequence[str] = ()


@contextmanager
def on_demand(server: Server, folder: Path, started: Callable[[int], None]) -> Iterator[None]:
    """Let clients reach a server through ``folder`` for as long as the ``with`` lasts.

    ``started`` gets the number of its process.
    """
    listening, (stop, stopped) = _listen(folder / server.socket, server.kind), socket.socketpair()
    waiter = threading.Thread(target=_serve, args=(server, listening, stopped, started), daemon=True)
    waiter.start()
    try:
        yield
    finally:
        stop.close()
        waiter.join()
        stopped.close()


def serve_by_copies(listening: socket.socket, serve_client: Callable[[socket.socket], object]) -> None:
    """Serve each client in a copy of this process, which is such a server, until its standard input ends.

    A copy that crashes takes nobody else along. It ends with the process, or when ``serve_client`` returns, or raises
    :class:`OSError` or :class:`ValueError`, as where a client has ended, or is none.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a copy ended
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listening.accept()
        if not os.fork():
            listening.close()
            _serve_alone(connection, serve_client)
        connection.close()


def _serve_alone(connection: socket.socket, serve_client: Callable[[socket.socket], object]) -> NoReturn:
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with contextlib.suppress(OSError, ValueError):
            serve_client(connection)
    finally:
        os._exit(0)


def _listen(path: Path, kind: SocketKind) -> socket.socket:
    """Return a socket that listens. The folder's path may be longer than the address of a socket can be."""
    made = socket.socket(socket.AF_UNIX, kind)
    opened = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        address = f"/proc/self/fd/{opened}/{path.name}"
        made.bind(address)
        os.chmod(address, stat.S_IRUSR | stat.S_IWUSR)  # noqa: PTH101 - by the address that it has
    finally:
        os.close(opened)
    made.listen(_CLIENTS_WAITING)
    return made


def _serve(server: Server, listening: socket.socket, stopped: socket.socket, started: Callable[[int], None]) -> None:
    """Start the server when a client connects, and end it when nobody holds the other end of ``stopped``."""
    with listening:
        ready, _, _ = select.select([listening, stopped], [], [])
        if stopped in ready:
            return
        process = subprocess.Popen(  # noqa: S603 - a list, no shell
            [sys.executable, "-P", "-m", server.module, str(listening.fileno()), *server.words],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
        started(process.pid)
    # The socket is the server's alone now: where that fails, clients that wait are told so.
    stopped.recv(1)
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
