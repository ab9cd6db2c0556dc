"""What the runtime below CuPy answers by itself: facts, figures and error numbers. ``python -m`` this, for one of them.

Each probe runs in a process of its own (the recorder starts them): some leave a capture open, some ask about handles
that are gone, and a device that fails for good takes only its own probe along. Nothing here holds an address back to be
written: alignments and differences are what is told.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from quiesce.backends.cupy.installation import Found, find_cupy
from quiesce.backends.cupy.ledger import Cupy
from quiesce.model.errors import BackendUnavailable
from quiesce.model.outcomes import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_ISOLATION,
    CAPTURE_MERGE,
    CAPTURE_UNJOINED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    ILLEGAL_STATE,
)

Answer: TypeAlias = dict[str, object]

_GLOBAL: Final = 0  # cudaStreamCaptureModeGlobal
_SIZES_BYTES: Final = (1, 256, 512, 513, 4096, 65_536, 1 << 20, (1 << 20) + 1, 2 << 20, 3 << 20)
_BEYOND_BYTES: Final = 1 << 62
_ALIGNMENT_BYTES_MAX: Final = 1 << 21


def _status(call: Callable[[], Any]) -> int:
    """Return the error number of a call, 0 for success, -1 for a refusal of CuPy's own."""
    try:
        answer = call()
    except RuntimeError as error:
        return int(getattr(error, "status", -1))
    return answer if isinstance(answer, int) and not isinstance(answer, bool) else 0


def _alignment(address: int) -> int:
    return min(address & -address, _ALIGNMENT_BYTES_MAX)


# -- facts and figures -------------------------------------------------------------------------------------------------


def facts(found: Found) -> Answer:
    """Tell what this machine is: device, driver, runtime, CuPy, and what was found to work."""
    runtime = found.cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    name = properties["name"]
    return {
        "cupy": str(found.cupy.__version__),
        "flavour": str(found.installed.flavour),
        "runtime": int(runtime.runtimeGetVersion()),
        "driver": int(runtime.driverGetVersion()),
        "device": name.decode(errors="replace") if isinstance(name, bytes) else str(name),
        "memory_bytes": int(runtime.memGetInfo()[1]),
        "devices": found.installed.devices,
        "launches": found.installed.launches,
        "stalls": found.installed.stalls,
    }


def _pointer_attributes(cupy: Cupy) -> Answer:
    """Tell the memory type of each kind of pointer, as CuPy passes it on."""
    import numpy

    runtime = cupy.cuda.runtime
    size_bytes = 4096
    device, pinned = runtime.malloc(size_bytes), runtime.hostAlloc(size_bytes, 0)
    managed, pageable = runtime.mallocManaged(size_bytes), numpy.zeros(size_bytes, numpy.uint8)

    def kind(address: int) -> object:
        try:
            return int(runtime.pointerGetAttributes(address).type)
        except runtime.CUDARuntimeError as error:
            return f"error {error.status}"

    return {
        "device": kind(device),
        "inside device": kind(device + 100),
        "pinned": kind(pinned),
        "inside pinned": kind(pinned + 100),
        "managed": kind(managed),
        "pageable": kind(pageable.ctypes.data),
        "null": kind(0),
    }


def _granularity(allocate: Callable[[Cupy, int], int]) -> Callable[[Cupy], Answer]:
    """Tell by size what addresses are multiples of, and by how much the device's free memory falls."""

    def probe(cupy: Cupy) -> Answer:
        answer: Answer = {}
        for size_bytes in _SIZES_BYTES:
            before = int(cupy.cuda.runtime.memGetInfo()[0])
            address = allocate(cupy, size_bytes)
            taken = before - int(cupy.cuda.runtime.memGetInfo()[0])
            answer[str(size_bytes)] = {"alignment_bytes": _alignment(address), "device_bytes_taken": taken}
        return answer

    return probe


