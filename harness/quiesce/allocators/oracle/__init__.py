"""The oracle: its own model of what a sequence did, fed by what was observed, and the rules that judge it.

It imports no backend and not the reference. Bottom to top: ``clocks`` is a data structure; ``facts`` holds what is
known and ``model`` changes it, by ``answer_effects`` and ``observation_effects``; ``permits`` says which outcomes are
allowed; ``rules`` holds the rules by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.allocators.oracle.clocks import Clock as Clock
    from quiesce.allocators.oracle.clocks import HappensBefore as HappensBefore
    from quiesce.allocators.oracle.clocks import StreamState as StreamState
    from quiesce.allocators.oracle.growth import grows_as_expected as grows_as_expected
    from quiesce.allocators.oracle.growth import slope as slope
    from quiesce.allocators.oracle.model import Model as Model
    from quiesce.allocators.oracle.oracle import Oracle as Oracle
    from quiesce.allocators.oracle.rules import EVERY_STEP as EVERY_STEP
    from quiesce.allocators.oracle.rules import NAMES as NAMES
    from quiesce.allocators.oracle.rules.answers import DOCUMENTED as DOCUMENTED
    from quiesce.allocators.oracle.rules.answers import ENFORCED as ENFORCED
    from quiesce.allocators.oracle.rules.answers import REFUSED as REFUSED
    from quiesce.allocators.oracle.rules.answers import SERVED as SERVED
    from quiesce.allocators.oracle.rules.answers import judge_expectation as judge_expectation
    from quiesce.allocators.oracle.rules.closing import COST as COST
    from quiesce.allocators.oracle.rules.closing import GAUGE as GAUGE
    from quiesce.allocators.oracle.rules.closing import GROWTH as GROWTH
    from quiesce.allocators.oracle.rules.closing import HANDLES as HANDLES
    from quiesce.allocators.oracle.rules.closing import HANDLES_GONE as HANDLES_GONE
    from quiesce.allocators.oracle.rules.closing import NOTHING_LEFT as NOTHING_LEFT
    from quiesce.allocators.oracle.rules.closing import left_bytes as left_bytes
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "clocks": "Clock HappensBefore StreamState",
            "growth": "grows_as_expected slope",
            "model": "Model",
            "oracle": "Oracle",
            "rules": "EVERY_STEP NAMES",
            "rules.answers": "DOCUMENTED ENFORCED REFUSED SERVED judge_expectation",
            "rules.closing": "COST GAUGE GROWTH HANDLES HANDLES_GONE NOTHING_LEFT left_bytes",
        },
    )
