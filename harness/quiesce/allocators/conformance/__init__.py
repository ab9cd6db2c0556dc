"""Conformance: everything that quiesce can say about a backend, without pytest and in one call.

    from quiesce import run_conformance

    conformance = run_conformance(MyBackend())
    print(conformance.text())
    assert conformance.conforms

The oracle judges the allocator and believes what the backend says; here the backend is judged as well. ``checks``
look at what it says of itself and at its contexts, ``attention`` at every answer while other things run (``ledger``,
``obligations``, into a ``notebook``), ``strangers`` at names that nothing has. ``run`` puts them beside the corpus,
the sweep and the generated sequences; ``gaps`` says what nothing exercised; ``result`` is what comes of it.
"""

from quiesce.allocators.conformance.result import Conformance, Gap, Standing
from quiesce.allocators.conformance.run import run_conformance

__all__ = ["Conformance", "Gap", "Standing", "run_conformance"]
