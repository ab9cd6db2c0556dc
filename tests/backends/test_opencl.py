"""The OpenCL backend on a real runtime; skipped where there is none. Addresses are real, so contents are looked at."""

from __future__ import annotations

import ctypes
import itertools
import random
import subprocess
import sys
import types
from collections.abc import Iterator

import pytest

from quiesce.allocators.cases.expansion import PerformStep
from quiesce.allocators.lockstep import run_lockstep
from quiesce.backends import opencl
from quiesce.backends import opencl as opencl_kernel
from quiesce.backends.opencl import backend
from quiesce.model.backend import Backend, Capability, Context, DeviceProfile, Reply
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, Observation
from quiesce.model.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported, describe
from quiesce.model.requests import parse_request

LEAKS_EVENTS_UP_TO = (2026, 1, 4)
"""PyOpenCL never releases the event that orders a block's new queue behind its old one (``bind_to_queue``)."""


def open_context() -> Context:
    try:
        return backend().open(DeviceProfile())
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def context() -> Iterator[Context]:
    opened = open_context()
    yield opened
    opened.close()


def ask(context: Context, line: str) -> Reply:
    return context.perform(parse_request(line))


def outcome(context: Context, line: str) -> Outcome:
    return ask(context, line).outcome


def do(context: Context, *lines: str) -> None:
    """Perform lines that must be done or allocated; ``line -> words`` states another outcome."""
    for text in lines:
        line, _, expected = text.partition(" -> ")
        observed = describe(outcome(context, line))
        if expected:
            assert observed == expected, text
        else:
            assert observed == "done" or observed.startswith("allocated"), f"{text}: {observed}"


def moved(observations: tuple[Observation, ...]) -> list[type]:
    """Return what was seen to go to and from the backing allocator."""
    return [type(seen) for seen in observations if isinstance(seen, BackingAllocated | BackingFreed)]


def address(context: Context, line: str) -> int:
    answer = outcome(context, line)
    assert isinstance(answer, Allocated), line
    return answer.address


def claim(readings: Readings, gauge: Gauge) -> int:
    return readings[gauge, Source.CLAIM]


def ledger(readings: Readings, gauge: Gauge) -> int:
    return readings[gauge, Source.LEDGER]


# -- what it says about itself --------------------------------------------------------------------------------------


def test_the_backend_describes_what_it_offers_and_what_it_does_not(context: Context) -> None:
    description = backend().describe()
    assert description.name == "opencl"
    assert "PyOpenCL" in description.version
    assert {Capability.POOLS, Capability.STALL, Capability.LAUNCH} <= description.capabilities
    assert not {Capability.CAPACITY, Capability.CAPTURE, Capability.PINNED} & description.capabilities
    assert isinstance(backend(), Backend)


def test_the_readings_are_those_of_the_description(context: Context) -> None:
    described = {(gauge, source) for gauge, sources in backend().describe().gauges.items() for source in sources}
    assert set(context.readings()) == described
    assert set(context.close().readings) == described


def test_a_missing_library_is_unavailable_and_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'quiesce\[opencl\]'"):
        backend().describe()
    with pytest.raises(BackendUnavailable):
        backend().open(DeviceProfile())


class FakeError(Exception):
    pass


def no_platform() -> list[types.SimpleNamespace]:
    raise FakeError("PLATFORM_NOT_FOUND_KHR")


def platform(extensions: str, version: str) -> types.SimpleNamespace:
    device = types.SimpleNamespace(svm_capabilities=0)
    return types.SimpleNamespace(extensions=extensions, version=version, get_devices=lambda: [device])


def other_platforms() -> list[types.SimpleNamespace]:
    return [platform("", "OpenCL 3.0"), platform("cl_khr_icd", "OpenCL 1.2"), platform("cl_khr_icd", "OpenCL 3.0")]


@pytest.mark.parametrize(("platforms", "reason"), [(no_platform, "no OpenCL platform"), (other_platforms, "SVM")])
def test_a_machine_without_a_device_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, platforms: object, reason: str
) -> None:
    fake = types.SimpleNamespace(
        get_platforms=platforms, Error=FakeError, device_svm_capabilities=types.SimpleNamespace(COARSE_GRAIN_BUFFER=1)
    )
    monkeypatch.setattr(opencl, "_import_pyopencl", lambda: fake)
    with pytest.raises(BackendUnavailable, match=reason):
        backend().describe()


