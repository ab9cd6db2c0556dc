"""cuSOLVER: singular values and vectors.

``gesvd`` gives V^H, all others give V. "The contents of A are destroyed", but for the strided batches, which only read
it. LAPACK computes Jacobi's method, the polar decomposition and the approximations as well.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import Element, Matrix
from quiesce.simulator.libraries.solver import (
    BLOCK,
    ON_BOTH,
    ON_DEVICE,
    SIZE_ON_DEVICE,
    SIZES_OF_BOTH,
    VECTORS,
    Type,
    dense,
    destroy,
    element_of,
    generic,
    lapack,
    matrix_of,
    real_of,
    require,
    require_types,
    tells_size,
    with_info,
    workspace,
    write_info,
)
from quiesce.simulator.libraries.solver_jacobi import remember, remember_batch
from quiesce.simulator.libraries.table import Arguments, Call, Work, computes

BATCHED_MAX: Final = 32
"""Rows and columns of gesvdjBatched: "m and n are limited to 32"."""
_WITH_WORK: Final = "p:workspace n:lwork"


def _elements(of: Arguments) -> int:
    return int(BLOCK * (of.m + of.n))


def _elements_of_batch(of: Arguments) -> int:
    return int(of.batch * _elements(of))


def _decompose(matrix: Array, *, vectors: bool, full: bool) -> tuple[Array, Array, Array, int]:
    """Return U, the singular values, V^H and LAPACK's INFO."""
    u, values, vh, info = lapack("gesvd", matrix)(matrix, compute_uv=vectors, full_matrices=full)
    return u, values, vh, int(info)


def _write_values(call: Call[Any], element: Element, values: Array, at: int = 0) -> None:
    """Write singular values, from the given one on."""
    real = real_of(element)
    call.write("S", call.arguments.S + at * real.size_bytes, values.astype(real.stored, copy=False))
    remember(call, values)


# -- gesvd -------------------------------------------------------------------------------------------------------------

_GESVD: Final = "p:handle e:jobu e:jobvt n:m n:n p:A n:lda p:S p:U n:ldu p:VT n:ldvt p:workspace n:lwork p:rwork p:info"
_XGESVD: Final = (
    "p:handle p:params e:jobu e:jobvt l:m l:n e:type_A p:A l:lda e:type_S p:S e:type_U p:U l:ldu e:type_VT p:VT l:ldvt "
    "e:type_computed"
)
_ALL, _SOME, _IN_PLACE, _NONE = "ASON"


def _job(number: int) -> str:
    """Return a job, which is a character."""
    letter = chr(number & 0xFF)
    require(letter in (_ALL, _SOME, _IN_PLACE, _NONE))
    return letter


@computes(generic("Gesvd"), f"{_XGESVD} {ON_DEVICE} p:info")
@computes(generic("Xgesvd"), f"{_XGESVD} {ON_BOTH} p:info")
@computes(dense("gesvd"), _GESVD)
def gesvd(call: Call[Type]) -> Work:
    """Compute the singular values of a matrix: "only m>=n is supported"."""
    of = call.arguments
    job_u, job_vh = _job(of.jobu), _job(of.jobvt)
    require(of.m >= of.n, (job_u, job_vh) != (_IN_PLACE, _IN_PLACE))
    a = matrix_of(call, "A", of.m, of.n)
    require_types(call, real="S", same="U VT")
    results = {_IN_PLACE: a, _NONE: None}
    u = results[job_u] if job_u in results else matrix_of(call, "U", of.m, of.m if job_u == _ALL else of.n)
    vh = results[job_vh] if job_vh in results else matrix_of(call, "VT", of.n, of.n)

    def compute() -> int:
        values_of_a = a.read(call)
        vectors = u is not None or vh is not None
        made_u, values, made_vh, info = _decompose(values_of_a, vectors=vectors, full=job_u == _ALL)
        _write_values(call, a.element, values)
        destroy(call, a)
        if u is not None:
            u.write(call, made_u[:, : u.columns])
        if vh is not None:
            Matrix(vh.operand, vh.address, of.n, of.n, vh.ld, vh.element).write(call, made_vh)
        return int(info)

    return with_info(call, _elements(of), compute, empty=not of.n)


