"""The heap of a device, from which kernels allocate: wrong frees, wrong uses, what is lost, and its size."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import entry

from quiesce.model.program_rules import FREED_ONCE, KERNELS_INSIDE, KERNELS_NOT_FREED, KERNELS_READ_WRITTEN, OWN_FREED
from quiesce.model.rules import Kind
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.ledger import Reach, Thing

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
INVALID_VALUE, LAUNCH_FAILURE = 1, 719
HEAP_SIZE: Final = 2
"""The number of the limit (cudaLimitMallocHeapSize)."""
ALONE: Final = "QUIESCE_TEST_ALONE"
"""Is set in the process in which a test runs itself again."""
BEFORE: Final = (
    ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n.extern .func free(.param .b64 block);\n"
    ".global .align 8 .b64 head;\n.global .align 8 .b64 plain[2];\n"
)


def malloc(size: int, to: str = "%rd9") -> str:
    """Return a call of malloc."""
    return (
        f"{{ .param .b64 a; .param .b64 b; st.param.b64 [a], {size}; call.uni (b), malloc, (a); "
        f"ld.param.b64 {to}, [b]; }}\n"
    )


def free(block: str = "%rd9") -> str:
    """Return a call of free."""
    return f"{{ .param .b64 c; st.param.b64 [c], {block}; call.uni free, (c); }}\n"


def to_variable(value: str) -> str:
    """Return a store to the variable of the module."""
    return f"st.global.b64 [head], {value};\n"


MADE: Final = malloc(40) + "st.b32 [%rd9], 7;\nst.b32 [%rd9+36], 7;\n"
AGAIN: Final = "ld.b32 %r4, [%rd9];\nst.b32 [%rd9+36], %r4;\n"


@pytest.mark.parametrize(
    "body",
    [
        MADE + AGAIN + free(),
        malloc(0) + free() + "mov.b64 %rd9, 0;\n" + free(),
        MADE + free() + MADE + free(),
        MADE + malloc(24, "%rd8") + "st.b64 [%rd8], %rd9;\nld.b64 %rd7, [%rd8];\n" + free("%rd7") + free("%rd8"),
    ],
    ids=["one", "of-nothing", "two", "in-each-other"],
)
def test_a_heap_that_is_used_rightly(checked: MakeDevice, body: str) -> None:
    given = checked()
    given.work(body, block=64, grid=3, before=BEFORE)
    assert given.client.call("DeviceSynchronize") == 0
    assert given.rules() == []
    assert given.client.machine.ledger.counted(Thing.HEAP) == (0, 0)


@pytest.mark.parametrize(
    ("body", "rule", "kind", "said"),
    [
        (MADE + free() + free(), FREED_ONCE, Kind.DOUBLE_FREE, "a block of 40 bytes of the device's heap that was"),
        (
            MADE + "add.u64 %rd8, %rd9, 8;\n" + free("%rd8"),
            OWN_FREED,
            Kind.INVALID_FREE,
            "8 bytes into a block of 40 bytes of the device's heap",
        ),
        (
            free("%rd1"),
            OWN_FREED,
            Kind.INVALID_FREE,
            "a device block of 1,024 bytes (1 KiB), which no kernel allocated",
        ),
        (
            "add.u64 %rd8, %rd1, 16;\n" + free("%rd8"),
            OWN_FREED,
            Kind.INVALID_FREE,
            "16 bytes into a device block of 1,024 bytes (1 KiB), which no kernel allocated",
        ),
        (
            "mov.u64 %rd8, plain;\n" + free("%rd8"),
            OWN_FREED,
            Kind.INVALID_FREE,
            "variable 'plain' of 16 bytes, which no",
        ),
        ("mov.u64 %rd8, 0x1234560;\n" + free("%rd8"), OWN_FREED, Kind.INVALID_FREE, "no memory of the device's heap"),
    ],
    ids=["twice", "inside", "of-the-host", "inside-of-the-host", "a-variable", "nowhere"],
)
def test_a_wrong_free_ends_the_kernel(checked: MakeDevice, body: str, rule: str, kind: Kind, said: str) -> None:
    given = checked()
    block = given.client.make("Malloc", 1024)
    given.work("setp.ne.u32 %p1, %r1, 3;\n@%p1 ret;\n" + body, block, block=32, before=BEFORE, answer=LAUNCH_FAILURE)
    assert given.client.call("DeviceSynchronize") == LAUNCH_FAILURE
    (finding,) = given.findings()
    assert (finding.rule, finding.kind) == (rule, kind)
    assert said in finding.observed
    assert ", in thread (3, 0, 0) of block (0, 0, 0), at 'call.uni free, (c)' (line " in finding.observed


def test_a_double_free_names_who_allocated_and_who_freed(checked: MakeDevice) -> None:
    given = checked()
    module = given.module(
        BEFORE
        + entry("keep", "", MADE + to_variable("%rd9"))
        + entry("first", "", "ld.global.b64 %rd9, [head];\n" + free())
        + entry("second", "", "mov.u32 %r1, %ctaid.x;\nld.global.b64 %rd9, [head];\n" + free())
    )
    for kernel, answer in (("keep", 0), ("first", 0), ("second", LAUNCH_FAILURE)):
        assert given.launch(given.function(module, kernel), 1, 1) == answer
    (finding,) = given.findings()
    observed = finding.observed
    assert observed.startswith("kernel 'second' frees ")
    assert "; kernel 'keep' allocated it in thread (0, 0, 0) of block (0, 0, 0), at 'call.uni (b), malloc, " in observed
    assert "; kernel 'first' freed it in thread (0, 0, 0) of block (0, 0, 0), at 'call.uni free, (c)'" in observed


@pytest.mark.parametrize(
    ("body", "rule", "said"),
    [
        (MADE + free() + "ld.b32 %r4, [%rd9+8];", KERNELS_NOT_FREED, "8 bytes into a block of 40 bytes of the device"),
        (MADE + "st.b32 [%rd9+40], 1;", KERNELS_INSIDE, "directly after the end of a block of 40 bytes of the device"),
        (malloc(24) + MADE + "st.b32 [%rd9+-4], 1;", KERNELS_INSIDE, "4 bytes before the start of a block of 40 bytes"),
        (MADE + "ld.b32 %r4, [%rd9+8];", KERNELS_READ_WRITTEN, "which nobody has written"),
    ],
    ids=["after-free", "after-the-end", "before-the-start", "unwritten"],
)
def test_a_wrong_use_of_the_heap(checked: MakeDevice, body: str, rule: str, said: str) -> None:
    given = checked()
    given.work(body, before=BEFORE)
    (finding,) = given.findings()
    assert finding.rule == rule
    assert said in finding.observed


def test_the_host_can_not_free_or_copy_what_a_kernel_allocated(checked: MakeDevice) -> None:
    given = checked()
    place, word = given.client.make("Malloc", 8), ctypes.create_string_buffer(4)
    given.work(MADE + "st.global.b64 [%rd1], %rd9;", place, before=BEFORE)
    (address,) = given.read(place, 2)[:1]
    address |= given.read(place, 2)[1] << 32
    assert given.client.call("Free", ctypes.c_void_p(address)) == INVALID_VALUE
    assert given.client.call("Memcpy", word, ctypes.c_void_p(address), ctypes.c_size_t(4), 2) == INVALID_VALUE
    (finding,) = given.findings()
    assert (finding.rule, finding.kind) == (OWN_FREED, Kind.INVALID_FREE)
    assert "cudaFree of " in finding.observed
    assert "a block of the device's heap; kernel 'work' allocated it in thread (0, 0, 0)" in finding.observed


def test_what_no_memory_of_the_device_points_to_is_lost(checked: MakeDevice, request: pytest.FixtureRequest) -> None:
    """A list whose head a variable holds, and one whose head nobody holds any more.

    It runs in a process of its own: what other tests have mapped may be more than the search reads.
    """
    if ALONE not in os.environ:
        words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", request.node.nodeid]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        done = subprocess.run(
            words, cwd=request.config.rootpath, env={**kept, ALONE: "1"}, capture_output=True, text=True, check=False
        )
        assert "1 passed" in done.stdout, done.stdout + done.stderr
        return
    given = checked()
    grow = malloc(16) + "ld.global.b64 %rd8, [head];\nst.b64 [%rd9], %rd8;\n" + to_variable("%rd9")
    module = given.module(BEFORE + entry("grow", "", grow) + entry("forget", "", to_variable("0")))

    def reach() -> list[Reach]:
        for _ in range(2):
            assert given.launch(given.function(module, "grow"), 1, 1) == 0
        assert given.client.machine.control("look") == 0
        return sorted(each.reach for each in given.client.machine.ledger.live() if each.thing is Thing.HEAP)

    assert reach() == [Reach.HELD] * 2
    assert given.launch(given.function(module, "forget"), 1, 1) == 0
    assert reach() == [Reach.LOST, Reach.INDIRECTLY_LOST, Reach.HELD, Reach.HELD]
    given.client.ok("DeviceReset")
    assert given.client.machine.ledger.counted(Thing.HEAP) == (0, 0)


def test_the_heap_is_as_large_as_its_limit(checked: MakeDevice) -> None:
    given = checked()
    to = given.words(9)
    fill = (
        "mov.u32 %r5, 0;\nAGAIN:\n"
        + malloc(1 << 20)
        + "setp.eq.u64 %p1, %rd9, 0;\n@%p1 bra FULL;\nadd.u32 %r5, %r5, 1;\nbra AGAIN;\n"
        + "FULL:\nst.global.b32 [%rd1], %r5;\n"
    )
    given.client.ok("DeviceSetLimit", HEAP_SIZE, ctypes.c_size_t(3 << 20))
    given.work(fill, to, before=BEFORE)
    assert given.read(to, 1) == [3]
    assert given.client.call("DeviceSetLimit", HEAP_SIZE, ctypes.c_size_t(4 << 20)) == INVALID_VALUE
    given.client.ok("DeviceReset")
    to = given.words(9)
    given.work(fill, to, before=BEFORE)
    assert given.read(to, 1) == [8], "the limit is 8 MiB where nobody sets one"
    assert given.rules() == []
