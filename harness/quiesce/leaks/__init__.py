"""Leak checks of code that is run several times: meters of a process, rounds, and the judgement of what grew.

Nothing here knows pytest. The door is ``check``: ``LeakChecker(owners).check(run_round, plan)`` returns a judgement.
Bottom to top: ``quantities`` has a row for each gauge; ``meters`` count; ``readings`` say what grows; ``stages`` run
the rounds; ``explaining`` finds the line and what keeps the leak. ``plan`` is what the user asked for, and ``known``
what a project accepts for now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.leaks.check import OWN as OWN
    from quiesce.leaks.check import LeakChecker as LeakChecker
    from quiesce.leaks.check import Owners as Owners
    from quiesce.leaks.check import Peaks as Peaks
    from quiesce.leaks.check import measured_from as measured_from
    from quiesce.leaks.judgement import Growth as Growth
    from quiesce.leaks.judgement import Judgement as Judgement
    from quiesce.leaks.judgement import Outcome as Outcome
    from quiesce.leaks.known import RECORDED as RECORDED
    from quiesce.leaks.known import Applied as Applied
    from quiesce.leaks.known import KnownLeak as KnownLeak
    from quiesce.leaks.known import amount_of as amount_of
    from quiesce.leaks.known import apply_known as apply_known
    from quiesce.leaks.known import gauge_name as gauge_name
    from quiesce.leaks.known import merged as merged
    from quiesce.leaks.known import read_known as read_known
    from quiesce.leaks.known import write_known as write_known
    from quiesce.leaks.meters.contexts import ContextMeter as ContextMeter
    from quiesce.leaks.meters.own import OwnMeter as OwnMeter
    from quiesce.leaks.plan import MARKER_OPTIONS as MARKER_OPTIONS
    from quiesce.leaks.plan import ROUNDS_MAX as ROUNDS_MAX
    from quiesce.leaks.plan import ROUNDS_MIN as ROUNDS_MIN
    from quiesce.leaks.plan import Plan as Plan
    from quiesce.leaks.plan import adjusted as adjusted
    from quiesce.leaks.quantities import DEVICE as DEVICE
    from quiesce.leaks.quantities import PYTHON as PYTHON
    from quiesce.leaks.quantities import REFERENCES as REFERENCES
    from quiesce.leaks.quantities import Meter as Meter
    from quiesce.leaks.quantities import Quantity as Quantity
    from quiesce.leaks.quantities import family_of as family_of
    from quiesce.leaks.quantities import kind_of_leak as kind_of_leak
    from quiesce.leaks.stages.settling import collect_garbage as collect_garbage
    from quiesce.leaks.system_calls import SystemCalls as SystemCalls
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "check": "LeakChecker OWN Owners Peaks measured_from",
            "judgement": "Growth Judgement Outcome",
            "known": "RECORDED Applied KnownLeak amount_of apply_known gauge_name merged read_known write_known",
            "meters.contexts": "ContextMeter",
            "meters.own": "OwnMeter",
            "plan": "MARKER_OPTIONS Plan ROUNDS_MAX ROUNDS_MIN adjusted",
            "quantities": "DEVICE Meter PYTHON Quantity REFERENCES family_of kind_of_leak",
            "stages.settling": "collect_garbage",
            "system_calls": "SystemCalls",
        },
    )
