"""The simulated machine in this process: the library through ctypes, one machine at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final, cast

from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.outcomes import Flavour
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.kernel_logs import TouchedLog, mapped_touched
from quiesce.simulator.runtime.launch import MachineSettings
from quiesce.simulator.runtime.ledger import Ledger, Record, mapped_ledger
from quiesce.simulator.runtime.stacks import CallStacks, mapped_stacks
from quiesce.simulator.runtime.vendor_libraries import SIMULATED_PREFIX

_PREFIX: Final = {Flavour.CUDA: "cuda", Flavour.HIP: "hip"}


class _Runtime(ctypes.CDLL):
    """The library, with every function under the vendor's name, those as well that not all releases have."""

    def __getitem__(self, name: Any) -> Any:
        try:
            return super().__getitem__(name)
        except AttributeError:
            return super().__getitem__(f"{SIMULATED_PREFIX}{name}")


class Machine:
    """A machine that was started. Raises :class:`BackendUnavailable` where none can be, or one runs.

    ``library`` is the name of the runtime's library in a process that ``launch`` started, whose clients load it too.
    """

    is_running = False

    def __init__(self, settings: MachineSettings, library: str | None = None) -> None:
        self._library = _Runtime(library or str(build_library()))
        if Machine.is_running:
            raise BackendUnavailable(
                "simulated",
                "a machine is open in this process already, and all have the same addresses",
                "close it first",
            )
        self._prefix = _PREFIX[settings.simulated.flavour]
        self._library.quiesce_open.restype = ctypes.c_char_p
        wrong: bytes | None = self._library.quiesce_open(settings.text().encode())
        if wrong is not None:
            raise ConfigurationError(f"the simulated runtime cannot start: {wrong.decode()}")
        Machine.is_running = True
        self.ledger = cast(Ledger, mapped_ledger(self._library))
        self._seen = 0

    @property
    def stacks(self) -> CallStacks | None:
        """The log of call stacks, where the settings ask for one (``stacks``)."""
        return mapped_stacks(self._library)

    @property
    def touched(self) -> TouchedLog:
        """The log of the bytes that launches touched."""
        return mapped_touched(self._library)

    @property
    def library(self) -> ctypes.CDLL:
        """The library, which has the vendor's functions under their own names."""
        return self._library

    def call(self, function: str, *arguments: Any) -> int:
        """Call a function of the vendor's runtime by its name without the vendor's prefix; return its status."""
        status: int = getattr(self._library, self._prefix + function)(*arguments)
        return status

    def control(self, function: str, *arguments: Any) -> int:
        """Call a function of ``native/surfaces/control.h`` by its name without the prefix; return its status."""
        status: int = getattr(self._library, "quiesce_" + function)(*arguments)
        return status

    def text_of(self, status: int) -> str:
        """Return how the vendor's runtime describes an error."""
        describe = getattr(self._library, self._prefix + "GetErrorString")
        describe.restype = ctypes.c_char_p
        text: bytes = describe(status)
        return text.decode()

    def news(self) -> Iterator[Record]:
        """Yield what was observed since the last time."""
        first, self._seen = self._seen, self.ledger.observations
        return self.ledger.records(first)

    def close(self) -> None:
        """End the machine."""
        self._library.quiesce_close()
        Machine.is_running = False


def require_addresses(settings: MachineSettings) -> None:
    """Start a machine where the process may have few addresses (``ulimit -v``), which is known by trying only.

    Raises :class:`BackendUnavailable` where there are too few.
    """
    import resource  # no system but Unix has it

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY or Machine.is_running:
        return
    try:
        Machine(settings).close()
    except ConfigurationError as error:
        reason, _, remedy = str(error).rpartition("; ")
        raise BackendUnavailable("simulated", reason, remedy) from None
