"""cuSOLVER: eigenvalues and eigenvectors of symmetric and Hermitian matrices, and of general ones.

A symmetric matrix is read in one triangle; its eigenvectors replace all of it. Where none are asked for, "the contents
of A are destroyed". LAPACK computes Jacobi's method as well, so what its parameters say changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.blas_triangles import whole
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_NUMBER, Matrix
from quiesce.simulator.libraries.solver import (
    BLOCK,
    ON_BOTH,
    ON_DEVICE,
    SIZE_ON_DEVICE,
    SIZES_OF_BOTH,
    UPPER,
    VECTORS,
    WITH_WORK,
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
    triangle_of,
    with_info,
    workspace,
    write_info,
)
from quiesce.simulator.libraries.solver_factors import cholesky
from quiesce.simulator.libraries.solver_jacobi import remember, remember_batch
from quiesce.simulator.libraries.table import Arguments, Call, NotDescribed, Work, computes

ALL, BY_INDEX, BY_VALUE = 1001, 1002, 1003  # cusolverEigRange_t


def _elements(of: Arguments) -> int:
    """Return LAPACK's sizes of syevd."""
    return int(1 + 6 * of.n + 2 * of.n**2 if of.jobz == VECTORS else 2 * of.n + 1)


def _elements_of_batch(of: Arguments) -> int:
    return int(of.batch * _elements(of))


def _symmetric(call: Call[Type]) -> Matrix:
    require(call.arguments.jobz in (0, VECTORS))
    return triangle_of(call)


def _eigen(call: Call[Any], triangle: Array) -> tuple[Array, Array, int]:
    """Return the eigenvalues of a matrix, its eigenvectors and LAPACK's INFO."""
    of = call.arguments
    compute = lapack("heevd" if triangle.dtype.kind == "c" else "syevd", triangle)
    values, vectors, info = compute(triangle, compute_v=of.jobz == VECTORS, lower=of.uplo != UPPER)
    return values, vectors, int(info)


def _write_values(call: Call[Any], a: Matrix, values: Array, number: int = 0) -> None:
    real = real_of(a.element)
    at = call.arguments.W + number * call.arguments.n * real.size_bytes
    call.write("W", at, values.astype(real.stored, copy=False))
    remember(call, values)


def _write_eigen(call: Call[Any], a: Matrix, vectors: Array) -> None:
    if call.arguments.jobz == VECTORS:
        a.write(call, vectors)
    else:
        destroy(call, a)


# -- symmetric matrices ------------------------------------------------------------------------------------------------

_SYEVD: Final = "p:handle e:jobz e:uplo n:n p:A n:lda p:W"
_XSYEVD: Final = "p:handle p:params e:jobz e:uplo l:n e:type_A p:A l:lda e:type_W p:W e:type_computed"
_SYEVJ: Final = dense("syevj", "heevj")
_SYEVJ_BATCHED: Final = dense("syevjBatched", "heevjBatched")


@computes(generic("Syevd"), f"{_XSYEVD} {ON_DEVICE} p:info")
@computes(generic("Xsyevd"), f"{_XSYEVD} {ON_BOTH} p:info")
@computes(_SYEVJ, f"{_SYEVD} {WITH_WORK} p:params")
@computes(dense("syevd", "heevd"), f"{_SYEVD} {WITH_WORK}")
def syevd(call: Call[Type]) -> Work:
    """Compute all eigenvalues, in ascending order."""
    of, a = call.arguments, _symmetric(call)
    require_types(call, real="W")

    def compute() -> int:
        values, vectors, info = _eigen(call, a.read_triangle(call, upper=of.uplo == UPPER))
        _write_values(call, a, values)
        _write_eigen(call, a, vectors)
        return int(info)

    return with_info(call, _elements(of), compute, empty=not of.n)


tells_size(dense("syevd", "heevd"), f"{_SYEVD} p:lwork", _elements)
tells_size(_SYEVJ, f"{_SYEVD} p:lwork p:params", _elements)
tells_size(generic("Xsyevd"), f"{_XSYEVD} {SIZES_OF_BOTH}", _elements)
tells_size(generic("Syevd"), f"{_XSYEVD} {SIZE_ON_DEVICE}", _elements)


@computes(generic("XsyevBatched"), f"{_XSYEVD} {ON_BOTH} p:info l:batch")
@computes(_SYEVJ_BATCHED, f"{_SYEVD} {WITH_WORK} p:params n:batch")
def syev_batched(call: Call[Type]) -> Work:
    """Compute the eigenvalues of matrices that follow one another."""
    of, a = call.arguments, _symmetric(call)
    require(of.batch >= 0)
    remember_batch(call)
    require_types(call, real="W")
    use = workspace(call, _elements_of_batch(of))

    def run() -> None:
        use()
        infos = []
        for number in range(of.batch):
            call.reuse_memory()
            matrix = a.moved(number * of.lda * of.n)
            values, vectors, info = _eigen(call, matrix.read_triangle(call, upper=of.uplo == UPPER))
            _write_values(call, a, values, number)
            _write_eigen(call, matrix, vectors)
            infos.append(info)
        write_info(call, infos)

    return run if of.n and of.batch else None


