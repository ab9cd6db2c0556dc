"""How a call inside the reference fails; the machine turns these into outcomes."""

from __future__ import annotations


class CallFailed(Exception):
    """The root: a call that a real runtime answers with an error code."""


class MemoryExhausted(CallFailed):
    """There is no memory for the request (``cudaErrorMemoryAllocation``, ``std::bad_alloc``)."""


class CallRejected(CallFailed):
    """The call is refused with an error ``code`` of :data:`quiesce.outcomes.ERROR_CODES`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