tells_size(dense("gesvd"), "p:handle n:m n:n p:lwork", _elements)
tells_size(generic("Xgesvd"), f"{_XGESVD} {SIZES_OF_BOTH}", _elements)
tells_size(generic("Gesvd"), f"{_XGESVD} {SIZE_ON_DEVICE}", _elements)


# -- Jacobi's method and the polar decomposition -----------------------------------------------------------------------

_GESVDJ: Final = "p:handle e:jobz e:econ n:m n:n p:A n:lda p:S p:U n:ldu p:V n:ldv"
_BATCHED: Final = "p:handle e:jobz n:m n:n p:A n:lda p:S p:U n:ldu p:V n:ldv"
_XGESVDP: Final = (
    "p:handle p:params e:jobz e:econ l:m l:n e:type_A p:A l:lda e:type_S p:S e:type_U p:U l:ldu e:type_V p:V l:ldv "
    "e:type_computed"
)


def _sides(call: Call[Type], columns_of_u: int, columns_of_v: int) -> tuple[Matrix, Matrix] | None:
    """Return U and V; None: none are wanted."""
    of = call.arguments
    require(of.jobz in (0, VECTORS))
    if of.jobz != VECTORS:
        return None
    return matrix_of(call, "U", of.m, columns_of_u), matrix_of(call, "V", of.n, columns_of_v)


def _write_sides(call: Call[Any], sides: tuple[Matrix, Matrix] | None, u: Array, vh: Array) -> None:
    if sides is not None:
        for side, made in zip(sides, (u, vh.T.conj()), strict=True):
            side.write(call, made[:, : side.columns])


def _one(call: Call[Type]) -> tuple[Matrix, tuple[Matrix, Matrix] | None]:
    of = call.arguments
    require(of.econ in (0, 1))
    a, least = matrix_of(call, "A", of.m, of.n), min(of.m, of.n)
    require_types(call, real="S", same="U V" if of.jobz == VECTORS else "")
    return a, _sides(call, least if of.econ else of.m, least if of.econ else of.n)


@computes(dense("gesvdj"), f"{_GESVDJ} {_WITH_WORK} p:info p:params")
def gesvdj(call: Call[Type]) -> Work:
    """Compute the singular values of a matrix by Jacobi's method."""
    of, (a, sides) = call.arguments, _one(call)
    return with_info(call, _elements(of), lambda: _decompose_once(call, a, sides)[0], empty=not (of.m and of.n))


def _decompose_once(call: Call[Any], a: Matrix, sides: tuple[Matrix, Matrix] | None) -> tuple[int, Array]:
    """Compute singular values where A has an own place. Return LAPACK's INFO, and those."""
    full = call.arguments.econ == 0
    u, values, vh, info = _decompose(a.read(call), vectors=sides is not None, full=full)
    _write_values(call, a.element, values)
    _write_sides(call, sides, u, vh)
    destroy(call, a)
    return info, values


tells_size(dense("gesvdj"), f"{_GESVDJ} p:lwork p:params", _elements)


@computes(generic("Xgesvdp"), f"{_XGESVDP} {ON_BOTH} p:info p:error")
def gesvdp(call: Call[Type]) -> Work:
    """Compute the singular values of a matrix by its polar decomposition. The host is told of its perturbation."""
    of, (a, sides) = call.arguments, _one(call)
    use = workspace(call, _elements(of))
    require(of.error != 0)
    call.waits = True

    def run() -> None:
        use()
        info, values = _decompose_once(call, a, sides)
        write_info(call, info)
        error = np.finfo(values.dtype).eps * values.max(initial=0)
        call.give_to_host("error", of.error, np.array([error], np.float64))

    return run if of.m and of.n else None


tells_size(generic("Xgesvdp"), f"{_XGESVDP} {SIZES_OF_BOTH}", _elements)


