"""Error numbers of CUDA's and HIP's runtimes, in the words of :data:`quiesce.outcomes.ERROR_CODES`."""

from __future__ import annotations

from typing import Final

from quiesce.backend import Flavour
from quiesce.outcomes import CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, ERROR_CODES, INVALID_HANDLE

OUT_OF_MEMORY: Final = 2
"""``cudaErrorMemoryAllocation``, ``hipErrorOutOfMemory``."""
NOT_READY: Final = 600
"""``cudaErrorNotReady``, ``hipErrorNotReady``: a query that is answered no."""

STICKY: Final = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719})
"""Errors after which "the process must be terminated and relaunched" (CUDA Runtime API, ``cudaError_t``)."""

_WORDS: Final = {number: word for word, number in ERROR_CODES.items() if number is not None}
_WORDS_OF_HIP: Final = {709: INVALID_HANDLE}
"""What HIP alone answers: ``hipErrorContextIsDestroyed``, for a stream that was destroyed."""


def word_of(status: int, flavour: Flavour) -> str:
    """Return the word for an error number, or ``cuda-error-N`` and ``hip-error-N`` where there is none."""
    own = _WORDS_OF_HIP.get(status) if flavour is Flavour.HIP else None
    return own or _WORDS.get(status) or f"{flavour}-error-{status}"


def word_of_guard(message: str) -> str | None:
    """Return the word for a plain ``RuntimeError`` of CuPy's, which it raises before it calls the runtime.

    None: it is about no capture. (``Stream.is_capturing``, ``MemoryPointer.copy_from_host_async`` and their like.)
    """
    if "invalidated the capture" in message:
        return CAPTURE_INVALIDATED
    if "capturing" in message or "cannot capture" in message:
        return CAPTURE_UNSUPPORTED
    return None
