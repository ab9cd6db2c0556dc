"""How an ordinary test is to be checked for leaks: what its markers say."""

from __future__ import annotations

import pytest

from quiesce.leaks.plan import ROUNDS_MAX, ROUNDS_MIN, Plan, adjusted
from quiesce.model.errors import ConfigurationError
from quiesce.pytest_plugin.keys import LEAK_FIXTURE, LEAK_MARKER


def asks_for_leak_check(item: pytest.Item) -> bool:
    """Whether a test itself asks for a check, by the marker or by the fixture."""
    return LEAK_FIXTURE in getattr(item, "fixturenames", ()) or item.get_closest_marker(LEAK_MARKER) is not None


def plan_of(item: pytest.Item, plan: Plan) -> Plan:
    """Return how a test is to be checked; ``plan`` is the run's. Raises :class:`ConfigurationError`."""
    marker = _telling(item)
    return plan if marker is None else adjusted(plan, marker.kwargs, _source(item))


def reason_to_skip(item: pytest.Item) -> str:
    """Return why a test is not to be checked, or an empty text. Raises :class:`ConfigurationError`."""
    marker = _telling(item)
    if marker is None or "skip" not in marker.kwargs:
        return ""
    reason = marker.kwargs["skip"]
    if not isinstance(reason, str) or not reason.strip():
        raise ConfigurationError(f"{_source(item)}: skip is {reason!r}; write the reason as a text")
    if others := ", ".join(sorted(marker.kwargs.keys() - {"skip"})):
        raise ConfigurationError(f"{_source(item)}: a test with skip= is not checked; remove skip= or {others}=")
    return reason


def _telling(item: pytest.Item) -> pytest.Mark | None:
    """Return the marker that has arguments, if there is one.

    The marker on the test wins over one on its class or module. Beside one that says how, one that says nothing more
    than that the test is to be checked, as a ``conftest.py`` adds it to all, changes nothing. Raises
    :class:`ConfigurationError` where it is wrong.
    """
    markers = list(item.iter_markers_with_node(LEAK_MARKER))
    at_one_place = [marker for node, marker in markers if node is markers[0][0]]
    saying = [marker for marker in at_one_place if marker.args or marker.kwargs]
    if not saying:
        return None
    if len(saying) > 1:
        raise ConfigurationError(f"{item.nodeid}: two markers '{LEAK_MARKER}' stand at one place; remove one")
    marker = saying[0]
    if marker.args:
        shown = ", ".join(map(repr, marker.args))
        raise ConfigurationError(
            f"{_source(item)} takes keywords only, not ({shown}); "
            f"write @pytest.mark.{LEAK_MARKER}(rounds=…, limit=…, gauges=[…])"
        )
    if marker.kwargs.get("rounds") in (0, "0") and marker.kwargs.get("rounds") is not False:
        raise ConfigurationError(
            f"{_source(item)}: rounds is 0; write a whole number from {ROUNDS_MIN} to {ROUNDS_MAX}, "
            f'or skip="…" with the reason to leave the test unchecked'
        )
    return marker


def _source(item: pytest.Item) -> str:
    return f"{item.nodeid}: the marker '{LEAK_MARKER}'"
