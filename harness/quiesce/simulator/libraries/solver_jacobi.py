"""cuSOLVER: what is known of Jacobi's method after a call with some parameters: its residual and its sweeps.

LAPACK takes no sweeps: it counts as one, and its residual is the rounding of the matrix.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.solver import require
from quiesce.simulator.libraries.table import Call, Refused, Work, computes, plain

NOT_SUPPORTED: Final = 9
_SWEEPS: Final = 1
_OF_A_BATCH: Final = -1.0


def remember(call: Call[Any], values: Array) -> None:
    """Remember the residual of the matrix with these eigenvalues or singular values, where a call is one of these."""
    names = vars(call.arguments)
    if call.about is not None and "params" in names and "batch" not in names:
        call.state[names["params"]] = float(np.finfo(values.dtype).eps * np.linalg.norm(values))


def remember_batch(call: Call[Any]) -> None:
    """Remember that the last call with these parameters was one of a batch."""
    if call.about is not None:
        call.state[call.arguments.params] = _OF_A_BATCH


def _told(call: Call[Any]) -> float:
    """Return what is remembered: "if the user calls this function after" a batch it is not supported."""
    known = float(call.state.get(call.arguments.params, 0.0))
    if known == _OF_A_BATCH:
        raise Refused(NOT_SUPPORTED)
    call.waits = True
    return known


@computes(plain(("cusolverDnXsyevjGetResidual", "cusolverDnXgesvdjGetResidual")), "p:handle p:params p:residual")
def residual(call: Call[None]) -> Work:
    """Tell the host the residual, once the stream has come so far."""
    address = call.arguments.residual
    require(address != 0)
    _told(call)
    return lambda: call.give_to_host("residual", address, np.array([_told(call)], np.float64))


@computes(plain(("cusolverDnXsyevjGetSweeps", "cusolverDnXgesvdjGetSweeps")), "p:handle p:params p:sweeps")
def sweeps(call: Call[None]) -> Work:
    """Tell the host how many sweeps there were."""
    address = call.arguments.sweeps
    require(address != 0)
    _told(call)
    return lambda: call.give_to_host("sweeps", address, np.array([_SWEEPS], np.int32))
