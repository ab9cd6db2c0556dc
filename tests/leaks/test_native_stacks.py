"""Memory that a C library loses: found beside what Python keeps, and named with its line and its functions."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from quiesce.leaks.explaining.native_stacks import NativeStacks
from quiesce.leaks.judgement import Growth, Outcome
from quiesce.leaks.meters.memory import HEAP, HeapMeter
from quiesce.leaks.meters.tracing import Site
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import DESCRIPTORS, PYTHON, Quantity
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.rounds import Budget, Rounds

pytestmark = [
    pytest.mark.skipif(bool(HeapMeter().absent()), reason="this C library does not count its heap"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler; install cc"),
]

NEEDS_MEMRAY = pytest.mark.skipif(importlib.util.find_spec("memray") is None, reason="memray is not installed")

LIBRARY = """\
#include <stdlib.h>

static void *volatile last;

void lose(size_t size) { last = malloc(size); }
void give_back(size_t size) { last = malloc(size); free(last); }
"""

CHECKS = """\
import ctypes, itertools, random, sys
from quiesce.leaks.check import LeakCheck
from quiesce.leaks.stages.rounds import Budget
from quiesce.leaks.judgement import Outcome
from quiesce.leaks.meters.memory import HeapMeter, PythonMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.plan import Plan

library = ctypes.PyDLL(sys.argv[1])
sizes = [random.Random(number).randrange(600, 6000) for number in range(1000)]

def check(name, code):
    kept, rounds = [], itertools.count()
    def run():
        code(kept, next(rounds))
        return Outcome.PASSED
    judgement = LeakCheck(run, [PythonMeter(), HeapMeter()], Plan(rounds=24, seconds=120), Owners([])).judge()
    print(name, *(growth.quantity.family for growth in judgement.growths))
    return judgement.growths

def loses(kept, number):
    kept.append(bytes(2000))
    library.lose(300)

(_, heap) = check("loses", loses)
print(heap.evidence.splitlines()[-1])
check("random", lambda kept, number: kept.append(bytes(sizes[number])))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that loses what it allocates."""
    folder = tmp_path_factory.mktemp("native")
    (folder / "loses.c").write_text(LIBRARY, encoding="utf-8")
    command = ["cc", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", "libloses.so", "loses.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libloses.so"


def test_a_native_leak_is_found_beside_a_larger_one_of_python(library: Path) -> None:
    """What Python keeps alone is told once, though its sizes vary by chance."""
    program = library.with_name("checks.py")  # a file, so that its lines are told apart
    program.write_text(CHECKS, encoding="utf-8")
    command = [sys.executable, str(program), str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "loses python c-heap",
        "of this, Python's memory takes 2,048 bytes per round",
        "random python",
    ]


class InACycle:
    """Holds native memory until it is collected."""

    def __init__(self) -> None:
        self.me = self
        self.locks = [threading.Lock() for _ in range(5)]


def named(library: Path, call: str, family: Quantity = HEAP, every: int = 1) -> Growth:
    """Return a growth, named after rounds that call a function of the library, all or one of so many."""
    (growth,) = all_named(library, call, [growth_of(family)], [], every)
    return growth


def growth_of(quantity: Quantity) -> Growth:
    return Growth(quantity, 320.0, (0, 320, 640), 1, "native code", "evidence")


def all_named(
    library: Path, call: str, growths: Sequence[Growth], sites: Sequence[Site], every: int = 1
) -> Sequence[Growth]:
    """Return growths, named after such rounds."""
    function = getattr(ctypes.PyDLL(str(library)), call)
    numbers = itertools.count()

    def run() -> Outcome:
        InACycle()
        if next(numbers) % every == 0:
            function(300)  # here
        return Outcome.PASSED

    rounds = Rounds(run, lambda: False, lambda: None)
    rounds.first()
    return NativeStacks(Owners([]), rounds, Budget(10, float), Readings([HeapMeter()], Plan())).named(growths, sites)


@NEEDS_MEMRAY
def test_memray_names_the_line_and_the_function(library: Path) -> None:
    growth = named(library, "lose")
    assert growth.origin.endswith(": function(300)  # here")
    first, last = growth.evidence.splitlines()
    assert first.startswith("native code: lose (")
    assert "loses.c:5)" in first
    assert last == "evidence"


@pytest.fixture
def without_memray(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "memray" else found(name))


@pytest.mark.usefixtures("without_memray")
def test_the_c_heap_itself_names_the_line_where_memray_is_missing(library: Path) -> None:
    growth = named(library, "lose")
    assert growth.origin.endswith(": function(300)  # here")
    assert growth.evidence == "evidence"


@pytest.mark.usefixtures("without_memray")
@pytest.mark.parametrize("every", [2, 4])
def test_a_line_that_adds_another_amount_is_not_named(library: Path, every: int) -> None:
    assert named(library, "lose", every=every).origin == "native code"


@NEEDS_MEMRAY
def test_memory_that_is_lost_in_every_other_round_has_no_line(library: Path) -> None:
    """A table that grows now and then loses none either, and looks the same."""
    assert named(library, "lose", every=2).origin == "native code"


@NEEDS_MEMRAY
@pytest.mark.parametrize(("more", "families"), [(0, [PYTHON]), (1, [PYTHON, HEAP.family])])
def test_native_memory_of_the_line_that_keeps_objects_is_told_with_them(
    library: Path, more: int, families: Sequence[str]
) -> None:
    line = next(number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "  # here" in text)
    growths = [growth_of(Quantity(PYTHON, "Python's memory")), growth_of(HEAP)]
    found = all_named(library, "lose", growths, [Site((__file__, line + more), 100.0, 1.0)])
    assert [growth.quantity.family for growth in found] == families
    grows = "at the same time, the C heap grows by 320 bytes per round"
    assert (grows in found[0].evidence.splitlines()) == (len(families) == 1)


@pytest.mark.parametrize(
    ("call", "quantity"), [("give_back", HEAP), ("lose", Quantity(DESCRIPTORS, "open", "descriptors"))]
)
def test_nothing_is_named_where_nothing_is_lost(library: Path, call: str, quantity: Quantity) -> None:
    growth = named(library, call, quantity)
    assert (growth.origin, growth.evidence) == ("native code", "evidence")
