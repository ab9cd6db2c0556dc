"""Memory: state spaces, vectors, addresses, parameters, variables, and what the runtime is told of accesses."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.compiling import compile_kernel
from tests.kernels.executor import Kernel
from tests.kernels.programs import HEADER, evaluate, evaluate_all

from quiesce.simulator.kernels.ptx.module import Module


def kernel(body: str, parameters: str = ".param .u64 out", before: str = "") -> str:
    return (
        f"{HEADER}{before}\n.visible .entry k({parameters})\n{{\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n"
        f".reg .b16 %h<8>;\n.reg .f32 %f<8>;\n.reg .pred %p<4>;\n{body}\nret;\n}}\n"
    )


def run(
    text: str, count: int = 8, block: int = 1, variables: dict[str, object] | None = None, **options: int
) -> list[int]:
    """Run a kernel that gets one array of words, and return the array."""
    out = np.zeros(count, "u4")
    Kernel(text, "k", variables).launch(1, block, out, **options)  # type: ignore[arg-type]
    return [int(each) for each in out]


def test_narrow_loads_fill_wide_registers() -> None:
    source = np.array([0x80, 0xFF, 0x34, 0x92], "u1")
    out = np.zeros(4, "u4")
    text = kernel(
        "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n"
        "ld.global.s8 %r1, [%rd1]; ld.global.u8 %r2, [%rd1+1]; ld.global.s16 %r3, [%rd1+2]; ld.global.b8 %r4, [%rd1];\n"
        "st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};",
        ".param .u64 in, .param .u64 out",
    )
    Kernel(text, "k").launch(1, 1, source, out)
    assert out.tolist() == [0xFFFFFF80, 0xFF, 0xFFFF9234, 0x80]


def test_vectors() -> None:
    source, out = np.arange(4, dtype="f4"), np.zeros(4, "f4")
    text = kernel(
        "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n"
        "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\nadd.f32 %f1, %f1, %f4;\n"
        "st.global.v2.f32 [%rd2], {%f1, %f2};\nst.global.v2.f32 [%rd2+8], {%f3, %f4};",
        ".param .u64 in, .param .u64 out",
    )
    Kernel(text, "k").launch(1, 1, source, out)
    assert out.tolist() == [3, 1, 2, 3]


def test_parameters_of_every_kind() -> None:
    out = np.zeros(6, "u4")
    text = kernel(
        "ld.param.u64 %rd1, [out]; ld.param.u8 %r1, [small]; ld.param.s16 %r2, [half];\n"
        "ld.param.v2.u32 {%r3, %r4}, [pair+4]; ld.param.f32 %f1, [number];\nmov.b64 %rd2, pair;\n"
        "ld.param.u32 %r5, [%rd2+12];\n"
        "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2; st.global.v2.u32 [%rd1+8], {%r3, %r4};\n"
        "st.global.f32 [%rd1+16], %f1; st.global.u32 [%rd1+20], %r5;",
        ".param .u8 small, .param .s16 half, .param .align 8 .b8 pair[16], .param .f32 number, "
        ".param .u64 .ptr .global .align 4 out",
    )
    pair = np.array([1, 2, 3, 4], "u4").tobytes()
    k = Kernel(text, "k")
    k.launch(1, 1, np.uint8(200), np.int16(-2), np.void(pair), np.float32(1.5), out)
    assert out.tolist() == [200, 0xFFFFFFFE, 2, 3, 0x3FC00000, 4]


def test_shared_memory_of_a_fixed_and_of_an_open_size() -> None:
    text = kernel(
        ".shared .align 4 .b8 fixed[20];\nld.param.u64 %rd1, [out];\n"
        "mov.u32 %r1, open;\nst.shared.u32 [fixed+16], 5;\nst.shared.u32 [%r1+4], 6;\n"
        "mov.u64 %rd2, open;\nld.shared.u32 %r2, [%rd2+4];\nld.shared.u32 %r3, [fixed+16];\n"
        "mov.u32 %r4, %dynamic_smem_size;\nmov.u32 %r5, %total_smem_size;\n"
        "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\nst.global.u32 [%rd1+16], %r5;",
        before=".extern .shared .align 16 .b8 open[];",
    )
    assert run(text, dynamic_shared_bytes=64)[:5] == [32, 6, 5, 64, 96]


def test_shared_memory_that_a_device_has_for_cooperative_groups() -> None:
    """It lies beside the kernel's own arrays, and before memory of an open size."""
    text = kernel(
        ".shared .align 4 .b8 fixed[20];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %reserved_smem_offset_1;\n"
        "mov.u32 %r2, open;\nst.shared.u32 [fixed+16], 5;\nst.shared.u32 [%r2], 6;\nst.shared.u32 [%r1], 7;\n"
        "st.shared.u32 [%r1+284], 8;\nld.shared.u32 %r3, [fixed+16];\nld.shared.u32 %r4, [%r2];\n"
        "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};",
        before=".extern .shared .align 16 .b8 open[];",
    )
    assert run(text, dynamic_shared_bytes=64)[:4] == [32, 32 + 1024, 5, 6]