tells_size(_SYEVJ_BATCHED, f"{_SYEVD} p:lwork p:params n:batch", _elements_of_batch)
tells_size(generic("XsyevBatched"), f"{_XSYEVD} {SIZES_OF_BOTH} l:batch", _elements_of_batch)


# -- some of the eigenvalues -------------------------------------------------------------------------------------------

_SYEVDX: Final = "p:handle e:jobz e:range e:uplo n:n p:A n:lda {0}:vl {0}:vu n:il n:iu p:found p:W"
_XSYEVDX: Final = (
    "p:handle p:params e:jobz e:range e:uplo l:n e:type_A p:A l:lda p:vl p:vu l:il l:iu p:found e:type_W p:W "
    "e:type_computed"
)


def _split(names: dict[str, Type]) -> tuple[tuple[str, dict[str, Type]], ...]:
    """Return the functions whose limits are floats, and those whose limits are doubles, each with their letter."""
    single = {name: about for name, about in names.items() if name.removeprefix("cusolverDn")[0] in "SC"}
    return ("f", single), ("d", {name: about for name, about in names.items() if name not in single})


def _limits(call: Call[Type]) -> tuple[float, float]:
    """Return the values between which eigenvalues are wanted. Where they have a pointer it is one of the host's."""
    of = call.arguments
    if call.about is not None:
        return of.vl, of.vu
    if of.range != BY_VALUE:
        return 0, 0
    real = real_of(element_of(call)).stored
    require(of.vl != 0, of.vu != 0)
    return call.host("vl", of.vl, real)[0], call.host("vu", of.vu, real)[0]


def _write_some(call: Call[Type], a: Matrix, values: Array, vectors: Array, limits: tuple[float, float]) -> None:
    """Write the eigenvalues that are wanted, their eigenvectors and, to the host, how many they are."""
    of = call.arguments
    chosen = slice(0, of.n)
    if of.range == BY_INDEX:
        chosen = slice(of.il - 1, of.iu)
    elif of.range == BY_VALUE:
        lowest, highest = limits
        chosen = slice(*np.searchsorted(values, [lowest, highest], side="right"))
    count = len(values[chosen])
    _write_values(call, a, values[chosen])
    if of.jobz == VECTORS:
        Matrix("A", a.address, a.rows, count, a.ld, a.element).write(call, vectors[:, chosen])
    else:
        destroy(call, a)
    call.give_to_host("found", of.found, np.array([count], np.int64 if call.about is None else np.int32))


def _prepare_range(call: Call[Type]) -> None:
    of = call.arguments
    require(of.range in (ALL, BY_INDEX, BY_VALUE), of.found != 0)
    require(of.range != BY_INDEX or 1 <= of.il <= of.iu <= of.n)
    call.waits = True


@computes(generic("Syevdx"), f"{_XSYEVDX} {ON_DEVICE} p:info")
@computes(generic("Xsyevdx"), f"{_XSYEVDX} {ON_BOTH} p:info")
def syevdx(call: Call[Type]) -> Work:
    """Compute eigenvalues by their numbers, or between two values: above the first, up to the second."""
    of, a = call.arguments, _symmetric(call)
    _prepare_range(call)
    require_types(call, real="W")
    limits, use = _limits(call), workspace(call, _elements(of))
    require(of.range != BY_VALUE or limits[0] < limits[1])

    def run() -> None:
        use()
        values, vectors, info = _eigen(call, a.read_triangle(call, upper=of.uplo == UPPER))
        _write_some(call, a, values, vectors, limits)
        write_info(call, info)

    return run if of.n else None


tells_size(generic("Xsyevdx"), f"{_XSYEVDX} {SIZES_OF_BOTH}", _elements)
tells_size(generic("Syevdx"), f"{_XSYEVDX} {SIZE_ON_DEVICE}", _elements)
for _letter, _names in _split(dense("syevdx", "heevdx")):
    computes(_names, f"{_SYEVDX.format(_letter)} {WITH_WORK}")(syevdx)
    tells_size(_names, f"{_SYEVDX.format(_letter)} p:lwork", _elements)


# -- generalized problems ----------------------------------------------------------------------------------------------

_SYGVD: Final = "p:handle e:itype e:jobz e:uplo n:n p:A n:lda p:B n:ldb p:W"
_SYGVDX: Final = "p:handle e:itype e:jobz e:range e:uplo n:n p:A n:lda p:B n:ldb {0}:vl {0}:vu n:il n:iu p:found p:W"
_SYGVJ: Final = dense("sygvj", "hegvj")


