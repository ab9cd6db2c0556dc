"""What the compiler answers on one connection: objects of kernels, and declarations of modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from quiesce.errors import RefusedKernel
from quiesce.kernels.compiler import compile_kernel
from quiesce.kernels.keys import kernel_key
from quiesce.kernels.protocol import Answer, Asked, Packing, Request
from quiesce.kernels.ptx.initialisers import with_initial_kernel
from quiesce.kernels.ptx.module import Module
from quiesce.kernels.unpacking import unpack

ALWAYS_TUNED_VARIABLE: Final = "QUIESCE_KERNELS_TUNED"
"""Where it is set, every kernel is compiled as if it was launched often."""


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
        if request.asked is Asked.DECLARATIONS:
            return told.split().declarations.encode("latin-1")
        module, name = told.split(), request.content.decode("latin-1")
        checks = request.asked in (Asked.CHECKED_KERNEL, Asked.TUNED_CHECKED_KERNEL, Asked.BACKWARDS_CHECKED_KERNEL)
        traced = request.asked is Asked.TRACED_KERNEL
        checks |= traced
        if checks:
            self._sources(told.sources())
        backwards = request.asked in (Asked.BACKWARDS_KERNEL, Asked.BACKWARDS_CHECKED_KERNEL)
        if name not in module.functions and name in module.variables:
            module, name = with_initial_kernel(module, name)
            checks = False  # what other kernels call in there has no place in their tables
        tuned = request.asked in (Asked.TUNED_KERNEL, Asked.TUNED_CHECKED_KERNEL) or ALWAYS_TUNED_VARIABLE in os.environ
        tuned &= not (backwards or traced)
        key = kernel_key(module, name, tuned, checks, backwards, request.memory_base, traced)
        made = self._kept.find(key)
        if made is not None:
            return made
        with self._kept.alone(key):
            made = self._kept.find(key)
            if made is None:
                made = compile_kernel(module, name, tuned, checks, backwards, request.memory_base, traced)
                self._kept.keep(key, made)
        return made
