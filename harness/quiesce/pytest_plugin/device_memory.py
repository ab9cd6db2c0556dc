"""The marker ``device_memory``: tests that need more than a device has together do not run at the same time.

Registered only in a run that has such a test.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from quiesce.files import open_private_file, private_folder
from quiesce.model.errors import ConfigurationError
from quiesce.model.wording import bytes_from, bytes_in_words
from quiesce.pytest_plugin.keys import EXEC_SETTINGS, MARKER_ERROR, MEMORY_MARKER
from quiesce.reporting import clean_line

SHARES: Final = 1024
_TURN: Final = SHARES
"""The byte behind the shares: who has it collects."""


def shares_of(size_bytes: int, total_bytes: int) -> int:
    """Return how many shares a size needs, rounded up."""
    return min(SHARES, -(-size_bytes * SHARES // total_bytes))


def budget_folder() -> Path:
    """Return the folder of this user's files, which all runs on this machine share.

    Raises :class:`ConfigurationError` where others can change it, and :class:`OSError`.
    """
    return private_folder(Path(tempfile.gettempdir()) / f"quiesce-devices-{os.getuid()}")


class DeviceBudget:
    """The shares of one device. ``name`` identifies it among all processes of the machine."""

    def __init__(self, folder: Path, name: str) -> None:
        digest = hashlib.sha256(name.encode("utf-8")).hexdigest()[:16]
        self._file = open_private_file(folder / f"{digest}.shares")
        self._held: set[int] = set()

    def take(self, count: int) -> None:
        """Wait until there are so many shares, and hold them. Who waits first is served first."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _TURN)
        try:
            while len(self._held) < count:
                self._take_free(count)
                if len(self._held) < count:
                    share = next(each for each in range(SHARES) if each not in self._held)
                    fcntl.lockf(self._file, fcntl.LOCK_EX, 1, share)
                    self._held.add(share)
        except BaseException:
            self.give_back()
            raise
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _TURN)

    def _take_free(self, count: int) -> None:
        for share in range(SHARES):
            if len(self._held) == count:
                return
            if share not in self._held:
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, share)
                except (BlockingIOError, PermissionError):  # which of the two depends on the system
                    continue
                self._held.add(share)

    def give_back(self) -> None:
        """Hold nothing any more; idempotent."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, SHARES, 0)
        self._held.clear()

    def close(self) -> None:
        """End; idempotent only with respect to the shares."""
        os.close(self._file)


SECONDS_MAX: Final = 60

SIMULATED_BYTES: Final = 16 << 30
"""The memory of a simulated device that was given no capacity (``machine/settings.c``)."""

QUESTION: Final = """
import ctypes
free, size, device = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_int()
name, bus = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(64)

def cuda(driver):
    if driver.cuInit(0) == driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
        driver.cuDeviceGetUuid(name, device)
        return driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0

def hip(runtime):
    if runtime.hipMemGetInfo(ctypes.byref(free), ctypes.byref(size)) == 0:
        return runtime.hipDeviceGetPCIBusId(bus, len(bus), 0) == 0

for library, ask in ("libcuda.so.1", cuda), *((f"libamdhip64.so.{release}", hip) for release in (7, 6, 5)):
    try:
        if ask(ctypes.CDLL(library)):
            print(bus.value.decode() or bytes(name).hex(), size.value)
            break
    except OSError:
        pass
"""
"""A program that prints the identifier and the bytes of the first device, or nothing where there is none."""


@dataclass(frozen=True, slots=True)
class FirstDevice:
    """One device. ``name`` is the same in each process that sees it."""

    name: str
    total_bytes: int


@cache
def first_device() -> FirstDevice | None:
    """Return the device, or None where there is none. Under ``quiesce exec`` it is the simulated one."""
    if text := os.environ.get(EXEC_SETTINGS):
        settings = dict(word.partition("=")[::2] for word in text.split(";"))
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", os.environ.get("HIP_VISIBLE_DEVICES", "0"))
        name = f"simulated {settings['folder']} {visible.partition(',')[0]}"
        return FirstDevice(name, int(settings.get("capacity", SIMULATED_BYTES)))
    asked = subprocess.run(  # noqa: S603 - this interpreter, and a text of this file
        [sys.executable, "-I", "-S", "-c", QUESTION], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )
    answer = asked.stdout.split()
    return FirstDevice(answer[0], int(answer[1])) if len(answer) == 2 and int(answer[1]) else None


NEEDED: Final[pytest.StashKey[int]] = pytest.StashKey()
"""In ``item.stash``: how many bytes of device memory a test needs."""


class DeviceMemory:
    """The hooks. A process holds the shares of one test at a time, from before its setup until after its teardown."""

    def __init__(self) -> None:
        self._device: FirstDevice | None = None
        self._budget: DeviceBudget | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for the memory; time limits begin after that."""
        if NEEDED not in item.stash:
            return (yield)
        try:
            budget = self._opened()
        except ConfigurationError as error:
            item.stash[MARKER_ERROR] = clean_line(f"{item.nodeid}: the marker '{MEMORY_MARKER}': {error}")
            return (yield)
        if budget is None or self._device is None:
            return (yield)
        needed_bytes, total_bytes = item.stash[NEEDED], self._device.total_bytes
        if needed_bytes > total_bytes:
            item.stash[MARKER_ERROR] = (
                f"{clean_line(item.nodeid)}: the test needs {bytes_in_words(needed_bytes)} of device memory, and the "
                f"device has {bytes_in_words(total_bytes)}; run it on a larger device, or leave it out with -m"
            )
            return (yield)
        budget.take(shares_of(needed_bytes, total_bytes))
        try:
            return (yield)
        finally:
            budget.give_back()

    def _opened(self) -> DeviceBudget | None:
        if self._budget is None:
            self._device = first_device()
            if self._device is not None:
                self._budget = DeviceBudget(budget_folder(), self._device.name)
        return self._budget


def register_device_memory(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Note what each test needs. A marker that makes no sense is an error of its test."""
    for item in items:
        marker = item.get_closest_marker(MEMORY_MARKER)
        if marker is not None:
            try:
                item.stash[NEEDED] = _needed(marker)
            except ValueError as error:
                said = f"{item.nodeid}: the marker '{MEMORY_MARKER}': {error}"
                item.stash[MARKER_ERROR] = clean_line(said)
    config.pluginmanager.register(DeviceMemory(), "quiesce-device-memory")


def _needed(marker: pytest.Mark) -> int:
    """Return the bytes that a marker asks for. Raises :class:`ValueError` that says what to write."""
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], str):
        raise ValueError(f"write one size, such as @pytest.mark.{MEMORY_MARKER}('4 GiB')")
    try:
        return bytes_from(marker.args[0])
    except ValueError as error:
        raise ValueError(f"{marker.args[0]!r} is no size; {error}") from None
