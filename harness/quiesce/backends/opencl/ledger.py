"""The OpenCL backend's ledger: memory that goes to and from OpenCL, and the order that is made between queues.

It counts below PyOpenCL's pool, so it does not depend on what the pool says about itself. Every OpenCL object begins
with a pointer to its vendor's dispatch table, and the ICD loader calls through it (the extension ``cl_khr_icd`` demands
it). A watched context or queue gets a copy of that table in which a few calls are noted for a witness. Nothing else of
the process is touched, and the copies turn into plain ones at exit.

Of synchronisation the ledger notes markers, barriers and enqueued frees; the pool makes no other for itself while it is
bound to a queue.
"""

from __future__ import annotations

import ctypes
import types
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from quiesce.backends.opencl.streams import Event, Gate, Streams
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    EventCompleted,
    EventRecorded,
    EventWaited,
    Observation,
)
from quiesce.model.operations import MemoryKind

if TYPE_CHECKING:
    import pyopencl as cl


_ENTRIES: Final = 148
"""Length of the dispatch table of an OpenCL 3.0 platform; the indices below are those of Khronos ``CL/cl_icd.h``."""
_ENQUEUE_MARKER: Final = 62
_ENQUEUE_MARKER_WITH_WAIT_LIST: Final = 105
_ENQUEUE_BARRIER_WITH_WAIT_LIST: Final = 106
_SVM_ALLOC: Final = 126
_SVM_FREE: Final = 127
_ENQUEUE_SVM_FREE: Final = 128

_POINTER = ctypes.c_void_p
_POINTERS = ctypes.POINTER(_POINTER)
_ENQUEUE_MARKER_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER, _POINTERS)
_ENQUEUE_WAIT_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, _POINTER, ctypes.c_uint32, _POINTERS, _POINTERS)
_ALLOC_CALL = ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint32)
_FREE_CALL = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)
_ENQUEUE_FREE_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int32, _POINTER, ctypes.c_uint32, _POINTERS, _POINTER, _POINTER, ctypes.c_uint32, _POINTERS, _POINTERS
)


class Witness(Protocol):
    """What is told of the calls. Handles and addresses are numbers; queues are those that were watched."""

    def note_allocation(self, address: int | None, size_bytes: int) -> None:
        """Learn what ``clSVMAlloc`` answered; None is a refusal."""

    def note_free(self, address: int) -> None:
        """Learn that ``clSVMFree`` is about to give ``address`` back."""

    def note_enqueued_free(self, queue: int, addresses: ctypes.Array[ctypes.c_void_p], event: int) -> None:
        """Learn of ``clEnqueueSVMFree``; the witness owns ``event``, and keeps ``addresses`` until that is complete."""

    def note_order(self, queue: int, waits: Sequence[int], event: int | None) -> None:
        """Learn that a marker or barrier was enqueued: it waits for the events ``waits``, and is itself ``event``."""


_witnesses: weakref.WeakValueDictionary[int, Witness] = weakref.WeakValueDictionary()
_tables: dict[int, _Table] = {}


def watch(handle: int, witness: Witness) -> None:
    """Tell ``witness`` of the calls made through the context or queue with this handle."""
    field = ctypes.cast(handle, _POINTERS)
    vendor_table = field[0] or 0
    if vendor_table not in {table.address for table in _tables.values()}:
        if vendor_table not in _tables:
            _tables[vendor_table] = _Table(vendor_table)
        field[0] = _tables[vendor_table].address
    _witnesses[handle] = witness


def forget(witness: Witness) -> None:
    """Tell ``witness`` nothing any more."""
    for handle in [handle for handle, told in _witnesses.items() if told is witness]:
        del _witnesses[handle]


def _withdraw(entries: ctypes.Array[ctypes.c_void_p], originals: Mapping[int, int | None]) -> None:
    for entry, original in originals.items():
        entries[entry] = original


