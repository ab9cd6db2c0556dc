"""Accesses of kernels that are judged: each rule has a kernel that breaks it, and next to it one that does not."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import entry

from quiesce.model.program_rules import (
    KERNELS_ALIGNED,
    KERNELS_INSIDE,
    KERNELS_INSIDE_SHARED,
    KERNELS_KEEP_READ_ONLY,
    KERNELS_NOT_FREED,
    KERNELS_OWN_DEVICE,
    KERNELS_READ_WRITTEN,
)
from quiesce.simulator.runtime.build import SOURCES, find_compiler
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.ledger import Seen

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

ILLEGAL_ADDRESS, MISALIGNED = 700, 716
READ_WRITE, READ = 3, 1
GRANULE = 2 << 20
RELAXED = 2

MakeDevice = Callable[..., Checked]

LOAD = "ld.global.u32 %r2, [%rd1{}];"
STORE = "st.global.u32 [%rd1{}], 7;"
NO_BYTES = "{ .shared .align 16 .b8 room[16]; cp.async.ca.shared.global [room], [%rd1+4096], 16, 0; }"


# -- blocks of memory -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [LOAD, STORE, "atom.global.add.u32 %r2, [%rd1{}], 1;"])
@pytest.mark.parametrize(
    ("offset", "where"),
    [
        ("+400", "directly after the end of a device block of 400 bytes"),
        ("+408", "8 bytes after the end of a device block of 400 bytes"),
        ("+-4", "4 bytes before the start of a device block of 400 bytes"),
    ],
)
def test_accesses_outside_a_block(checked: MakeDevice, body: str, offset: str, where: str) -> None:
    given = checked()
    words = given.words(*range(100))
    given.work(body.format("+396"), words)
    given.work(body.format(""), words)
    given.work(NO_BYTES, words)
    assert given.rules() == []
    given.work(body.format(offset), words)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_INSIDE
    assert where in finding.observed
    assert [site.role for site in finding.call_sites] == ["allocated by", "launched by"]


def test_an_access_that_begins_inside_and_ends_outside(checked: MakeDevice) -> None:
    given = checked()
    words = given.words(*range(3))
    given.work("ld.global.v2.u32 {%r2, %r3}, [%rd1];", words)
    assert given.rules() == []
    given.work("ld.global.v2.u32 {%r2, %r3}, [%rd1+8];", words)
    (finding,) = given.findings()
    assert "of which 4 bytes lie after the end of a device block of 12 bytes" in finding.observed


def test_a_finding_names_kernel_thread_and_line(checked: MakeDevice) -> None:
    given = checked()
    words = given.words(*range(70))
    body = (
        ".loc 1 7 3\nmov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r2, %r2, 64, %r1;\nmul.wide.u32 %rd2, %r2, 4;\n"
        "add.u64 %rd1, %rd1, %rd2;\n.loc 1 9 3\nst.global.u32 [%rd1], %r2;"
    )
    given.work(body, words, block=64, grid=2, before='.file 1 "/source/fill.cu"\n')
    (finding,) = given.findings()
    assert "kernel 'work' writes 4 bytes" in finding.observed
    assert "in thread (6, 0, 0) of block (1, 0, 0), at /source/fill.cu:9" in finding.observed
    assert (finding.request, finding.seen) == ("work at /source/fill.cu:9", 58)
    assert given.read(words, 70) == list(range(70)), "wrong stores change nothing"


def test_a_finding_names_the_line_that_code_is_inlined_at(checked: MakeDevice) -> None:
    given = checked()
    files = '.file 1 "/source/fill.cu"\n.file 2 "/source/put.cuh"\n.file 3 "/source/store.cuh"\n'
    inner = (
        ".loc 1 9 3\n.loc 2 5 1, function_name name, inlined_at 1 9 3\n"
        ".loc 3 2 1, function_name name+4, inlined_at 2 5 1\nst.global.u32 [%rd1], %r1;\n"
    )
    given.work(inner + ".loc 1 10 3\nst.global.u32 [%rd1], %r1;\n", given.words(1) + 4, before=files)
    assert [each.request for each in given.findings()] == [
        "work at /source/store.cuh:2, inlined at /source/fill.cu:9",
        "work at /source/fill.cu:10",
    ]


def test_findings_about_one_launch_have_its_number(checked: MakeDevice) -> None:
    given = checked()
    words = given.words(*range(4))
    given.work(LOAD.format("+16") + STORE.format("+20"), words)
    given.work(STORE.format("+24"), words)
    first, second = (record.number for record in given.client.seen(Seen.LAUNCHED))
    findings = given.findings()
    assert [finding.operation_index for finding in findings] == [first, first, second]
    assert [finding.call_sites[-1].number for finding in findings] == [first, first, second]


def test_a_finding_about_a_graph_has_the_number_of_its_launch(checked: MakeDevice) -> None:
    given = checked()
    words, stream, graph = given.words(*range(4)), given.client.make("StreamCreate"), ctypes.c_void_p()
    given.client.ok("StreamBeginCapture", stream, RELAXED)
    given.work(STORE.format("+16"), words, stream=stream)
    given.client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    executable = given.client.make("GraphInstantiate", graph, 0)
    for _ in range(2):
        given.client.ok("GraphLaunch", executable, stream)
        given.client.ok("StreamSynchronize", stream)
    first, _ = (record.number for record in given.client.seen(Seen.LAUNCHED))
    (finding,) = given.findings()
    assert (finding.operation_index, finding.seen) == (first, 2)


def test_a_finding_names_the_test_that_launched_the_kernel(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = checked(schedule="lazy")
    words = given.words(*range(4))
    for name in ("test_one.py::test_a[x y] (call)", "test_one.py::test_b (setup)", "test_one.py::test_b (call)", ""):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", name)
        given.work(STORE.format("+16"), words)
    given.client.ok("DeviceSynchronize")
    with_test, without = given.findings()
    assert with_test.tests == ("test_one.py::test_a[x y]", "test_one.py::test_b")
    assert (with_test.seen, without.seen, without.tests) == (3, 1, ())


def test_more_mistakes_than_are_remembered(checked: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    given = checked()
    words, count = given.words(*range(4)), 5_000
    for number in [*range(count), count - 1, 0]:
        monkeypatch.setenv("PYTEST_CURRENT_TEST", f"test_one.py::test_{number} (call)")
        given.work(STORE.format("+16"), words)
    (finding,) = given.findings()
    assert (finding.seen, len(finding.tests)) == (count + 2, count)


def test_without_lines_of_the_source_it_names_the_instruction(checked: MakeDevice) -> None:
    given = checked()
    given.work(LOAD.format("+4"), given.words(1))
    (finding,) = given.findings()
    assert "at 'ld.global.u32 %r2, [%rd1+4]' (line 12 of its PTX)" in finding.observed


def test_a_wrong_load_gives_zero(checked: MakeDevice) -> None:
    given = checked()
    words = given.words(5, 6)
    given.work("ld.global.u32 %r2, [%rd1+8];\nst.global.u32 [%rd1], %r2;", words)
    assert given.read(words, 2) == [0, 6]


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_memory_that_was_freed(checked: MakeDevice, schedule: str) -> None:
    given = checked(schedule=schedule)
    words = given.words(*range(16))
    given.work(LOAD.format(""), words)
    given.client.ok("Free", words)
    assert given.rules() == []
    given.work(LOAD.format("+8"), words)
    given.client.ok("DeviceSynchronize")
    (finding,) = given.findings()
    assert finding.rule == KERNELS_NOT_FREED
    assert "8 bytes into a block that was freed before" in finding.observed
    assert [site.role for site in finding.call_sites] == ["allocated by", "freed by", "launched by"]


def test_memory_is_freed_when_its_stream_comes_to_the_free(checked: MakeDevice) -> None:
    given = checked(schedule="lazy")
    stream = given.client.make("StreamCreate")
    address = given.client.make("MallocAsync", 64, ctypes.c_void_p(stream))
    given.work(STORE.format("") + LOAD.format(""), address, stream=stream)
    given.client.ok("FreeAsync", address, stream)
    given.client.ok("StreamSynchronize", stream)
    assert given.rules() == []
    given.work(LOAD.format(""), address, stream=stream)
    given.client.ok("StreamSynchronize", stream)
    assert given.rules() == [KERNELS_NOT_FREED]


@pytest.mark.parametrize(("bytes_", "type_"), [(2, "u16"), (4, "u32"), (8, "u64")])
def test_misaligned_addresses(checked: MakeDevice, bytes_: int, type_: str) -> None:
    given = checked()
    words = given.words(*range(16))
    register = "%rd3" if bytes_ == 8 else "%r2"
    body = f"ld.global.{type_} {register}, [%rd1+{{}}];"
    given.work(body.format(bytes_), words)
    assert given.rules() == []
    given.work(body.format(bytes_ // 2), words)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_ALIGNED
    assert f"which is not a multiple of {bytes_}" in finding.observed


# -- what was written -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "verb"),
    [(LOAD.format("+16"), "reads 4 bytes"), ("red.global.add.u32 [%rd1], 1;", "reads and writes 4 bytes")],
)
def test_reads_of_what_nobody_wrote(checked: MakeDevice, body: str, verb: str) -> None:
    given = checked()
    given.work(body, given.client.make("Malloc", 64))
    (finding,) = given.findings()
    assert finding.rule == KERNELS_READ_WRITTEN
    assert verb in finding.observed
    assert "which nobody has written" in finding.observed


@pytest.mark.parametrize("writer", ["copy", "fill", "kernel", "byte", "managed", "pinned"])
def test_reads_of_what_somebody_wrote(checked: MakeDevice, writer: str) -> None:
    given = checked()
    if writer == "managed":
        address = given.client.make("MallocManaged", 64, 1)
    elif writer == "pinned":
        address = given.client.make("HostAlloc", 64, 0)
    else:
        address = given.client.make("Malloc", 64)
    match writer:
        case "copy":
            given.client.ok("Memcpy", address + 16, given.words(1, 2), 4, 3)
        case "fill":
            given.client.ok("Memset", address + 16, 0, 4)
        case "kernel":
            given.work(STORE.format("+16"), address)
        case "byte":  # padding is no mistake: one byte of the access is enough
            given.client.ok("Memset", address + 18, 0, 1)
    given.work(LOAD.format("+16"), address)
    assert given.rules() == []


def test_a_block_that_lies_where_another_one_did_is_not_written(checked: MakeDevice) -> None:
    given = checked(recycle="eager")
    words = given.words(*range(16))
    given.client.ok("Free", words)
    assert given.client.make("Malloc", 64) == words
    given.work(LOAD.format(""), words)
    assert given.rules() == [KERNELS_READ_WRITTEN]


def test_what_a_kernel_that_is_not_executed_should_have_written(checked: MakeDevice) -> None:
    given = checked()
    address = given.client.make("Malloc", 64)
    given.ok(given.kernel(entry("strange", "", "frobnicate.u32 %r1, %r2;"), "strange"), 1, 1)
    given.work(LOAD.format(""), address)
    assert given.rules() == []


# -- other memory -----------------------------------------------------------------------------------------------------


def test_memory_of_the_host(checked: MakeDevice) -> None:
    given = checked()
    host = ctypes.create_string_buffer(8192)
    page = -(-ctypes.addressof(host) // 4096) * 4096
    given.client.ok("HostRegister", page, 4096, 0)
    given.work(LOAD.format("") + STORE.format(""), page)
    assert given.rules() == []
    given.client.ok("HostUnregister", page)
    given.work(LOAD.format(""), page)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_OWN_DEVICE
    assert "which is no memory of a device" in finding.observed


@pytest.mark.parametrize("address", [0, 8, 0xDDDDDDDDDDDDDDD8, 0x00007FFFFFFFFFF8, 0xFFFFFFFFFFFFFFF8])
def test_addresses_where_no_memory_is(checked: MakeDevice, address: int) -> None:
    given = checked()
    given.work(LOAD.format(""), address)
    given.work(STORE.format(""), address)
    assert given.rules() == [KERNELS_OWN_DEVICE] * 2


def test_memory_of_another_device(checked: MakeDevice) -> None:
    given = checked(devices=2)
    words = given.words(*range(4))
    given.client.ok("SetDevice", 1)
    given.work(LOAD.format(""), words)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_OWN_DEVICE
    assert "which device 1 has no access to" in finding.observed
    given.client.ok("DeviceEnablePeerAccess", 0, 0)
    given.client.ok("SetDevice", 0)
    given.client.ok("DeviceSynchronize")
    given.client.ok("SetDevice", 1)
    given.work(STORE.format("+4") + LOAD.format("+4"), words)
    assert len(given.findings()) == 1


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_memory_of_another_devices_pool(checked: MakeDevice, schedule: str) -> None:
    """A pool lets a device use its memory (``cudaMemPoolSetAccess``), whatever is enabled between the devices."""
    given = checked(devices=2, schedule=schedule)
    client, size = given.client, ctypes.c_size_t(16)
    made = [ctypes.c_void_p(), ctypes.c_void_p()]
    for block in made:
        client.ok("MallocAsync", ctypes.byref(block), size, None)
    first, second = (block.value or 0 for block in made)
    client.ok("MemsetAsync", first, 0, size, None)
    client.ok("MemsetAsync", second, 0, size, None)
    client.ok("DeviceSynchronize")
    client.ok("SetDevice", 1)
    given.work(LOAD.format(""), first)
    client.ok("DeviceSynchronize")
    assert given.rules() == [KERNELS_OWN_DEVICE]
    pool = client.make("DeviceGetDefaultMemPool", 0)
    client.ok("MemPoolSetAccess", pool, (ctypes.c_int * 3)(1, 1, READ_WRITE), ctypes.c_size_t(1))
    stream = client.make("StreamCreate")
    given.work(LOAD.format("") + STORE.format("+4"), first, stream=stream)
    given.work(LOAD.format(""), second, stream=stream)
    client.ok("FreeAsync", first, stream)
    client.ok("StreamSynchronize", stream)
    assert given.rules() == [KERNELS_OWN_DEVICE]
    client.ok("SetDevice", 0)
    other = given.words(1)
    client.ok("SetDevice", 1)
    given.work(STORE.format(""), other)
    client.ok("DeviceSynchronize")
    assert given.rules() == [KERNELS_OWN_DEVICE] * 2, "it is of no pool"


def test_mapped_memory_and_its_rights(checked: MakeDevice) -> None:
    given = checked()
    driver, address, handle = given.driver, ctypes.c_uint64(), ctypes.c_uint64()
    properties = (ctypes.c_int * 8)(1, 0, 1, 0)
    assert driver.cuMemAddressReserve(ctypes.byref(address), ctypes.c_size_t(2 * GRANULE), 0, 0, 0) == 0
    assert driver.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(GRANULE), properties, 0) == 0
    assert driver.cuMemMap(address, ctypes.c_size_t(GRANULE), 0, handle, 0) == 0
    for rights in (READ_WRITE, READ):
        access = (ctypes.c_int * 3)(1, 0, rights)
        assert driver.cuMemSetAccess(address, ctypes.c_size_t(GRANULE), access, ctypes.c_size_t(1)) == 0
        given.work(LOAD.format("+64"), address.value)
        assert given.rules() == []
        if rights == READ_WRITE:
            given.work(STORE.format("+64"), address.value)
    given.work(STORE.format("+64"), address.value)
    assert given.rules() == [KERNELS_KEEP_READ_ONLY]
    given.work(LOAD.format(""), address.value + GRANULE)
    assert given.rules() == [KERNELS_KEEP_READ_ONLY, KERNELS_INSIDE]
    given.client.ok("DeviceSynchronize")
    assert driver.cuMemUnmap(address, ctypes.c_size_t(GRANULE)) == 0
    given.work(LOAD.format(""), address.value)
    assert given.rules()[2:] == [KERNELS_NOT_FREED]


# -- shared memory ----------------------------------------------------------------------------------------------------


def test_shared_memory(checked: MakeDevice) -> None:
    given = checked()
    before = ".shared .align 4 .b8 numbers[128];\n"
    body = "mov.u32 %r2, numbers;\nmad.lo.u32 %r2, %r1, 4, %r2;\nst.shared.u32 [%r2{}], %r1;"
    given.work(body.format(""), block=32, before=before)
    assert given.rules() == []
    given.work(body.format("+4"), block=32, before=before)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_INSIDE_SHARED
    assert "at byte 128 of shared memory, of which a block has 128 bytes, in thread (31, 0, 0)" in finding.observed


def test_shared_memory_by_generic_addresses(checked: MakeDevice) -> None:
    given = checked()
    before = ".shared .align 4 .b8 numbers[128];\n"
    body = "mov.u64 %rd1, numbers;\ncvta.shared.u64 %rd1, %rd1;\nst.u32 [%rd1], 5;\nld.u32 %r2, [%rd1+124];"
    given.work(body, before=before)
    assert given.rules() == []


# -- as on a device ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "status"), [("+400", ILLEGAL_ADDRESS), ("+2", MISALIGNED)])
def test_a_wrong_access_breaks_the_device_where_that_is_asked_for(
    checked: MakeDevice, offset: str, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    given = checked(stop=1)
    words = given.words(*range(100))
    given.work(LOAD.format("+4"), words)
    given.client.ok("DeviceSynchronize")
    given.work("st.global.u32 [%rd1+8], 77;\n" + LOAD.format(offset) + STORE.format(""), words, answer=status)
    assert given.client.call("DeviceSynchronize") == status
    assert given.client.call("DeviceSynchronize") == status, "it stays broken"
    assert "kernel 'work' used" in capfd.readouterr().err
    assert len(given.findings()) == 1


# -- numbers that compiler and runtime share --------------------------------------------------------------------------


def test_the_bits_are_where_the_compiler_looks_for_them(tmp_path: Path) -> None:
    import subprocess

    from quiesce.simulator.kernels.translation.checks import CONSTANTS_BYTES, CONSTANTS_OFFSET, MEMORY_BYTES
    from quiesce.simulator.kernels.translation.program import MEMORY_BASE

    source = tmp_path / "numbers.c"
    source.write_text(
        '#include <stdio.h>\n#include "memory/shadow.h"\n'
        'int main(void) { printf("%llu %llu ", MEMORY_BASE_USUAL, SHADOW_COVERS);\n'
        'printf("%llu %llu", MEMORY_PAGE_BYTES + BANK_CONSTANTS * ARENA_BYTES, ARENA_BYTES); }\n'
    )
    subprocess.run([*find_compiler(), f"-I{SOURCES}", str(source), "-o", str(tmp_path / "numbers")], check=True)
    told = subprocess.run([tmp_path / "numbers"], check=True, capture_output=True, text=True).stdout
    assert told == f"{MEMORY_BASE} {MEMORY_BYTES} {CONSTANTS_OFFSET} {CONSTANTS_BYTES}"
