"""The out-of-memory sweep: small programs, run again and again with one more call below the allocator failing.

``programs`` is what runs, ``trial`` one run with one failure, ``sweep`` all of them.
"""

from quiesce.allocators.sweep.sweep import RESULTS_MAX, Swept, sweep

__all__ = ["RESULTS_MAX", "Swept", "sweep"]