def test_generic_addresses() -> None:
    text = kernel(
        ".shared .align 8 .b8 block[16];\n.local .align 8 .b8 own[16];\nld.param.u64 %rd1, [out];\n"
        "mov.u64 %rd2, block;\ncvta.shared.u64 %rd3, %rd2;\nst.u32 [%rd3+8], 11;\nld.shared.u32 %r1, [block+8];\n"
        "mov.u64 %rd4, own;\ncvta.local.u64 %rd5, %rd4;\nst.u32 [%rd5+4], 12;\nld.local.u32 %r2, [own+4];\n"
        "cvta.to.shared.u64 %rd6, %rd3;\nsub.s64 %rd6, %rd6, %rd2;\ncvt.u32.u64 %r3, %rd6;\n"
        "st.global.v2.u32 [%rd1], {%r1, %r2};\nst.u32 [%rd1+8], %r3;"
    )
    assert run(text)[:3] == [11, 12, 0]


def test_which_space_an_address_is_in() -> None:
    spaces = ("shared", "local", "global", "const", "param")
    questions = "".join(
        f"isspacep.{space} %p1, %rd{address};\nselp.u32 %r1, 1, 0, %p1;\n"
        f"st.global.u32 [%rd1+{4 * (5 * row + place)}], %r1;\n"
        for row, address in enumerate((3, 5, 1, 7))
        for place, space in enumerate(spaces)
    )
    text = kernel(
        ".shared .align 8 .b8 block[16];\n.local .align 8 .b8 own[16];\nld.param.u64 %rd1, [out];\n"
        "mov.u64 %rd2, block;\ncvta.shared.u64 %rd3, %rd2;\nmov.u64 %rd4, own;\ncvta.local.u64 %rd5, %rd4;\n"
        f"mov.u64 %rd6, fixed;\ncvta.const.u64 %rd7, %rd6;\n{questions}",
        before=".const .align 4 .b8 fixed[8];",
    )
    found = run(text, 20, variables={"fixed": np.zeros(8, "u1")})
    assert [found[start : start + 5] for start in range(0, 20, 5)] == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 1, 0],
    ]


def test_variables_of_the_module() -> None:
    counter, table = np.array([40], "u4"), np.array([5, 6, 7], "u4")
    text = kernel(
        "ld.param.u64 %rd1, [out];\nld.global.u32 %r1, [counter];\nadd.u32 %r1, %r1, 2;\n"
        "st.global.u32 [counter], %r1;\n"
        "mov.u64 %rd2, table;\nld.const.u32 %r2, [%rd2+8];\nld.const.u32 %r3, [table+4];\n"
        "st.global.v2.u32 [%rd1], {%r2, %r3};",
        before=".global .align 4 .u32 counter = 1;\n.const .align 4 .u32 table[3] = {1, 2, 3};",
    )
    assert run(text, variables={"counter": counter, "table": table})[:2] == [7, 6]
    assert counter.tolist() == [42]


def test_local_memory_belongs_to_a_thread() -> None:
    text = kernel(
        ".local .align 4 .b8 own[32];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u64 %rd2, own;\n"
        "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nst.local.u32 [%rd4], %r1;\nbar.sync 0;\n"
        "ld.local.u32 %r2, [%rd4];\nadd.s64 %rd5, %rd1, %rd3;\nst.global.u32 [%rd5], %r2;"
    )
    assert run(text, block=8) == list(range(8))


def test_moves_of_vectors() -> None:
    low, high = evaluate_all("mov.b64 {%x, %y}, %a;", [("b64", [0x1122334455667788])], ["b32", "b32"])
    assert (low, high) == ([0x55667788], [0x11223344])
    assert evaluate("mov.b64 %x, {%a, %b};", ("b32", [1]), ("b32", [2]), result="b64") == [0x200000001]
    assert evaluate("mov.b32 {%h0, %h1}, %a;\nmov.b32 %x, {%h1, %h0};", ("b32", [0x12345678]), result="b32") == [
        0x56781234
    ]
    assert evaluate("mov.b64 {_, %x}, %a;", ("b64", [5 << 32]), result="b32") == [5]


def test_literals() -> None:
    assert evaluate("mov.f32 %x, 0f3FC00000;", result="f32") == [0x3FC00000]
    assert evaluate("mov.f64 %x, 0d3FF8000000000000;", result="f64") == [0x3FF8000000000000]
    assert evaluate("mov.f64 %x, 1.5;", result="f64") == [0x3FF8000000000000]
    assert evaluate("mov.u32 %x, 0x1F;\nadd.u32 %x, %x, 017;\nadd.u32 %x, %x, 0b11U;", result="u32") == [31 + 15 + 3]
    assert evaluate("mov.u32 %x, WARP_SZ;\nsub.u32 %x, %x, -1;", result="u32") == [33]


