"""The limiting backend refuses exactly what goes beyond the capacity."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.backends.host import Heap, Limiting
from quiesce.model.backend import Backend, Capability, Context, Description, DeviceProfile, Promise
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingRefused
from quiesce.model.outcomes import INVALID_VALUE, Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported
from quiesce.model.requests import SIZE_BYTES_MAX, parse_request


@pytest.fixture
def context() -> Context:
    return Limiting(Heap()).open(DeviceProfile(capacity_bytes=1000))


def ask(context: Context, request: str) -> Outcome:
    return context.perform(parse_request(request)).outcome


def test_it_is_a_backend_that_adds_a_capacity_and_its_promise() -> None:
    limited = Limiting(Heap())
    assert isinstance(limited, Backend)
    backing = Heap().describe()
    assert limited.describe() == replace(
        backing,
        capabilities=backing.capabilities | {Capability.CAPACITY},
        promises=backing.promises | {Promise.CAPACITY_LIMIT},
    )


def test_the_last_byte_fits_and_the_next_does_not(context: Context) -> None:
    assert isinstance(ask(context, "a = allocate 600"), Allocated)
    assert isinstance(ask(context, "b = allocate 400"), Allocated)
    assert isinstance(ask(context, "c = allocate 0"), Allocated)
    assert ask(context, "d = allocate 1") == OutOfMemory()
    assert ask(context, "d = allocate 18446744073709551615") == OutOfMemory()
    assert ask(context, "free d") == Rejected(INVALID_VALUE)
    context.close()


def test_freed_capacity_returns_once(context: Context) -> None:
    ask(context, "a = allocate 1000")
    assert ask(context, "b = allocate 1000") == OutOfMemory()
    assert ask(context, "free a") == Done()
    assert ask(context, "free a") == Rejected(INVALID_VALUE)
    assert isinstance(ask(context, "b = allocate 1000"), Allocated)
    assert ask(context, "c = allocate 1") == OutOfMemory()
    assert context.close().readings[Gauge.BLOCKS, Source.LEDGER] == 0


def test_a_request_that_backing_rejects_takes_no_capacity(context: Context) -> None:
    ask(context, "a = allocate 400")
    assert ask(context, "a = allocate 600") == Rejected(INVALID_VALUE)
    assert isinstance(ask(context, "b = allocate 600"), Allocated)
    context.close()


def test_a_free_that_backing_does_not_perform_gives_no_capacity_back(context: Context) -> None:
    ask(context, "a = allocate 1000")
    assert isinstance(ask(context, "free a on s"), Unsupported)
    assert ask(context, "b = allocate 1") == OutOfMemory()
    context.close()


def test_only_device_memory_counts(context: Context) -> None:
    assert isinstance(ask(context, "h = allocate 5000 pageable"), Allocated)
    assert isinstance(ask(context, "a = allocate 1000"), Allocated)
    assert ask(context, "free h") == Done()
    assert ask(context, "b = allocate 1") == OutOfMemory()
    context.close()


@pytest.mark.parametrize("size_bytes", [1001, SIZE_BYTES_MAX])
def test_a_refusal_is_observed_where_backing_is(context: Context, size_bytes: int) -> None:
    reply = context.perform(parse_request(f"a = allocate {size_bytes}"))
    assert reply.observations == (BackingRefused(size_bytes),)


def test_a_refusal_is_silent_where_backing_observes_nothing() -> None:
    class Unobserved(Heap):
        def describe(self) -> Description:
            described = super().describe()
            return replace(described, capabilities=described.capabilities - {Capability.BACKING_LEDGER})

    context = Limiting(Unobserved()).open(DeviceProfile(capacity_bytes=1))
    reply = context.perform(parse_request("a = allocate 2"))
    assert reply.outcome == OutOfMemory()
    assert reply.observations == ()