def _sizes(cupy: Cupy) -> Answer:
    """Tell what zero bytes and far too many are answered with: an error number, or whether null came back."""
    runtime = cupy.cuda.runtime
    return {
        "device 0": runtime.malloc(0) == 0,
        "device 2^62": _refusal(lambda: runtime.malloc(_BEYOND_BYTES)),
        "pinned 0": _refusal(lambda: runtime.hostAlloc(0, 0)),
        "pinned 2^62": _refusal(lambda: runtime.hostAlloc(_BEYOND_BYTES, 0)),
        "managed 2^62": _refusal(lambda: runtime.mallocManaged(_BEYOND_BYTES)),
    }


def _refusal(call: Callable[[], Any]) -> int:
    return _status(lambda: call() and None)


def _asynchronous_pool(cupy: Cupy) -> Answer:
    """Tell what the runtime's own pool reserves for one byte and for 33 MiB."""
    runtime = cupy.cuda.runtime
    pool = runtime.memPoolCreate(runtime.MemPoolProps(1, 0, 1, 0))
    answer: Answer = {}
    for size_bytes in (1, 33 << 20):
        runtime.mallocFromPoolAsync(size_bytes, pool, 0)
        answer[str(size_bytes)] = int(runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrReservedMemCurrent))
    return answer


# -- what is illegal in a capture --------------------------------------------------------------------------------------


class _Captured:
    """A stream in a global capture, with some memory, a neighbour and two events, one of them recorded outside."""

    def __init__(self, cupy: Cupy, *, nonblocking: bool = True) -> None:
        stream = cupy.cuda.Stream
        self.runtime = cupy.cuda.runtime
        self.stream, self.neighbour = stream(non_blocking=nonblocking), stream(non_blocking=True)
        self.memory = self.runtime.malloc(4096)
        self.event, self.outside = cupy.cuda.Event(), cupy.cuda.Event()
        self.outside.record(self.neighbour)
        self.stream.begin_capture(_GLOBAL)


def _query_captured_event(cupy: Cupy) -> int:
    captured = _Captured(cupy)
    captured.event.record(captured.stream)
    return int(captured.runtime.eventQuery(captured.event.ptr))


def _synchronize_captured_event(cupy: Cupy) -> int:
    captured = _Captured(cupy)
    captured.event.record(captured.stream)
    return _status(captured.event.synchronize)


def _query_captured_stream(cupy: Cupy) -> int:
    captured = _Captured(cupy)
    return int(captured.runtime.streamQuery(captured.stream.ptr))


def _use_the_default_stream(cupy: Cupy) -> int:
    captured = _Captured(cupy, nonblocking=False)
    return _status(lambda: captured.outside.record(cupy.cuda.Stream.null))


def _wait_for_the_outside(cupy: Cupy) -> int:
    captured = _Captured(cupy)
    return _status(lambda: captured.stream.wait_event(captured.outside))


def _merge_two_captures(cupy: Cupy) -> int:
    captured = _Captured(cupy)
    captured.event.record(captured.stream)
    captured.neighbour.begin_capture(_GLOBAL)
    return _status(lambda: captured.neighbour.wait_event(captured.event))


def _end_unjoined(cupy: Cupy) -> int:
    captured = _Captured(cupy)
    captured.event.record(captured.stream)
    captured.neighbour.wait_event(captured.event)
    captured.runtime.memsetAsync(captured.memory, 0, 16, captured.neighbour.ptr)
    return _status(captured.stream.end_capture)


def _end_invalidated(cupy: Cupy) -> int:
    captured = _Captured(cupy)
    _status(captured.stream.synchronize)
    return _status(captured.stream.end_capture)


def _in_a_capture(call: Callable[[Any], Any]) -> Callable[[Cupy], int]:
    return lambda cupy: _status(lambda: call(_Captured(cupy)))


def _end_without_begin(cupy: Cupy) -> int:
    return _status(cupy.cuda.Stream(non_blocking=True).end_capture)


# -- handles -----------------------------------------------------------------------------------------------------------


def _query_unrecorded_event(cupy: Cupy) -> int:
    event = cupy.cuda.Event()
    return int(cupy.cuda.runtime.eventQuery(event.ptr))