def complain_of(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def complaint(pyopencl: object, device: types.SimpleNamespace) -> str:
        return "error: unknown target CPU 'generic'" if device.name in names else ""

    monkeypatch.setattr(opencl, "compiler_complaint", complaint)


def two_devices(monkeypatch: pytest.MonkeyPatch, chosen: str | None) -> types.SimpleNamespace:
    """An OpenCL with two devices beside one without shared virtual memory, and a caller who chose."""
    complain_of(monkeypatch)
    if chosen is None:
        monkeypatch.delenv(opencl.DEVICE, raising=False)
    else:
        monkeypatch.setenv(opencl.DEVICE, chosen)
    devices = [types.SimpleNamespace(svm_capabilities=each, name=str(each)) for each in (0, 1, 3)]
    found = types.SimpleNamespace(extensions="cl_khr_icd", version="OpenCL 3.0", get_devices=lambda: devices)
    fine = types.SimpleNamespace(COARSE_GRAIN_BUFFER=1)
    return types.SimpleNamespace(get_platforms=lambda: [found], Error=FakeError, device_svm_capabilities=fine)


@pytest.mark.parametrize(("chosen", "name"), [(None, "1"), ("0", "1"), ("1", "3"), ("2", "1")])
def test_the_device_can_be_chosen(monkeypatch: pytest.MonkeyPatch, chosen: str | None, name: str) -> None:
    fake = two_devices(monkeypatch, chosen)
    assert opencl._find_device(fake).name == name  # type: ignore[arg-type]


def test_a_device_that_compiles_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = two_devices(monkeypatch, "0")
    complain_of(monkeypatch, "1")
    assert opencl._find_device(fake).name == "3"  # type: ignore[arg-type]
    complain_of(monkeypatch, "1", "3")
    with pytest.raises(BackendUnavailable, match=r"compiles a kernel here \(error: unknown target CPU 'generic'\)"):
        opencl._find_device(fake)  # type: ignore[arg-type]


class FakeCompiler(types.ModuleType):
    """An OpenCL whose compiler says what it is told to say."""

    Error = FakeError
    CompilerWarning = UserWarning
    Context = list

    def __init__(self, says: str) -> None:
        super().__init__("pyopencl")
        self.says = says

    def Program(self, context: list[object], source: str) -> FakeCompiler:
        return self

    def build(self, cache_dir: bool) -> None:
        if self.says:
            raise FakeError(self.says)


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ("", ""),
        ("failed\n\nerror: no such CPU\nmore", "error: no such CPU"),
        ("failed\n", "failed"),
        ("\n", "FakeError"),
    ],
)
def test_what_the_compiler_says_is_the_reason(says: str, complaint: str) -> None:
    assert opencl_kernel.compiler_complaint(FakeCompiler(says), "cpu") == complaint


@pytest.mark.parametrize("chosen", ["", "-1", "first"])
def test_a_device_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, chosen: str) -> None:
    fake = two_devices(monkeypatch, chosen)
    with pytest.raises(BackendUnavailable, match=f"{opencl.DEVICE}='{chosen}' is no number"):
        opencl._find_device(fake)  # type: ignore[arg-type]


def test_importing_the_module_loads_no_vendor_library() -> None:
    program = "import quiesce.backends.opencl as o, sys; o.backend(); print({'numpy', 'pyopencl'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


# -- memory ---------------------------------------------------------------------------------------------------------


def test_blocks_have_real_aligned_addresses_that_do_not_overlap(context: Context) -> None:
    alignment_bytes = backend().describe().alignment_bytes
    spans = []
    for index, size_bytes in enumerate([1, 7, 128, 1000, 4097, 1 << 20]):
        for kind in ("", " pageable"):
            start = address(context, f"b{index}{kind.strip()} = allocate {size_bytes}{kind}")
            assert start % alignment_bytes == 0
            spans.append((start, start + size_bytes))
    spans.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_fills_copies_staging_and_kernels_really_happen(context: Context) -> None:
    source = address(context, "h = allocate 300 pageable")
    device = address(context, "a = allocate 200")
    do(context, "fill h 3", "fill a 5", "copy h to a size=100", "synchronize stream")
    assert ctypes.string_at(source, 300) == bytes([3]) * 300
    assert ctypes.string_at(device, 200) == bytes([3]) * 100 + bytes([5]) * 100
    staged = address(context, "s = stage h")
    written = address(context, "w = allocate 64")
    do(context, "fill w 9", "launch reads=a,s writes=w arguments=40", "synchronize device")
    assert ctypes.string_at(staged, 300) == bytes([3]) * 300
    assert ctypes.string_at(written, 2) == bytes([3 ^ 3, 9])
    do(context, "launch", "copy a to h")


