"""Traces of Python's memory, taken in a process of its own: whoever measures this one may trace it already."""

from __future__ import annotations

import queue
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import gc
from quiesce.leaks.meters import tracing
from quiesce.leaks.owners import Owners

def deeply(depth):
    return deeply(depth - 1) if depth else bytearray(100)

kept = []
traces = tracing.Tracing(Owners([tracing.__file__]))
traces.start()
for number in range(24):
    replaced = deeply(tracing.FRAMES)
    kept += [(number, "kept"), (number, "kept as well")]
    gc.collect()
    traces.sample()
print(*(round(site.blocks_per_round) for site in traces.leaking_sites()))
"""


def test_tuples_that_a_free_list_could_serve_have_traces() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2"]


OTHER_DOMAIN = """\
import ctypes
from quiesce.leaks.meters import tracing
from quiesce.leaks.owners import Owners

track = ctypes.pythonapi.PyTraceMalloc_Track
track.argtypes = [ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t]
traces = tracing.Tracing(Owners([tracing.__file__]))
traces.start()
for number in range(24):
    track({domain}, 4096 + number, 100)
    traces.sample()
print(round(traces.on_c_heap_per_round()), round(traces.usual_step_on_c_heap().per_round))
"""


@pytest.mark.parametrize(("domain", "per_round"), [(0, "0"), (7, "112")])
def test_small_blocks_are_on_the_c_heap_where_another_allocator_reports_them(domain: int, per_round: str) -> None:
    """A request of 100 bytes takes a chunk of 112."""
    program = OTHER_DOMAIN.format(domain=domain)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [per_round, per_round]


IN_PLACE = """\
from quiesce.leaks.meters import tracing
from quiesce.leaks.owners import Owners

keys = [object() for _ in range(64)]
table = dict.fromkeys(keys[:8])
text = bytearray(400)
traces = tracing.Tracing(Owners([tracing.__file__]))
traces.start()
for number in range(24):
    {growth}
    traces.sample()
print(*(frame[1] for frame in (site.frame for site in traces.leaking_sites())))
"""


@pytest.mark.parametrize(
    ("growth", "lines"),
    [
        ("table.update(dict.fromkeys(keys[: 8 + 4 * (number > 3) + 12 * (number > 14)]))", []),
        ("table[number + 1000] = None", ["10"]),
        ("text.extend(bytes(20))", ["10"]),
    ],
)
def test_a_table_that_doubles_is_a_leak_only_with_what_is_entered_in_it(growth: str, lines: list[str]) -> None:
    program = IN_PLACE.format(growth=growth)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == lines


OF_A_LIBRARY = """\
from quiesce.leaks.meters import tracing
from quiesce.leaks.owners import Owners

library = "def make(): return bytearray(2000)"
space = {{}}
exec(compile(library, {library!r}, "exec"), space)
kept = []

def keep():
    kept.append({kept})

def thread_of_the_library():
    kept.append(space["make"]())

traces = tracing.Tracing(Owners([tracing.__file__]))
traces.start()
traces._owners.owner = lambda frames: None if frames[0][0] == tracing.__file__ else frames[0]
for number in range(24):
    keep()
    thread_of_the_library()
    traces.sample()
print(*(frame[0].rpartition("/")[2] for frame in (site.frame for site in traces.leaking_sites())))
"""


@pytest.mark.parametrize(("kept", "first"), [("bytearray(300)", "program.py"), ("object()", "queue.py")])
def test_lines_of_tested_code_that_matter_come_before_those_of_a_library(tmp_path: Path, kept: str, first: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(OF_A_LIBRARY.format(library=queue.__file__, kept=kept), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == first
