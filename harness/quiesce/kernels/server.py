"""The compiler as a process: ``python -m quiesce.kernels.server SOCKET CACHE RUN``.

``quiesce exec`` starts it when the first client connects, with the number of the socket that listens, the folder of
the cache and that of the run. Each client is served by a copy of the process, which loads LLVM for the first kernel
that is not in the cache. A copy that crashes, or that takes too long for a kernel, ends; its client takes that for a
refusal, and connects again for the next kernel. The process ends with its standard input, which whoever started it
holds open.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from quiesce.kernels.kept_objects import KeptObjects
from quiesce.kernels.protocol import read_request
from quiesce.kernels.service import Service
from quiesce.kernels.toolkits import find_toolkit
from quiesce.simulator.program_sources import keep_sources

KERNEL_SECONDS_VARIABLE: Final = "QUIESCE_KERNEL_SECONDS"
_KERNEL_SECONDS: Final = 300
_MEMORY_BYTES: Final = 16 << 30
"""A copy that wants more for one kernel ends, and not the whole machine."""
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_CREDENTIALS: Final = struct.Struct("iII")  # of a client, unix(7)


def serve(listening: socket.socket, cache: Path, run: Path) -> None:
    """Serve clients until standard input ends."""
    kept = KeptObjects(cache)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a copy ended
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listening.accept()
        if not os.fork():
            listening.close()
            _serve_client(connection, kept, run)
        connection.close()


def _serve_client(connection: socket.socket, kept: KeptObjects, run: Path) -> NoReturn:
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _limit_memory()
        seconds = int(os.environ.get(KERNEL_SECONDS_VARIABLE, _KERNEL_SECONDS))
        process, _, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        service = Service(
            kept, lambda name: find_toolkit(name, process, run).text(), functools.partial(_keep_sources, run)
        )
        while (request := read_request(connection)) is not None:
            signal.alarm(seconds)  # whose signal ends the process, wherever it is
            answer = service.answer(request)
            signal.alarm(0)
            if answer is not None:
                connection.sendall(answer.encode())
    except (OSError, ValueError):
        pass  # the client has ended, or is none
    finally:
        os._exit(0)


def _keep_sources(run: Path, sources: Mapping[str, str]) -> None:
    """Keep what findings may quote; a run whose folder is full goes on without it."""
    with contextlib.suppress(OSError):
        keep_sources(run, sources)


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def main(words: list[str]) -> None:
    """Serve the socket whose number is the first word; the others are the folders of the cache and of the run."""
    number, cache, run = words
    with socket.socket(fileno=int(number)) as listening:
        serve(listening, Path(cache), Path(run))


if __name__ == "__main__":
    main(sys.argv[1:])
