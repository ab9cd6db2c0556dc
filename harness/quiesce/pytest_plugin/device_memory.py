"""The marker ``device_memory``: tests that need more than a device has together do not run at the same time.

Registered only in a run that has such a test.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.model.wording import bytes_from, bytes_in_words
from quiesce.pytest_plugin.device_budget import DeviceBudget, budget_folder, shares_of
from quiesce.pytest_plugin.first_device import FirstDevice, first_device
from quiesce.pytest_plugin.keys import MARKER_ERROR, MEMORY_MARKER
from quiesce.reporting.text import clean_line

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
