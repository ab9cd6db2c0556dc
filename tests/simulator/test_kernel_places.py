"""How findings about kernels name memory and code: variables, null pointers, indices of 32 bits, headers, sources."""

from __future__ import annotations

import base64
import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.conftest import Start
from tests.simulator.test_registered_variables import Binary, text

from quiesce.model.findings import is_of_toolkit
from quiesce.model.program_rules import INSIDE, KERNELS_INSIDE, KERNELS_OWN_DEVICE
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.device_code import DeviceCode, ProgramSources, keep_sources, name_in_source
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

needs_kernels = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]

LOAD: Final = "ld.global.u32 %r2, [%rd1{}];"
STORE: Final = "st.global.u32 [%rd1{}], 7;"
TABLE: Final = ".visible .global .align 4 .b8 _ZN2ns5tableE[64];\n.const .align 4 .b8 limits[8] = {1, 2};\n"


# -- variables ---------------------------------------------------------------------------------------------------------


@needs_kernels
@pytest.mark.parametrize(
    ("body", "where"),
    [
        ("ld.global.u32 %r2, [_ZN2ns5tableE+64];", "directly after the end of variable 'ns::table' of 64 bytes"),
        ("st.global.u32 [_ZN2ns5tableE+-4], 1;", "4 bytes before the start of variable 'ns::table' of 64 bytes"),
        ("ld.const.u32 %r2, [limits+12];", "4 bytes after the end of variable 'limits' of 8 bytes"),
    ],
)
def test_a_variable_has_its_name(checked: MakeDevice, body: str, where: str) -> None:
    given = checked()
    given.work("ld.global.u32 %r2, [_ZN2ns5tableE+60];\nld.const.u32 %r3, [limits+4];", before=TABLE)
    assert given.rules() == []
    given.work(body, before=TABLE)
    (finding,) = given.findings()
    assert (finding.rule, finding.allocated_by) == (KERNELS_INSIDE, "")
    assert where in finding.observed
    assert [site.role for site in finding.call_sites] == ["launched by"]


@needs_kernels
def test_memory_where_a_variable_was_has_not_its_name(checked: MakeDevice) -> None:
    given = checked(recycle="eager")
    module, table, size = given.module(TABLE), ctypes.c_uint64(), ctypes.c_size_t()
    assert given.driver.cuModuleGetGlobal_v2(ctypes.byref(table), ctypes.byref(size), module, b"_ZN2ns5tableE") == 0
    given.work(LOAD.format("+64"), table.value)
    assert given.driver.cuModuleUnload(module) == 0
    given.work(LOAD.format(""), table.value)
    block = given.client.make("Malloc", 64)
    given.work(STORE.format("+64"), block)
    variable, unloaded, plain = (finding.observed for finding in given.findings())
    assert "after the end of variable 'ns::table' of 64 bytes" in variable
    assert "at the start of variable 'ns::table' of a module that was unloaded before" in unloaded
    assert "directly after the end of a device block of 64 bytes" in plain
    assert block == table.value, "the test needs the block to lie where the variable was"


@pytest.mark.parametrize("flavour", ["cuda:13", "hip:6"])
def test_the_host_uses_a_variable_wrongly(start: Start, tmp_path: Path, flavour: str) -> None:
    client = start(flavour, folder=str(tmp_path))
    binary = Binary(client, text(7))
    shadow, address = binary.variable(b"_ZN2ns5tableE", 64), ctypes.c_uint64()
    client.ok("GetSymbolAddress", ctypes.byref(address), shadow)
    client.ok("Memset", address, 0, 64)
    client.call("Memset", address, 0, 72)
    (ledger,) = tmp_path.glob("*.ledger")
    (finding,) = judge(client.machine.ledger, AtExit.NONE, code=DeviceCode(ledger)).findings
    end = address.value + 64
    assert finding.rule == INSIDE
    assert finding.observed.endswith(
        f"Memset uses 72 bytes at {address.value:#x}; variable 'ns::table' ends at {end:#x}"
    )


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("table", "table"),
        ("_Z7genericIlE", "generic<long>"),
        ("_ZN37_INTERNAL_eb86c4fb_7_vars_cu__Z2k1Pii5tableE", "table"),
        (
            "_ZN37_INTERNAL_eb86c4fb_7_vars_cu__Z2k1Pii39_GLOBAL__N__eb86c4fb_7_vars_cu__Z2k1Pii6hiddenE",
            "(anonymous namespace)::hidden",
        ),
    ],
)
def test_names_are_those_of_the_source(symbol: str, name: str) -> None:
    assert name_in_source(symbol) == name


