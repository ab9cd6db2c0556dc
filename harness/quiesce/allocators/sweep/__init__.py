"""The out-of-memory sweep: small programs, run again and again with one more call below the allocator failing.

``trial`` is one run with one failure, ``sweep`` has the programs and runs all trials.
"""

from quiesce.allocators.sweep.sweep import RESULTS_MAX, Swept, sweep

__all__ = ["RESULTS_MAX", "Swept", "sweep"]
