"""A long kernel is compiled for rows of threads once so many were launched that this is worth its time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.simulator.checked_kernels import Checked
from tests.simulator.conftest import Start
from tests.simulator.kernel_programs import TO_HOST, entry

from quiesce.simulator.runtime.kernel_compiler import kernel_compiler

Words: TypeAlias = NDArray[np.uint32]
WORTH_THREADS: Final = 1 << 20
LONG: Final = "".join(f"mad.lo.u32 %r1, %r1, {2 * number + 1}, {number};\n" for number in range(320))
EXCHANGE: Final = """shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xffffffff;
add.u32 %r1, %r1, %r4;
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4;
add.u64 %rd1, %rd1, %rd2;
atom.global.add.u32 %r5, [%rd1], %r1;
"""
LOOP: Final = """again:
add.u32 %r1, %r1, 7;
setp.lt.u32 %p1, %r1, 64;
@%p1 bra again;
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a run with a compiler of its own, whose cache is beside it."""
    made = tmp_path / "run"
    made.mkdir()
    with ExitStack() as opened:
        with monkeypatch.context() as patch:
            patch.setenv("QUIESCE_CACHE", str(tmp_path))
            opened.enter_context(kernel_compiler(made))
        yield made


class Run:
    """A kernel on a machine whose compiler keeps its objects in a folder of its own."""

    def __init__(self, start: Start, folder: Path, body: str) -> None:
        self._folder = folder
        self.on = Checked(start, folder, {})
        loads = "mov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [to];\n"
        self._kernel = self.on.kernel(entry("work", ".param .u64 to", loads + body), "work")

    def objects(self) -> int:
        """Return how many objects the compiler made."""
        return len(list(self._folder.parent.glob("**/*.o")))

    def total(self, *grids: int) -> Words:
        """Launch blocks of 256 threads; return what all of them added to the words of their threads."""
        words = self.on.client.make("Malloc", 1024)
        self.on.client.ok("Memset", words, 0, 1024)
        for grid in grids:
            assert self.on.launch(self._kernel, (grid, 1, 1), (256, 1, 1), words) == 0
        made = np.empty(256, np.uint32)
        self.on.client.ok("Memcpy", made.ctypes.data, words, 1024, TO_HOST)
        self.on.client.ok("Free", words)
        assert self.on.findings() == ()
        return made


def expected(threads: int) -> Words:
    """Return what one block adds."""
    values = np.arange(threads, dtype=np.uint32)
    for number in range(320):
        values = values * np.uint32(2 * number + 1) + np.uint32(number)
    added: Words = values + values[np.arange(threads) ^ 1]
    return added


@pytest.mark.parametrize(
    ("body", "worth_threads"), [(LONG + EXCHANGE, WORTH_THREADS), (LOOP + LONG + EXCHANGE, WORTH_THREADS // 16)]
)
def test_a_long_kernel_is_compiled_for_rows_once_many_threads_were_launched(
    start: Start, run: Path, body: str, worth_threads: int
) -> None:
    kernel = Run(start, run, body)
    first = kernel.total(1)
    kernel.total(worth_threads // 256 - 2)
    assert kernel.objects() == 1
    kernel.total(1)
    assert kernel.objects() == 2
    assert (kernel.total(1) == first).all()


def test_single_threads_that_go_on_after_barriers_count_again(start: Start, run: Path) -> None:
    kernel = Run(start, run, 4 * LONG + 15 * "bar.sync 0;\n" + EXCHANGE)
    first = kernel.total(WORTH_THREADS // 256 // 16)
    assert kernel.objects() == 1
    second = kernel.total(WORTH_THREADS // 256 // 16)
    assert kernel.objects() == 2
    assert (first == second).all()


def test_a_launch_of_many_threads_is_for_rows_at_once(start: Start, run: Path) -> None:
    kernel = Run(start, run, LONG + EXCHANGE)
    made = kernel.total(WORTH_THREADS // 256)
    assert kernel.objects() == 2
    assert (made == expected(256) * np.uint32(WORTH_THREADS // 256)).all()


def test_a_short_kernel_is_for_rows_at_once(start: Start, run: Path) -> None:
    kernel = Run(start, run, EXCHANGE)
    kernel.total(1, WORTH_THREADS // 256)
    assert kernel.objects() == 1
