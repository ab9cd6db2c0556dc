"""cuSOLVER: factors of matrices (Cholesky, LU, symmetric indefinite), and systems that are solved with them.

A symmetric matrix is read in one triangle, which its factor replaces. ``info`` is LAPACK's: the number of the pivot
that is zero, or of the leading minor that is not positive definite.
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
    UPPER,
    WITH_WORK,
    Type,
    block_of_rows,
    dense,
    element_of,
    generic,
    lapack,
    matrix_of,
    require,
    require_types,
    tells_size,
    triangle_of,
    with_info,
    workspace,
    write_info,
)
from quiesce.simulator.libraries.table import Arguments, Call, NotDescribed, Work, computes

OPERATIONS: Final = 3  # cublasOperation_t


# -- Cholesky ----------------------------------------------------------------------------------------------------------

_POTRF: Final = "p:handle e:uplo n:n p:A n:lda"
_XPOTRF: Final = "p:handle p:params e:uplo l:n e:type_A p:A l:lda e:type_computed"


def cholesky(call: Call[Any], a: Matrix, *, upper: bool) -> int:
    """Factor a matrix in place. Return LAPACK's INFO."""
    made, info = lapack("potrf", np.empty(0, a.element.stored))(
        a.read_triangle(call, upper=upper), lower=not upper, clean=False
    )
    a.write_triangle(call, made, upper=upper)
    return int(info)


@computes(generic("Potrf"), f"{_XPOTRF} {ON_DEVICE} p:info")
@computes(generic("Xpotrf"), f"{_XPOTRF} {ON_BOTH} p:info")
@computes(dense("potrf"), f"{_POTRF} {WITH_WORK}")
def potrf(call: Call[Type]) -> Work:
    """Factor a positive definite matrix."""
    of, a = call.arguments, triangle_of(call)
    require_types(call)
    return with_info(call, block_of_rows(of), lambda: cholesky(call, a, upper=of.uplo == UPPER), empty=not of.n)


tells_size(dense("potrf"), f"{_POTRF} p:lwork", block_of_rows)
tells_size(generic("Xpotrf"), f"{_XPOTRF} {SIZES_OF_BOTH}", block_of_rows)
tells_size(generic("Potrf"), f"{_XPOTRF} {SIZE_ON_DEVICE}", block_of_rows)


@computes(dense("potrfBatched"), "p:handle e:uplo n:n a:A n:lda p:info n:batch")
def potrf_batched(call: Call[Type]) -> Work:
    """Factor positive definite matrices whose addresses lie in an array."""
    of, a = call.arguments, triangle_of(call)
    require(of.batch >= 0)

    def run() -> None:
        places = call.read_pointers("A", of.A, of.batch)
        write_info(call, [cholesky(call, a.at(each), upper=of.uplo == UPPER) for each in places])

    return run if of.n and of.batch else None


def _solve_with_cholesky(call: Call[Any], a: Matrix, b: Matrix) -> None:
    upper = call.arguments.uplo == UPPER
    factor = a.read_triangle(call, upper=upper)
    made, _ = lapack("potrs", factor)(factor, b.read(call), lower=not upper)
    b.write(call, made)


@computes(
    generic("Potrs", "Xpotrs"), "p:handle p:params e:uplo l:n l:nrhs e:type_A p:A l:lda e:type_B p:B l:ldb p:info"
)
@computes(dense("potrs"), "p:handle e:uplo n:n n:nrhs p:A n:lda p:B n:ldb p:info")
def potrs(call: Call[Type]) -> Work:
    """Solve systems with a Cholesky factor."""
    of, a = call.arguments, triangle_of(call)
    b = matrix_of(call, "B", of.n, of.nrhs)
    require_types(call, same="B")

    def compute() -> int:
        _solve_with_cholesky(call, a, b)
        return 0

    return with_info(call, 0, compute, empty=not (of.n and of.nrhs))


@computes(dense("potrsBatched"), "p:handle e:uplo n:n n:nrhs a:A n:lda a:B n:ldb p:info n:batch")
def potrs_batched(call: Call[Type]) -> Work:
    """Solve systems of a batch: "only nrhs=1 is supported"."""
    of, a = call.arguments, triangle_of(call)
    require(of.nrhs == 1, of.batch >= 0)
    b = matrix_of(call, "B", of.n, of.nrhs)

    def run() -> None:
        places = zip(call.read_pointers("A", of.A, of.batch), call.read_pointers("B", of.B, of.batch), strict=True)
        for at_a, at_b in places:
            _solve_with_cholesky(call, a.at(at_a), b.at(at_b))
        write_info(call, 0)

    return run if of.n and of.batch else None


@computes(dense("potri"), f"{_POTRF} {WITH_WORK}")
def potri(call: Call[Type]) -> Work:
    """Invert a matrix from its Cholesky factor."""
    return _in_triangle(call, "potri")


@computes(dense("lauum"), f"{_POTRF} {WITH_WORK}")
def lauum(call: Call[Type]) -> Work:
    """Multiply a triangle and its conjugate transpose: U times U^H, or L^H times L."""
    return _in_triangle(call, "lauum")


