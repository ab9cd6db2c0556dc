"""The compiler of kernels for one run: a process that is started when the first client asks for a kernel."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.runtime.cache import cache_folder, cache_folders
from quiesce.simulator.runtime.on_demand import Server, on_demand

SOCKET: Final = "kernels"
"""The name of the socket in the run's folder, which ``native/kernels/request.c`` has too."""
_REQUIRED: Final = ("llvmlite", "lz4", "zstandard")
INSTALL_KERNELS: Final = "pip install 'quiesce[kernels]'"
"""The command that installs them."""


def kernels_can_run() -> bool:
    """Say whether the packages are installed that compile kernels (``quiesce[kernels]``)."""
    return all(importlib.util.find_spec(name) for name in _REQUIRED)


def kernel_compiler(folder: Path, started: Callable[[int], None] = lambda _: None) -> AbstractContextManager[None]:
    """Let clients reach a compiler through ``folder`` for as long as the ``with`` lasts.

    ``started`` gets the number of its process.
    """
    words = (str(_kept_kernels()), str(folder))
    return on_demand(Server("quiesce.simulator.kernels.server", SOCKET, socket.SOCK_STREAM, words), folder, started)


def _kept_kernels() -> Path:
    """Return where kernels are kept; a chosen cache that can only be read, as in a container's image, has some too."""
    try:
        folder = cache_folder()
    except ConfigurationError:
        folder, *_ = cache_folders()
    return folder / "kernels"
