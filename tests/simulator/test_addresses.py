"""Where memory of simulated devices lies: elsewhere where something is in its place, and nowhere under a limit."""

from __future__ import annotations

import ctypes
import mmap
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.conftest import Compile

from quiesce.cli.endings import ExitCode
from quiesce.simulator.kernels.translation.program import MEMORY_BASE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.ledger import Seen

TEBIBYTE: Final = 1 << 40
BELOW, ABOVE = MEMORY_BASE + mmap.PAGESIZE, 0x42 * TEBIBYTE
_NORESERVE, _FIXED = 0x4000, 0x100000  # the second one fails where something is, instead of replacing it

computing = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")


@contextmanager
def taken(*addresses: int) -> Iterator[None]:
    """Let something lie at these addresses, as another allocator's memory does."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | _FIXED
    for address in addresses:
        assert library.mmap(address, mmap.PAGESIZE, mmap.PROT_READ, flags, -1, 0) == address, ctypes.get_errno()
    yield
    for address in addresses:
        assert library.munmap(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE)) == 0


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ((), BELOW),
        ((BELOW,), ABOVE),
        ((BELOW + 12 * TEBIBYTE,), ABOVE),
        ((BELOW, 0x43 * TEBIBYTE, 0x44 * TEBIBYTE), 0x44 * TEBIBYTE),
    ],
    ids=["free", "a block lies there", "reserved addresses lie there", "the next place is taken, too"],
)
@pytest.mark.usefixtures("library")
def test_memory_lies_where_nothing_is(places: tuple[int, ...], expected: int, start: Any) -> None:
    with taken(*places):
        client = start("cuda:12", devices=2)
        block, pinned, reserved = client.make("Malloc", 4096), client.make("MallocHost", 4096), ctypes.c_uint64()
        driver = client.machine.library
        driver.cuMemAddressReserve.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 3, ctypes.c_uint64]
        assert driver.cuMemAddressReserve(ctypes.byref(reserved), 2 << 20, 0, 0, 0) == 0
        client.ok("Memcpy", pinned, block, ctypes.c_size_t(4096), 2)
        client.ok("Free", block)
        assert client.call("Free", block) == 1
        assert len(client.seen(Seen.FREED_TWICE)) == 1
        assert expected <= block < pinned < reserved.value < expected + 16 * TEBIBYTE
        client.machine.close()


@computing
@pytest.mark.parametrize("places", [(), (BELOW,)], ids=["in the usual place", "elsewhere"])
def test_kernels_find_memory_wherever_it_lies(places: tuple[int, ...], checked: Callable[..., Checked]) -> None:
    with taken(*places):
        device = checked()
        block = device.client.make("Malloc", 64)
        device.work("st.global.u32 [%rd1+60], 1;\nld.global.u32 %r2, [%rd1+60];", block)
        assert device.rules() == []
        device.work("st.global.u32 [%rd1+64], 1;", block)
        device.work("ld.global.u32 %r2, [%rd1];", block)
        assert device.rules() == ["kernels_stay_inside_blocks", "kernels_read_what_was_written"]
        device.client.machine.close()


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12", "--", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


LIMITED: Final = """
import ctypes, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
library, place = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
print(library.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(100)))
"""


@pytest.mark.parametrize("limit", [4 << 30, pytest.param(20 << 40, marks=computing)], ids=["for memory", "for checks"])
@pytest.mark.usefixtures("library")
def test_a_limit_of_addresses_is_told(limit: int) -> None:
    done = run(sys.executable, "-c", LIMITED, limit)
    assert done.returncode == ExitCode.COULD_NOT_RUN, done.stderr
    assert "Traceback" not in done.stderr
    assert "could not start at cudaMalloc: simulated devices need terabytes of addresses" in done.stdout
    assert f"this process is limited to {limit >> 20} MiB of them (RLIMIT_AS)" in done.stdout


ADDON: Final = """
#include <stddef.h>
#include <stdio.h>
int cudaMalloc(void **, size_t), cudaFree(void *);
__attribute__((constructor)) static void use(void) {
    void *block;
    printf("%d", cudaMalloc(&block, 1 << 20));
    printf("%d", cudaFree(block));
    printf("%d", cudaFree(block));
    fflush(stdout);
}
"""
SHARED: Final = ("-shared", "-fPIC", "-Wl,-soname,libcudart.so.12")
OPENED: Final = "try { process.dlopen({exports: {}}, process.argv[1]) } catch (error) { }"


@pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")
@pytest.mark.usefixtures("library")
def test_a_program_in_nodejs_is_judged(compile_c: Compile) -> None:
    """V8 has its memory at random addresses, of which some are mostly those of devices."""
    runtime = compile_c("link/libcudart.so.12", "void cudaMalloc(void) {}\nvoid cudaFree(void) {}\n", *SHARED)
    addon = compile_c("addon.node", ADDON, "-shared", "-fPIC", str(runtime))
    done = run("node", "-e", OPENED, addon)
    assert done.stdout.startswith("001"), done.stdout + done.stderr
    assert (done.returncode, "memory_is_freed_once" in done.stdout) == (ExitCode.FINDINGS, True)