@pytest.mark.parametrize("waits", [False, True])
def test_special_registers(waits: bool) -> None:
    names = ("%tid.x", "%tid.y", "%tid.z", "%laneid", "%warpid", "%lanemask_lt", "%lanemask_ge", "%nwarpid", "%ctaid.y")
    stores = "".join(f"mov.u32 %r2, {name};\nst.global.u32 [%rd2+{4 * n}], %r2;\n" for n, name in enumerate(names))
    text = kernel(
        "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.z; mov.u32 %r3, %ntid.y; mov.u32 %r4, %tid.y;\n"
        "mad.lo.u32 %r1, %r1, %r3, %r4; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r1, %r1, %r3, %r4;\n"
        f"mad.wide.u32 %rd2, %r1, {4 * len(names)}, %rd1;\n{'bar.sync 0;' if waits else ''}\n{stores}"
    )
    out = np.zeros((40, len(names)), "u4")
    Kernel(text, "k").launch((1, 1), (5, 4, 2), out)
    for number, row in enumerate(out.tolist()):
        lane = number % 32
        expected = [number % 5, number // 5 % 4, number // 20, lane, number // 32]
        masks = [(1 << lane) - 1, ((1 << 32) - 1) ^ ((1 << lane) - 1)]
        assert row == [*expected, *masks, 64, 0]


OF_THE_GRID = {
    "%ntid.x": 3,
    "%ntid.y": 2,
    "%ntid.z": 1,
    "%nctaid.x": 2,
    "%nctaid.y": 3,
    "%nctaid.z": 1,
    "%nclusterid.y": 3,
    "%ntid.w": 0,
    "%smid": 0,
    "%nsmid": 1,
    "%gridid": 0,
    "%cluster_ctaid.x": 0,
    "%cluster_nctaid.x": 1,
    "%cluster_ctarank": 0,
    "%cluster_nctarank": 1,
    "%dynamic_smem_size": 40,
    "%total_smem_size": 56,
    "%envreg1": 0x12345678,
    "%envreg2": 0x9ABCDEF0,
}


def test_special_registers_of_the_grid() -> None:
    """The last block notes what it sees."""
    names = (*OF_THE_GRID, "%ctaid.x", "%ctaid.y", "%clusterid.x")
    stores = "".join(f"mov.u32 %r2, {name};\nst.global.u32 [%rd1+{4 * n}], %r2;\n" for n, name in enumerate(names))
    loaded = Kernel(kernel(f".shared .b8 own[16];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, own;\n{stores}"), "k")
    loaded.places["grid_workspace"] = 0x123456789ABCDEF0
    out = np.zeros(len(names), "u4")
    loaded.launch((2, 3), (3, 2), out, dynamic_shared_bytes=40)
    assert dict(zip(names, out.tolist(), strict=True)) == {
        **OF_THE_GRID,
        **{"%ctaid.x": 1, "%ctaid.y": 2, "%clusterid.x": 1},
    }


def test_masks_of_lanes() -> None:
    names = ("eq", "lt", "le", "gt", "ge")
    stores = "".join(
        f"mov.u32 %r2, %lanemask_{name};\nst.global.u32 [%rd2+{4 * n}], %r2;\n" for n, name in enumerate(names)
    )
    text = kernel(f"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %rd2, %r1, 20, %rd1;\n{stores}")
    out = np.zeros((40, len(names)), "u4")
    Kernel(text, "k").launch(1, 40, out)
    whole = (1 << 32) - 1
    for number, row in enumerate(out.tolist()):
        own = 1 << number % 32
        assert row == [own, own - 1, 2 * own - 1, whole ^ (2 * own - 1), whole ^ (own - 1)]


def test_a_clock_goes_on() -> None:
    first, second = evaluate_all("mov.u64 %x, %clock64;\nmov.u64 %y, %globaltimer;", [], ["u64", "u64"])
    assert second[0] > first[0] > 0


def test_accesses_are_listed_with_their_lines() -> None:
    text = kernel(
        "\n.loc 1 77 3\nld.param.u64 %rd1, [out];\nld.global.u32 %r1, [%rd1];\n.loc 2 78 1\n"
        "st.global.u32 [%rd1+4], %r1;"
    )
    loaded = Kernel(text, "k")
    lines = text.split("\n")
    expected = [
        1 + next(n for n, line in enumerate(lines) if line.startswith(word)) for word in ("ld.global", "st.global")
    ]
    # of a kernel that is compiled for threads and for rows of threads, each is listed for both
    assert list(dict.fromkeys(loaded.site(number) for number in range(loaded.sites))) == [
        (expected[0], 1, 77, 0, 0),
        (expected[1], 2, 78, 0, 0),
    ]


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("tuned", [False, True])
def test_the_words_that_say_whose_a_parameter_is_change_nothing(tuned: bool, checks: bool) -> None:
    """As LLVM writes since PTX 8.3, ``ld.param::entry``: of a loop over an array that is judged as ranges, too."""
    text = kernel(
        "ld.param.u64 %rd1, [out];\nmov.u32 %r1, 0;\nround:\nst.global.u32 [%rd1], %r1;\nadd.s64 %rd1, %rd1, 4;\n"
        "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 8;\n@%p1 bra round;"
    )
    plain, named = (
        compile_kernel(Module(each), "k", tuned, checks) for each in (text, text.replace("ld.param", "ld.param::entry"))
    )
    assert len(plain) == len(named)
    assert run(text.replace("ld.param", "ld.param::entry")) == list(range(8))
