"""The compiler as a process: ``python -m quiesce.simulator.kernels.server SOCKET CACHE RUN``.

``quiesce exec`` starts it when the first client connects, with the number of the socket that listens, the folder of
the cache and that of the run. Each client is served by a copy of the process, which loads what compiles for the first
kernel that is not in the cache. A copy that crashes, or that computes too long for a kernel, ends; its client takes
that for a refusal, and connects again for the next kernel. The process ends with its standard input, which whoever
started it holds open.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.fatbins import unpack
from quiesce.simulator.kernels.object_cache import KeptObjects, kernel_key, packed_key
from quiesce.simulator.kernels.protocol import Answer, Asked, Packing, Request, read_request
from quiesce.simulator.kernels.ptx.initialisers import with_initial_kernel
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.toolkits import find_toolkit
from quiesce.simulator.kernels.translation.program import Variant
from quiesce.simulator.runtime import keep_sources, serve_by_copies

ONE_BY_ONE_VARIABLE: Final = "QUIESCE_KERNELS_ONE_BY_ONE"
"""Where it is set, no kernel is compiled for all threads of a block together."""

_VARIANTS: Final = {
    Asked.KERNEL: Variant(tuned=True, wide=True, quick=True),
    Asked.ROWS_KERNEL: Variant(tuned=True, wide=True),
    Asked.ONE_BY_ONE_KERNEL: Variant(),
    Asked.CHECKED_KERNEL: Variant(tuned=True, wide=True, quick=True, checks=True),
    Asked.ROWS_CHECKED_KERNEL: Variant(tuned=True, wide=True, checks=True),
    Asked.ONE_BY_ONE_CHECKED_KERNEL: Variant(checks=True),
    Asked.BACKWARDS_KERNEL: Variant(backwards=True),
    Asked.BACKWARDS_CHECKED_KERNEL: Variant(backwards=True, checks=True),
    Asked.TRACED_KERNEL: Variant(checks=True, traced=True),
}


@dataclass(slots=True)
class _Told:
    """A module that a client told of; it is unpacked and split when that is needed."""

    content: bytes
    packing: Packing
    plain_bytes: int
    module: Module | None = field(default=None)
    is_told: bool = field(default=False)

    def split(self) -> Module:
        if self.module is None:
            self.module = Module(unpack(self.content, self.packing, self.plain_bytes))
        return self.module

    def declarations(self) -> bytes:
        return self.split().declarations.encode("latin-1")

    def sources(self) -> Mapping[str, str]:
        """Return the sources that came along, once."""
        found = {} if self.is_told else self.split().sources
        self.is_told = True
        return found


class Keeps(Protocol):
    """Where objects are kept."""

    def find(self, key: str) -> bytes | None:
        """Return an object, or None where it is not kept."""

    def keep(self, key: str, content: bytes) -> None:
        """Keep an object."""

    def alone(self, key: str) -> AbstractContextManager[None]:
        """Let one process at a time make an object."""


class Service:
    """The answers to one client. ``toolkit`` tells where NVIDIA's compiler of a name and headers are for it.

    ``sources`` takes the texts of sources, by name, of the modules whose kernels are checked.
    """

    def __init__(
        self,
        kept: Keeps,
        toolkit: Callable[[str], str] = str,
        sources: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self._kept, self._toolkit, self._sources = kept, toolkit, sources
        self._modules: dict[int, _Told] = {}

    def answer(self, request: Request) -> Answer | None:
        """Return the answer to a request, or None where it has none."""
        if request.asked is Asked.MODULE:
            self._modules[request.module] = _Told(request.content, request.packing, request.plain_bytes)
            return None
        try:
            return Answer(False, self._content(request))
        except RefusedKernel as refused:
            return Answer(True, str(refused).encode())
        except (Exception, RecursionError) as error:  # a mistake of the compiler's: this kernel does not run
            return Answer(True, f"the compiler failed: {type(error).__name__}: {error}"[:500].encode())

    def _content(self, request: Request) -> bytes:
        if request.asked is Asked.TOOLKIT:
            return self._toolkit(request.content.decode("latin-1")).encode("utf-8", "surrogateescape")
        told = self._modules.get(request.module)
        if told is None:
            raise RefusedKernel("its module is not known to the compiler")
        is_packed = told.packing is not Packing.PLAIN  # one out of a library: large, without sources
        if request.asked is Asked.DECLARATIONS:
            if not is_packed:
                return told.declarations()
            return self._made(packed_key(told.content), told.declarations)
        name = request.content.decode("latin-1")
        variant = replace(_VARIANTS[request.asked], memory_base=request.memory_base)
        if ONE_BY_ONE_VARIABLE in os.environ:
            variant = replace(variant, tuned=False, wide=False)
        if is_packed:
            key = packed_key(told.content, name, variant)
            return self._made(key, lambda: _compiled(*_wanted(told.split(), name, variant)))
        if variant.checks:
            self._sources(told.sources())
        wanted = _wanted(told.split(), name, variant)
        return self._made(kernel_key(*wanted), lambda: _compiled(*wanted))

    def _made(self, key: str, compiled: Callable[[], bytes]) -> bytes:
        made = self._kept.find(key)
        if made is not None:
            return made
        with self._kept.alone(key):
            made = self._kept.find(key)
            if made is None:
                made = compiled()
                self._kept.keep(key, made)
        return made


def _compiled(module: Module, kernel: str, variant: Variant) -> bytes:
    # not with the others: a run whose kernels are all in the cache goes without
    from quiesce.simulator.kernels.compiler import compile_kernel

    return compile_kernel(module, kernel, variant)


def _wanted(module: Module, name: str, variant: Variant) -> tuple[Module, str, Variant]:
    """Return what is compiled for a name: its kernel, or one that gives the variable of that name its first value."""
    if name in module.functions or name not in module.variables:
        return module, name, variant
    longer, kernel = with_initial_kernel(module, name)
    return longer, kernel, replace(variant, checks=False)  # what others call in there is not in its tables


KERNEL_SECONDS_VARIABLE: Final = "QUIESCE_KERNEL_SECONDS"
_KERNEL_SECONDS: Final = 300
"""Of processor time, so that neither a busy machine nor another process with the same kernel refuses one."""
_MEMORY_BYTES: Final = 16 << 30
"""A copy that wants more for one kernel ends, and not the whole machine."""
_CREDENTIALS: Final = struct.Struct("iII")  # of a client, unix(7)


def _serve_client(connection: socket.socket, kept: KeptObjects, run: Path) -> None:
    _limit_memory()
    seconds = int(os.environ.get(KERNEL_SECONDS_VARIABLE, _KERNEL_SECONDS))
    process, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    service = Service(kept, lambda name: find_toolkit(name, process, run).text(), functools.partial(_keep_sources, run))
    while (request := read_request(connection)) is not None:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # whose signal ends the process, wherever it is
        answer = service.answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if answer is not None:
            connection.sendall(answer.encode())


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
        kept = KeptObjects(Path(cache))
        serve_by_copies(listening, functools.partial(_serve_client, kept=kept, run=Path(run)))


if __name__ == "__main__":
    main(sys.argv[1:])
