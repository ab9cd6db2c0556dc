"""The compiler of kernels for one run: a process that is started when the first client asks for a kernel.

It is reached by a socket in the run's folder, so that a client may be any program. It ends with the run.
"""

from __future__ import annotations

import importlib.util
import os
import select
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.runtime.cache import cache_folder, cache_folders

SOCKET: Final = "kernels"
"""The name of the socket in the run's folder, which ``native/kernels/request.c`` has too."""
_CLIENTS_WAITING: Final = 64
_END_SECONDS: Final = 5
_REQUIRED: Final = ("llvmlite", "lz4", "zstandard")
INSTALL_KERNELS: Final = "pip install 'quiesce[kernels]'"
"""The command that installs them."""


def kernels_can_run() -> bool:
    """Say whether the packages are installed that compile kernels (``quiesce[kernels]``)."""
    return all(importlib.util.find_spec(name) for name in _REQUIRED)


@contextmanager
def kernel_compiler(folder: Path, started: Callable[[int], None] = lambda _: None) -> Iterator[None]:
    """Let clients reach a compiler through ``folder`` for as long as the ``with`` lasts.

    ``started`` gets the number of its process.
    """
    listening, (stop, stopped) = _listen(folder), socket.socketpair()
    of_serving = (listening, stopped, _kept_kernels(), folder, started)
    waiter = threading.Thread(target=_serve, args=of_serving, daemon=True)
    waiter.start()
    try:
        yield
    finally:
        stop.close()
        waiter.join()
        stopped.close()


def _kept_kernels() -> Path:
    """Return where kernels are kept; a chosen cache that can only be read, as in a container's image, has some too."""
    try:
        folder = cache_folder()
    except ConfigurationError:
        folder, *_ = cache_folders()
    return folder / "kernels"


def _listen(folder: Path) -> socket.socket:
    """Return a socket that listens. The folder's path may be longer than the address of a socket can be."""
    made = socket.socket(socket.AF_UNIX)
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        address = f"/proc/self/fd/{opened}/{SOCKET}"
        made.bind(address)
        os.chmod(address, stat.S_IRUSR | stat.S_IWUSR)  # noqa: PTH101 - by the address that it has
    finally:
        os.close(opened)
    made.listen(_CLIENTS_WAITING)
    return made


def _serve(
    listening: socket.socket, stopped: socket.socket, cache: Path, run: Path, started: Callable[[int], None]
) -> None:
    """Start the compiler when a client connects, and end it when nobody holds the other end of ``stopped``."""
    with listening:
        ready, _, _ = select.select([listening, stopped], [], [])
        if stopped in ready:
            return
        words = [
            sys.executable,
            "-P",
            "-m",
            "quiesce.simulator.kernels.server",
            str(listening.fileno()),
            str(cache),
            str(run),
        ]
        server = subprocess.Popen(  # noqa: S603 - a list, no shell
            words, stdin=subprocess.PIPE, pass_fds=[listening.fileno()], start_new_session=True
        )
        started(server.pid)
    # The socket is the compiler's alone now: where that fails, clients that wait are told so.
    stopped.recv(1)
    if server.stdin is not None:
        server.stdin.close()
    try:
        server.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
