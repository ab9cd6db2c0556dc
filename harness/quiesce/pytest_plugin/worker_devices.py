"""GPUs under pytest-xdist: where pytest was started, each worker is given a device of its own, and told on starting.

The worker takes it only when it has to do with devices: before a backend is probed, before a test is checked for
leaks. So a project that merely has quiesce installed sees every device in every worker.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import pytest

from quiesce.pytest_plugin.keys import OWN_DEVICES, SETTINGS
from quiesce.pytest_plugin.visible_devices import DeviceList, device_lists, find_machine

WORKER_INPUT: Final = "quiesce_devices"
"""The key of ``config.workerinput`` under which a worker is told what to set in its environment."""
OPENCL_INPUT: Final = "quiesce_opencl_device"
OPENCL: Final = "QUIESCE_OPENCL_DEVICE"
"""What the OpenCL backend chooses by. How many devices there are only OpenCL knows: the number goes round."""


class WorkerDevices:
    """A plugin of the run that has workers. A worker that takes the place of a dead one takes its device as well."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._lists: tuple[DeviceList, ...] = device_lists(os.environ, find_machine())
        self._places: dict[int, str] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker of this machine its device, and say which."""
        if not node.gateway.spec.popen:
            return  # another machine has other devices
        place = next(place for place in range(len(self._places) + 1) if place not in self._places)
        self._places[place] = node.gateway.id
        given = {each.variable: each.entry_of(place) for each in self._lists}
        node.workerinput[WORKER_INPUT] = given
        if OPENCL not in os.environ:
            node.workerinput[OPENCL_INPUT] = str(place)
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if given and reporter is not None and self._config.stash[SETTINGS].asked:
            reporter.write_line(f"quiesce: {node.gateway.id} keeps to {describe(given)}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Free the place of a worker that is gone."""
        self._places = {place: name for place, name in self._places.items() if name != node.gateway.id}


def describe(given: Mapping[str, str]) -> str:
    """Return the environment of a worker in words."""
    return ", ".join(f"{variable}={entry}" for variable, entry in given.items())


def keep_to_own_device(config: pytest.Config) -> None:
    """Narrow the environment of a worker to its device, and note it; elsewhere there is nothing to do."""
    worker: Mapping[str, Any] = getattr(config, "workerinput", {})
    if OPENCL_INPUT in worker:
        os.environ[OPENCL] = worker[OPENCL_INPUT]
    if given := worker.get(WORKER_INPUT):
        os.environ.update(given)
        config.stash[OWN_DEVICES] = {worker["workerid"]: describe(given)}