def _in_triangle(call: Call[Type], name: str) -> Work:
    of, a = call.arguments, triangle_of(call)
    upper = of.uplo == UPPER

    def compute() -> int:
        triangle = a.read_triangle(call, upper=upper)
        made, info = lapack(name, triangle)(triangle, lower=not upper)
        a.write_triangle(call, made, upper=upper)
        return int(info)

    return with_info(call, block_of_rows(of), compute, empty=not of.n)


tells_size(dense("potri") | dense("lauum"), f"{_POTRF} p:lwork", block_of_rows)

_XTRTRI: Final = "p:handle e:uplo e:diag l:n e:type_A p:A l:lda"


@computes(generic("Xtrtri"), f"{_XTRTRI} {ON_BOTH} p:info")
def trtri(call: Call[Type]) -> Work:
    """Invert a triangle, whose diagonal may be all ones and is then not read."""
    of, a = call.arguments, triangle_of(call)
    require(of.diag in (0, 1))
    use, upper, unit = workspace(call, block_of_rows(of)), of.uplo == UPPER, of.diag == 1

    def run() -> None:
        use()
        info = 0
        if of.n:
            triangle = a.read_triangle(call, upper=upper, unit=unit)
            made, info = lapack("trtri", triangle)(triangle, lower=not upper, unitdiag=unit)
            a.write_triangle(call, made, upper=upper, unit=unit)
        write_info(call, info)

    return run


tells_size(generic("Xtrtri"), f"{_XTRTRI} {SIZES_OF_BOTH}", block_of_rows)


# -- LU ----------------------------------------------------------------------------------------------------------------

_GETRF: Final = "p:handle n:m n:n p:A n:lda"
_XGETRF: Final = "p:handle p:params l:m l:n e:type_A p:A l:lda"
_GETRS: Final = "p:handle e:trans n:n n:nrhs p:A n:lda p:pivots p:B n:ldb p:info"
_XGETRS: Final = "p:handle p:params e:trans l:n l:nrhs e:type_A p:A l:lda p:pivots e:type_B p:B l:ldb p:info"


def _pivot_type(call: Call[Type]) -> type[np.signedinteger[Any]]:
    """Return the type of pivots: functions with sizes of 64 bits have such pivots, too."""
    return np.int64 if call.about is None else np.int32


def without_pivots(matrix: Array) -> tuple[Array, int]:
    """Return L and U of a matrix whose rows are not exchanged, and which pivot is zero, or 0."""
    made, zero = np.array(matrix, order="F"), 0
    for at in range(min(made.shape)):
        if made[at, at] == 0:
            zero = zero or at + 1
            continue
        made[at + 1 :, at] /= made[at, at]
        made[at + 1 :, at + 1 :] -= np.outer(made[at + 1 :, at], made[at, at + 1 :])
    return made, zero


def _elements_of_lu(of: Arguments) -> int:
    return int(BLOCK * max(of.m, of.n))


@computes(generic("Getrf"), f"{_XGETRF} p:pivots e:type_computed {ON_DEVICE} p:info")
@computes(generic("Xgetrf"), f"{_XGETRF} p:pivots e:type_computed {ON_BOTH} p:info")
@computes(dense("getrf"), f"{_GETRF} p:workspace p:pivots p:info")
def getrf(call: Call[Type]) -> Work:
    """Factor a matrix. Without an array of pivots no rows are exchanged."""
    of = call.arguments
    a = matrix_of(call, "A", of.m, of.n)
    require_types(call)

    def compute() -> int:
        values = a.read(call)
        if of.pivots:
            made, exchanged, info = lapack("getrf", values)(values)
            call.write("pivots", of.pivots, (exchanged + 1).astype(_pivot_type(call)))
        else:
            made, info = without_pivots(values)
        a.write(call, made)
        return int(info)

    return with_info(call, _elements_of_lu(of), compute, empty=not (of.m and of.n))


tells_size(dense("getrf"), f"{_GETRF} p:lwork", _elements_of_lu)
tells_size(generic("Xgetrf"), f"{_XGETRF} e:type_computed {SIZES_OF_BOTH}", _elements_of_lu)
tells_size(generic("Getrf"), f"{_XGETRF} e:type_computed {SIZE_ON_DEVICE}", _elements_of_lu)


def _pivots(call: Call[Type], count: int) -> Array:
    """Return which row each row was exchanged with, from 0 on. One that is none would lead LAPACK astray."""
    of = call.arguments
    if not of.pivots:
        return np.arange(count, dtype=np.int32)
    read = call.read("pivots", of.pivots, _pivot_type(call), count)[0]
    return np.asarray(np.clip(read - 1, 0, count - 1), np.int32)


