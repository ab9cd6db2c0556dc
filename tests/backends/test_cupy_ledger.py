"""The bookkeeping of the CuPy backend's ledger: no CuPy is needed."""

from __future__ import annotations

import pytest

from quiesce.backends.cupy.ledger import CupyLedger, Held
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleDestroyed,
    HandleKind,
)
from quiesce.model.operations import MemoryKind

DEVICE, MANAGED, PINNED = MemoryKind.DEVICE, MemoryKind.MANAGED, MemoryKind.PINNED


def test_what_is_held_is_counted_by_kind_and_device() -> None:
    ledger = CupyLedger()
    ledger.note_allocation(0x1000, Held(512, DEVICE, 0))
    ledger.note_allocation(0x2000, Held(1024, MANAGED, 0))
    ledger.note_allocation(0x3000, Held(2048, DEVICE, 1))
    ledger.note_allocation(0x4000, Held(4096, PINNED, 0))
    assert ledger.held_bytes(DEVICE, MANAGED) == 3584
    assert ledger.held_bytes(DEVICE, MANAGED, device=0) == 1536
    assert ledger.held_bytes(PINNED) == 4096
    ledger.note_free(0x3000)
    assert ledger.held_bytes(DEVICE, device=1) == 0
    assert (ledger.allocations, ledger.calls) == (3, 5)


def test_a_free_waits_for_the_device_before_the_memory_is_back() -> None:
    ledger = CupyLedger()
    ledger.note_allocation(0x1000, Held(512, DEVICE, 1))
    ledger.note_refusal(Held(1 << 40, DEVICE, 1))
    ledger.note_free(0x1000)
    assert ledger.drain() == (
        BackingAllocated(0x1000, 512, DEVICE, 1),
        BackingRefused(1 << 40, DEVICE, 1),
        DeviceSynchronized(1),
        BackingFreed(0x1000, 512, DEVICE, 1),
    )
    assert ledger.drain() == ()


def test_memory_that_was_never_held_cannot_be_given_back() -> None:
    with pytest.raises(KeyError):
        CupyLedger().note_free(0x1000)


def test_blocks_are_counted_as_the_hook_sees_them() -> None:
    ledger = CupyLedger()
    ledger.note_block(0x1000, 512)
    ledger.note_block(0, 512)  # it failed, or has no bytes
    ledger.note_block_back(0x9000)  # another pool's
    assert (ledger.blocks, ledger.block_bytes) == (1, 512)
    ledger.note_block_back(0x1000)
    assert (ledger.blocks, ledger.block_bytes) == (0, 0)


def test_only_events_of_the_librarys_own_are_told() -> None:
    ledger = CupyLedger()
    own = ledger.name_event()
    for event in (own, "e"):
        ledger.note_created(HandleKind.EVENT)
        ledger.note_record(event, "s")
        ledger.note_wait(event, "t")
        ledger.note_completion(event)
        ledger.note_destroyed(HandleKind.EVENT, event)
    assert ledger.drain() == (
        EventRecorded(own, "s"),
        EventWaited(own, "t"),
        EventCompleted(own),
        HandleDestroyed(HandleKind.EVENT, own),
    )
    assert ledger.handles[HandleKind.EVENT] == 0


def test_names_of_events_are_no_slots_and_differ() -> None:
    ledger = CupyLedger()
    assert [ledger.name_event(), ledger.name_event()] == ["internal:1", "internal:2"]
