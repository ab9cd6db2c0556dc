"""The simulated backend keeps its contract: corpus and generated sequences find nothing on it, with any schedule."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.catalogue import corpus_directory, load
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.backends.simulated import Simulator, backend
from quiesce.model.backend import Backend, Capability, Context, DeviceProfile, Flavour
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    CopyEnqueued,
    DeviceSynchronized,
    EventRecorded,
    StreamSynchronized,
)
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import ILLEGAL_STATE, INVALID_HANDLE, Allocated, Done, OutOfMemory, Rejected, Unsupported
from quiesce.model.requests import parse_request
from quiesce.model.results import Verdict

SCHEDULES = ("eager", "lazy", "seeded")


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        backend().describe()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def context() -> Iterator[Context]:
    opened = backend().open(DeviceProfile(devices=2, capacity_bytes=1 << 20))
    yield opened
    opened.close()


def test_it_keeps_the_contract() -> None:
    assert isinstance(backend(), Backend)
    assert {Capability.ORDER_LEDGER, Capability.CAPTURE, Capability.DEVICES} <= backend().describe().capabilities


@pytest.mark.long
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_corpus_finds_nothing(schedule: str) -> None:
    cases: tuple[Case, ...] = load([corpus_directory()]).cases
    results = [run_case(case, Simulator(schedule, 3)) for case in cases]
    failed = {result.case: result.findings for result in results if result.verdict.is_failure}
    assert failed == {}
    assert sum(result.verdict is Verdict.PASSED for result in results) >= 25


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("hostile", [False, True])
def test_generated_sequences_find_nothing(schedule: str, hostile: bool) -> None:
    result = run_campaign(Simulator(schedule, 5), seed=11, operations=1500, hostile=hostile)
    assert result.discovery is None
    assert result.operations >= 1500


def test_replies_carry_what_the_runtime_saw_under_the_names_of_the_sequence(context: Context) -> None:
    def observe(request: str) -> tuple[object, ...]:
        return context.perform(parse_request(request)).observations

    (allocated,) = observe("a = allocate 64")
    assert isinstance(allocated, BackingAllocated)
    (pinned,) = observe("p = allocate 64 pinned")
    assert isinstance(pinned, BackingAllocated)
    assert pinned.kind is MemoryKind.PINNED
    observe("s = create stream")
    observe("e = create event")
    assert observe("copy p to a on s") == (CopyEnqueued(pinned.address, allocated.address, 64, "s"),)
    assert observe("record event e on s") == (EventRecorded("e", "s"),)
    assert observe("free a") == (DeviceSynchronized(0), BackingFreed(allocated.address, 64))


def test_a_default_stream_is_told_with_its_device(context: Context) -> None:
    def observe(request: str) -> tuple[object, ...]:
        return context.perform(parse_request(request)).observations

    for device in (0, 1):
        observe(f"use device {device}")
        observe(f"e{device} = create event")
        assert observe(f"record event e{device}") == (EventRecorded(f"e{device}", f"device:{device}"),)
        assert observe("synchronize stream") == (StreamSynchronized(f"device:{device}"),)


@pytest.mark.parametrize(
    ("request_text", "outcome"),
    [
        ("a = allocate 2MiB", OutOfMemory()),
        ("a = allocate 18446744073709551615", OutOfMemory()),
        ("a = allocate 0 managed", Allocated(0)),
        ("use device 2", Rejected("invalid-value")),
        ("destroy stream s", Rejected(INVALID_HANDLE)),
        ("record event e", Rejected(INVALID_HANDLE)),
        ("release s", Rejected(INVALID_HANDLE)),
        ("trim", Done()),
        ("a = allocate 64 pageable", Unsupported("pageable memory is the host's own")),
    ],
)
def test_answers(context: Context, request_text: str, outcome: object) -> None:
    assert context.perform(parse_request(request_text)).outcome == outcome


def test_gauges_come_from_the_runtimes_ledger(context: Context) -> None:
    for request in ("a = allocate 100", "p = allocate 10 pinned", "m = allocate 5 managed", "s = create stream"):
        context.perform(parse_request(request))
    readings = context.readings()
    assert readings[Gauge.RESERVED, Source.LEDGER] == 105
    assert readings[Gauge.PINNED, Source.LEDGER] == 10
    assert readings[Gauge.STREAMS, Source.LEDGER] == 1
    assert readings[Gauge.BLOCKS, Source.CLAIM] == 3


def test_closing_gives_everything_back_also_out_of_a_capture() -> None:
    context = backend().open(DeviceProfile(flavour=Flavour.HIP))
    for request in ("s = create stream", "a = allocate 64", "e = create event", "begin capture on s"):
        context.perform(parse_request(request))
    closing = context.close()
    assert set(closing.readings.values()) == {0}
    assert context.close() == closing
    assert context.perform(parse_request("a = allocate 64")).outcome == Rejected(ILLEGAL_STATE)


def test_a_process_has_one_machine(context: Context) -> None:
    with pytest.raises(BackendUnavailable, match="a machine is open"):
        backend().open(DeviceProfile())


def test_a_limit_of_addresses_makes_it_unavailable_in_a_sentence() -> None:
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (8 << 30,) * 2)"
    started = "from quiesce.cli.main import main; sys.exit(main(['run', '--backend', 'simulated']))"
    command = [sys.executable, "-c", f"{limited}; {started}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout
    assert 'this process is limited to 8192 MiB of them (RLIMIT_AS); run "ulimit -v unlimited"' in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
