"""How an ordinary test is to be checked for leaks: what its markers say."""

from __future__ import annotations

import pytest

from quiesce.errors import ConfigurationError
from quiesce.leaks.plan import Plan, adjusted
from quiesce.pytest_plugin.keys import LEAK_MARKER


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