def test_the_pool_reuses_a_freed_block_and_trim_gives_it_back(context: Context) -> None:
    first = ask(context, "a = allocate 64KiB")
    assert moved(first.observations) == [BackingAllocated]
    do(context, "free a")
    again = ask(context, "b = allocate 64KiB")
    assert again.outcome == first.outcome
    assert again.observations == ()
    do(context, "free b")
    assert ledger(context.readings(), Gauge.RESERVED) >= 64 << 10
    trimmed = ask(context, "trim")
    assert moved(trimmed.observations) == [BackingFreed]
    assert ledger(context.readings(), Gauge.RESERVED) == 0


def test_a_pool_of_its_own_is_trimmed_and_destroyed_alone(context: Context) -> None:
    do(context, "p = create pool", "a = allocate 4KiB pool=p", "b = allocate 4KiB", "free a", "free b", "trim")
    cached = ledger(context.readings(), Gauge.RESERVED)
    assert cached >= 4 << 10
    do(context, "k = allocate 4KiB pool=p", "free k", "trim pool=p")
    assert ledger(context.readings(), Gauge.RESERVED) == 0
    do(context, "a = allocate 4KiB pool=p", "destroy pool p", "trim pool=p -> rejected invalid-handle")
    do(context, "free a -> rejected invalid-value")
    assert ledger(context.readings(), Gauge.RESERVED) == 0


def test_an_empty_block_is_a_block(context: Context) -> None:
    do(
        context,
        "z = allocate 0",
        "h = allocate 0 pageable",
        "fill z 1",
        "copy z to h",
        "launch writes=z",
        "x = stage h",
    )
    assert claim(context.readings(), Gauge.BLOCKS) == 3
    do(context, "free z", "free h", "free x", "trim")
    assert ledger(context.readings(), Gauge.RESERVED) == 0


@pytest.mark.parametrize("size", ["64TiB", "SIZE_MAX", "SIZE_MAX-1"])
def test_what_opencl_refuses_is_never_answered_with_memory(context: Context, size: str) -> None:
    reply = ask(context, f"a = allocate {size}")
    assert any(isinstance(seen, BackingRefused) for seen in reply.observations)
    # PyOpenCL's SVMPool does not look at clSVMAlloc's null pointer: its answer is passed on, for the oracle to judge.
    assert reply.outcome in (Allocated(0), OutOfMemory())
    if isinstance(reply.outcome, Allocated):
        assert outcome(context, "fill a 1") == Rejected("invalid-value")
        assert outcome(context, "launch writes=a") == Rejected("invalid-value")
    assert outcome(context, f"h = allocate {size} pageable") == OutOfMemory()


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["free a"], "invalid-value"),
        (["a = allocate 8", "free a", "free a"], "invalid-value"),
        (["a = allocate 8", "free a", "fill a 1"], "invalid-value"),
        (["a = allocate 8", "a = allocate 8"], "invalid-value"),
        (["a = allocate 8", "b = allocate 8", "copy a to b size=9"], "invalid-value"),
        (["a = allocate 8", "x = stage a"], "invalid-value"),
        (["a = allocate 8 pool=nope"], "invalid-value"),
        (["p = create pool", "p = create pool"], "invalid-value"),
        (["a = allocate 8 on nope"], "invalid-value"),
        (["s = create stream", "s = create stream"], "invalid-value"),
        (["s = create stream", "destroy stream s", "a = allocate 8 on s"], "invalid-handle"),
        (["s = create stream", "a = allocate 8", "destroy stream s", "free a on s"], "invalid-handle"),
        (["s = create stream", "destroy stream s", "stall s"], "invalid-handle"),
        (["query event e"], "invalid-value"),
        (["e = create event", "e = create event"], "invalid-value"),
        (["e = create event", "destroy event e", "record event e"], "invalid-handle"),
    ],
)
def test_misuse_is_rejected_and_harms_nothing(context: Context, lines: list[str], code: str) -> None:
    do(context, *lines[:-1])
    before = context.readings()
    assert outcome(context, lines[-1]) == Rejected(code)
    assert context.readings() == before


