"""The leak check of one ordinary test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quiesce.leaks import Meter, OwnMeter, Plan, collect_garbage


class LeakTest:
    """The check of one test, and what the fixture ``leak_check`` hands to the test.

    ``is_asked_for`` says that the test itself asks for the check, and so must be fit to run several times.
    """

    def __init__(self, plan: Plan, meters: Sequence[Meter] = (), *, is_asked_for: bool = True) -> None:
        self.plan = plan
        self.is_asked_for = is_asked_for
        self.own = OwnMeter()
        self.meters: tuple[Meter, ...] = (*meters, self.own)

    def gauge(self, name: str, read: Callable[[], int], unit: str = "bytes") -> None:
        """Judge what ``read`` returns as well; it is called after the test's fixtures are torn down.

        ``unit`` is ``bytes``, for which ``limit_bytes`` counts, or the plural of a thing, of which none may be left.
        Raises :class:`TypeError` for what can be no gauge; a test whose gauge cannot be read fails.
        """
        self.own.add(name, read, unit)

    def settle(self) -> None:
        """Collect garbage, wait for devices and empty caches, here and now."""
        collect_garbage()
        for meter in self.meters:
            if not meter.absent():
                meter.settle()