def test_a_log_that_is_cut_or_damaged_names_what_it_can(tmp_path: Path) -> None:
    log = tmp_path / "7.variables"
    log.write_bytes(b"4\t0x1000\ttable\nno line\n9\t0x2000\tot")
    names = DeviceCode(tmp_path / "7.ledger").variables
    assert (names.name(4), names.name(9), names.name_at(0x1000, 5), names.name_at(0x1000, 4)) == (
        "table",
        "",
        "table",
        "",
    )
    with log.open("ab") as stream:
        stream.write(b"her\n")
    assert names.name(9) == "other"


# -- addresses ---------------------------------------------------------------------------------------------------------


@needs_kernels
@pytest.mark.parametrize(
    ("address", "body", "where"),
    [
        (0, LOAD.format(""), "at 0x0, a null pointer"),
        (0, STORE.format("+12"), "at 0xc, 12 bytes after a null pointer"),
        (0, LOAD.format("+20000000"), "at 0x1312d00, 20,000,000 bytes (19.1 MiB) after a null pointer"),
        (0, LOAD.format("+-8"), "at 0xfffffffffffffff8, 8 bytes before a null pointer"),
        (8, LOAD.format(""), "at 0x8, 8 bytes after a null pointer"),
        (20_000_000, LOAD.format(""), "at 0x1312d00, which is no memory of a device"),
        (0x7FFFFFFFFFF8, LOAD.format(""), "at 0x7ffffffffff8, which is no memory of a device"),
    ],
)
def test_a_null_pointer_is_called_one(checked: MakeDevice, address: int, body: str, where: str) -> None:
    given = checked()
    given.work(body, address)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_OWN_DEVICE
    assert f"{where}, in thread" in finding.observed


@needs_kernels
def test_an_index_of_32_bits_that_overflows_is_told(checked: MakeDevice) -> None:
    given = checked()
    words, large = given.words(*range(100)), given.client.make("Malloc", ctypes.c_size_t(3 << 30))
    below = "cvt.s64.s32 %rd3, -2147483548;\nadd.u64 %rd1, %rd1, %rd3;\nst.global.u8 [%rd1], 1;"
    given.work("st.global.u8 [%rd1+100], 1;", large)
    given.work("mul.wide.u32 %rd3, 4294967295, 4;\nadd.u64 %rd1, %rd1, %rd3;\n" + LOAD.format(""), words)
    given.work(below, large)
    given.work("add.u64 %rd1, %rd1, 40000000;\n" + LOAD.format(""), words)
    before, after, plain = (finding.observed for finding in given.findings())
    assert "bytes (16.0 GiB) after the end of a device block of 400 bytes" in before
    assert "; with 2^32 times 4 bytes less it would be 4 bytes before its start: an index of 32 bits" in before
    assert "before the start of a device block of 3,221,225,472 bytes (3 GiB)" in after
    assert "; with 2^32 bytes more it would be at byte 2,147,483,748 of the block: an index of 32 bits" in after
    assert "an index" not in plain


# -- code --------------------------------------------------------------------------------------------------------------

FILES: Final = (
    '.file 1 "/source/fill.cu"\n.file 2 "/usr/local/cuda-13.0/include/sm_60_atomic_functions.hpp"\n'
    '.file 3 "/source/put.cuh"\n.file 4 "/opt/nvidia/cu13/include/cccl/cuda/std/__atomic/functions.h"\n'
)
OF_HEADER: Final = """
.func (.param .b32 out) add(.param .b64 to) {
    .reg .b64 %rd<2>; .reg .b32 %r<2>;
    .loc 2 300 3
    ld.param.b64 %rd1, [to];
    atom.add.u32 %r1, [%rd1], 1;
    st.param.b32 [out], %r1;
    ret;
}
"""
CALL: Final = (
    "{ .param .b64 to; .param .b32 back;\nst.param.b64 [to], %rd1;\ncall (back), add, (to);\n"
    "ld.param.b32 %r2, [back]; }\n"
)


@pytest.mark.parametrize(
    ("file", "is_it"),
    [
        ("/usr/local/cuda/include/cuda_fp16.hpp", True),
        ("/opt/nvidia/hpc_sdk/Linux_x86_64/25.1/cuda/12.6/targets/x86_64-linux/include/crt/sm_80_rt.hpp", True),
        ("/env/lib/python3.13/site-packages/nvidia/cuda_runtime/include/cuda_runtime.h", True),
        ("/env/site-packages/nvidia/cu13/bin/..//include/sm_60_atomic_functions.hpp", True),
        ("/opt/rocm-6.2.0/include/hip/amd_detail/amd_hip_atomic.h", True),
        ("/env/site-packages/cupy/_core/include/cupy/carray.cuh", True),
        ("thrust/detail/allocator.inl", True),
        ("cuda/std/__atomic/functions.h", True),
        ("/src/vendored/include/cuda/atomic", True),
        ("/usr/include/cuda_runtime.h", True),
        ("/src/tmpxft_00002697_00000000-6_fill.cudafe1.stub.c", True),
        ("/projects/cuda/include/fill.cuh", False),
        ("/projects/cccl/examples/fill.cu", False),
        ("/projects/project/device_functions_of_mine.cuh", False),
        ("/projects/kernels/atomics.hpp", False),
        ("/usr/local/src/fill.cu", False),
        ("", False),
    ],
)
def test_headers_of_toolkits_are_known_wherever_they_are(file: str, is_it: bool) -> None:
    assert is_of_toolkit(file) == is_it