@pytest.mark.parametrize(
    "line",
    [
        "a = allocate 8 pinned",
        "a = allocate 8 managed",
        "a = allocate 8 align=4096",
        "trim pinned",
        "p = create pool limit=4096",
        "use device 1",
        "launch arguments=2097152",
        "launch instance=i",
        "launch writes=h",
        "copy h to h",
        "begin capture on s",
        "initialize",
        "fail backing 1",
        "n = node",
    ],
)
def test_what_opencl_lacks_is_unsupported_with_a_reason(context: Context, line: str) -> None:
    do(context, "h = allocate 8 pageable")
    answer = outcome(context, line)
    assert isinstance(answer, Unsupported)
    assert answer.reason


# -- order ----------------------------------------------------------------------------------------------------------


def test_a_stalled_stream_holds_its_work_until_it_is_released(context: Context) -> None:
    start = address(context, "a = allocate 64")
    do(context, "fill a 1", "synchronize device", "s = create stream", "stall s", "fill a 2 on s")
    do(context, "query stream s -> rejected not-ready", "query stream -> done")
    assert ctypes.string_at(start, 64) == bytes([1]) * 64
    do(context, "release s", "query stream s -> done")
    assert ctypes.string_at(start, 64) == bytes([2]) * 64


@pytest.mark.parametrize("forced_by", ["synchronize stream u", "synchronize event f", "synchronize device"])
def test_a_synchronisation_ends_the_stalls_it_depends_on_across_streams(context: Context, forced_by: str) -> None:
    start = address(context, "a = allocate 64")
    do(context, "fill a 0", "synchronize device")
    do(context, *(f"{name} = create stream" for name in "stuv"), "e = create event", "f = create event")
    do(context, "stall s", "fill a 7 on s", "record event e on s", "wait event e on t", "record event e on t")
    do(context, "wait event e on u", "record event f on u", "stall v")
    do(context, "query event f -> rejected not-ready", "query stream u -> rejected not-ready", forced_by)
    do(context, "query event f -> done", "query stream s -> done", "query stream u -> done")
    assert ctypes.string_at(start, 64) == bytes([7]) * 64
    held = Done() if forced_by == "synchronize device" else Rejected("not-ready")
    assert outcome(context, "query stream v") == held


def test_an_event_waits_for_its_last_record_only(context: Context) -> None:
    do(context, "s = create stream", "e = create event", "query event e -> done", "wait event e on s")
    do(context, "record event e on s", "stall s", "query event e -> done")
    do(context, "record event e on s", "query event e -> rejected not-ready", "wait event e", "destroy event e")
    do(context, "query stream -> rejected not-ready", "release s", "query stream -> done")


def test_a_block_freed_on_a_stalled_stream_reaches_its_next_user_in_order(context: Context) -> None:
    do(context, "s = create stream", "t = create stream", "p = create pool")
    first = address(context, "a = allocate 4096 on s pool=p")
    do(context, "stall s", "fill a 1 on s", "free a on s")
    assert address(context, "b = allocate 4096 on t pool=p") == first
    do(context, "fill b 2 on t", "query stream t -> rejected not-ready", "synchronize stream t")
    assert ctypes.string_at(first, 4096) == bytes([2]) * 4096


def test_memory_trimmed_behind_a_stall_stays_held_until_the_stall_ends(context: Context) -> None:
    do(context, "s = create stream", "a = allocate 4096 on s", "stall s", "fill a 1 on s", "free a")
    assert moved(ask(context, "trim").observations) == []
    readings = context.readings()
    assert ledger(readings, Gauge.RESERVED) == claim(readings, Gauge.RESERVED) > 0
    assert moved(ask(context, "release s").observations) == [BackingFreed]
    assert ledger(context.readings(), Gauge.RESERVED) == 0


def test_destroying_a_stalled_stream_neither_blocks_nor_loses_its_work(context: Context) -> None:
    start = address(context, "a = allocate 64")
    do(context, "s = create stream", "b = allocate 64 on s", "e = create event", "stall s", "fill a 4 on s")
    do(context, "record event e on s", "destroy stream s", "query event e -> rejected not-ready")
    do(context, "free b", "synchronize device", "query event e -> done")
    assert ctypes.string_at(start, 64) == bytes([4]) * 64
    assert claim(context.readings(), Gauge.STREAMS) == 0