def _free_twice(cupy: Cupy) -> int:
    runtime = cupy.cuda.runtime
    address = runtime.malloc(4096)
    runtime.free(address)
    return _status(lambda: runtime.free(address))


_FIGURES: Final[Mapping[str, Callable[[Cupy], Answer]]] = {
    "pointer-attributes": _pointer_attributes,
    "granularity/device": _granularity(lambda cupy, size: int(cupy.cuda.runtime.malloc(size))),
    "granularity/pinned": _granularity(lambda cupy, size: int(cupy.cuda.runtime.hostAlloc(size, 0))),
    "granularity/managed": _granularity(lambda cupy, size: int(cupy.cuda.runtime.mallocManaged(size))),
    "sizes": _sizes,
    "asynchronous-pool": _asynchronous_pool,
}
_ERRORS: Final[Mapping[str, tuple[Callable[[Cupy], int], str | None]]] = {
    "capture/query-captured-event": (_query_captured_event, CAPTURED_EVENT),
    "capture/synchronize-captured-event": (_synchronize_captured_event, CAPTURED_EVENT),
    "capture/query-captured-stream": (_query_captured_stream, CAPTURE_UNSUPPORTED),
    "capture/synchronize-captured-stream": (_in_a_capture(lambda c: c.stream.synchronize()), CAPTURE_UNSUPPORTED),
    "capture/synchronize-device": (_in_a_capture(lambda c: c.runtime.deviceSynchronize()), CAPTURE_UNSUPPORTED),
    "capture/allocate": (_in_a_capture(lambda c: c.runtime.malloc(4096) and None), CAPTURE_UNSUPPORTED),
    "capture/allocate-pinned": (_in_a_capture(lambda c: c.runtime.hostAlloc(4096, 0) and None), None),
    "capture/query-other-event": (_in_a_capture(lambda c: c.runtime.eventQuery(c.outside.ptr)), None),
    "capture/begin-again": (_in_a_capture(lambda c: c.stream.begin_capture(_GLOBAL)), ILLEGAL_STATE),
    "capture/use-the-default-stream": (_use_the_default_stream, CAPTURE_IMPLICIT),
    "capture/wait-for-the-outside": (_wait_for_the_outside, CAPTURE_ISOLATION),
    "capture/merge": (_merge_two_captures, CAPTURE_MERGE),
    "capture/end-unjoined": (_end_unjoined, CAPTURE_UNJOINED),
    "capture/end-invalidated": (_end_invalidated, CAPTURE_INVALIDATED),
    "capture/end-without-begin": (_end_without_begin, ILLEGAL_STATE),
    "handles/query-unrecorded-event": (_query_unrecorded_event, None),
    "handles/free-twice": (_free_twice, None),
}
"""Each error number, and the word of :data:`quiesce.model.outcomes.ERROR_CODES` that it stands for (None: not said)."""

NAMES: Final = ("facts", *_FIGURES, *_ERRORS)


def run_probe(name: str) -> Answer:
    """Run one probe in this process. Raises :class:`BackendUnavailable`, and :class:`KeyError` for an unknown name."""
    found = find_cupy("cupy")
    if name == "facts":
        return facts(found)
    try:
        return _run(name, found.cupy)
    except RuntimeError as error:
        if hasattr(error, "status"):
            raise
        return {"unsupported": str(error)}  # CuPy itself refuses: it has no captures or no such pool on HIP


def _run(name: str, cupy: Cupy) -> Answer:
    if name in _FIGURES:
        return _FIGURES[name](cupy)
    ask, word = _ERRORS[name]
    status = ask(cupy)
    return {"status": status} if word is None else {"status": status, "means": word}


def main(arguments: list[str]) -> int:
    """Print the names of all probes, or the answer of the one that is named, as one line of JSON."""
    if not arguments:
        sys.stdout.write(json.dumps(list(NAMES)) + "\n")
        return 0
    if len(arguments) > 1 or arguments[0] not in NAMES:
        sys.stderr.write(f"write: python -m quiesce.backends.cupy.probes [{'|'.join(NAMES)}]\n")
        return 2
    try:
        answer = run_probe(arguments[0])
    except BackendUnavailable as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
