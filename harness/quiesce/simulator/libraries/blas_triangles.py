"""cuBLAS: triangles, symmetric matrices, factors of batches, and sums of matrices.

Of a triangular or symmetric matrix one triangle is read, and nothing beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.linalg

from quiesce.simulator.libraries.blas import Scalar, operated, require, scalar, typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_LETTER, REAL_OF, Element, Matrix, Vector
from quiesce.simulator.libraries.table import Arguments, Call, Work, computes

LOWER, UPPER = 0, 1  # cublasFillMode_t
LEFT, RIGHT = 0, 1  # cublasSideMode_t
UNIT: Final = 1  # cublasDiagType_t


def _triangle_shape(of: Arguments) -> None:
    order = of.m if of.side == LEFT else of.n
    require(of.side in (LEFT, RIGHT), of.uplo in (LOWER, UPPER), of.m >= 0, of.n >= 0)
    require(of.lda >= max(1, order), of.ldb >= max(1, of.m))


# -- triangles ---------------------------------------------------------------------------------------------------------

_TRIANGLE: Final = "p:handle e:side e:uplo e:trans e:diag n:m n:n p:alpha {}"


def _in_triangle(call: Call[Element]) -> tuple[Matrix, Matrix]:
    of, element = call.arguments, call.about
    _triangle_shape(of)
    require(0 <= of.trans <= 2, of.diag in (0, UNIT))
    order = of.m if of.side == LEFT else of.n
    return Matrix("A", of.A, order, order, of.lda, element), Matrix("B", of.B, of.m, of.n, of.ldb, element)


def _solve_one(call: Call[Element], a: Matrix, b: Matrix, alpha: Any) -> None:
    of, element = call.arguments, call.about
    if alpha == 0:  # "if alpha == 0, A is not referenced and B does not have to be a valid input" (the reference BLAS)
        b.write(call, np.zeros((of.m, of.n), element.computed))
        return
    triangle = a.read_triangle(call, upper=of.uplo == UPPER, unit=of.diag == UNIT)
    (solve,) = scipy.linalg.blas.get_blas_funcs(("trsm",), (triangle,))
    right, lower = b.read(call), of.uplo == LOWER
    b.write(call, solve(alpha, triangle, right, side=of.side, lower=lower, trans_a=of.trans, diag=of.diag))


@computes(typed("cublas{}trsm_v2"), _TRIANGLE.format("p:A n:lda p:B n:ldb"), wide=True)
def trsm(call: Call[Element]) -> Work:
    """Solve a triangular system."""
    of = call.arguments
    a, b = _in_triangle(call)
    alpha = scalar(call, "alpha", of.alpha, call.about)
    return (lambda: _solve_one(call, a, b, alpha())) if of.m and of.n else None


@computes(typed("cublas{}trsmBatched"), _TRIANGLE.format("a:A n:lda a:B n:ldb n:batch"), wide=True)
def trsm_batched(call: Call[Element]) -> Work:
    """Solve triangular systems whose matrices' addresses lie in arrays."""
    of = call.arguments
    a, b = _in_triangle(call)
    alpha = scalar(call, "alpha", of.alpha, call.about)

    def run() -> None:
        times = alpha()
        places = zip(call.read_pointers("A", of.A, of.batch), call.read_pointers("B", of.B, of.batch), strict=True)
        for at_a, at_b in places:
            _solve_one(call, a.at(at_a), b.at(at_b), times)

    return run if of.m and of.n and of.batch > 0 else None


@computes(typed("cublas{}trmm_v2"), _TRIANGLE.format("p:A n:lda p:B n:ldb p:C n:ldc"), wide=True)
def trmm(call: Call[Element]) -> Work:
    """Multiply a triangular matrix and another one."""
    of, element = call.arguments, call.about
    a, b = _in_triangle(call)
    require(of.ldc >= max(1, of.m))
    c, alpha = Matrix("C", of.C, of.m, of.n, of.ldc, element), scalar(call, "alpha", of.alpha, element)

    def run() -> None:
        times = alpha()
        if times == 0:
            c.write(call, np.zeros((of.m, of.n), element.computed))
            return
        triangle = operated(a.read_triangle(call, upper=of.uplo == UPPER, unit=of.diag == UNIT), of.trans)
        other = b.read(call)
        c.write(call, times * (triangle @ other if of.side == LEFT else other @ triangle))

    return run if of.m and of.n else None