def test_host_memory_outlives_the_copies_that_still_read_it(context: Context) -> None:
    start = address(context, "a = allocate 65536")
    do(context, "s = create stream", "h = allocate 65536 pageable", "fill h 6", "synchronize device", "stall s")
    do(context, "copy h to a on s", "free h", "g = allocate 65536 pageable", "fill g 1", "synchronize stream s")
    assert ctypes.string_at(start, 65536) == bytes([6]) * 65536


def random_lines(seed: int, count: int) -> list[str]:
    """Return requests that hold, cross and force streams in any order; many of them are refused."""
    chance = random.Random(seed)
    streams, events, blocks = ("s", "t", "u"), ("e", "f"), [f"b{index}" for index in range(6)]

    def on() -> str:
        return chance.choice(["", *(f" on {stream}" for stream in streams)])

    def line() -> str:
        stream, event, block = chance.choice(streams), chance.choice(events), chance.choice(blocks)
        return chance.choice(
            [
                f"{block} = allocate {chance.choice([64, 64, 4096])}{on()}{chance.choice(['', ' pool=p'])}",
                f"free {block}{on()}",
                f"fill {block} {chance.randrange(256)}{on()}",
                f"copy {block} to {chance.choice(blocks)}{on()} size=64",
                f"record event {event}{on()}",
                f"wait event {event}{on()}",
                f"stall {stream}",
                chance.choice([f"release {stream}", f"query stream {stream}", f"query event {event}"]),
                chance.choice(["synchronize stream", f"synchronize stream {stream}", f"synchronize event {event}"]),
                chance.choice(["trim", "trim pool=p", f"destroy stream {stream}", f"{stream} = create stream"]),
            ]
        )

    start = [f"{name} = create stream" for name in streams] + [f"{name} = create event" for name in events]
    return [*start, "p = create pool", *(line() for _ in range(count))]


def play(lines: list[str]) -> list[tuple[str, str, dict[str, int]]]:
    context = open_context()
    played = []
    for line in lines:
        kind = describe(outcome(context, line)).split(" at ")[0]
        readings = context.readings()
        assert ledger(readings, Gauge.RESERVED) == claim(readings, Gauge.RESERVED), line
        played.append((line, kind, {f"{gauge} {source}": value for (gauge, source), value in readings.items()}))
    closing = context.close().readings
    assert {value for (gauge, _), value in closing.items() if gauge is Gauge.RESERVED} == {0}
    return played


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_ends_and_answers_the_same_twice(seed: int) -> None:
    lines = random_lines(seed, 200)
    assert play(lines) == play(lines)


# -- lifetimes ------------------------------------------------------------------------------------------------------


def test_closing_releases_everything_even_behind_a_stall_and_twice(context: Context) -> None:
    do(context, "s = create stream", "a = allocate 4096 on s", "e = create event", "stall s", "fill a 1 on s")
    do(context, "record event e on s", "b = allocate 64", "launch reads=b writes=b", "h = allocate 64 pageable")
    closing = context.close()
    assert {gauge: value for (gauge, _), value in closing.readings.items() if value} == {Gauge.BACKING_CALLS: 4}
    assert moved(closing.observations) == [BackingFreed] * 3
    assert context.close() == closing
    assert context.readings() == closing.readings
    assert outcome(context, "a = allocate 8") == Rejected("invalid-value")


