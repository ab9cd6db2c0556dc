"""The CuPy backend on a real CuPy and a device; skipped where there is none, and what is said there is tested."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from quiesce.backends.cupy import asynchronous_backend, backend
from quiesce.backends.cupy.installation import find_cupy
from quiesce.backends.registry import Unusable, probe_backend
from quiesce.model.backend import Backend, Capability, Context, DeviceProfile, Flavour, Reply
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, EventRecorded
from quiesce.model.outcomes import Allocated, describe
from quiesce.model.requests import parse_request

MIB = 1 << 20


def open_or_skip(made: Backend, profile: DeviceProfile) -> Context:
    try:
        return made.open(profile)
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def context() -> Iterator[Context]:
    opened = open_or_skip(backend(), DeviceProfile(capacity_bytes=64 * MIB, pinned_capacity_bytes=64 * MIB))
    yield opened
    opened.close()


@pytest.fixture
def cupy(context: Context) -> Any:
    """CuPy itself, where there is a context."""
    return find_cupy("cupy").cupy


def need(*capabilities: Capability) -> None:
    missing = set(capabilities) - backend().describe().capabilities
    if missing:
        pytest.skip(f"this device lacks {', '.join(sorted(missing))}")


def ask(context: Context, line: str) -> Reply:
    return context.perform(parse_request(line))


def do(context: Context, *lines: str) -> list[Reply]:
    """Perform lines that must be done or allocated; ``line -> words`` states another outcome."""
    replies = []
    for text in lines:
        line, _, expected = text.partition(" -> ")
        replies.append(ask(context, line))
        observed = describe(replies[-1].outcome)
        assert observed == expected if expected else observed in ("done", "allocated"), f"{text}: {observed}"
    return replies


def ledger(context: Context, gauge: Gauge) -> int:
    return context.readings()[gauge, Source.LEDGER]


# -- where it cannot work -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cupy", "cupy-rocm", "cupy-async"])
def test_a_machine_without_a_gpu_is_told_so_in_one_line(name: str) -> None:
    probed = probe_backend(name)
    if not isinstance(probed, Unusable):
        pytest.skip(f"there is a GPU: {probed.description.version}")
    for arguments in (["doctor", name], ["run", "--backend", name, "sizes"]):
        run = subprocess.run(
            [sys.executable, "-m", "quiesce.cli.main", *arguments], capture_output=True, text=True, check=False
        )
        assert run.returncode == 2
        said = run.stdout if arguments[0] == "doctor" else run.stderr
        assert probed.reason in said
        if arguments[0] == "run":
            assert len(run.stderr.strip().splitlines()) == 1


# -- what it says about itself --------------------------------------------------------------------------------------


def test_the_readings_are_those_of_the_description(context: Context) -> None:
    described = {(gauge, source) for gauge, sources in backend().describe().gauges.items() for source in sources}
    assert set(context.readings()) == described
    assert set(context.close().readings) == described


def test_a_device_that_is_too_small_is_unavailable(context: Context) -> None:
    with pytest.raises(BackendUnavailable, match="are wanted"):
        backend().open(DeviceProfile(capacity_bytes=1 << 60))


# -- memory ---------------------------------------------------------------------------------------------------------


def test_the_ledger_sees_what_the_pool_takes_and_gives_back(context: Context) -> None:
    (taken,) = do(context, "a = allocate 1000")
    assert isinstance(taken.outcome, Allocated)
    assert taken.observations == (BackingAllocated(taken.outcome.address, 1024),)
    (freed,) = do(context, "free a")
    assert freed.observations == ()
    (trimmed,) = do(context, "trim")
    assert BackingFreed(taken.outcome.address, 1024) in trimmed.observations
    assert ledger(context, Gauge.RESERVED) == 0


@pytest.mark.parametrize("kind", ["", " managed", " pinned"])
def test_a_capacity_is_the_devices_and_the_cache_gives_way(context: Context, kind: str) -> None:
    do(context, f"a = allocate 32MiB{kind}", "free a", f"b = allocate 64MiB{kind}")
    refused = ask(context, f"c = allocate 512{kind}")
    assert describe(refused.outcome) == "out of memory"
    assert any(isinstance(seen, BackingRefused) for seen in refused.observations)


def test_pinned_sizes_are_powers_of_two(context: Context) -> None:
    do(context, "a = allocate 5MiB pinned")
    assert ledger(context, Gauge.PINNED) == 8 * MIB


def test_a_pool_has_its_limit(context: Context) -> None:
    do(context, "p = create pool limit=1MiB", "a = allocate 1MiB pool=p", "b = allocate 512 pool=p -> out of memory")
    do(context, "free a", "destroy pool p", "a = allocate 512 pool=p -> rejected invalid-handle")


def test_an_injected_failure_is_met_once(context: Context) -> None:
    do(context, "fail backing 1 with foreign-error", "a = allocate 1MiB -> rejected backing-error")
    do(context, "a = allocate 1MiB", "fail backing 1", "b = allocate 1MiB")  # the pool tries again
    assert ledger(context, Gauge.RESERVED) == 2 * MIB


def test_blocks_are_counted_by_the_hook_and_by_the_pool(context: Context) -> None:
    do(context, "a = allocate 1", "b = allocate 600 managed", "c = allocate 512")
    readings = context.readings()
    assert readings[Gauge.BLOCKS, Source.LEDGER] == 3
    assert readings[Gauge.LIVE, Source.LEDGER] == readings[Gauge.LIVE, Source.CLAIM] == 512 + 1024 + 512


def test_what_was_written_comes_back(context: Context, cupy: Any) -> None:
    do(
        context,
        "a = allocate 4KiB pageable",
        "d = allocate 4KiB",
        "b = allocate 4KiB pinned",
        "c = allocate 4KiB pageable",
    )
    do(context, "fill a 7")
    do(context, "copy a to d", "copy d to b", "synchronize device", "copy b to c", "synchronize device")
    memory = context._memory  # type: ignore[attr-defined]
    assert [set(memory.find(slot).array.tolist()) for slot in "abc"] == [{7}, {7}, {7}]


def test_hostile_requests_are_refused_before_cupy_is_touched(context: Context) -> None:
    do(
        context,
        "a = allocate 512",
        "free a",
        "free a -> rejected invalid-value",
        "free foreign -> rejected invalid-value",
    )
    do(context, "s = create stream", "destroy stream s", "synchronize stream s -> rejected invalid-handle")
    do(context, "fill nothing 1 -> rejected invalid-value", "launch graph g -> rejected invalid-value")


# -- staging --------------------------------------------------------------------------------------------------------


def test_staging_a_pageable_source_records_the_event_behind_which_cupy_keeps_its_buffer(context: Context) -> None:
    found = find_cupy("cupy").installed
    if found.flavour is Flavour.HIP:
        pytest.skip("CuPy takes pageable memory for pinned on ROCm (cupy/cupy#8090), or fails (cupy/cupy#8335)")
    do(context, "s = create stream", "a = allocate 1MiB pageable")
    (staged,) = do(context, "d = stage a on s")
    recorded = [seen for seen in staged.observations if isinstance(seen, EventRecorded)]
    assert [seen.stream for seen in recorded] == ["s"]
    assert ledger(context, Gauge.PINNED) == MIB


# -- order ----------------------------------------------------------------------------------------------------------


def test_a_stall_holds_until_somebody_waits(context: Context) -> None:
    need(Capability.STALL)
    do(context, "s = create stream nonblocking", "a = allocate 512", "stall s", "fill a 1 on s")
    do(context, "query stream s -> rejected not-ready", "synchronize stream s", "query stream s")


def test_a_stall_ends_when_memory_goes_back_backing(context: Context) -> None:
    need(Capability.STALL)
    do(context, "s = create stream nonblocking", "a = allocate 512", "b = allocate 512 pinned", "stall s")
    do(context, "fill a 1 on s", "free b", "trim pinned", "query stream s")


def test_a_context_that_is_closed_stalled_and_in_a_capture_leaves_nothing(context: Context) -> None:
    need(Capability.STALL, Capability.CAPTURE)
    do(
        context,
        "s = create stream",
        "t = create stream nonblocking",
        "a = allocate 1MiB on s",
        "b = allocate 512 pinned",
    )
    do(context, "stall s", "copy b to a on s", "begin capture on t mode=relaxed")
    closing = context.close()
    held = {gauge: closing.readings[gauge, Source.LEDGER] for gauge in (Gauge.PINNED, Gauge.STREAMS, Gauge.EVENTS)}
    assert held == dict.fromkeys(held, 0)


def test_a_capture_becomes_a_graph_and_says_what_it_forbids(context: Context) -> None:
    need(Capability.CAPTURE)
    do(context, "s = create stream nonblocking", "a = allocate 4KiB", "begin capture on s", "fill a 3 on s")
    do(context, "g = end capture on s", "launch graph g on s", "synchronize stream s", "destroy graph g")
    do(context, "begin capture on s", "synchronize stream s -> rejected capture-unsupported")
    do(context, "g = end capture on s -> rejected capture-invalidated")


def test_kernels_take_any_number_of_blocks_and_further_arguments(context: Context) -> None:
    need(Capability.LAUNCH)
    names = [f"b{number}" for number in range(11)]
    do(context, *(f"{name} = allocate 512" for name in names))
    do(context, "launch", f"launch reads={','.join(names)} writes=b0 arguments=1000", "synchronize device")


# -- what it leaves alone -------------------------------------------------------------------------------------------


def test_the_processes_own_pools_and_allocators_stay_as_they_are(context: Context, cupy: Any) -> None:
    default, pinned = cupy.get_default_memory_pool(), cupy.get_default_pinned_memory_pool()
    before = default.total_bytes(), pinned.n_free_blocks(), cupy.cuda.get_allocator()
    do(context, "a = allocate 1MiB pinned", "d = stage a", "b = allocate 1MiB", "synchronize device")
    context.close()
    assert (default.total_bytes(), pinned.n_free_blocks(), cupy.cuda.get_allocator()) == before
    mine = cupy.cuda.alloc_pinned_memory(512)
    assert mine.mem.pool() is pinned
    del mine
    pinned.free_all_blocks()


def test_a_pinned_allocator_of_the_programs_own_is_put_back(cupy: Any) -> None:
    mine = cupy.cuda.PinnedMemoryPool()
    cupy.cuda.set_pinned_memory_allocator(mine.malloc)
    try:
        other = backend().open(DeviceProfile(capacity_bytes=MIB))
        do(other, "a = allocate 512 pinned")
        assert cupy.cuda.alloc_pinned_memory(512).mem.pool() is mine
        other.close()
    finally:
        cupy.cuda.set_pinned_memory_allocator(cupy.get_default_pinned_memory_pool().malloc)


def test_the_asynchronous_pool_is_current_only_while_it_is_called(cupy: Any) -> None:
    opened = open_or_skip(asynchronous_backend(), DeviceProfile())
    before = cupy.cuda.runtime.deviceGetMemPool(0)
    do(opened, "s = create stream", "a = allocate 1MiB on s", "fill a 1 on s", "free a", "synchronize device", "trim")
    assert cupy.cuda.runtime.deviceGetMemPool(0) == before
    assert opened.close().readings[Gauge.RESERVED, Source.LEDGER] == 0
