"""A table of the mistakes that kernels make: each kind has a faulty kernel, and next to it one that is right."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.textures import WORDS, array, surface

from quiesce.model import program_rules as rules
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

LAUNCH_FAILURE: Final = 719
PAGEABLE: Final = ctypes.create_string_buffer(8192)
Make = Callable[[Checked, bool], int]
"""Makes what the kernel gets in ``%rd1``; the flag says whether it is to be faulty."""


def words(given: Checked, _: bool) -> int:
    """25 words."""
    return given.words(*range(25))


def freed(given: Checked, faulty: bool) -> int:
    address = given.words(*range(25))
    if faulty:
        given.client.ok("Free", address)
    return address


def freed_in_a_pool(given: Checked, faulty: bool) -> int:
    stream = given.client.make("StreamCreate")
    kept, address = (given.client.make("MallocAsync", 100, ctypes.c_void_p(stream)) for _ in range(2))
    for each in (kept, address):
        given.client.ok("MemsetAsync", each, 0, 100, stream)
    given.client.ok("FreeAsync", address, stream)
    given.client.ok("StreamSynchronize", stream)
    return int(address if faulty else kept)


def unwritten(given: Checked, faulty: bool) -> int:
    address = int(given.client.make("Malloc", 100))
    if not faulty:
        given.client.ok("Memset", address, 0, 100)
    return address


def of_the_host(given: Checked, faulty: bool) -> int:
    return ctypes.addressof(PAGEABLE) if faulty else int(given.client.make("HostAlloc", 100, 0))


def of_a_peer(given: Checked, faulty: bool) -> int:
    address = given.words(*range(25))
    given.client.ok("DeviceSynchronize")
    given.client.ok("SetDevice", 1)
    if not faulty:
        given.client.ok("DeviceEnablePeerAccess", 0, 0)
    return address


def null(given: Checked, faulty: bool) -> int:
    return 0 if faulty else words(given, faulty)


def picture(given: Checked, _: bool) -> int:
    return surface(given, array(given, [[1, 2, 3], [4, 5, 6]], WORDS))


def destroyed(given: Checked, faulty: bool) -> int:
    object_ = picture(given, faulty)
    if faulty:
        given.client.ok("DestroySurfaceObject", object_)
    return object_


@dataclass(frozen=True)
class Fault:
    """A mistake: what a kernel does that makes it, and what one does that does not."""

    kind: str
    rule: str
    faulty: str
    right: str
    make: Make = words
    before: str = ""
    block: int = 1
    shared_bytes: tuple[int, int] = (0, 0)
    """Dynamic shared memory of the faulty launch, and of the right one."""
    answer: int = 0
    devices: int = 1


def place(kind: str, rule: str, body: str, wrong: str, right: str, **more: Any) -> Fault:
    """Return a mistake in one place of a kernel."""
    return Fault(kind, rule, body.replace("#", wrong), body.replace("#", right), **more)


LOAD, STORE = "ld.global.u32 %r2, [%rd1+#];", "st.global.u32 [%rd1+#], 7;"
SHARED: Final = ".shared .align 16 .b8 room[1024];\n"
DYNAMIC: Final = ".extern .shared .align 16 .b8 room[];\n"
OWN: Final = "mov.u32 %r9, room;\nmad.lo.u32 %r2, %r1, 4, %r9;\n"
OTHER: Final = "xor.b32 %r3, %r1, 32;\nmad.lo.u32 %r4, %r3, 4, %r9;\n"
NEXT: Final = "xor.b32 %r3, %r1, 1;\nmad.lo.u32 %r4, %r3, 4, %r9;\n"
BARRIER, WRITE, READ_OTHER = "bar.sync 0;\n", "st.shared.u32 [%r2], %r1;\n", "ld.shared.u32 %r6, [%r4];\n"
WRITE_OTHER: Final = "st.shared.u32 [%r4], %r1;\n"
LOCAL: Final = ".local .align 8 .b8 own[64];\nmov.u64 %rd2, own;\n"
MALLOC: Final = (
    ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n.extern .func free(.param .b64 block);\n"
)
IN_HEAP: Final = (
    "{ .param .b64 a; .param .b64 b; st.param.b64 [a], 40; call.uni (b), malloc, (a); ld.param.b64 %rd2, [b]; }\n"
    "st.u32 [%rd2], 5;\n"
)
FREE_IN_HEAP: Final = "{ .param .b64 a; st.param.b64 [a], %rd2; call.uni free, (a); }\n"
COPY: Final = (
    "mov.u32 %r9, room;\nmad.lo.u32 %r2, %r1, 16, %r9;\ncp.async.cg.shared.global [%r2], [%rd1+#], 16;\n"
    "cp.async.commit_group;\n"
)
INSIDE: Final = rules.KERNELS_INSIDE

FAULTS: Final[Sequence[Fault]] = (
    place("a load after the end", INSIDE, LOAD, "100", "96"),
    place("a store after the end", INSIDE, STORE, "100", "96"),
    place("a store before the start", INSIDE, STORE, "-4", "0"),
    place("a vector across the end", INSIDE, "ld.global.v2.u32 {%r2, %r3}, [%rd1+#];", "96", "88"),
    place("an atomic operation after the end", INSIDE, "red.global.add.u32 [%rd1+#], 1;", "100", "96"),
    place("an asynchronous copy across the end", INSIDE, COPY, "96", "80", before=SHARED),
    place(
        "an index from memory",
        INSIDE,
        "ld.global.u32 %r2, [%rd1+96];\nadd.u32 %r2, %r2, #;\nmad.wide.u32 %rd2, %r2, 4, %rd1;\n"
        "st.global.u32 [%rd2], 7;",
        "1",
        "0",
    ),
    place(
        "the last thread of too many",
        INSIDE,
        "mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2+#], 7;",
        "4",
        "0",
        block=25,
    ),
    place("use after free", rules.KERNELS_NOT_FREED, LOAD, "0", "0", make=freed),
    place("use after free in a pool", rules.KERNELS_NOT_FREED, LOAD, "0", "0", make=freed_in_a_pool),
    place("a misaligned word", rules.KERNELS_ALIGNED, LOAD, "2", "4"),
    place("a misaligned vector", rules.KERNELS_ALIGNED, "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+#];", "8", "16"),
    place("a read of what nobody wrote", rules.KERNELS_READ_WRITTEN, LOAD, "0", "0", make=unwritten),
    place(
        "a sum that nobody began",
        rules.KERNELS_READ_WRITTEN,
        "red.global.add.u32 [%rd1+#], 1;",
        "0",
        "0",
        make=unwritten,
    ),
    place(
        "a write to constant memory",
        rules.KERNELS_KEEP_READ_ONLY,
        "mov.u64 %rd3, #;\nst.u32 [%rd3], 7;",
        "table;\ncvta.const.u64 %rd3, %rd3",
        "plain",
        before=".const .align 4 .b32 table = 1;\n.global .align 4 .b32 plain = 5;\n",
    ),
    place("memory of the host", rules.KERNELS_OWN_DEVICE, STORE, "0", "0", make=of_the_host),
    place("memory of a peer", rules.KERNELS_OWN_DEVICE, LOAD, "0", "0", make=of_a_peer, devices=2),
    place("a null pointer", rules.KERNELS_OWN_DEVICE, LOAD, "0", "0", make=null),
    place(
        "shared memory after its end",
        rules.KERNELS_INSIDE_SHARED,
        "st.shared.u32 [room+#], 1;",
        "1024",
        "1020",
        before=SHARED,
    ),
    place(
        "shared memory before its start",
        rules.KERNELS_INSIDE_SHARED,
        "mov.u32 %r9, room;\nld.shared.u32 %r2, [%r9+#];",
        "-4",
        "0",
        before=SHARED,
    ),
    Fault(
        "a launch with too little shared memory",
        rules.KERNELS_INSIDE_SHARED,
        OWN + WRITE,
        OWN + WRITE,
        before=DYNAMIC,
        block=32,
        shared_bytes=(124, 128),
    ),
    place("local memory after its end", rules.KERNELS_INSIDE_LOCAL, LOCAL + "st.local.u32 [%rd2+#], 5;", "64", "60"),
    place(
        "local memory before its start", rules.KERNELS_INSIDE_LOCAL, LOCAL + "ld.local.u32 %r2, [%rd2+#];", "-4", "0"
    ),
    Fault(
        "local memory of another thread",
        rules.KERNELS_INSIDE_LOCAL,
        LOCAL + "cvta.local.u64 %rd2, %rd2;\nst.u32 [%rd2], 5;\nsetp.eq.u32 %p1, %r1, 1;\n"
        "@%p1 st.shared.u64 [room], %rd2;\nbar.sync 0;\n"
        "ld.shared.u64 %rd3, [room];\nld.u32 %r2, [%rd3];",
        LOCAL + "cvta.local.u64 %rd2, %rd2;\nst.u32 [%rd2], 5;\nbar.sync 0;\nld.u32 %r2, [%rd2];",
        before=SHARED,
        block=2,
    ),
    place("the device's heap after a block", INSIDE, IN_HEAP + "st.u32 [%rd2+#], 5;", "40", "36", before=MALLOC),
    place("the device's heap before a block", INSIDE, IN_HEAP + "ld.u32 %r2, [%rd2+#];", "-4", "0", before=MALLOC),
    place(
        "use after free in the device's heap",
        rules.KERNELS_NOT_FREED,
        IN_HEAP + "#ld.u32 %r2, [%rd2];",
        FREE_IN_HEAP,
        "",
        before=MALLOC,
    ),
    place(
        "shared memory read before it is written",
        rules.THREADS_ORDERED,
        OWN + OTHER + WRITE + "#" + READ_OTHER,
        "",
        BARRIER,
        before=SHARED,
        block=64,
    ),
    place(
        "shared memory written before it is read",
        rules.THREADS_ORDERED,
        OWN + OTHER + READ_OTHER + "#" + WRITE,
        "",
        BARRIER,
        before=SHARED,
        block=64,
    ),
    place(
        "shared memory written twice",
        rules.THREADS_ORDERED,
        OWN + OTHER + WRITE + "#" + WRITE_OTHER,
        "",
        BARRIER,
        before=SHARED,
        block=64,
    ),
    place(
        "a missing barrier of a warp",
        rules.THREADS_ORDERED,
        OWN + NEXT + WRITE + "#" + READ_OTHER,
        "",
        "bar.warp.sync -1;\n",
        before=SHARED,
        block=32,
    ),
    place(
        "an asynchronous copy without a wait",
        rules.COPIES_AWAITED,
        COPY.replace("#", "0") + "#ld.shared.u32 %r6, [%r2];",
        "",
        "cp.async.wait_group 0;\n",
        before=SHARED,
    ),
    place(
        "a barrier for more threads than come",
        rules.BARRIERS_END,
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, #;",
        "64",
        "32",
        block=64,
        answer=LAUNCH_FAILURE,
    ),
    place(
        "barriers with different numbers",
        rules.BARRIERS_END,
        "setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 0;\n@!%p1 bar.sync #;",
        "1",
        "0",
        block=64,
        answer=LAUNCH_FAILURE,
    ),
    place(
        "a surface outside of it",
        rules.KERNELS_INSIDE_SURFACES,
        "suld.b.2d.b32.trap %r2, [%rd1, {#, 1}];",
        "12",
        "8",
        make=picture,
        answer=LAUNCH_FAILURE,
    ),
    place(
        "a surface that was destroyed",
        rules.KERNELS_TEXTURES,
        "suld.b.2d.b32.zero %r2, [%rd1, {#, 1}];",
        "8",
        "8",
        make=destroyed,
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=[each.kind.replace(" ", "-") for each in FAULTS])
@pytest.mark.parametrize("faulty", [True, False], ids=["faulty", "right"])
def test_a_mistake_is_found_and_what_looks_like_it_is_not(
    checked: Callable[..., Checked], fault: Fault, faulty: bool
) -> None:
    given = checked(devices=fault.devices)
    given.work(
        fault.faulty if faulty else fault.right,
        fault.make(given, faulty),
        block=fault.block,
        before=fault.before,
        shared_bytes=fault.shared_bytes[not faulty],
        answer=fault.answer if faulty else 0,
    )
    assert set(given.rules()) == ({fault.rule} if faulty else set())


def test_each_mistake_is_listed_once() -> None:
    assert len({each.kind for each in FAULTS}) == len(FAULTS) >= 24
