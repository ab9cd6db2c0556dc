"""What a fuzzer may use, and how it tells what went wrong: each runs in a process of its own.

``python -m tests.fuzzing.NAME SEED COUNT`` tries as many inputs from that seed on.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from tests.seeds import SEED

VARIABLE: Final = "QUIESCE_FUZZED_INPUTS"
INPUTS: Final = int(os.environ.get(VARIABLE, "0"))
"""How many inputs each fuzzer tries; 0: a sample."""
MEMORY_BYTES: Final = 4 << 30
SECONDS_EACH: Final = 20
"""Of the processor: a busy machine takes longer."""
_ROOT: Final = Path(__file__).parents[2]


class TooSlow(Exception):
    """An input was not finished in its time."""


def _stop(_: int, __: FrameType | None) -> None:
    raise TooSlow


def try_inputs(seed: int, count: int, judge: Callable[[int], None]) -> int:
    """Call ``judge`` with numbers from ``seed`` on, in bounds; write those that went wrong, and return how many did."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGPROF, _stop)
    wrong = 0
    for number in range(seed, seed + count):
        signal.setitimer(signal.ITIMER_PROF, SECONDS_EACH)
        try:
            judge(number)
        except Exception as error:  # whatever it is: it is no refusal by name
            wrong += 1
            sys.stdout.write(f"input {number}: {type(error).__name__}: {str(error)[:300]}\n")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.write(f"{count} inputs, {wrong} wrong\n")
    return wrong


def fuzz(module: str, sample: int, *arguments: str) -> None:
    """Run a fuzzer of this folder, with a sample or with as many inputs as the environment says; all must be right."""
    command = [sys.executable, "-m", f"tests.fuzzing.{module}", str(SEED), str(INPUTS or sample), *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{INPUTS or sample} inputs, 0 wrong\n"), done.stdout + done.stderr
