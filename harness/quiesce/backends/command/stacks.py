"""Names of functions in the stack that a driver program wrote when a signal ended it.

``backtrace_symbols_fd`` names exported functions alone, so most lines of a driver read ``./driver(+0x4577)``. The tools
that come with a compiler know the others: ``addr2line`` reads the program's symbols, ``c++filt`` C++ names.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

SECONDS_MAX: Final = 10.0
"""How long a tool may take; a name is worth no more."""

_FRAME: Final = re.compile(r"^  (?P<file>[^\n()]+)\((?P<name>_Z\w+)?(?P<offset>\+0x[0-9a-f]{1,16})\)$", re.MULTILINE)


def with_names(text: str) -> str:
    """Return what a driver wrote with the names of the functions in its stack, as far as somebody knows them."""
    return _FRAME.sub(_named, text)


def _named(frame: re.Match[str]) -> str:
    file, mangled, offset = frame["file"], frame["name"], frame["offset"]
    name = _demangled(mangled) if mangled else _function_at(file, int(offset, 16))
    return f"  {file}({name}{offset if mangled else ''})" if name else frame[0]


@lru_cache(maxsize=4096)
def _demangled(name: str) -> str:
    return _said(["c++filt", name])


@lru_cache(maxsize=4096)
def _function_at(file: str, offset: int) -> str:
    """Return the function that made a call: the address is that to which the call returns, just after it."""
    if not Path(file).is_file():
        return ""
    name = _said(["addr2line", "--functions", "--demangle", f"--exe={file}", hex(offset - 1)]).partition("\n")[0]
    return "" if name == "??" else name


def _said(command: Sequence[str]) -> str:
    with suppress(OSError, subprocess.SubprocessError, UnicodeDecodeError):
        answer = subprocess.run(  # noqa: S603 - a list, no shell
            command, check=True, capture_output=True, encoding="utf-8", timeout=SECONDS_MAX
        )
        return answer.stdout.strip()
    return ""