# -- symmetric matrices ------------------------------------------------------------------------------------------------

_RANK: Final = "p:handle e:uplo e:trans n:n n:k p:alpha p:A n:lda {}p:beta p:C n:ldc"


def whole(triangle: Array, *, upper: bool, hermitian: bool) -> Array:
    """Return a symmetric or Hermitian matrix from one of its triangles."""
    other = triangle.T.conj() if hermitian else triangle.T
    made: Array = triangle + (np.tril(other, -1) if upper else np.triu(other, 1))
    if hermitian:
        np.fill_diagonal(made, made.diagonal().real)
    return made


def _updated(
    call: Call[Any], c: Matrix, beta: Scalar, made: Callable[[], Array | None], *, hermitian: bool
) -> Callable[[], None]:
    """Return what computes C = made + beta C in one triangle; None is made where alpha is zero."""
    upper = call.arguments.uplo == UPPER

    def run() -> None:
        times, sum_ = beta(), made()
        if sum_ is None and times == 1:
            return
        result = np.zeros((c.rows, c.columns), c.element.computed) if sum_ is None else sum_
        if times != 0:
            result = result + times * c.read_triangle(call, upper=upper)
        if hermitian:
            np.fill_diagonal(result, result.diagonal().real)
        c.write_triangle(call, result, upper=upper)

    return run


def _rank_matrices(call: Call[Any], element: Element, letters: str) -> list[Matrix]:
    of = call.arguments
    require(of.uplo in (LOWER, UPPER), 0 <= of.trans <= 2, of.n >= 0, of.k >= 0)
    rows, columns = (of.n, of.k) if of.trans == 0 else (of.k, of.n)
    made = []
    for letter in letters:
        ld = getattr(of, f"ld{letter.lower()}")
        require(ld >= max(1, rows))
        made.append(Matrix(letter, getattr(of, letter), rows, columns, ld, element))
    require(of.ldc >= max(1, of.n))
    return made


_SYRK: Final = {f"cublas{each}syrk_v2": (each, False) for each in "SDCZ"}
_HERK: Final = {f"cublas{each}herk_v2": (each, True) for each in "CZ"}


@computes(_SYRK | _HERK, _RANK.format(""), wide=True)
def rank_k(call: Call[tuple[str, bool]]) -> Work:
    """Add a matrix times its own transpose to a triangle."""
    of, (letter, hermitian) = call.arguments, call.about
    element = BY_LETTER[letter]
    of_scalars = REAL_OF[letter] if hermitian else element
    (a,) = _rank_matrices(call, element, "A")
    alpha, beta = scalar(call, "alpha", of.alpha, of_scalars), scalar(call, "beta", of.beta, of_scalars)

    def made() -> Array | None:
        times = alpha()
        if times == 0 or not of.k:
            return None
        x = operated(a.read(call), of.trans)
        return np.asarray(times * (x @ (x.T.conj() if hermitian else x.T)))

    c = Matrix("C", of.C, of.n, of.n, of.ldc, element)
    return _updated(call, c, beta, made, hermitian=hermitian) if of.n else None


_SYR2K: Final = {f"cublas{each}syr2k_v2": (each, False) for each in "SDCZ"}
_HER2K: Final = {f"cublas{each}her2k_v2": (each, True) for each in "CZ"}
_SYRKX: Final = {f"cublas{each}syrkx": (each, False) for each in "SDCZ"}
_HERKX: Final = {f"cublas{each}herkx": (each, True) for each in "CZ"}


