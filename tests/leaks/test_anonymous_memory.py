"""Memory that code maps itself: seen past malloc, and told only where it is large and nothing better explains it."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.leaks.meters.memory import FLOOR_BYTES, MAPPED, AnonymousMemoryMeter, GlibcHeap
from quiesce.leaks.quantities import Unreadable, kind_of_leak

GIB: Final = 1 << 30
pytestmark = pytest.mark.skipif(
    bool(AnonymousMemoryMeter().absent()), reason="this C library does not count its heap, so nobody knows the rest"
)

MAPS: Final = """\
import ctypes, mmap, sys
import quiesce
from quiesce.leaks.meters.memory import MAPPED, AnonymousMemoryMeter
from quiesce.leaks.check import LeakCheck
from quiesce.leaks.judgement import Outcome
from quiesce.leaks.meters.memory import HeapMeter, PythonMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan

MIB = 1 << 20
library = ctypes.PyDLL(None)
library.mmap.restype = library.malloc.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
library.malloc.argtypes = [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]

def map_pages(size_bytes):
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = library.mmap(None, size_bytes, protection, flags, -1, 0)
    ctypes.memset(address, 1, size_bytes)
    return address
"""

READS: Final = f"""{MAPS}
meter = AnonymousMemoryMeter()
before = meter.read()[MAPPED]
address = map_pages(4 * MIB)
mapped = meter.read()[MAPPED] - before
library.munmap(address, 4 * MIB)
unmapped = meter.read()[MAPPED] - before
blocks = [library.malloc(2 * MIB) for _ in range(4)]
for block in blocks:
    ctypes.memset(block, 1, 2 * MIB)
print(round(mapped / MIB), round(unmapped / MIB), round((meter.read()[MAPPED] - before) / MIB))
"""


def printed(program: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_mappings_count_and_what_malloc_hands_out_does_not() -> None:
    assert printed(READS) == ["4", "0", "0"]


CHECKS: Final = f"""{MAPS}
kept, free, rounds = [], [], [0]

def leak(): map_pages(2 * MIB)
def leak_beside_malloc(): map_pages(2 * MIB); library.malloc(100)
def keep(): kept.append((bytes(100), map_pages(2 * MIB)))
def give_back(): library.munmap(map_pages(2 * MIB), 2 * MIB)
def reuse(): free.append(free.pop() if free else map_pages(2 * MIB))
def leak_little(): map_pages(32 << 10)

def warm_up():
    rounds[0] += 1
    if rounds[0] < 12:
        map_pages(2 * MIB)

def use_malloc():
    rounds[0] += 1
    block = library.malloc(rounds[0] % 7 * MIB // 2)
    ctypes.memset(block, 1, rounds[0] % 7 * MIB // 2)
    library.free(block)

def run():
    globals()[sys.argv[1]]()
    return Outcome.PASSED

meters = [AnonymousMemoryMeter(), PythonMeter(), HeapMeter()]
judgement = LeakCheck(run, meters, Plan(rounds=24), Owners([quiesce.__path__[0]])).judge()
print(judgement.runs, judgement.inconclusive, *(growth.quantity.family for growth in judgement.growths))
for growth in judgement.growths:
    print(growth.evidence, file=sys.stderr)
"""


def checked(code: str) -> tuple[int, list[str], str]:
    """Return how many rounds there were, what leaks, and the evidence."""
    command = [sys.executable, "-", code]
    done = subprocess.run(command, input=CHECKS, capture_output=True, text=True, check=True)
    rounds, *families = done.stdout.split()
    return int(rounds), families, done.stderr


def test_pages_that_are_never_unmapped_leak() -> None:
    _, families, evidence = checked("leak")
    assert families == ["anonymous-memory"]
    assert evidence == "resident anonymous pages of the process, less the C heap\n"
    assert kind_of_leak(MAPPED.family) == "memory leak (mapped by native code)"


def test_the_mapping_is_told_and_the_block_beside_it_is_evidence() -> None:
    _, families, evidence = checked("leak_beside_malloc")
    assert families == ["anonymous-memory"]
    assert "at the same time, the C heap grows by" in evidence


def test_an_object_that_keeps_a_mapping_is_told_with_the_mapping_as_evidence() -> None:
    _, families, evidence = checked("keep")
    assert families == ["python"]
    assert "at the same time, memory that native code maps itself grows by 2,0" in evidence


def test_pages_that_come_back_are_not_pursued() -> None:
    rounds, families, _ = checked("give_back")
    assert (rounds < 8, families) == (True, []), "screening ends it; a page of another owner may cost one repetition"


@pytest.mark.parametrize("code", ["reuse", "warm_up", "use_malloc", "leak_little"])
def test_what_comes_to_rest_or_is_malloc_or_is_little_does_not_leak(code: str) -> None:
    assert checked(code)[1] == []


def test_a_system_that_does_not_say_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read: No such file"):
        AnonymousMemoryMeter(str(tmp_path)).read()
    (tmp_path / "statm").write_text("100 90 10 1 0 50 0\n", encoding="ascii")
    (tmp_path / "smaps_rollup").write_text("Rss: 4 kB\n", encoding="ascii")
    with pytest.raises(Unreadable, match="no line 'Anonymous:'"):
        AnonymousMemoryMeter(str(tmp_path)).read()


def tell(folder: Path, resident_pages: int, kib: int) -> None:
    (folder / "statm").write_text(f"9000 {resident_pages + 5} 5 1 0 50 0\n", encoding="ascii")
    (folder / "smaps_rollup").write_text(f"Rss: 4 kB\nAnonymous: {kib} kB\nSwap: 0 kB\n", encoding="ascii")


def test_the_exact_figure_is_read_once_and_then_where_the_quick_one_has_moved(tmp_path: Path) -> None:
    meter = AnonymousMemoryMeter(str(tmp_path))
    floor_pages = FLOOR_BYTES // mmap.PAGESIZE

    def read() -> int:
        return round(meter.read()[MAPPED] / GIB)

    tell(tmp_path, 1, 7 * GIB >> 10)
    assert read() == 7, "however little it is"
    tell(tmp_path, floor_pages, 9 * GIB >> 10)
    assert read() == 7, "it has moved by less than is noise"
    tell(tmp_path, 1 + floor_pages, 9 * GIB >> 10)
    assert read() == 9
    tell(tmp_path, 1, 3 * GIB >> 10)
    assert read() == 3


def test_malloc_gives_back_its_free_pages_while_the_figure_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = AnonymousMemoryMeter()
    asked: list[str] = []
    monkeypatch.setattr(GlibcHeap, "trim", lambda _: asked.append("trim"))
    meter.settle()
    meter.observe()
    meter.settle()
    meter.rest()
    meter.settle()
    assert asked == ["trim"]
    assert "a mapping without munmap" in meter.origin(MAPPED)
