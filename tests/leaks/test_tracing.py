"""Traces of Python's memory, taken in a process of its own: whoever measures this one may trace it already."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\
import gc
from quiesce.leaks import tracing
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
