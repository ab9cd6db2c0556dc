"""The OpenCL backend's ledger: memory that goes to and from OpenCL, and the order that is made between queues.

It counts below PyOpenCL's pool, from the calls that :mod:`quiesce.backends.opencl_dispatch` sees, so it does not
depend on what the pool says about itself. Of synchronisation it notes markers, barriers and enqueued frees; the
pool makes no other for itself while it is bound to a queue.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quiesce.backends import opencl_dispatch
from quiesce.backends.opencl_streams import Event, Gate, Streams
from quiesce.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    EventCompleted,
    EventRecorded,
    EventWaited,
    Observation,
)
from quiesce.operations import MemoryKind

if TYPE_CHECKING:
    import pyopencl as cl


@dataclass(frozen=True, slots=True)
class _Leaving:
    """An allocation whose free is enqueued behind other work of a queue; ``array`` is what that command reads."""

    address: int
    array: ctypes.Array[ctypes.c_void_p]
    event: cl.Event
    gates: frozenset[Gate]


class OpenClLedger:
    """What one context holds from OpenCL as shared virtual memory, by address, and who waited for whom."""

    def __init__(self, pyopencl: types.ModuleType, streams: Streams) -> None:
        self._cl = pyopencl
        self._streams = streams
        self._held: dict[int, int] = {}
        self._leaving: list[_Leaving] = []
        self._log: list[Observation] = []
        self._event_names: dict[int, str] = {}
        self._last_records: dict[int, str] = {}
        self._records = 0
        self.calls = 0
        """Allocations and frees asked of OpenCL since the context was opened."""
        self.held_bytes = 0
        """Bytes that OpenCL handed out and did not get back yet."""

    @property
    def leaving_bytes(self) -> int:
        """Those of :attr:`held_bytes` whose free is enqueued and waits for work of a stalled stream."""
        return sum(self._held[leaving.address] for leaving in self._leaving)

    def watch(self, handle: int) -> None:
        """See the calls made through the context or queue with this handle."""
        opencl_dispatch.watch(handle, self)

    def close(self) -> None:
        """Stop watching."""
        opencl_dispatch.forget(self)

    # -- what the dispatch table tells -----------------------------------------------------------------------------

    def note_allocation(self, address: int | None, size_bytes: int) -> None:
        """Enter what OpenCL answered to a request of ``size_bytes``; None is its refusal."""
        self.calls += 1
        if not address:
            self._log.append(BackingRefused(size_bytes))
            return
        for leaving in [leaving for leaving in self._leaving if leaving.address == address]:
            self._leaving.remove(leaving)  # handed out again, so the enqueued free has run
            self._note_left(leaving)
        self._held[address] = size_bytes
        self.held_bytes += size_bytes
        self._log.append(BackingAllocated(address, size_bytes))

    def note_free(self, address: int) -> None:
        """Enter that OpenCL gets ``address`` back at once."""
        self.calls += 1
        self._note_return(address)

    def note_enqueued_free(self, queue: int, addresses: ctypes.Array[ctypes.c_void_p], event: int) -> None:
        """Enter that OpenCL gets the addresses back once ``event``, a command on ``queue``, is complete."""
        self.calls += 1
        self.note_order(queue, (), event)
        command = self._cl.Event.from_int_ptr(event, retain=False)
        stream = self._streams.find_by_queue(queue)
        gates = stream.pending() if stream else frozenset()
        self._leaving += [_Leaving(int(address), addresses, command, gates) for address in addresses if address]

    def note_order(self, queue: int, waits: Sequence[int], event: int | None) -> None:
        """Enter that a command on ``queue`` waits for the events ``waits`` and is itself ``event`` (None: unnamed)."""
        stream = self._streams.find_by_queue(queue)
        if stream is None:
            return
        for handle in waits:
            if handle in self._event_names and not self._streams.is_gate(handle):
                self._log.append(EventWaited(self._event_names[handle], stream.name))
        if event is not None and stream.queue is not None:
            self._records += 1
            self._event_names[event] = self._last_records[queue] = f"internal:{self._records}"
            self._log.append(EventRecorded(self._event_names[event], stream.name))
        elif event is not None:  # nothing but markers can follow the one that ended a destroyed stream's queue
            self._event_names[event] = self._last_records[queue]

    # -- what the backend tells ------------------------------------------------------------------------------------

    def note_host_allocation(self, address: int, size_bytes: int) -> None:
        """Enter pageable memory that the system handed out."""
        self._log.append(BackingAllocated(address, size_bytes, MemoryKind.PAGEABLE))

    def note_host_free(self, address: int, size_bytes: int, uses: Iterable[Event]) -> None:
        """Enter that the system gets pageable memory back: the host has waited for its last ``uses``."""
        for use in uses:
            if use.marker is not None:
                self._log.append(EventCompleted(self._event_names[use.marker.int_ptr]))
        self._log.append(BackingFreed(address, size_bytes, MemoryKind.PAGEABLE))

    # -- what is seen ----------------------------------------------------------------------------------------------

    def _note_return(self, address: int) -> None:
        size_bytes = self._held.pop(address, 0)
        self.held_bytes -= size_bytes
        self._log.append(BackingFreed(address, size_bytes))

    def _note_left(self, leaving: _Leaving) -> None:
        self._log.append(EventCompleted(self._event_names[leaving.event.int_ptr]))
        self._note_return(leaving.address)

    def drain(self) -> tuple[Observation, ...]:
        """Return what was seen since the last call.

        A free that no closed gate holds back is awaited, so that the answer does not depend on timing.
        """
        waiting = []
        for leaving in self._leaving:
            if any(gate.closed for gate in leaving.gates):
                waiting.append(leaving)
                continue
            leaving.event.wait()
            self._note_left(leaving)
        self._leaving = waiting
        seen, self._log = tuple(self._log), []
        return seen