def _rank_two(call: Call[tuple[str, bool]], *, both: bool) -> Work:
    of, (letter, hermitian) = call.arguments, call.about
    element = BY_LETTER[letter]
    a, b = _rank_matrices(call, element, "AB")
    alpha = scalar(call, "alpha", of.alpha, element)
    beta = scalar(call, "beta", of.beta, REAL_OF[letter] if hermitian else element)

    def made() -> Array | None:
        times = alpha()
        if times == 0 or not of.k:
            return None
        x, y = operated(a.read(call), of.trans), operated(b.read(call), of.trans)
        first = times * (x @ (y.T.conj() if hermitian else y.T))
        return np.asarray(first + (first.T.conj() if hermitian else first.T) if both else first)

    c = Matrix("C", of.C, of.n, of.n, of.ldc, element)
    return _updated(call, c, beta, made, hermitian=hermitian) if of.n else None


@computes(_SYR2K | _HER2K, _RANK.format("p:B n:ldb "), wide=True)
def rank_2k(call: Call[tuple[str, bool]]) -> Work:
    """Add A times B transposed, and B times A transposed, to a triangle."""
    return _rank_two(call, both=True)


@computes(_SYRKX | _HERKX, _RANK.format("p:B n:ldb "), wide=True)
def rank_kx(call: Call[tuple[str, bool]]) -> Work:
    """Add A times B transposed to a triangle: the caller knows that it is symmetric."""
    return _rank_two(call, both=False)


_SYMM: Final = {f"cublas{each}symm_v2": (each, False) for each in "SDCZ"}
_HEMM: Final = {f"cublas{each}hemm_v2": (each, True) for each in "CZ"}


@computes(_SYMM | _HEMM, "p:handle e:side e:uplo n:m n:n p:alpha p:A n:lda p:B n:ldb p:beta p:C n:ldc", wide=True)
def symm(call: Call[tuple[str, bool]]) -> Work:
    """Multiply a symmetric matrix and another one."""
    of, (letter, hermitian) = call.arguments, call.about
    element = BY_LETTER[letter]
    _triangle_shape(of)
    require(of.ldc >= max(1, of.m))
    order = of.m if of.side == LEFT else of.n
    a, b = Matrix("A", of.A, order, order, of.lda, element), Matrix("B", of.B, of.m, of.n, of.ldb, element)
    c = Matrix("C", of.C, of.m, of.n, of.ldc, element)
    alpha, beta = scalar(call, "alpha", of.alpha, element), scalar(call, "beta", of.beta, element)

    def run() -> None:
        times, old = alpha(), beta()
        made = np.zeros((of.m, of.n), element.computed)
        if old != 0:
            made = made + old * c.read(call)
        if times != 0:
            full = whole(a.read_triangle(call, upper=of.uplo == UPPER), upper=of.uplo == UPPER, hermitian=hermitian)
            other = b.read(call)
            made = made + times * (full @ other if of.side == LEFT else other @ full)
        c.write(call, made)

    return run if of.m and of.n else None


# -- sums and diagonals ------------------------------------------------------------------------------------------------


@computes(typed("cublas{}geam"), "p:handle e:ta e:tb n:m n:n p:alpha p:A n:lda p:beta p:B n:ldb p:C n:ldc", wide=True)
def geam(call: Call[Element]) -> Work:
    """Add two matrices, each of which may be transposed. Without its number neither is read."""
    of, element = call.arguments, call.about
    require(0 <= of.ta <= 2, 0 <= of.tb <= 2, of.m >= 0, of.n >= 0, of.ldc >= max(1, of.m))
    parts = []
    for name, operation, ld, address in (("A", of.ta, of.lda, of.A), ("B", of.tb, of.ldb, of.B)):
        rows, columns = (of.m, of.n) if operation == 0 else (of.n, of.m)
        require(ld >= max(1, rows))
        parts.append((Matrix(name, address, rows, columns, ld, element), operation))
    scalars = scalar(call, "alpha", of.alpha, element), scalar(call, "beta", of.beta, element)

    def run() -> None:
        made = np.zeros((of.m, of.n), element.computed)
        for (matrix, operation), times in zip(parts, scalars, strict=True):
            factor = times()
            if factor != 0:
                made = made + factor * operated(matrix.read(call), operation)
        Matrix("C", of.C, of.m, of.n, of.ldc, element).write(call, made)

    return run if of.m and of.n else None


