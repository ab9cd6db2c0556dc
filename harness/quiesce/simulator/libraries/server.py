"""The process that computes functions of libraries: ``python -m quiesce.simulator.libraries.server SOCKET``.

``quiesce exec`` starts it when the first client connects, with the number of the socket that listens. Each client is
served by a copy of the process. A copy knows nothing that the client could not tell another one: where it crashes or
takes too long, the call fails, and the client goes on with the next one. The process ends with its standard input,
which whoever started it holds open.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import traceback
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries import (  # noqa: F401 - their rows
    blas,
    blas_least_squares,
    blas_triangles,
    blas_vectors,
    collectives,
    dnn_convolution_calls,
    dnn_elementwise,
    dnn_graph,
    dnn_normalization,
    dnn_pooling,
    fft,
    hip,
    lt,
    random,
    solver_eigenvalues,
    solver_factors,
    solver_jacobi,
    solver_refinement,
    solver_reflectors,
    solver_singular_values,
    solver_sparse,
    sparse_bands,
    sparse_blocks,
    sparse_conversions,
    sparse_factors,
    sparse_gemm,
    sparse_products,
    sparse_sums,
    sparse_triangles,
)
from quiesce.simulator.libraries.conversation import Client, Done, Ended, Heard, Said
from quiesce.simulator.libraries.table import TABLE, Abandoned, Call, NotDescribed, Refused, Row
from quiesce.simulator.runtime import serve_by_copies

CALL_SECONDS_VARIABLE: Final = "QUIESCE_LIBRARY_SECONDS"
_CALL_SECONDS: Final = 300
_INTERNAL: Final = 1
"""Of work that failed: it is no library's."""


class Service:
    """The answers to one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._state: dict[int, Any] = {}

    def answer(self, heard: Heard) -> None:
        """Answer a call."""
        row = TABLE.get(heard.name)
        if row is None:
            self._client.end(Done.UNKNOWN, names=b"nothing describes what it computes\0")
            return
        self._client.memory.begin()
        if heard.said is Said.BEGIN:
            self._begin(row, heard)
        else:
            self._run(row, heard)

    def _begin(self, row: Row[Any], heard: Heard) -> None:
        call = Call(self._client, heard, row, self._state)
        try:
            work = row.operation(call)
        except Refused as refused:
            self._client.end(Done(0), refused.status, row.words)
            return
        except NotDescribed as why:
            self._client.end(Done.UNKNOWN, names=f"{why}\0".encode())
            return
        except Ended:
            raise
        except Exception as error:  # a mistake of a row's
            self._client.end(Done.UNKNOWN, names=f"what describes it failed ({type(error).__name__})\0".encode())
            return
        flags = Done(0) if work is None else Done.RUNS | (Done.WAITS if call.waits else Done(0))
        self._client.end(flags, 0, row.words, call.kept, row.names)

    def _run(self, row: Row[Any], heard: Heard) -> None:
        try:
            work = row.operation(Call(self._client, heard, row, self._state))
            assert work is not None
            with contextlib.suppress(Abandoned), np.errstate(all="ignore"):
                work()
        except Ended:
            raise
        except Exception:  # a mistake of a row's: its call fails, and others go on
            print(f"quiesce: {heard.name} failed:", file=sys.stderr)  # noqa: T201 - for who reports it
            traceback.print_exc()
            self._client.end(Done(0), _INTERNAL)
        else:
            self._client.end(Done(0))


def _serve_client(connection: socket.socket) -> None:
    seconds = int(os.environ.get(CALL_SECONDS_VARIABLE, _CALL_SECONDS))
    client = Client(connection)
    service = Service(client)
    with contextlib.suppress(Ended):
        while True:
            heard = client.hear()
            signal.alarm(seconds)  # whose signal ends the process, wherever it is
            service.answer(heard)
            signal.alarm(0)


def main(words: list[str]) -> None:
    """Serve the socket whose number is the only word."""
    (number,) = words
    with socket.socket(fileno=int(number)) as listening:
        serve_by_copies(listening, _serve_client)


if __name__ == "__main__":
    main(sys.argv[1:])
