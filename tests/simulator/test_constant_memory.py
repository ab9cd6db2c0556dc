"""Writes of kernels to constant memory, and long copies of which only a part is wrong."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import KERNELS_INSIDE_SHARED, KERNELS_KEEP_READ_ONLY
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]

LOAD: Final = "ld.global.u32 %r2, [%rd1{}];"
STORE: Final = "st.global.u32 [%rd1{}], 7;"

# -- constant memory ---------------------------------------------------------------------------------------------------

CONSTANT: Final = ".const .align 4 .b8 table[16] = {1, 2, 3, 4, 5, 6, 7, 8};\n.global .align 4 .b32 plain = 5;\n"
OF_TABLE: Final = (
    "mov.u64 %rd3, table;\ncvta.const.u64 %rd3, %rd3;\nmul.wide.u32 %rd4, %r1, 4;\nadd.u64 %rd3, %rd3, %rd4;\n"
)


@pytest.mark.parametrize("write", ["st.u32 [%rd3], 7;", "atom.add.u32 %r3, [%rd3], 1;"])
def test_a_kernel_does_not_write_constant_memory(checked: MakeDevice, write: str) -> None:
    given = checked()
    to = given.words(0, 0)
    reads = f"{OF_TABLE}ld.u32 %r2, [%rd3];\nld.const.u32 %r3, [table+4];\nst.global.v2.u32 [%rd1], {{%r2, %r3}};"
    given.work(reads + "mov.u64 %rd3, plain;\nst.global.u32 [%rd3], 6;", to, before=CONSTANT)
    assert given.rules() == []
    assert given.read(to, 2) == [0x04030201, 0x08070605]
    given.work(f"{OF_TABLE}setp.eq.u32 %p1, %r1, 2;\n@%p1 {write}", to, block=4, before=CONSTANT)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_KEEP_READ_ONLY
    assert "which may only be read, in thread (2, 0, 0) of block (0, 0, 0)" in finding.observed


def test_the_host_writes_constant_memory_and_a_kernel_does_not(checked: MakeDevice) -> None:
    given = checked()
    module, table, size = given.module(CONSTANT), ctypes.c_uint64(), ctypes.c_size_t()
    assert given.driver.cuModuleGetGlobal_v2(ctypes.byref(table), ctypes.byref(size), module, b"table") == 0
    assert given.driver.cuMemcpyHtoD_v2(table, (ctypes.c_uint32 * 4)(9, 8, 7, 6), size) == 0
    given.work(LOAD.format(""), table.value)
    assert (given.rules(), given.read(table.value, 4)) == ([], [9, 8, 7, 6])
    given.work(STORE.format("+4"), table.value)
    assert given.rules() == [KERNELS_KEEP_READ_ONLY]
    assert given.read(table.value, 4) == [9, 8, 7, 6]


# -- copies of many bytes ----------------------------------------------------------------------------------------------

BULK_WRITE: Final = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [room], 64;"
BULK_READ: Final = (
    "mbarrier.init.shared::cta.b64 [barrier], 1;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%rd1], 64, [barrier];"
)


@pytest.mark.parametrize(("copy", "verb"), [(BULK_WRITE, "writes"), (BULK_READ, "reads")])
def test_each_part_of_a_long_copy(checked: MakeDevice, copy: str, verb: str) -> None:
    given = checked()
    body = f"{{ .shared .align 16 .b8 room[64]; .shared .align 8 .b64 barrier; {copy} }}"
    given.work(body, given.words(*range(16)))
    assert given.rules() == []
    words = given.words(*range(8))
    given.work(body, words)
    (finding,) = given.findings()
    assert f"{verb} 16 bytes at {words + 32:#x}, directly after the end of a device block" in finding.observed
    assert finding.seen == 2
    assert given.read(words, 8) == list(range(8)), "a copy that is wrong does not take place"
    given.work(body.replace("room[64]", "room[48]"), given.words(*range(16)))
    assert KERNELS_INSIDE_SHARED in given.rules()