@computes(typed("cublas{}dgmm"), "p:handle e:side n:m n:n p:A n:lda p:x n:incx p:C n:ldc", wide=True)
def dgmm(call: Call[Element]) -> Work:
    """Multiply a matrix and a diagonal one."""
    of, element = call.arguments, call.about
    require(of.side in (LEFT, RIGHT), of.m >= 0, of.n >= 0, of.lda >= max(1, of.m), of.ldc >= max(1, of.m))
    count = of.m if of.side == LEFT else of.n

    def run() -> None:
        a = Matrix("A", of.A, of.m, of.n, of.lda, element).read(call)
        if of.incx:
            x = Vector("x", of.x, count, of.incx, element).read(call)
        else:
            x = np.repeat(Vector("x", of.x, 1, 1, element).read(call), count)
        Matrix("C", of.C, of.m, of.n, of.ldc, element).write(call, x[:, None] * a if of.side == LEFT else a * x)

    return run if of.m and of.n else None


_PACKED: Final = "p:handle e:uplo n:n {} {}"


def _packed(of: Arguments) -> list[tuple[int, int, int]]:
    """Return for each column its first row, the row after its last one, and where it begins among the packed."""
    made, at = [], 0
    for column in range(of.n):
        first, end = (0, column + 1) if of.uplo == UPPER else (column, of.n)
        made.append((first, end, at))
        at += end - first
    return made


