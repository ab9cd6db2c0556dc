"""The process that computes functions of vendors' libraries for one run, with NumPy and SciPy."""

from __future__ import annotations

import importlib.util
import re
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.elf_reading import read_defined_names
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.on_demand import Server, on_demand
from quiesce.simulator.runtime.vendor_libraries import COMPUTED_PREFIX

SOCKET: Final = "libraries"
"""The name of the socket in the run's folder, which ``native/kernels/hosted.c`` has too."""
_REQUIRED: Final = ("numpy", "scipy")
INSTALL_LIBRARIES: Final = "pip install 'quiesce[libraries]'"
"""The command that installs them."""


def libraries_can_run() -> bool:
    """Say whether the packages are installed with which functions of libraries compute (``quiesce[libraries]``)."""
    return kernels_can_run() and all(importlib.util.find_spec(name) for name in _REQUIRED)


def computed_functions() -> frozenset[str]:
    """Return the functions of libraries that compute where these packages are installed."""
    names = read_defined_names(build_library())
    prefix = re.compile(rf"{COMPUTED_PREFIX}(?:\d+_)?")  # with the number of a library whose versions differ
    return frozenset(prefix.sub("", name) for name in names if prefix.match(name))


def library_server(folder: Path, started: Callable[[int], None] = lambda _: None) -> AbstractContextManager[None]:
    """Let clients reach it through ``folder`` for as long as the ``with`` lasts.

    ``started`` gets the number of its process.
    """
    server = Server("quiesce.simulator.libraries.server", SOCKET, socket.SOCK_SEQPACKET)
    return on_demand(server, folder, started)