def test_what_the_driver_lets_go_of_late_is_not_retained(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter((2, 1, 0, 0))
    monkeypatch.setattr(type(context), "_retained", lambda _context, _own_references: next(counts))
    assert ledger(context.close().readings, Gauge.RETAINED) == 0


def test_what_the_library_leaks_is_retained_after_closing(context: Context) -> None:
    import pyopencl

    do(context, "s = create stream", "p = create pool", "a = allocate 64 on s pool=p", "free a", "destroy pool p")
    do(context, "destroy stream s", "synchronize device")
    leaks = tuple(pyopencl.VERSION) <= LEAKS_EVENTS_UP_TO
    assert (ledger(context.close().readings, Gauge.RETAINED) > 0) == leaks


def test_contexts_do_not_disturb_each_other(context: Context) -> None:
    other = open_context()
    do(context, "s = create stream", "a = allocate 4096", "stall s", "fill a 1 on s")
    before = context.readings()
    do(other, "s = create stream", "a = allocate 64KiB on s", "fill a 2 on s", "query stream s -> done", "free a")
    assert context.readings() == before
    assert ledger(other.close().readings, Gauge.RETAINED) == 0
    assert context.readings() == before
    do(context, "query stream s -> rejected not-ready", "release s", "free a")
    assert moved(ask(context, "trim").observations) == [BackingFreed]


@pytest.mark.parametrize("ending", ["", "context.close()", "del context"])
def test_a_process_ends_cleanly_with_work_pending(context: Context, ending: str) -> None:
    program = f"""
from quiesce.model.backend import DeviceProfile
from quiesce.backends.opencl import backend
from quiesce.model.requests import parse_request
context = backend().open(DeviceProfile())
for line in ("s = create stream", "t = create stream", "a = allocate 4096 on s", "b = allocate 64", "stall s",
             "fill a 1 on s", "free a on t", "launch writes=b", "destroy stream s"):
    context.perform(parse_request(line))
{ending}
print("ended")
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "ended\n", "")


# -- under the oracle ------------------------------------------------------------------------------------------------

PROGRAMS = {
    "reuse": "a = allocate 1MiB; fill a 1; free a; b = allocate 1MiB; fill b 2; free b; trim",
    "two sizes": "a = allocate 64; b = allocate 4KiB; free a; c = allocate 4KiB; free c; free b; trim",
    "empty": "z = allocate 0; free z; trim",
    "trim keeps what is owned": "a = allocate 64; b = allocate 1MiB; free b; trim; fill a 1; free a",
    "pools": "p = create pool; q = create pool; a = allocate 64 pool=p; b = allocate 64 pool=q; free a; trim pool=p",
    "pool with blocks": "p = create pool; a = allocate 64 pool=p; fill a 1; destroy pool p",
    "one stream": "s = create stream; a = allocate 64 on s; fill a 1 on s; free a; b = allocate 64 on s; fill b 2 on s",
    "reuse across streams": """s = create stream; t = create stream; p = create pool; a = allocate 64 on s pool=p;
        stall s; fill a 1 on s; free a on s; b = allocate 64 on t pool=p; fill b 2 on t; query stream t""",
    "free elsewhere": """s = create stream; t = create stream; e = create event; a = allocate 64 on s;
        stall s; fill a 1 on s; record event e on s; wait event e on t;
        free a on t; b = allocate 64 on s; launch writes=b on s""",
    "trim in flight": "s = create stream; a = allocate 64 on s; stall s; fill a 1 on s; free a; trim; release s; trim",
    "destroyed stream": """s = create stream; p = create pool; a = allocate 64 on s pool=p; stall s; fill a 1 on s;
        free a on s; destroy stream s; b = allocate 64 pool=p; fill b 2; synchronize stream; free b""",
    "copies": "a = allocate 64; b = allocate 64; s = create stream; stall s; copy a to b on s; synchronize stream s",
    "staging": """s = create stream; h = allocate 4KiB pageable; fill h 1; synchronize device; stall s;
        a = stage h on s; free h; free a; synchronize stream s""",
    "pageable reuse": "h = allocate 1MiB pageable; fill h 1; free h; g = allocate 1MiB pageable; fill g 2; free g",
    "launches": "a = allocate 64; b = allocate 64; launch reads=a writes=b; launch reads=b writes=a arguments=16",
    "events": """s = create stream; e = create event; a = allocate 64 on s; stall s; fill a 1 on s; record event e on s;
        query event e; synchronize event e; query event e; query stream s""",
    "device": "s = create stream; stall s; a = allocate 64 on s; fill a 1 on s; synchronize device; query stream s",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_oracle_finds_nothing_in_legal_programs(context: Context, name: str) -> None:
    requests = [parse_request(text) for text in PROGRAMS[name].split(";")]
    steps = [PerformStep(request, None, line) for line, request in enumerate(requests, 1)]
    trial = run_lockstep(backend(), DeviceProfile(), steps)
    assert (trial.findings, trial.unsupported) == ((), "")
    assert trial.operations >= len(requests)


def test_the_oracle_sees_that_refused_memory_was_answered_as_if_it_were_there(context: Context) -> None:
    trial = run_lockstep(backend(), DeviceProfile(), [PerformStep(parse_request("a = allocate 64TiB"), None, 1)])
    answered = isinstance(outcome(context, "a = allocate 64TiB"), Allocated)
    assert ("blocks_lie_in_the_address_space" in {finding.rule for finding in trial.findings}) == answered