@computes(dense("gesvdjBatched"), f"{_BATCHED} {_WITH_WORK} p:info p:params n:batch")
def gesvdj_batched(call: Call[Type]) -> Work:
    """Compute the singular values of small matrices that follow one another."""
    of = call.arguments
    require(of.m <= BATCHED_MAX, of.n <= BATCHED_MAX, of.batch >= 0)
    remember_batch(call)
    a, sides = matrix_of(call, "A", of.m, of.n), _sides(call, of.m, of.n)
    use = workspace(call, _elements_of_batch(of))

    def run() -> None:
        use()
        infos = []
        for number in range(of.batch):
            matrix = a.moved(number * of.lda * of.n)
            u, values, vh, info = _decompose(matrix.read(call), vectors=sides is not None, full=True)
            _write_values(call, a.element, values, number * len(values))
            moved = sides and (sides[0].moved(number * of.ldu * of.m), sides[1].moved(number * of.ldv * of.n))
            _write_sides(call, moved, u, vh)
            destroy(call, matrix)
            infos.append(info)
        write_info(call, infos)

    return run if of.m and of.n and of.batch else None


tells_size(dense("gesvdjBatched"), f"{_BATCHED} p:lwork p:params n:batch", _elements_of_batch)


# -- approximations ----------------------------------------------------------------------------------------------------

_GESVDA: Final = (
    "p:handle e:jobz n:rank n:m n:n p:A n:lda l:stride_A p:S l:stride_S p:U n:ldu l:stride_U p:V n:ldv l:stride_V"
)


@computes(dense("gesvdaStridedBatched"), f"{_GESVDA} {_WITH_WORK} p:info p:norms n:batch")
def gesvda(call: Call[Type]) -> Work:
    """Compute the largest singular values of high matrices. The host is told how far off the results are."""
    of, element = call.arguments, element_of(call)
    require(of.m >= of.n, 0 <= of.rank <= of.n, of.batch >= 0)
    a, sides = matrix_of(call, "A", of.m, of.n), _sides(call, of.rank, of.rank)
    use = workspace(call, _elements_of_batch(of))
    call.waits = bool(of.norms) and sides is not None

    def run() -> None:
        use()
        infos, norms = [], []
        for number in range(of.batch):
            matrix = a.moved(number * of.stride_A).read(call)
            u, values, vh, info = _decompose(matrix, vectors=sides is not None, full=False)
            _write_values(call, element, values[: of.rank], number * of.stride_S)
            if sides is not None:
                moved = sides[0].moved(number * of.stride_U), sides[1].moved(number * of.stride_V)
                _write_sides(call, moved, u, vh)
                kept = u[:, : of.rank] * values[: of.rank] @ vh[: of.rank]
                norms.append(np.linalg.norm(matrix - kept))
            infos.append(info)
        write_info(call, infos)
        if call.waits:
            call.give_to_host("norms", of.norms, np.array(norms, np.float64))

    return run if of.n and of.rank and of.batch else None


tells_size(dense("gesvdaStridedBatched"), f"{_GESVDA} p:lwork n:batch", _elements_of_batch)

_XGESVDR: Final = (
    "p:handle p:params e:jobu e:jobv l:m l:n l:k l:more l:iterations e:type_A p:A l:lda e:type_S p:S e:type_U p:U "
    "l:ldu e:type_V p:V l:ldv e:type_computed"
)


@computes(generic("Xgesvdr"), f"{_XGESVDR} {ON_BOTH} p:info")
def gesvdr(call: Call[Type]) -> Work:
    """Compute the k largest singular values of a matrix, where a GPU would take samples of it."""
    of, least = call.arguments, min(call.arguments.m, call.arguments.n)
    jobs = _job(of.jobu), _job(of.jobv)
    require(set(jobs) <= {_SOME, _NONE}, of.k >= 0, of.more >= 0, of.k + of.more <= least)
    a = matrix_of(call, "A", of.m, of.n)
    require_types(call, real="S", same="U V")
    u = matrix_of(call, "U", of.m, of.k) if jobs[0] == _SOME else None
    v = matrix_of(call, "V", of.n, of.k) if jobs[1] == _SOME else None
    use = workspace(call, _elements(of))

    def run() -> None:
        use()
        made_u, values, vh, info = _decompose(a.read(call), vectors=bool(u or v), full=False)
        _write_values(call, a.element, values[: of.k])
        for side, made in ((u, made_u), (v, vh.T.conj())):
            if side is not None:
                side.write(call, made[:, : of.k])
        destroy(call, a)
        write_info(call, info)

    return run if least else None


tells_size(generic("Xgesvdr"), f"{_XGESVDR} {SIZES_OF_BOTH}", _elements)
