"""Names of kernels as their source has them: ``fill<float>``, where the compiler wrote ``_Z4fillIfEvPT_i``."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache

_ABI_TAG = re.compile(r"\[abi:\w*\]")
_LONGEST = 120
"""Characters of a name that is shown with the arguments of its templates: those of CUB take thousands."""


@cache
def readable_kernel_name(name: str) -> str:
    """Return the name without the types that it takes and returns; as it is, if it is none of C++ or nobody can tell.

    C++ names are mangled as the Itanium C++ ABI says, those of numba as well.
    """
    demangled = _demangler()(name) if name.startswith("_Z") else ""
    if not demangled:
        return name
    return _without_types(_ABI_TAG.sub("", demangled))


def readable_variable_name(name: str) -> str:
    """Return the last part of the name of a variable: ``sums`` of ``total(int*)::sums``; as it is, if nobody can tell.

    Compilers of other languages, and those of older names, write a name that has no parts.
    """
    demangled = _demangler()(name) if name.startswith("_Z") else ""
    return demangled.rpartition("::")[2] or name


def _without_types(declared: str) -> str:
    """Return ``inner::fill<float>`` of ``void inner::fill<float>(float*, int)``."""
    begin = _opening(declared) if declared.endswith(")") else len(declared)
    name = declared[:begin].removeprefix("void ").strip() or declared
    return name if len(name) <= _LONGEST else _without_template_arguments(name)


def _without_template_arguments(name: str) -> str:
    """Return ``cub::Reduce<…>`` of ``cub::Reduce<cub::Policy<int>, int*>``."""
    kept, depth = [], 0
    for character in name:
        depth -= character == ">"
        if not depth:
            kept.append("…>" if character == ">" else character)
        depth += character == "<"
    return "".join(kept)


def _opening(text: str) -> int:
    """Return where the bracket is that the last character closes."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if not depth:
            return at
    return len(text)


@cache
def _demangler() -> Callable[[str], str]:
    """Return the function of libstdc++ that gcc and binutils use, or one that knows no name where it is missing."""
    try:
        library, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
    except OSError:
        return lambda _: ""
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    libc.free.argtypes = [ctypes.c_void_p]

    def demangled(name: str) -> str:
        text = demangle(name.encode(), None, None, None)
        if not text:
            return ""
        found = ctypes.string_at(text).decode("utf-8", "replace")
        libc.free(text)
        return found

    return demangled
