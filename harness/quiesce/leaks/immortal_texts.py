"""Texts that the interpreter interns for the life of the process, where it never frees them.

CPython 3.12.1 keeps each text that was ever interned: each part of a path of :mod:`pathlib`, each name of an attribute.
3.11.7 and 3.13.0 free what nobody holds any more. What a test with a new ``tmp_path`` in each round leaves is none
of the tested code's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final


def _none() -> int:
    return 0


def _count() -> Callable[[], int]:
    """Return what counts them: found out by a text that nobody holds."""
    interned: Callable[[], int] = getattr(sys, "getunicodeinternedsize", _none)
    if not getattr(sys, "getallocatedblocks", _none)():
        return _none  # without pymalloc, as PYTHONMALLOC=malloc has it, no block is counted
    before = interned()
    sys.intern(" ".join((__name__, "is for ever")))
    return interned if interned() > before else _none


immortal_texts: Final[Callable[[], int]] = _count()
"""Return how many texts are interned that will never be freed."""
