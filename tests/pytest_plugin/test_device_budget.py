"""Shares of a device across processes: who does not fit waits, and who died holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

if sys.platform == "win32":
    pytest.skip("there are no such locks", allow_module_level=True)

from quiesce.pytest_plugin.device_memory import SHARES, DeviceBudget, shares_of

HOLDER: Final = """
import sys
from pathlib import Path
from quiesce.pytest_plugin.device_memory import DeviceBudget

budget = DeviceBudget(Path(sys.argv[1]), "it")
log = open(sys.argv[1] + "/log", "a", buffering=1)
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "0":
        log.write(f"{sys.argv[2]} gives back\\n")
        budget.give_back()
    else:
        budget.take(int(line))
        log.write(f"{sys.argv[2]} has {line}")
    print("done", flush=True)
"""


class Holder:
    """A process that takes shares and gives them back on request."""

    def __init__(self, folder: Path, name: str) -> None:
        command = [sys.executable, "-c", HOLDER, str(folder), name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.heard()

    def ask(self, count: int) -> None:
        """Have it take so many shares, or give all of them back."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()

    def heard(self) -> str:
        """Wait for its next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def waits_for_a_lock(self) -> None:
        """Wait until the kernel lists it as one that waits."""
        while not any(
            "->" in line and f" {self.process.pid} " in line
            for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()
        ):
            assert self.process.poll() is None


@contextmanager
def holders(folder: Path, *names: str) -> Iterator[list[Holder]]:
    made: list[Holder] = []
    try:
        for name in names:
            made.append(Holder(folder, name))
        yield made
    finally:
        for holder in made:
            holder.process.kill()
            holder.process.communicate()


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text(encoding="utf-8").splitlines()


needs_the_kernels_list = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel lists no locks")


@needs_the_kernels_list
def test_what_does_not_fit_waits_until_it_does(tmp_path: Path) -> None:
    with holders(tmp_path, "one", "two", "three") as (one, two, three):
        one.ask(600)
        one.heard()
        two.ask(600)
        two.waits_for_a_lock()
        three.ask(1)  # it would fit, but two is first
        three.waits_for_a_lock()
        one.ask(0)
        assert [one.heard(), two.heard(), three.heard()] == ["done"] * 3
    first, second, *others = log(tmp_path)
    assert (first, second) == ("one has 600", "one gives back")
    assert sorted(others) == ["three has 1", "two has 600"]


def test_what_fits_does_not_wait(tmp_path: Path) -> None:
    with holders(tmp_path, "one", "two") as (one, two):
        for holder, count in ((one, 500), (two, SHARES - 500)):
            holder.ask(count)
            assert holder.heard() == "done"


@needs_the_kernels_list
def test_a_process_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    with holders(tmp_path, "one", "two") as (one, two):
        one.ask(SHARES)
        one.heard()
        two.ask(SHARES)
        two.waits_for_a_lock()
        os.kill(one.process.pid, signal.SIGKILL)
        assert two.heard() == "done"


@needs_the_kernels_list
def test_a_process_that_is_killed_while_it_waits_keeps_nobody_waiting(tmp_path: Path) -> None:
    with holders(tmp_path, "one", "two", "three") as (one, two, three):
        one.ask(600)
        one.heard()
        two.ask(SHARES)
        two.waits_for_a_lock()
        os.kill(two.process.pid, signal.SIGKILL)
        three.ask(SHARES - 600)
        assert three.heard() == "done"


def test_shares_are_rounded_up() -> None:
    assert [shares_of(size, SHARES * 10) for size in (0, 1, 10, 11, SHARES * 10)] == [0, 1, 1, 2, SHARES]


def test_to_give_back_twice_is_nothing(tmp_path: Path) -> None:
    budget = DeviceBudget(tmp_path, "it")
    budget.take(3)
    budget.give_back()
    budget.give_back()
    budget.close()
