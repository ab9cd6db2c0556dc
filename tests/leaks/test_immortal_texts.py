"""Texts that the interpreter never frees, in a process of its own: they stay."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\
import gc, sys
from quiesce.leaks.meters.memory import BLOCKS, PythonMeter

meter = PythonMeter()
held = []

def grown(keep):
    gc.collect()
    before = meter.read()[BLOCKS]
    for number in range(1000):
        keep(sys.intern(f"{keep} {number}"))
    gc.collect()
    return meter.read()[BLOCKS] - before

grown(len)
print(grown(hash) < 100, grown(lambda text: held.append([text])) > 900)
"""


def test_texts_that_nobody_holds_do_not_count_and_what_holds_them_does() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
