"""cuBLAS: orthogonal factors and least squares of batches, whose matrices' addresses lie in arrays.

``info`` is a number of the host's: whether an argument is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from quiesce.simulator.libraries.blas import require, typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import Element, Matrix
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes


def _lapack(name: str, matrix: Array) -> Any:
    (function,) = scipy.linalg.lapack.get_lapack_funcs((name,), (matrix,))
    return function


@computes(typed("cublas{}geqrfBatched"), "p:handle e:m e:n a:A e:lda a:tau p:info e:batch")
def geqrf_batched(call: Call[Element]) -> Work:
    """Factor matrices into Q and R."""
    of, element = call.arguments, call.about
    require(of.m >= 0, of.n >= 0, of.batch >= 0, of.lda >= max(1, of.m), of.info != 0)

    def run() -> None:
        places = zip(call.read_pointers("A", of.A, of.batch), call.read_pointers("tau", of.tau, of.batch), strict=True)
        for at, at_tau in places:
            a = Matrix("A", at, of.m, of.n, of.lda, element)
            values = a.read(call)
            made, tau, _, _ = _lapack("geqrf", values)(values)
            a.write(call, made)
            call.write("tau", at_tau, tau)

    call.tell_host("info", of.info, np.zeros(1, np.int32))
    return run if of.m and of.n and of.batch else None


@computes(
    typed("cublas{}gelsBatched"), "p:handle e:trans e:m e:n e:nrhs a:A e:lda a:C e:ldc p:info p:device_infos e:batch"
)
def gels_batched(call: Call[Element]) -> Work:
    """Solve least squares of high matrices. ``device infos``: which diagonal element of a factor is zero, or 0."""
    of, element = call.arguments, call.about
    require(0 <= of.trans <= 2, of.m >= 0, of.n >= 0, of.nrhs >= 0, of.batch >= 0, of.info != 0)
    require(of.lda >= max(1, of.m), of.ldc >= max(1, of.m))
    if of.trans or of.m < of.n:
        raise NotDescribed("least squares of transposed matrices, or of such with fewer rows than columns")

    def run() -> None:
        places = zip(call.read_pointers("A", of.A, of.batch), call.read_pointers("C", of.C, of.batch), strict=True)
        for number, (at_a, at_c) in enumerate(places):
            a = Matrix("A", at_a, of.m, of.n, of.lda, element)
            c = Matrix("C", at_c, of.m, of.nrhs, of.ldc, element)
            values = a.read(call)
            factors, made, info = _lapack("gels", values)(values, c.read(call))
            a.write(call, factors)
            c.write(call, made)
            if of.device_infos:
                call.write("device infos", of.device_infos + 4 * number, np.array([info], np.int32))

    call.tell_host("info", of.info, np.zeros(1, np.int32))
    return run if of.n and of.nrhs and of.batch else None