class _Table:
    """A copy of one vendor's dispatch table with some calls noted. It lives as long as the process."""

    def __init__(self, vendor_table: int) -> None:
        entries = (_POINTER * _ENTRIES).from_buffer_copy((_POINTER * _ENTRIES).from_address(vendor_table))
        # Objects may be released after Python's modules are gone: the memory they point to is never given back.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(entries))
        self.address = ctypes.addressof(entries)
        self._marker = _ENQUEUE_MARKER_CALL(entries[_ENQUEUE_MARKER] or 0)
        self._alloc = _ALLOC_CALL(entries[_SVM_ALLOC] or 0)
        self._free = _FREE_CALL(entries[_SVM_FREE] or 0)
        self._enqueue_free = _ENQUEUE_FREE_CALL(entries[_ENQUEUE_SVM_FREE] or 0)
        self._hooks: dict[int, Any] = {
            _ENQUEUE_MARKER: _ENQUEUE_MARKER_CALL(self._on_marker),
            _SVM_ALLOC: _ALLOC_CALL(self._on_alloc),
            _SVM_FREE: _FREE_CALL(self._on_free),
            _ENQUEUE_SVM_FREE: _ENQUEUE_FREE_CALL(self._on_enqueue_free),
        }
        for entry in (_ENQUEUE_MARKER_WITH_WAIT_LIST, _ENQUEUE_BARRIER_WITH_WAIT_LIST):
            self._hooks[entry] = _hook_with_wait_list(entries[entry] or 0)
        originals = {entry: entries[entry] for entry in self._hooks}
        for entry, hook in self._hooks.items():
            entries[entry] = ctypes.cast(hook, _POINTER).value
        # At exit finalizers run in reverse order: every context made since is closed by then.
        weakref.finalize(self, _withdraw, entries, originals)

    def _on_marker(self, queue: int, event: Any) -> int:
        status = int(self._marker(queue, event))
        if status == 0 and event and (witness := _witnesses.get(queue)):
            witness.note_order(queue, (), event[0])
        return status

    def _on_alloc(self, context: int, flags: int, size_bytes: int, alignment_bytes: int) -> int | None:
        address: int | None = self._alloc(context, flags, size_bytes, alignment_bytes)
        if witness := _witnesses.get(context):
            witness.note_allocation(address, size_bytes)
        return address

    def _on_free(self, context: int, address: int | None) -> None:
        if address and (witness := _witnesses.get(context)):
            witness.note_free(address)
        self._free(context, address)

    def _on_enqueue_free(
        self, queue: int, count: int, pointers: Any, notify: int, user: int, waits: int, wait_list: Any, event: Any
    ) -> int:
        witness = _witnesses.get(queue)
        if witness is None or event:  # a caller that wants the event is not a pool
            return int(self._enqueue_free(queue, count, pointers, notify, user, waits, wait_list, event))
        # PoCL before 3.1 reads the caller's array when the command runs, long after it is gone (pocl/pocl#1069).
        addresses = (_POINTER * count)(*(pointers[index] for index in range(count)))
        own_event = _POINTER()
        own_event_pointer = ctypes.byref(own_event)
        status = int(self._enqueue_free(queue, count, addresses, notify, user, waits, wait_list, own_event_pointer))
        if status == 0 and own_event.value:
            witness.note_enqueued_free(queue, addresses, own_event.value)
        return status


def _hook_with_wait_list(original_address: int) -> Any:
    original = _ENQUEUE_WAIT_CALL(original_address)

    def on_call(queue: int, count: int, wait_list: Any, event: Any) -> int:
        status = int(original(queue, count, wait_list, event))
        if status == 0 and (witness := _witnesses.get(queue)):
            waits = [wait_list[index] for index in range(count)]
            witness.note_order(queue, waits, event[0] if event else None)
        return status

    return _ENQUEUE_WAIT_CALL(on_call)


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
        watch(handle, self)

    def close(self) -> None:
        """Stop watching."""
        forget(self)

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
        if event is not None and stream.handle is not None:
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
            if use.handle is not None:
                self._log.append(EventCompleted(self._event_names[use.handle.int_ptr]))
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
