"""Objects of kernels, kept between runs under names that say all that they depend on: they are never stale."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from quiesce.files import private_folder
from quiesce.model.errors import ConfigurationError
from quiesce.simulator.kernels.ptx.module import FunctionText, Module
from quiesce.simulator.kernels.translation.program import PLAIN, Variant
from quiesce.simulator.runtime import alone, cache


class KeptObjects:
    """The objects in a folder, which is made when the first is kept. One that can't be kept is compiled again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> bytes | None:
        """Return an object, or None where it is not kept, or not as it was."""
        return cache.find(self._path(key))

    def keep(self, key: str, content: bytes) -> None:
        """Keep an object."""
        path = self._path(key)
        with contextlib.suppress(OSError, ConfigurationError):
            private_folder(path.parent)
            cache.keep(path, content)

    def alone(self, key: str) -> contextlib.AbstractContextManager[None]:
        """Let one process at a time compile the kernel of a key, so that others find its object."""
        folder = self._path(key).parent
        with contextlib.suppress(OSError, ConfigurationError):
            private_folder(folder)
        return alone(folder / "lock")  # few wait for another kernel, and the files do not become more

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.o"


_NAME: Final = re.compile(r"[\w$]+")


def kernel_key(module: Module, entry: str, variant: Variant = PLAIN) -> str:
    """Return a name for the object of a kernel: by its text, that of what it calls, and all that compiles it."""
    digest = hashlib.sha256(f"{_how(variant)}\0{entry}\0{module.declarations}".encode())
    if variant.checks:
        line = module.lines.line_of(module.find(entry).header[0])  # what an access is told by
        files = (module.files, sorted(module.toolkit_files))
        digest.update(repr((line, *files)).encode())
    waiting = [module.find(entry)]
    seen = {entry}
    while waiting:
        text = _text_of(module, waiting.pop())
        digest.update(text.encode() + b"\0")
        for name in sorted(set(_NAME.findall(text)) & module.functions.keys() - seen):
            seen.add(name)
            waiting.append(module.functions[name])
    return digest.hexdigest()[:32]


def packed_key(content: bytes, entry: str = "", variant: Variant = PLAIN) -> str:
    """Return a name for the object of a kernel in a packed module, or for the module's declarations.

    The whole module decides, which need not be unpacked for it: a library has the same one in each run.
    """
    digest = hashlib.sha256(f"{_how(variant)}\0{entry}\0packed\0".encode())
    digest.update(content)
    return digest.hexdigest()[:32]


def _how(variant: Variant) -> str:
    return f"{_own_sources()}\0{_target()}\0{variant if variant.checks else replace(variant, memory_base=0)}"


def _text_of(module: Module, function: FunctionText) -> str:
    start, end = function.header
    return module.text[start : function.body[1] if function.body else end]


@functools.cache
def _target() -> str:
    """Return what machine code is made for and by: the processor, and the version of LLVM, which is not loaded."""
    named = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
    first, _, _ = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in named]
    return "\n".join((*lines, importlib.metadata.version("llvmlite")))


@functools.cache
def _own_sources() -> str:
    """Return a digest of the compiler's own sources."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
