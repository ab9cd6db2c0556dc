"""GPUs under pytest-xdist: where pytest was started, each worker is given a device of its own, and told on starting.

The worker takes it only when it has to do with devices: before a backend is probed, before a test is checked for
leaks. So a project that merely has quiesce installed sees every device in every worker.

Which GPUs the caller may see, as the variables of CUDA and ROCm say, and which of them a worker keeps to.

Sources: the CUDA Programming Guide, "CUDA Environment Variables" (docs.nvidia.com/cuda/cuda-programming-guide), for
indices, identifiers and what ends a list; NVIDIA's MIG User Guide for ``MIG-`` names; ROCm's "GPU isolation techniques"
and HIP's "HIP environment variables" (rocm.docs.amd.com) for the two levels of ROCm: ``ROCR_VISIBLE_DEVICES`` hides
devices from every program, and ``HIP_VISIBLE_DEVICES``, or ``CUDA_VISIBLE_DEVICES`` in its place, counts what is left.

No library of a vendor is loaded: that alone could fix the devices of the process.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.pytest_plugin.keys import OWN_DEVICES, SETTINGS

CUDA: Final = "CUDA_VISIBLE_DEVICES"
HIP: Final = "HIP_VISIBLE_DEVICES"
ROCR: Final = "ROCR_VISIBLE_DEVICES"

_IDENTIFIER: Final = re.compile(r"(?:GPU|MIG)-\S+")
_SIMD_COUNT: Final = re.compile(r"^simd_count ([1-9]\d*)$", re.MULTILINE)
_RENDER_MINOR: Final = re.compile(r"^drm_render_minor (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Machine:
    """How many GPUs of each vendor this process can open; 0 where there are none, or where that cannot be known."""

    nvidia: int
    amd: int


@dataclass(frozen=True, slots=True)
class DeviceList:
    """The devices that one variable may name, in the caller's order."""

    variable: str
    entries: tuple[str, ...]

    def entry_of(self, worker: int) -> str:
        """Return the entry that a worker keeps to; workers count from 0, and go round where devices are fewer."""
        return self.entries[worker % len(self.entries)]


def device_lists(environ: Mapping[str, str], machine: Machine) -> tuple[DeviceList, ...]:
    """Return what is to be divided among workers: nothing where the caller sees no device, or one device alone.

    One list for each vendor, because a second one would count what the first has left.
    """
    cuda = _entries(environ.get(CUDA), machine.nvidia)
    candidates = [DeviceList(CUDA, cuda)]
    if HIP in environ:
        candidates.append(DeviceList(HIP, _entries(environ[HIP], 0 if ROCR in environ else machine.amd)))
    elif CUDA not in environ and ROCR in environ:
        candidates.append(DeviceList(ROCR, _entries(environ[ROCR], machine.amd)))
        if len(cuda) > 1:  # HIP would read the variable that NVIDIA's devices need; its own wins over it
            candidates.append(DeviceList(HIP, ("0", "0")))
    elif CUDA not in environ:
        candidates.append(DeviceList(HIP, _entries(None, machine.amd)))
    return tuple(candidate for candidate in candidates if len(candidate.entries) > 1)


def _entries(value: str | None, count: int) -> tuple[str, ...]:
    """Return the devices that a variable's value names; without a value, all of ``count``.

    The first entry that is no device (``-1``, a name, an index beyond the last) ends the list: what follows is hidden.
    """
    if value is None:
        return tuple(map(str, range(count)))
    entries = [entry.strip() for entry in value.split(",")]
    return tuple(itertools.takewhile(lambda entry: _is_device(entry, count), entries))


def _is_device(entry: str, count: int) -> bool:
    if entry.isascii() and entry.isdigit():
        return count == 0 or int(entry) < count
    return _IDENTIFIER.fullmatch(entry) is not None


def find_machine(root: Path = Path("/")) -> Machine:
    """Count the GPUs of a Linux machine by the files of its drivers; elsewhere none are found."""
    return Machine(_count_nvidia(root), sum(_is_amd_gpu(root, node) for node in _amd_nodes(root)))


def _count_nvidia(root: Path) -> int:
    """Count what the driver lists and the process has a device file of: a container may be given fewer."""
    listed = len(list((root / "proc/driver/nvidia/gpus").glob("*")))
    return min(listed, sum(node.name[len("nvidia") :].isdigit() for node in (root / "dev").glob("nvidia*")))


def _amd_nodes(root: Path) -> Iterator[str]:
    """Yield the properties of each node of the kernel's driver; those hidden from a container cannot be read."""
    for path in (root / "sys/class/kfd/kfd/topology/nodes").glob("*/properties"):
        try:
            yield path.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue


def _is_amd_gpu(root: Path, properties: str) -> bool:
    """Whether a node is a GPU, which has SIMD units, and its device file is there."""
    minor = _RENDER_MINOR.search(properties)
    return (
        _SIMD_COUNT.search(properties) is not None
        and minor is not None
        and (root / f"dev/dri/renderD{minor[1]}").exists()
    )


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
