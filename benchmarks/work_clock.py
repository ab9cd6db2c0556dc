"""What the clock of a leak check counts on a machine that is idle and on one that is busy, and what reading it takes.

Each kind of work is done alone, and then next to busy loops. The clock is right where both columns say the same.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final

from quiesce.leaks.stages.work_clock import WorkClock

READINGS: Final = 3000
SLEEPING_THREADS: Final = 2
BUSY: Final = "import time\nbegun = time.process_time()\nwhile time.process_time() - begun < 1: pass"


def compute(seconds: float = 1.0) -> None:
    """Compute for so long on this thread."""
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass


def compute_in_threads() -> None:
    """Compute in threads that end before the clock is read."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(compute, [0.125] * 8))


def run(program: str) -> None:
    """Run a program in a child and wait for it."""
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - one of those below


def take_turns() -> None:
    """Compute and sleep for short times."""
    for _ in range(100):
        compute(0.005)
        time.sleep(0.005)


KINDS: Final[Sequence[tuple[str, Callable[[], None]]]] = (
    ("computes for 1 s", compute),
    ("sleeps for 0.5 s", lambda: time.sleep(0.5)),
    ("computes and sleeps by turns", take_turns),
    ("a pool of 4 threads computes", compute_in_threads),
    ("a child computes for 1 s", lambda: run(BUSY)),
    ("a child sleeps for 0.5 s", lambda: run("import time; time.sleep(0.5)")),
)


@contextmanager
def busy_machine(loops: int) -> Iterator[None]:
    """Let so many processes compute."""
    with ExitStack() as stack:
        for _ in range(loops):
            child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.enter_context(child)
            stack.callback(child.kill)
        yield


def counted(work: Callable[[], None]) -> tuple[float, float]:
    """Return the seconds of work that the clock counts, and those of the wall."""
    clock, begun = WorkClock(), time.monotonic()
    work()
    return clock(), time.monotonic() - begun


def print_cost() -> None:
    """Print what one reading takes, with more and more threads."""
    clock, ends = WorkClock(), threading.Event()
    threads = [threading.Thread(target=ends.wait) for _ in range(SLEEPING_THREADS)]
    alone = min(timeit.repeat(clock, number=READINGS)) / READINGS
    for thread in threads:
        thread.start()
    among = min(timeit.repeat(clock, number=READINGS)) / READINGS
    ends.set()
    print(f"\na reading takes {alone * 1e6:.0f} us with one thread, {among * 1e6:.0f} us with {1 + SLEEPING_THREADS}")


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the clock of a leak check counts on a busy machine.")
    parser.add_argument("--loops", type=int, default=20, metavar="N", help="busy loops next to the work (20)")
    loops = parser.parse_args(arguments).loops
    print(f"{'seconds of work (of the wall)':<32} {'alone':>16} {f'{loops} busy loops':>16}  ratio")
    for name, work in KINDS:
        alone, wall = counted(work)
        with busy_machine(loops):
            busy, busy_wall = counted(work)
        print(f"{name:<32} {f'{alone:.2f} ({wall:.2f})':>16} {f'{busy:.2f} ({busy_wall:.2f})':>16}  {busy / alone:.2f}")
    print_cost()


if __name__ == "__main__":
    main(sys.argv[1:])
