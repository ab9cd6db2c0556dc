"""The oracle: its own model of what a sequence did, fed by what was observed, and the rules that judge it.

It imports no backend and not the reference. Bottom to top: ``clocks`` is a data structure; ``facts`` holds what is
known and ``model`` changes it, by ``answer_effects`` and ``observation_effects``; ``permits`` says which outcomes are
allowed; ``rules`` holds the rules by name.
"""

from quiesce.allocators.oracle.clocks import Clock, HappensBefore, StreamState
from quiesce.allocators.oracle.growth import grows_as_expected, slope
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.oracle import Oracle
from quiesce.allocators.oracle.rules import EVERY_STEP, NAMES
from quiesce.allocators.oracle.rules.answers import DOCUMENTED, ENFORCED, REFUSED, SERVED, judge_expectation
from quiesce.allocators.oracle.rules.closing import COST, GAUGE, GROWTH, HANDLES, HANDLES_GONE, NOTHING_LEFT, left_bytes

__all__ = [
    "COST",
    "Clock",
    "DOCUMENTED",
    "ENFORCED",
    "EVERY_STEP",
    "GAUGE",
    "GROWTH",
    "HANDLES",
    "HANDLES_GONE",
    "HappensBefore",
    "Model",
    "NAMES",
    "NOTHING_LEFT",
    "Oracle",
    "REFUSED",
    "SERVED",
    "StreamState",
    "grows_as_expected",
    "judge_expectation",
    "left_bytes",
    "slope",
]