@computes(generic("Getrs", "Xgetrs"), _XGETRS)
@computes(dense("getrs"), _GETRS)
def getrs(call: Call[Type]) -> Work:
    """Solve systems with the factors of a matrix."""
    of = call.arguments
    require(0 <= of.trans < OPERATIONS)
    a, b = matrix_of(call, "A", of.n, of.n), matrix_of(call, "B", of.n, of.nrhs)
    require_types(call, same="B")

    def compute() -> int:
        factors = a.read(call)
        made, _ = lapack("getrs", factors)(factors, _pivots(call, of.n), b.read(call), trans=of.trans)
        b.write(call, made)
        return 0

    return with_info(call, 0, compute, empty=not (of.n and of.nrhs))


@computes(dense("laswp"), "p:handle n:n p:A n:lda n:first n:last p:pivots n:step")
def laswp(call: Call[Type]) -> Work:
    """Exchange rows: "the number of rows is unknown", so only those that are named count."""
    of, element = call.arguments, element_of(call)
    require(of.n >= 0, of.lda >= 1, of.first >= 1, of.last >= of.first)
    if of.step != 1:
        raise NotDescribed("exchanges of rows with a step other than 1 are not described")

    def run() -> None:
        count = of.last - of.first + 1
        at = of.pivots + 4 * (of.first - 1)
        pivots = [int(each) for each in call.read("pivots", at, np.int32, count)[0]]
        for row, other in enumerate(pivots, of.first):
            if row != other and other >= 1:
                _exchange(call, element, row - 1, other - 1)

    return run if of.n else None


def _exchange(call: Call[Type], element: Element, row: int, other: int) -> None:
    of = call.arguments
    places = [of.A + each * element.size_bytes for each in (row, other)]
    pitch = of.lda * element.size_bytes
    first, second = (np.array(call.read("A", at, element.stored, 1, of.n, pitch)) for at in places)
    call.write("A", places[0], second, pitch)
    call.write("A", places[1], first, pitch)


# -- symmetric indefinite matrices -------------------------------------------------------------------------------------

_SYTRF: Final = "p:handle e:uplo n:n p:A n:lda p:pivots"


def _require_pivots(call: Call[Type]) -> None:
    if not call.arguments.pivots:
        raise NotDescribed("symmetric matrices that are factored without pivots are not described")


@computes(dense("sytrf"), f"{_SYTRF} {WITH_WORK}")
def sytrf(call: Call[Type]) -> Work:
    """Factor a symmetric matrix by the method of Bunch and Kaufman."""
    of, a = call.arguments, triangle_of(call)
    _require_pivots(call)
    upper = of.uplo == UPPER

    def compute() -> int:
        triangle = a.read_triangle(call, upper=upper)
        made, pivots, info = lapack("sytrf", triangle)(triangle, lower=not upper)
        a.write_triangle(call, made, upper=upper)
        call.write("pivots", of.pivots, pivots.astype(np.int32))
        return int(info)

    return with_info(call, block_of_rows(of), compute, empty=not of.n)


tells_size(dense("sytrf"), "p:handle n:n p:A n:lda p:lwork", block_of_rows)


def _bunch_kaufman(call: Call[Type]) -> Array:
    """Return pivots as LAPACK has them. One that is none would lead it astray."""
    of = call.arguments
    read = call.read("pivots", of.pivots, _pivot_type(call), of.n)[0].astype(np.int32)
    return np.where((np.abs(read) >= 1) & (np.abs(read) <= of.n), read, np.arange(1, of.n + 1, dtype=np.int32))


@computes(dense("sytri"), f"{_SYTRF} {WITH_WORK}")
def sytri(call: Call[Type]) -> Work:
    """Invert a symmetric matrix from its factor."""
    of, a = call.arguments, triangle_of(call)
    _require_pivots(call)
    upper = of.uplo == UPPER

    def compute() -> int:
        triangle = a.read_triangle(call, upper=upper)
        made, info = lapack("sytri", triangle)(triangle, _bunch_kaufman(call), lower=not upper)
        a.write_triangle(call, made, upper=upper)
        return int(info)

    return with_info(call, block_of_rows(of), compute, empty=not of.n)


tells_size(dense("sytri"), f"{_SYTRF} p:lwork", block_of_rows)

_XSYTRS: Final = "p:handle e:uplo l:n l:nrhs e:type_A p:A l:lda p:pivots e:type_B p:B l:ldb"


def _elements_of_sytrs(of: Arguments) -> int:
    return int(of.n * of.nrhs)


@computes(generic("Xsytrs"), f"{_XSYTRS} {ON_BOTH} p:info")
def sytrs(call: Call[Type]) -> Work:
    """Solve systems with the factor of a symmetric matrix."""
    of, a = call.arguments, triangle_of(call)
    _require_pivots(call)
    b = matrix_of(call, "B", of.n, of.nrhs)
    require_types(call, same="B")
    upper = of.uplo == UPPER

    def compute() -> int:
        factor = a.read_triangle(call, upper=upper)
        made, _ = lapack("sytrs", factor)(factor, _bunch_kaufman(call), b.read(call), lower=not upper)
        b.write(call, made)
        return 0

    return with_info(call, _elements_of_sytrs(of), compute, empty=not (of.n and of.nrhs))


tells_size(generic("Xsytrs"), f"{_XSYTRS} {SIZES_OF_BOTH}", _elements_of_sytrs)
