"""Races of kernels with other kernels, copies, fills and frees: by the bytes that they touched, and nothing else."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.conftest import Start
from tests.simulator.kernel_programs import TO_DEVICE, TO_HOST

from quiesce.model.program_rules import ORDERED
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime import kernel_logs as reader
from quiesce.simulator.runtime.build import SOURCES, find_compiler
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
NON_BLOCKING, RELAXED = 1, 2
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

OWN = "mul.wide.u32 %rd9, %r1, {stride};\nadd.u64 %rd1, %rd1, %rd9;\n"
"""Has each thread use a place of its own."""
STORE = OWN.format(stride=4) + "st.global.u32 [%rd1], %r1;"
LOAD = OWN.format(stride=4) + "ld.global.u32 %r2, [%rd1];"
ATOMIC = "red.global.add.u32 [%rd1], 1;"
VOLATILE_LOAD = "ld.volatile.global.u32 %r2, [%rd1];"
VOLATILE_STORE = "st.volatile.global.u32 [%rd1], 1;"


class Streams:
    """A device with 64 words and two streams, which have no order unless somebody makes one."""

    def __init__(self, given: Checked) -> None:
        self.given = given
        self.ok = given.client.ok
        self.words = given.words(*range(64))
        self.first, self.second = (given.client.make("StreamCreateWithFlags", NON_BLOCKING) for _ in range(2))
        self.pinned = given.client.make("MallocHost", 256)
        self.ok("DeviceSynchronize")

    def work(self, body: str, stream: int, *, at: int = 0, block: int = 64, before: str = "") -> None:
        """Launch a kernel that begins so many bytes into the words."""
        self.given.work(body, self.words + at, stream=stream, block=block, before=before)

    def event(self, stream: int) -> int:
        """Return an event that was recorded on a stream."""
        made = self.given.client.make("EventCreate")
        self.ok("EventRecord", made, stream)
        return made

    def copy_out(self, stream: int) -> None:
        """Copy the words to the host."""
        self.ok("MemcpyAsync", self.pinned, self.words, 256, TO_HOST, stream)

    def copy_in(self, stream: int) -> None:
        """Copy bytes of the host to the words."""
        self.ok("MemcpyAsync", self.words, self.pinned, 256, TO_DEVICE, stream)

    def fill(self, stream: int) -> None:
        """Fill the words."""
        self.ok("MemsetAsync", self.words, 7, 256, stream)


@pytest.fixture
def streams(checked: MakeDevice) -> Streams:
    return Streams(checked())


# -- what meets --------------------------------------------------------------------------------------------------------


def write(streams: Streams, stream: int) -> None:
    streams.work(STORE, stream)


def read(streams: Streams, stream: int) -> None:
    streams.work(LOAD, stream)


def count(streams: Streams, stream: int) -> None:
    streams.work(ATOMIC, stream)


def watch(streams: Streams, stream: int) -> None:
    streams.work(VOLATILE_LOAD, stream)


def announce(streams: Streams, stream: int) -> None:
    streams.work(VOLATILE_STORE, stream)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (write, read),
        (read, write),
        (write, write),
        (write, count),
        (count, read),
        (watch, write),
        (announce, read),
        (write, Streams.copy_out),
        (Streams.copy_in, read),
        (read, Streams.copy_in),
        (write, Streams.fill),
        (count, Streams.fill),
        (count, Streams.copy_out),
        (Streams.fill, read),
    ],
)
def test_uses_without_order_race(streams: Streams, one: Callable[..., None], other: Callable[..., None]) -> None:
    one(streams, streams.first)
    streams.ok("StreamWaitEvent", streams.second, streams.event(streams.first), 0)
    other(streams, streams.second)
    streams.ok("DeviceSynchronize")
    assert streams.given.rules() == []
    one(streams, streams.first)
    other(streams, streams.second)
    assert streams.given.rules() == [ORDERED]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (read, read),
        (read, Streams.copy_out),
        (Streams.copy_out, read),
        (count, count),
        (announce, watch),
        (watch, Streams.copy_in),
        (announce, Streams.copy_out),
    ],
)
def test_these_may_meet(streams: Streams, one: Callable[..., None], other: Callable[..., None]) -> None:
    one(streams, streams.first)
    other(streams, streams.second)
    assert streams.given.rules() == []


def test_a_free_comes_too_early(streams: Streams) -> None:
    for waits in (True, False):
        block = streams.given.client.make("MallocAsync", 256, streams.first)
        streams.given.work(STORE, block, stream=streams.first, block=64)
        if waits:
            streams.ok("StreamWaitEvent", streams.second, streams.event(streams.first), 0)
        assert streams.given.rules() == []
        streams.ok("FreeAsync", block, streams.second)
    (finding,) = streams.given.findings()
    assert finding.rule == ORDERED
    assert "kernel 'work' writes them" in finding.observed


@pytest.mark.parametrize("waits", [False, True])
def test_an_allocation_is_a_use_that_a_wait_for_the_device_completes(streams: Streams, waits: bool) -> None:
    streams.ok("DeviceSynchronize")
    block = streams.given.client.make("MallocAsync", 256, streams.first)
    if waits:
        streams.ok("DeviceSynchronize")
    streams.given.work(STORE, block, stream=streams.second, block=64)
    assert streams.given.rules() == ([] if waits else [ORDERED])


def test_a_pool_hands_memory_to_another_stream_too_early(streams: Streams) -> None:
    streams.work(LOAD, streams.first)  # an array that is given back to its pool at once
    streams.work(STORE, streams.second)  # by another stream, that got the same memory
    (finding,) = streams.given.findings()
    assert finding.expected.startswith("kernel 'work' (call ")


# -- order -------------------------------------------------------------------------------------------------------------


def one_stream(streams: Streams) -> int:
    return streams.first


def an_event(streams: Streams) -> int:
    streams.ok("StreamWaitEvent", streams.second, streams.event(streams.first), 0)
    return streams.second


def a_wait_of_the_host(streams: Streams) -> int:
    streams.ok("StreamSynchronize", streams.first)
    return streams.second


def a_wait_for_an_event(streams: Streams) -> int:
    streams.ok("EventSynchronize", streams.event(streams.first))
    return streams.second


def a_query(streams: Streams) -> int:
    while streams.given.client.call("StreamQuery", streams.first):
        pass
    return streams.second


def a_host_function(streams: Streams) -> int:
    told = threading.Event()
    called = HOST_FUNCTION(lambda _: told.set())
    streams.ok("LaunchHostFunc", streams.first, called, None)
    streams.given.client.call("StreamQuery", streams.second)
    assert told.wait(60)
    return streams.second


@pytest.mark.parametrize("schedule", ["eager", "lazy", "seeded"])
@pytest.mark.parametrize(
    "order", [one_stream, an_event, a_wait_of_the_host, a_wait_for_an_event, a_query, a_host_function]
)
def test_what_is_in_order_does_not_race(checked: MakeDevice, order: Callable[[Streams], int], schedule: str) -> None:
    streams = Streams(checked(schedule=schedule))
    streams.work(STORE, streams.first)
    streams.work(STORE, order(streams))
    streams.copy_out(streams.second if order is not one_stream else streams.first)
    streams.ok("DeviceSynchronize")
    assert streams.given.rules() == []


@pytest.mark.parametrize("schedule", ["lazy", "seeded"])
def test_races_do_not_depend_on_the_schedule(checked: MakeDevice, schedule: str) -> None:
    streams = Streams(checked(schedule=schedule))
    streams.work(STORE, streams.first)
    streams.work(LOAD, streams.second)
    streams.ok("DeviceSynchronize")
    assert streams.given.rules() == [ORDERED]


def test_the_legacy_default_stream_comes_between(checked: MakeDevice) -> None:
    given = checked()
    words = given.words(*range(64))
    blocking = given.client.make("StreamCreate")
    given.work(STORE, words, stream=blocking, block=64)
    given.work(LOAD, words, block=64)
    given.work(STORE, words, stream=blocking, block=64)
    assert given.rules() == []


def test_per_thread_default_streams(checked: MakeDevice) -> None:
    given = checked()
    per_thread = 2
    words = given.words(*range(64))
    given.work(STORE, words, stream=per_thread, block=64)
    given.work(LOAD, words, block=64)
    assert given.rules() == []
    apart = given.client.make("StreamCreateWithFlags", NON_BLOCKING)
    given.client.ok("DeviceSynchronize")
    given.work(STORE, words, stream=per_thread, block=64)
    given.work(LOAD, words, stream=apart, block=64)
    assert given.rules() == [ORDERED]


def test_launches_of_graphs(streams: Streams) -> None:
    streams.ok("StreamBeginCapture", streams.first, RELAXED)
    streams.work(STORE, streams.first)
    graph = ctypes.c_void_p()
    assert streams.given.client.call("StreamEndCapture", streams.first, ctypes.byref(graph)) == 0
    executable = streams.given.client.make("GraphInstantiateWithFlags", graph.value, 0)
    streams.ok("GraphLaunch", executable, streams.first)
    streams.ok("GraphLaunch", executable, streams.first)
    streams.ok("StreamSynchronize", streams.first)
    streams.work(LOAD, streams.second)
    streams.ok("StreamSynchronize", streams.second)
    assert streams.given.rules() == []
    streams.ok("GraphLaunch", executable, streams.first)
    streams.work(LOAD, streams.second)
    assert streams.given.rules() == [ORDERED]


def test_nothing_is_said_after_a_wait_for_a_value(streams: Streams) -> None:
    driver, at_least = streams.given.driver, 0
    ready = streams.given.client.make("MallocHost", 4)
    ctypes.c_uint32.from_address(ready).value = 0
    streams.work(STORE, streams.first)
    wait = (ctypes.c_void_p(streams.second), ctypes.c_uint64(ready), ctypes.c_uint32(1), at_least)
    assert driver.cuStreamWaitValue32_v2(*wait) == 0
    write = (ctypes.c_void_p(streams.first), ctypes.c_uint64(ready), ctypes.c_uint32(1), 0)
    assert driver.cuStreamWriteValue32_v2(*write) == 0
    streams.work(LOAD, streams.second)
    streams.ok("DeviceSynchronize")
    judgement = judge(streams.given.client.machine.ledger, AtExit.NONE, touched=streams.given.client.machine.touched)
    assert judgement.findings == ()
    assert any("races were not judged from call" in note for note in judgement.notes)


# -- kernels that wait for each other ----------------------------------------------------------------------------------


def test_kernels_that_signal_each_other_are_in_order(streams: Streams) -> None:
    streams.work("st.global.u32 [%rd1], 7;\nst.release.gpu.global.u32 [%rd1+4], 1;", streams.first, block=1)
    streams.work("ld.acquire.gpu.global.u32 %r2, [%rd1+4];\nld.global.u32 %r3, [%rd1];", streams.second, block=1)
    assert streams.given.rules() == []


def test_a_counter_of_both_orders_nothing(streams: Streams) -> None:
    for stream in (streams.first, streams.second):
        streams.work("st.global.u32 [%rd1], 7;\natom.global.add.u32 %r9, [%rd1+4], 1;", stream, block=1)
    assert streams.given.rules() == [ORDERED]


# -- what is said ------------------------------------------------------------------------------------------------------


def test_a_finding_names_both_kernels_and_lines(streams: Streams) -> None:
    file = '.file 1 "/source/two.cu"\n'
    streams.work(f".loc 1 3 1\n{STORE}", streams.first, at=16, block=4, before=file)
    streams.work(f".loc 1 8 1\n{LOAD}", streams.second, block=8, before=file)
    (finding,) = streams.given.findings()
    at = streams.words + 16
    assert finding.observed == (
        f"nothing orders the two, and both use 16 bytes at {at:#x}, 16 bytes into a device block of 256 bytes; "
        "kernel 'work' writes them at /source/two.cu:3; kernel 'work' reads them at /source/two.cu:8"
    )
    assert finding.request == "work at /source/two.cu:8"
    assert [site.role for site in finding.call_sites] == ["allocated by", "earlier use", "later use"]


def test_layouts_are_the_same(tmp_path: Path) -> None:
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    kinds = [f"TOUCH_{touch.name}" for touch in reader.Touch]
    names = ["sizeof(struct touched_piece)", "sizeof(struct touched_launch)", "TOUCHED_LAYOUT", "TOUCHES", *kinds]
    shown = ", ".join(f"(int)({name})" for name in names)
    main = f'int main(void) {{ printf("{"%d " * len(names)}", {shown}); }}'
    source.write_text(f'#include <stdio.h>\n#include "kernels/touched.h"\n{main}\n', encoding="utf-8")
    subprocess.run([*find_compiler(), f"-I{SOURCES}", str(source), "-o", str(program)], check=True)
    numbers = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    sizes = (reader.PIECE.size, reader.LAUNCH.size, reader.LAYOUT, len(reader.Touch))
    assert list(map(int, numbers)) == [*sizes, *reader.Touch]
    text = (SOURCES / "kernels/touched.c").read_text(encoding="utf-8")
    assert f"{reader.MAGIC:x}" in text.lower()


def test_without_checks_nothing_is_known_of_kernels(start: Start) -> None:
    client = start("cuda:12", kernels=1, checks=0)
    assert client.machine.touched.of(0) is None
