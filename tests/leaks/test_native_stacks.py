"""Memory that a C library loses: found beside what Python keeps, and named with its line and its functions."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.leaks.explaining.native_stacks import NativeStacks
from quiesce.leaks.judgement import Growth, Outcome
from quiesce.leaks.meters.memory import HEAP, HeapMeter
from quiesce.leaks.owners import Owners
from quiesce.leaks.quantities import DESCRIPTORS, Quantity
from quiesce.leaks.stages.rounds import Budget, Rounds

pytestmark = [
    pytest.mark.skipif(bool(HeapMeter().absent()), reason="this C library does not count its heap"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler; install cc"),
]

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

(heap, _) = check("loses", loses)
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
    command = [sys.executable, "-c", CHECKS, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "loses c-heap python",
        "of this, Python's memory takes 2,048 bytes per round",
        "random python",
    ]


def named(library: Path, call: str, family: Quantity = HEAP) -> Growth:
    """Return a growth, named after rounds that call a function of the library."""
    function = getattr(ctypes.PyDLL(str(library)), call)

    def run() -> Outcome:
        function(300)  # here
        return Outcome.PASSED

    rounds = Rounds(run, lambda: False, lambda: None)
    rounds.first()
    growth = Growth(family, 320.0, (0, 320, 640), 1, "native code", "evidence")
    (growth,) = NativeStacks(Owners([]), rounds, Budget(10, float)).named([growth], [])
    return growth


@pytest.mark.skipif(importlib.util.find_spec("memray") is None, reason="memray is not installed")
def test_memray_names_the_line_and_the_function(library: Path) -> None:
    growth = named(library, "lose")
    assert growth.origin.endswith(": function(300)  # here")
    first, last = growth.evidence.splitlines()
    assert first.startswith("native code: lose (")
    assert "loses.c:5)" in first
    assert last == "evidence"


@pytest.mark.parametrize(
    ("call", "quantity"), [("give_back", HEAP), ("lose", Quantity(DESCRIPTORS, "open", "descriptors"))]
)
def test_nothing_is_named_where_nothing_is_lost(library: Path, call: str, quantity: Quantity) -> None:
    growth = named(library, call, quantity)
    assert (growth.origin, growth.evidence) == ("native code", "evidence")
