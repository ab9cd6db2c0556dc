"""Kernels that compute: compiled from the PTX of a module, run when their stream comes to them."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.kernel_programs import ADD, MakeDevice, entry, pointers_to

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.kernel_logs import read_uncomputed

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

INVALID_VALUE = 1
ALL = "0xFFFFFFFF"


def test_a_kernel_computes(device: MakeDevice) -> None:
    given = device()
    to = given.words(*range(300))
    given.ok(given.kernel(ADD, "add"), 3, 128, to, 7, 299)
    assert given.read(to, 300) == [*(value + 7 for value in range(299)), 299]
    assert (given.client.machine.ledger.launches, given.client.machine.ledger.computed) == (1, 1)


def test_functions_of_mathematics_are_called_as_they_are_written(device: MakeDevice) -> None:
    """LLVM would merge the calls of ``sinf`` and ``cosf`` into one of ``sincosf``."""
    body = (
        "cvt.rn.f32.u32 %f1, %r3;\nsin.approx.f32 %f2, %f1;\ncos.approx.f32 %f3, %f1;\nex2.approx.f32 %f4, %f1;\n"
        "mul.rn.f32 %f2, %f2, %f2;\nfma.rn.f32 %f2, %f3, %f3, %f2;\nmul.rn.f32 %f2, %f2, %f4;\n"
        "st.global.f32 [%rd1], %f2;"
    )
    given = device()
    bits = given.run(body, block=4, count=4)
    found = struct.unpack("<4f", struct.pack("<4I", *bits))
    assert found == pytest.approx([1, 2, 4, 8])
    assert given.client.machine.ledger.computed == 1


@pytest.mark.parametrize("bounds", [".maxntid 64, 2, 1", ".maxntid 128", ".reqntid 128"])
def test_a_block_has_no_more_threads_than_the_launch_bounds(device: MakeDevice, bounds: str) -> None:
    given = device()
    to = given.words(*range(300))
    function = given.kernel(ADD.replace("{", f"{bounds}\n.minnctapersm 2\n{{", 1), "add")
    assert given.launch(function, 1, 129, to, 7, 299) == INVALID_VALUE
    given.ok(function, 1, 128, to, 7, 299)
    assert given.read(to, 130) == [*(value + 7 for value in range(128)), 128, 129]


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_arguments_are_those_of_the_launch(device: MakeDevice, schedule: str) -> None:
    given = device(schedule=schedule)
    to, value = given.words(1, 1), ctypes.c_uint32(5)
    function, stream = given.kernel(ADD, "add"), given.client.make("StreamCreate")
    passed = pointers_to([ctypes.c_uint64(to), value, ctypes.c_uint32(2)])
    assert given.driver.cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, ctypes.c_void_p(stream), passed, None) == 0
    value.value = 100
    given.client.ok("StreamSynchronize", stream)
    assert given.read(to, 2) == [6, 6]


def test_arguments_in_one_buffer(device: MakeDevice) -> None:
    given = device()
    to = given.words(1, 1)
    packed = struct.pack("<QII", to, 3, 2)
    size = ctypes.c_size_t(len(packed))
    buffer = ctypes.create_string_buffer(packed)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), None)
    assert given.driver.cuLaunchKernel(given.kernel(ADD, "add"), 1, 1, 1, 2, 1, 1, 0, None, None, extra) == 0
    assert given.read(to, 2) == [4, 4]
    assert given.driver.cuLaunchKernel(given.kernel(ADD, "add"), 1, 1, 1, 2, 1, 1, 0, None, None, None) == INVALID_VALUE


def test_a_launch_that_is_put_together_call_by_call(device: MakeDevice) -> None:
    given = device()
    to, function, driver = given.words(1, 1, 1, 1), given.kernel(ADD, "add"), given.driver
    address = ctypes.c_uint64(to)
    assert driver.cuLaunchGrid(function, 1, 1) == INVALID_VALUE, "its block has no size yet"
    assert driver.cuFuncSetBlockShape(function, 2, 1, 1) == 0
    assert driver.cuFuncSetSharedSize(function, 64) == 0
    assert driver.cuParamSetv(function, 0, ctypes.byref(address), 8) == 0
    assert driver.cuParamSeti(function, 8, 5) == 0
    assert driver.cuParamSeti(function, 12, 4) == 0
    assert driver.cuParamSetSize(function, 16) == 0
    assert driver.cuLaunch(function) == 0
    assert driver.cuLaunchGrid(function, 2, 1) == 0
    assert driver.cuLaunchGridAsync(function, 2, 1, ctypes.c_void_p(given.client.make("StreamCreate"))) == 0
    given.client.ok("DeviceSynchronize")
    assert given.read(to, 4) == [16, 16, 11, 11]
    for function_name, size in (("cuParamSetSize", 4097), ("cuFuncSetBlockShape", 0)):
        assert getattr(driver, function_name)(function, size, 1, 1) == INVALID_VALUE
    assert driver.cuParamSeti(function, 4093, 1) == INVALID_VALUE
    assert driver.cuParamSeti(function, -1, 1) == INVALID_VALUE


def test_a_kernel_runs_in_the_order_of_its_stream(device: MakeDevice) -> None:
    given = device(schedule="lazy")
    to, stream = given.words(1, 1), given.client.make("StreamCreate")
    function = given.kernel(ADD, "add")
    given.ok(function, 1, 2, to, 1, 2, stream=stream)
    given.client.ok("MemsetAsync", to, 0, 4, stream)
    given.ok(function, 1, 2, to, 1, 2, stream=stream)
    given.client.ok("StreamSynchronize", stream)
    assert given.read(to, 2) == [1, 3]


def test_a_captured_kernel_runs_with_each_launch_of_its_graph(device: MakeDevice) -> None:
    given = device()
    to, stream, graph = given.words(0), given.client.make("StreamCreate"), ctypes.c_void_p()
    function = given.kernel(ADD, "add")
    given.client.ok("StreamBeginCapture", stream, 2)
    given.ok(function, 1, 1, to, 5, 1, stream=stream)
    given.client.ok("StreamEndCapture", stream, ctypes.byref(graph))
    executable = given.client.make("GraphInstantiateWithFlags", graph.value, ctypes.c_ulonglong(0))
    given.client.ok("GraphDestroy", graph.value)
    assert given.read(to, 1) == [0]
    for _ in range(3):
        given.client.ok("GraphLaunch", executable, stream)
    given.client.ok("StreamSynchronize", stream)
    assert given.read(to, 1) == [15]
    assert (given.client.machine.ledger.launches, given.client.machine.ledger.computed) == (3, 3)


def test_dimensions_are_those_of_the_launch(device: MakeDevice) -> None:
    given = device()
    body = (
        "mov.u32 %r1, %ctaid.z;\nmov.u32 %r2, %nctaid.y;\nmov.u32 %r3, %ctaid.y;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
        "mov.u32 %r2, %nctaid.x;\nmov.u32 %r3, %ctaid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
        "mov.u32 %r2, %ntid.z;\nmov.u32 %r3, %tid.z;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
        "mov.u32 %r2, %ntid.y;\nmov.u32 %r3, %tid.y;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
        "mov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
        "mul.wide.u32 %rd9, %r1, 4;\nld.param.u64 %rd1, [to];\nadd.u64 %rd1, %rd1, %rd9;\nst.global.u32 [%rd1], %r1;"
    )
    to = given.words(*[0] * 720)
    given.ok(given.kernel(entry("work", ".param .u64 to", body), "work"), (2, 3, 4), (5, 3, 2), to)
    assert given.read(to, 720) == list(range(720))


# -- memory -----------------------------------------------------------------------------------------------------------


def test_shared_memory_is_that_of_one_block(device: MakeDevice) -> None:
    body = (
        "mov.u32 %r4, %tid.x;\nmul.lo.u32 %r5, %r4, 4;\nmov.u32 %r6, numbers;\nadd.u32 %r5, %r5, %r6;\n"
        "st.shared.u32 [%r5], %r1;\nbar.sync 0;\nxor.b32 %r7, %r4, 7;\nmul.lo.u32 %r7, %r7, 4;\n"
        "add.u32 %r7, %r7, %r6;\nld.shared.u32 %r8, [%r7];\nst.global.u32 [%rd1], %r8;"
    )
    found = device().run(body, block=8, grid=4, before=".shared .align 4 .b8 numbers[32];\n")
    assert found == [block * 8 + (7 - thread) for block in range(4) for thread in range(8)]


def test_dynamic_shared_memory(device: MakeDevice) -> None:
    given = device()
    body = (
        "mov.u32 %r1, %dynamic_smem_size;\nld.param.u64 %rd1, [to];\nst.global.u32 [%rd1], %r1;\nmov.u32 %r2, room;\n"
        "st.shared.u32 [%r2+1020], %r1;\nld.shared.u32 %r3, [%r2+1020];\nst.global.u32 [%rd1+4], %r3;"
    )
    text = ".extern .shared .align 16 .b8 room[];\n" + entry("work", ".param .u64 to", body)
    to = given.words(0, 0)
    given.ok(given.kernel(text, "work"), 1, 1, to, shared_bytes=1024)
    assert given.read(to, 2) == [1024, 1024]


COUNT = ".global .align 4 .u32 counter = 5;\n" + entry("count", "", "atom.global.add.u32 %r1, [counter], 1;")


def test_a_variable_is_that_of_its_module(device: MakeDevice) -> None:
    given = device()
    modules = [given.module(COUNT), given.module(COUNT)]
    for _ in range(2):
        given.ok(given.function(modules[0], "count"), 2, 64)
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    found = []
    for module in modules:
        assert given.driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"counter") == 0
        found += given.read(address.value, 1)
    assert found == [5 + 256, 5]


def test_each_device_has_a_librarys_variables_of_its_own(device: MakeDevice) -> None:
    given = device(devices=2)
    library, kernel, found = ctypes.c_void_p(), ctypes.c_void_p(), []
    text = (".version 8.0\n.target sm_80\n.address_size 64\n" + COUNT).encode()
    assert given.driver.cuLibraryLoadData(ctypes.byref(library), text, None, None, 0, None, None, 0) == 0
    assert given.driver.cuLibraryGetKernel(ctypes.byref(kernel), library, b"count") == 0
    for number in range(2):
        given.client.ok("SetDevice", number)
        given.ok(kernel, number + 1, 32)
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        ask = given.driver.cuLibraryGetGlobal
        assert ask(ctypes.byref(address), ctypes.byref(size), library, b"counter") == 0
        found += given.read(address.value, 1)
    assert found == [5 + 32, 5 + 64]


# -- threads that wait for each other ----------------------------------------------------------------------------------


def test_threads_of_a_warp_exchange_values(device: MakeDevice) -> None:
    body = f"mov.u32 %r4, %laneid;\nshfl.sync.bfly.b32 %r5, %r4, 3, 31, {ALL};\nst.global.u32 [%rd1], %r5;"
    assert device().run(body, block=64, count=64) == [lane ^ 3 for lane in range(32)] * 2


def test_branches_of_a_warp_exchange_values_apart(device: MakeDevice) -> None:
    body = (
        "mov.u32 %r4, %laneid;\nsetp.lt.u32 %p1, %r4, 8;\n@%p1 bra low;\n"
        "vote.sync.ballot.b32 %r5, %p1, 0xFFFFFF00;\nadd.u32 %r5, %r5, 1000;\nbra end;\n"
        "low:\nvote.sync.ballot.b32 %r5, %p1, 0xFF;\nend:\nst.global.u32 [%rd1], %r5;"
    )
    assert device().run(body) == [255] * 8 + [1000] * 24


def test_a_warp_that_is_not_full(device: MakeDevice) -> None:
    body = f"mov.u32 %r4, 1;\nredux.sync.add.u32 %r5, %r4, {ALL};\nst.global.u32 [%rd1], %r5;"
    assert device().run(body, block=40) == [32] * 32


def test_a_barrier_counts_who_agrees(device: MakeDevice) -> None:
    body = "setp.lt.u32 %p1, %r1, 5;\nbar.red.popc.u32 %r5, 0, %p1;\nst.global.u32 [%rd1], %r5;"
    assert device().run(body, block=96) == [5] * 32


def test_threads_that_have_ended_are_not_waited_for(device: MakeDevice) -> None:
    body = "setp.ge.u32 %p1, %r1, 20;\n@%p1 ret;\nbar.sync 0;\nst.global.u32 [%rd1], 1;"
    assert device().run(body, block=64) == [1] * 20 + [0] * 12


def test_one_warp_arrives_and_another_one_waits(device: MakeDevice) -> None:
    body = (
        "mov.u32 %r6, word;\nsetp.lt.u32 %p1, %r1, 32;\n@!%p1 bra other;\n"
        "bar.sync 3, 64;\nld.shared.u32 %r5, [%r6];\nst.global.u32 [%rd1], %r5;\nret;\n"
        "other:\nst.shared.u32 [%r6], 77;\nbar.arrive 3, 64;"
    )
    assert device().run(body, block=64, before=".shared .align 4 .u32 word;\n") == [77] * 32


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_kernel_prints(device: MakeDevice, capfd: pytest.CaptureFixture[str]) -> None:
    text = b"%d of %5.2f|%-4s|%llx %c%%\n\0"
    before = (
        f".global .align 1 .b8 format[{len(text)}] = {{{', '.join(map(str, text))}}};\n"
        ".global .align 1 .b8 word[3] = {104, 105, 0};\n"
        ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);\n"
    )
    body = (
        ".local .align 8 .b8 values[40];\nmov.u64 %rd2, values;\ncvta.local.u64 %rd3, %rd2;\n"
        "st.local.u32 [%rd2], %r1;\n"
        "mov.b64 %rd4, 0d4004000000000000;\nst.local.u64 [%rd2+8], %rd4;\ncvta.global.u64 %rd5, word;\n"
        "st.local.u64 [%rd2+16], %rd5;\nmov.u64 %rd6, 0x123456789A;\nst.local.u64 [%rd2+24], %rd6;\n"
        "st.local.u32 [%rd2+32], 33;\ncvta.global.u64 %rd7, format;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd7; st.param.b64 [b], %rd3;\n"
        "call.uni (c), vprintf, (a, b); ld.param.b32 %r4, [c]; }\nst.global.u32 [%rd1], %r4;"
    )
    assert device().run(body, block=2, count=2, before=before) == [5, 5]
    assert capfd.readouterr().out == "0 of  2.50|hi  |123456789a !%\n1 of  2.50|hi  |123456789a !%\n"


def test_a_kernel_that_can_not_be_executed_is_named(
    device: MakeDevice, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = device()
    function = given.kernel(entry("strange", "", "frobnicate.u32 %r1, %r2;"), "strange")
    for _ in range(2):
        given.ok(function, 1, 1)
    said = capfd.readouterr().err
    assert said.count("kernel 'strange' does not compute: ") == 1
    assert "frobnicate" in said
    ledger = given.client.machine.ledger
    assert (ledger.launches, ledger.computed) == (2, 0)
    (log,) = folder.glob("*.uncomputed")
    told = read_uncomputed(log.with_suffix(".ledger"))
    assert [each.kernel for each in told] == ["strange"]
    assert "frobnicate" in told[0].reason
    log.unlink()


def test_machine_code_alone_is_not_executed(device: MakeDevice, image: Any, folder: Path) -> None:
    given, module, function = device(), ctypes.c_void_p(), ctypes.c_void_p()
    assert given.driver.cuModuleLoadData(ctypes.byref(module), image("cubin")) == 0
    assert given.driver.cuModuleGetFunction(ctypes.byref(function), module, b"counter") == 0
    given.ok(function, 1, 1)
    (log,) = folder.glob("*.uncomputed")
    (told,) = read_uncomputed(log.with_suffix(".ledger"))
    assert (told.kernel, told.reason) == ("counter", "its image has machine code only, and no PTX")
    log.unlink()


# -- first values ------------------------------------------------------------------------------------------------------

TABLES = (
    ".func (.param .b32 r) plus(.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, [n]; add.u32 %a, %a, 10; "
    "st.param.b32 [r], %a; ret; }\n"
    ".func (.param .b32 r) minus(.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, [n]; sub.u32 %a, %a, 10; "
    "st.param.b32 [r], %a; ret; }\n"
    ".const .align 4 .f32 numbers[3] = {1.5, 2.5, 3.5};\n"
    ".global .align 8 .u64 functions[2] = {plus, minus};\n"
    ".global .align 8 .u64 places[2] = {generic(numbers)+8, generic(places)};\n"
)
CALL_BY_TABLE = (
    "ld.param.u64 %rd1, [to];\nmov.u64 %rd2, functions;\nld.global.u64 %rd3, [%rd2+8];\n"
    "{ .param .b32 in; .param .b32 back; st.param.b32 [in], 52; p: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "call (back), %rd3, (in), p; ld.param.b32 %r1, [back]; }\nst.global.u32 [%rd1], %r1;\n"
    "mov.u64 %rd4, places;\nld.global.u64 %rd5, [%rd4];\nld.f32 %f1, [%rd5];\nst.global.f32 [%rd1+4], %f1;\n"
    "ld.global.u64 %rd6, [%rd4+8];\nsetp.eq.u64 %p1, %rd6, %rd4;\nselp.u32 %r2, 1, 0, %p1;\n"
    "st.global.u32 [%rd1+8], %r2;"
)


def test_variables_begin_with_addresses(device: MakeDevice) -> None:
    given = device()
    module = given.module(TABLES + entry("work", ".param .u64 to", CALL_BY_TABLE) + ADD)
    to = given.words(0, 0, 0)
    given.ok(given.function(module, "work"), 1, 1, to)
    assert given.read(to, 3) == [42, struct.unpack("<I", struct.pack("<f", 3.5))[0], 1]
    # what a program writes there stays
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    assert given.driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"functions") == 0
    assert size.value == 16
    given.client.ok("Memcpy", address.value + 8, address.value, 8, 3)
    given.ok(given.function(module, "work"), 1, 1, to)
    assert given.read(to, 1) == [62]


def test_the_host_reads_a_first_value_that_only_the_compiler_can_tell(device: MakeDevice) -> None:
    given = device()
    module = given.module(TABLES + ADD)
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    assert given.driver.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), module, b"numbers") == 0
    assert given.read(address.value, 3) == list(struct.unpack("<3I", struct.pack("<3f", 1.5, 2.5, 3.5)))