@computes(typed("cublas{}tpttr"), _PACKED.format("p:AP", "p:A n:lda"))
def tpttr(call: Call[Element]) -> Work:
    """Unpack a triangle."""
    of, element = call.arguments, call.about
    require(of.uplo in (LOWER, UPPER), of.n >= 0, of.lda >= max(1, of.n))

    def run() -> None:
        values = call.read("AP", of.AP, element.stored, of.n * (of.n + 1) // 2)[0]
        for column, (first, end, at) in enumerate(_packed(of)):
            to = of.A + (column * of.lda + first) * element.size_bytes
            call.write("A", to, values[at : at + end - first])

    return run if of.n else None


@computes(typed("cublas{}trttp"), _PACKED.format("p:A n:lda", "p:AP"))
def trttp(call: Call[Element]) -> Work:
    """Pack a triangle."""
    of, element = call.arguments, call.about
    require(of.uplo in (LOWER, UPPER), of.n >= 0, of.lda >= max(1, of.n))

    def run() -> None:
        triangle = Matrix("A", of.A, of.n, of.n, of.lda, element).read_triangle(call, upper=of.uplo == UPPER)
        packed = [triangle[first:end, column] for column, (first, end, _) in enumerate(_packed(of))]
        call.write("AP", of.AP, np.concatenate(packed))

    return run if of.n else None


# -- factors of batches ------------------------------------------------------------------------------------------------


def _factors(matrix: Array, *, pivots: bool) -> tuple[Array, Array, int]:
    """Return L and U in one matrix, the rows that were exchanged from 1 on, and which pivot is zero, or 0."""
    if pivots:
        (getrf,) = scipy.linalg.lapack.get_lapack_funcs(("getrf",), (matrix,))
        made, exchanged, zero = getrf(matrix)
        return made, (exchanged + 1).astype(np.int32), int(zero)
    made = np.array(matrix, order="F")
    for at in range(len(made)):
        if made[at, at] == 0:
            return made, np.arange(1, len(made) + 1, dtype=np.int32), at + 1
        made[at + 1 :, at] /= made[at, at]
        made[at + 1 :, at + 1 :] -= np.outer(made[at + 1 :, at], made[at, at + 1 :])
    return made, np.arange(1, len(made) + 1, dtype=np.int32), 0


@computes(typed("cublas{}getrfBatched"), "p:handle e:n a:A e:lda p:pivots p:info e:batch")
def getrf_batched(call: Call[Element]) -> Work:
    """Factor matrices. Without an array of pivots no rows are exchanged."""
    of, element = call.arguments, call.about
    require(of.n >= 0, of.batch >= 0, of.lda >= max(1, of.n))

    def run() -> None:
        for number, address in enumerate(call.read_pointers("A", of.A, of.batch)):
            a = Matrix("A", address, of.n, of.n, of.lda, element)
            made, exchanged, zero = _factors(a.read(call), pivots=bool(of.pivots))
            a.write(call, made)
            if of.pivots:
                call.write("pivots", of.pivots + 4 * of.n * number, exchanged)
            call.write("info", of.info + 4 * number, np.asarray([zero], np.int32))

    return run if of.n and of.batch else None


def _pivots_of(call: Call[Any], number: int) -> Array:
    of = call.arguments
    if not of.pivots:
        return np.arange(of.n, dtype=np.int32)
    return np.asarray(call.read("pivots", of.pivots + 4 * of.n * number, np.int32, of.n)[0] - 1)


@computes(typed("cublas{}getriBatched"), "p:handle e:n a:A e:lda p:pivots a:C e:ldc p:info e:batch")
def getri_batched(call: Call[Element]) -> Work:
    """Invert matrices from their factors."""
    of, element = call.arguments, call.about
    require(of.n >= 0, of.batch >= 0, of.lda >= max(1, of.n), of.ldc >= max(1, of.n))

    def run() -> None:
        to = call.read_pointers("C", of.C, of.batch)
        for number, address in enumerate(call.read_pointers("A", of.A, of.batch)):
            factors = Matrix("A", address, of.n, of.n, of.lda, element).read(call)
            (getri,) = scipy.linalg.lapack.get_lapack_funcs(("getri",), (factors,))
            inverse, zero = getri(factors, _pivots_of(call, number))
            if zero:  # a GPU divides by it
                inverse = np.full_like(factors, np.nan)
            Matrix("C", to[number], of.n, of.n, of.ldc, element).write(call, inverse)
            call.write("info", of.info + 4 * number, np.asarray([zero], np.int32))

    return run if of.n and of.batch else None


@computes(typed("cublas{}matinvBatched"), "p:handle e:n a:A e:lda a:C e:ldc p:info e:batch")
def matinv_batched(call: Call[Element]) -> Work:
    """Invert matrices, "limited to n <= 32"."""
    of, element = call.arguments, call.about
    require(0 <= of.n <= 32, of.batch >= 0, of.lda >= max(1, of.n), of.ldc >= max(1, of.n))

    def run() -> None:
        to = call.read_pointers("C", of.C, of.batch)
        for number, address in enumerate(call.read_pointers("A", of.A, of.batch)):
            factors, exchanged, zero = _factors(
                Matrix("A", address, of.n, of.n, of.lda, element).read(call), pivots=True
            )
            (getri,) = scipy.linalg.lapack.get_lapack_funcs(("getri",), (factors,))
            if not zero:
                inverse, zero = getri(factors, exchanged - 1)
                Matrix("C", to[number], of.n, of.n, of.ldc, element).write(call, inverse)
            call.write("info", of.info + 4 * number, np.asarray([zero], np.int32))

    return run if of.n and of.batch else None


@computes(typed("cublas{}getrsBatched"), "p:handle e:trans e:n e:nrhs a:A e:lda p:pivots a:B e:ldb p:info e:batch")
def getrs_batched(call: Call[Element]) -> Work:
    """Solve systems with factors. ``info`` is a number of the host's: whether an argument is wrong."""
    of, element = call.arguments, call.about
    require(0 <= of.trans <= 2, of.n >= 0, of.nrhs >= 0, of.batch >= 0)
    require(of.lda >= max(1, of.n), of.ldb >= max(1, of.n))

    def run() -> None:
        right = call.read_pointers("B", of.B, of.batch)
        for number, address in enumerate(call.read_pointers("A", of.A, of.batch)):
            factors = Matrix("A", address, of.n, of.n, of.lda, element).read(call)
            b = Matrix("B", right[number], of.n, of.nrhs, of.ldb, element)
            (getrs,) = scipy.linalg.lapack.get_lapack_funcs(("getrs",), (factors,))
            made, _ = getrs(factors, _pivots_of(call, number), b.read(call), trans=of.trans)
            b.write(call, made)

    call.give_to_host("info", of.info, np.zeros(1, np.int32))
    return run if of.n and of.nrhs and of.batch else None
