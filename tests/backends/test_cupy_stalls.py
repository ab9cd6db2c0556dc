"""Gates, and the promise that nobody hangs behind one: a stand-in for CuPy is enough, because no device is asked."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from quiesce.backends.cupy import streams as cupy_streams
from quiesce.backends.cupy.ledger import CupyLedger
from quiesce.backends.cupy.stalls import Gate, can_stall
from quiesce.backends.cupy.streams import Streams, Unsupportable
from quiesce.model.backend import Flavour
from quiesce.model.observations import DeviceSynchronized

WORDS = (ctypes.c_uint32 * 128)()
"""As much as a gatekeeper takes at once: 64 signals of 8 bytes each."""


class FakeGatekeeper:
    """Gates in memory of this process, that no stream waits for."""

    is_used_up = False

    def close_before(self, stream: int) -> Gate:
        return Gate(ctypes.addressof(WORDS))

    def close(self) -> None:
        pass


class FakeHandle:
    ptr = 0

    def __init__(self, **options: bool) -> None:
        self.options = options

    def is_capturing(self) -> bool:
        return True

    def __del__(self) -> None:
        pass


class FakeDevice:
    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def make_streams(ledger: CupyLedger) -> Streams:
    runtime = SimpleNamespace(is_hip=False, deviceSynchronize=lambda: None)
    cuda = SimpleNamespace(Event=FakeHandle, Stream=FakeHandle, Device=FakeDevice, runtime=runtime)
    gatekeeper: Any = FakeGatekeeper()
    streams = Streams(SimpleNamespace(cuda=cuda), 1, ledger, gatekeeper)
    streams.create("s", 0, nonblocking=True)
    return streams


def test_a_gate_is_a_word_that_is_zero_until_it_opens() -> None:
    gate = Gate(ctypes.addressof(WORDS))
    assert (gate.closed, WORDS[0]) == (True, 0)
    gate.open()
    assert (gate.closed, WORDS[0]) == (False, 1)
    WORDS[0] = 0
    gate.open()  # the word belongs to another gate by now
    assert WORDS[0] == 0


def test_a_call_that_waits_for_a_stalled_stream_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy_streams, "_PATIENCE_SECONDS", 0.001)
    ledger = CupyLedger()
    streams = make_streams(ledger)
    stream = streams.find("s", 0)
    streams.stall(stream)
    with streams.guarded():
        while stream.pending():  # as a call into the runtime would
            pass
    assert not streams.is_stalled
    assert ledger.drain() == (DeviceSynchronized(0),)


def test_a_call_that_does_not_wait_leaves_the_stall_alone() -> None:
    ledger = CupyLedger()
    streams = make_streams(ledger)
    stream = streams.find("s", 0)
    streams.stall(stream)
    with streams.guarded():
        pass
    assert streams.is_stalled
    assert stream.pending()
    assert ledger.drain() == ()
    streams.release(stream)
    assert not streams.is_stalled


def test_a_stall_that_had_to_end_in_a_capture_is_owned_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy_streams, "_PATIENCE_SECONDS", 0.001)
    streams = make_streams(CupyLedger())
    stream = streams.find("s", 0)
    streams.stall(stream)
    streams.capturing.add(stream)

    def wait() -> None:
        with streams.guarded():
            while stream.pending():
                pass

    with pytest.raises(Unsupportable, match="while another was being captured"):
        wait()


def test_gates_are_handed_on_along_every_edge() -> None:
    streams = make_streams(CupyLedger())
    streams.create("t", 0, nonblocking=False)
    held, blocking = streams.find("s", 0), streams.find("t", 0)
    streams.stall(blocking)
    streams.follow_default(streams.defaults[0])
    assert streams.defaults[0].pending() == blocking.pending()
    assert not held.pending()


def test_a_runtime_without_the_call_cannot_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(size_bytes: int, flags: int) -> int:
        assert size_bytes <= ctypes.sizeof(WORDS)
        return ctypes.addressof(WORDS)

    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    runtime = SimpleNamespace(
        hostAlloc=allocate,
        freeHost=lambda address: None,
        CUDARuntimeError=RuntimeError,
    )
    stream = SimpleNamespace(ptr=0, done=True, synchronize=lambda: None)
    cuda = SimpleNamespace(runtime=runtime, Stream=lambda non_blocking: stream)
    assert can_stall(SimpleNamespace(cuda=cuda), Flavour.CUDA) is False