@needs_kernels
def test_what_a_header_of_a_toolkit_does_its_caller_does(checked: MakeDevice) -> None:
    given = checked()
    inlined = (
        ".loc 1 8 5\n.loc 2 306 3, function_name name, inlined_at 1 8 5\natom.global.add.u32 %r2, [%rd1], 1;\n"
        ".loc 1 9 5\n.loc 3 5 5, function_name name, inlined_at 1 9 5\n"
        ".loc 4 7 1, function_name name, inlined_at 3 5 5\n.loc 2 354 3, function_name name, inlined_at 4 7 1\n"
        "atom.global.add.u32 %r2, [%rd1], 1;\n"
        ".loc 1 10 5\n.loc 3 6 5, function_name name, inlined_at 1 10 5\nst.global.u32 [%rd1], 1;\n"
        ".loc 4 9 1\nld.global.u32 %r2, [%rd1];\n"
    )
    given.work(inlined, given.words(1) + 4, before=FILES)
    assert [each.request for each in given.findings()] == [
        "work at /source/fill.cu:8",
        "work at /source/put.cuh:5, inlined at /source/fill.cu:9",
        "work at /source/put.cuh:6, inlined at /source/fill.cu:10",
        "work at /opt/nvidia/cu13/include/cccl/cuda/std/__atomic/functions.h:9",
    ]


@needs_kernels
def test_a_function_of_a_header_that_is_called_is_placed_at_each_call(checked: MakeDevice) -> None:
    given = checked()
    body = f".loc 1 12 3\n{CALL}.loc 1 14 3\n{CALL}"
    given.work(body, given.words(1) + 4, before=FILES + OF_HEADER)
    assert [each.request for each in given.findings()] == ["work at /source/fill.cu:12", "work at /source/fill.cu:14"]
    right = given.words(5)
    given.work(body, right, before=FILES + OF_HEADER)
    assert given.read(right, 1) == [7]


@needs_kernels
def test_the_lines_of_a_source_that_no_file_holds_are_quoted(checked: MakeDevice) -> None:
    source = 'extern "C" __global__\nvoid work(int *a) {\n    a[1] = 7;\n}\n'
    name, other = "/none/of/these/work.cu", "/none/of/these/other.cu"
    comments = "".join(
        f"// quiesce-source {base64.b64encode(file.encode()).decode()} {base64.b64encode(content.encode()).decode()}\n"
        for file, content in ((name, source), (other, "nothing"))
    )
    given = checked()
    given.work(f".loc 1 3 5\n{STORE.format('')}", given.words(1) + 4, before=f'{comments}.file 1 "{name}"\n')
    (finding,) = given.findings()
    (quotation,) = finding.quoted
    assert (quotation.place, quotation.first) == (f"{name}:3", 2)
    assert quotation.lines == ("void work(int *a) {", "    a[1] = 7;", "}")
    assert finding.evidence == ""


@needs_kernels
def test_a_kernel_without_lines_says_how_to_get_them(checked: MakeDevice) -> None:
    given = checked()
    given.work(STORE.format(""), given.words(1) + 4)
    (finding,) = given.findings()
    assert "its PTX has no lines of the source; to see them, compile with nvcc -lineinfo" in finding.evidence


def test_sources_of_one_name_are_told_apart_by_the_kernel(tmp_path: Path) -> None:
    for content in ("void fill(int *a) {}", "void scale(float *a) {}", "void scale_all() {}"):
        keep_sources(tmp_path, {"default_program": content})
        keep_sources(tmp_path, {"default_program": content})
    sources = ProgramSources(tmp_path)
    assert sources.text("/here/default_program", "inner::scale<float>") == "void scale(float *a) {}"
    assert sources.text("/here/default_program", "a") is None, "two of them have that word"
    assert sources.text("/here/other", "fill") is None
    keep_sources(tmp_path, {"late.cu": "void late() {}"})
    assert sources.text("late.cu", "late") == "void late() {}"


def test_a_run_keeps_so_many_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.simulator.runtime.device_code._BYTES_MAX", 100)
    keep_sources(tmp_path, {"long.cu": "x" * 200, "short.cu": "y" * 50})
    keep_sources(tmp_path, {"more.cu": "z" * 50})
    sources: Any = ProgramSources(tmp_path)
    assert [sources.text(name, "") for name in ("long.cu", "short.cu", "more.cu")] == [None, "y" * 50, None]
