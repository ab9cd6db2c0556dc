"""The driver of a subject as a backend: a process for each context, on the simulated runtime where it needs one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from quiesce.backends.command import CommandBackend
from quiesce.model.backend import BackendFault, Context, Description, DeviceProfile
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime import MachineSettings, Prepared, Simulated, device_options, prepare
from quiesce.subjects.build import Built
from quiesce.subjects.commands import replace_in_values, replace_words
from quiesce.subjects.manifest import Run, Subject, Variant


@contextmanager
def open_driver(name: str, subject: Subject, run: Run, variant: Variant, built: Built) -> Iterator[Driver]:
    """Make the driver of one row ready, for as long as the ``with`` lasts.

    Raises :class:`ConfigurationError` for a word that stands for nothing or a program that is
    not there,
    and what :func:`quiesce.simulator.runtime.launch.prepare` raises.
    """
    command = replace_words([*run.command, *variant.arguments], built.places)
    environment = {**built.environment, **replace_in_values(run.environment, built.places)}
    if subject.simulated is None:
        process = CommandBackend(command, name=name, watchdog_seconds=run.watchdog_seconds, environment=environment)
        yield Driver(process)
        return
    with prepare(command, subject.simulated, environment) as prepared:
        settings = MachineSettings(subject.simulated, run.schedule, subject.seed)
        process = CommandBackend(
            command, name=name, watchdog_seconds=run.watchdog_seconds, environment=prepared.environment(settings)
        )
        yield SimulatedDriver(process, prepared, subject.simulated, run.schedule, subject.seed)


class Driver:
    """A driver that was built: where it does not even say hello, that is a fault of the subject."""

    def __init__(self, process: CommandBackend) -> None:
        self._process = process

    def describe(self) -> Description:
        """Ask the driver what it is; its name is the first word that it gives itself, which ``known:`` lines speak of.

        Raises :class:`BackendFault`, and :class:`BackendUnavailable` where it does not start.
        """
        try:
            description = self._process.describe()
        except BackendUnavailable as unavailable:
            if isinstance(unavailable.__cause__, BackendFault):
                raise unavailable.__cause__ from None
            raise
        return replace(description, name=description.version.partition(" ")[0])

    def with_watchdog(self, seconds: float) -> Driver:
        """Return the same driver with another bound for every reply."""
        return Driver(self._process.with_watchdog(seconds))

    def open(self, profile: DeviceProfile) -> Context:
        """Start a fresh process. Raises BackendUnavailable for a profile that the driver refuses."""
        return self._process.open(profile)


class SimulatedDriver(Driver):
    """A driver whose processes each find a simulated device of the profile that they are opened on."""

    def __init__(
        self, process: CommandBackend, prepared: Prepared, simulated: Simulated, schedule: str, seed: int
    ) -> None:
        super().__init__(process)
        self._prepared = prepared
        self._simulated = simulated
        self._schedule = schedule
        self._seed = seed

    def with_watchdog(self, seconds: float) -> SimulatedDriver:
        """Return the same driver with another bound for every reply."""
        bounded = self._process.with_watchdog(seconds)
        return SimulatedDriver(bounded, self._prepared, self._simulated, self._schedule, self._seed)

    def open(self, profile: DeviceProfile) -> Context:
        """Start a fresh process on a fresh device. Raises BackendUnavailable for a profile that the driver refuses.

        A driver that serves again starts each device by itself, as the profile says.
        """
        if self._process.serves_again:
            return self._process.open(profile)
        for ledger in self._prepared.ledgers():  # of processes before: the driver tells by itself what it saw
            ledger.unlink(missing_ok=True)
        settings = MachineSettings(self._simulated, self._schedule, self._seed, device_options(profile))
        return self._process.with_environment(self._prepared.environment(settings)).open(profile)