def _generalized(call: Call[Type], a: Matrix, b: Matrix) -> tuple[Array, Array, int]:
    """Return eigenvalues, eigenvectors and INFO. B's triangle becomes its Cholesky factor."""
    of, upper = call.arguments, call.arguments.uplo == UPPER
    first, second = a.read_triangle(call, upper=upper), b.read_triangle(call, upper=upper)
    wrong = cholesky(call, b, upper=upper)
    if wrong:
        return np.zeros(of.n), first, of.n + wrong
    is_complex = first.dtype.kind == "c"
    compute = lapack("hegvd" if is_complex else "sygvd", first)
    first, second = (whole(each, upper=upper, hermitian=is_complex) for each in (first, second))
    values, vectors, info = compute(first, second, itype=of.itype, jobz="NV"[of.jobz], uplo="LU"[of.uplo])
    return values, vectors, int(info)


def _symmetric_pair(call: Call[Type]) -> tuple[Matrix, Matrix]:
    require(1 <= call.arguments.itype <= 3)
    return _symmetric(call), matrix_of(call, "B", call.arguments.n, call.arguments.n)


@computes(_SYGVJ, f"{_SYGVD} {WITH_WORK} p:params")
@computes(dense("sygvd", "hegvd"), f"{_SYGVD} {WITH_WORK}")
def sygvd(call: Call[Type]) -> Work:
    """Compute the eigenvalues of a pair of matrices, of which B is positive definite."""
    of, (a, b) = call.arguments, _symmetric_pair(call)

    def compute() -> int:
        values, vectors, info = _generalized(call, a, b)
        if info <= of.n:
            _write_values(call, a, values)
            _write_eigen(call, a, vectors)
        return int(info)

    return with_info(call, _elements(of), compute, empty=not of.n)


tells_size(dense("sygvd", "hegvd"), f"{_SYGVD} p:lwork", _elements)
tells_size(_SYGVJ, f"{_SYGVD} p:lwork p:params", _elements)


def sygvdx(call: Call[Type]) -> Work:
    """Compute some of the eigenvalues of a pair of matrices."""
    of, (a, b) = call.arguments, _symmetric_pair(call)
    _prepare_range(call)
    limits, use = _limits(call), workspace(call, _elements(of))

    def run() -> None:
        use()
        values, vectors, info = _generalized(call, a, b)
        if info <= of.n:
            _write_some(call, a, values, vectors, limits)
        write_info(call, info)

    return run if of.n else None


for _letter, _names in _split(dense("sygvdx", "hegvdx")):
    computes(_names, f"{_SYGVDX.format(_letter)} {WITH_WORK}")(sygvdx)
    tells_size(_names, f"{_SYGVDX.format(_letter)} p:lwork", _elements)


# -- general matrices --------------------------------------------------------------------------------------------------

_XGEEV: Final = (
    "p:handle p:params e:jobvl e:jobvr l:n e:type_A p:A l:lda e:type_W p:W e:type_VL p:VL l:ldvl e:type_VR p:VR l:ldvr "
    "e:type_computed"
)


def _elements_of_geev(of: Arguments) -> int:
    return int(BLOCK * of.n + of.n**2)


def _require_geev_types(call: Call[Type]) -> bool:
    """Return whether eigenvalues are complex: those of a real matrix may be, or else lie in two halves."""
    element, number = element_of(call), call.arguments.type_W
    sides = (("VL", call.arguments.jobvl), ("VR", call.arguments.jobvr))
    require_types(call, same=" ".join(name for name, wanted in sides if wanted == VECTORS))
    complex_of_real = {0: 4, 1: 5}.get(call.arguments.type_A)
    if BY_NUMBER.get(number) is not element and number != complex_of_real:
        raise NotDescribed(f"eigenvalues of the type {number} are not described")
    return bool(BY_NUMBER[number].stored.kind == "c")


@computes(generic("Xgeev"), f"{_XGEEV} {ON_BOTH} p:info")
def geev(call: Call[Type]) -> Work:
    """Compute the eigenvalues of any matrix. Vectors of a real one are pairs of columns, as LAPACK has them."""
    of = call.arguments
    require(of.jobvl in (0, VECTORS), of.jobvr in (0, VECTORS))
    a, element = matrix_of(call, "A", of.n, of.n), element_of(call)
    is_complex, sides = _require_geev_types(call), []
    for name, wanted in (("VL", of.jobvl), ("VR", of.jobvr)):
        sides.append(matrix_of(call, name, of.n, of.n) if wanted == VECTORS else None)

    def compute() -> int:
        matrix = a.read(call)
        made = lapack("geev", matrix)(matrix, compute_vl=of.jobvl, compute_vr=of.jobvr)
        *values, left, right, info = made
        if element.stored.kind == "c":
            call.write("W", of.W, values[0])
        elif is_complex:
            call.write("W", of.W, values[0] + 1j * values[1])
        else:
            call.write("W", of.W, np.concatenate(values))
        for side, vectors in zip(sides, (left, right), strict=True):
            if side is not None:
                side.write(call, vectors)
        destroy(call, a)
        return int(info)

    return with_info(call, _elements_of_geev(of), compute, empty=not of.n)


tells_size(generic("Xgeev"), f"{_XGEEV} {SIZES_OF_BOTH}", _elements_of_geev)
