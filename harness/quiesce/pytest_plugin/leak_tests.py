"""Which ordinary tests are checked for leaks, and how each of them is to be checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from quiesce.errors import ConfigurationError
from quiesce.leaks.own import OwnMeter
from quiesce.leaks.plan import Plan, adjusted
from quiesce.leaks.quantities import Meter
from quiesce.leaks.settling import collect_garbage
from quiesce.pytest_plugin.keys import LEAK_MARKER


class LeakTest:
    """The check of one test, and what the fixture ``leak_check`` hands to the test."""

    def __init__(self, plan: Plan, meters: Sequence[Meter] = ()) -> None:
        self.plan = plan
        self._own = OwnMeter()
        self.meters: tuple[Meter, ...] = (*meters, self._own)

    def gauge(self, name: str, read: Callable[[], int], unit: str = "bytes") -> None:
        """Judge what ``read`` returns as well; it is called after the test's fixtures are torn down.

        ``unit`` is ``bytes``, for which ``limit_bytes`` counts, or the plural of a thing, of which none may be left.
        Raises :class:`TypeError` for what can be no gauge; a test whose gauge cannot be read fails.
        """
        self._own.add(name, read, unit)

    def settle(self) -> None:
        """Collect garbage, wait for devices and empty caches, here and now."""
        collect_garbage()
        for meter in self.meters:
            if not meter.absent():
                meter.settle()


def plan_of(item: pytest.Item, plan: Plan) -> Plan:
    """Return how a test that asks for a check is to be checked; ``plan`` is the run's.

    The marker on the test wins over one on its class or module. Beside one that says how, one that says nothing more
    than that the test is to be checked, as a ``conftest.py`` adds it to all, changes nothing. Raises
    :class:`ConfigurationError` where it is wrong.
    """
    markers = list(item.iter_markers_with_node(LEAK_MARKER))
    at_one_place = [marker for node, marker in markers if node is markers[0][0]]
    saying = [marker for marker in at_one_place if marker.args or marker.kwargs]
    if not saying:
        return plan
    if len(saying) > 1:
        raise ConfigurationError(f"{item.nodeid}: two markers '{LEAK_MARKER}' stand at one place; remove one")
    marker = saying[0]
    if marker.args:
        shown = ", ".join(map(repr, marker.args))
        raise ConfigurationError(
            f"{item.nodeid}: the marker '{LEAK_MARKER}' takes keywords only, not ({shown}); "
            f"write @pytest.mark.{LEAK_MARKER}(rounds=…, limit_bytes=…, gauges=[…])"
        )
    return adjusted(plan, marker.kwargs, f"{item.nodeid}: the marker '{LEAK_MARKER}'")
