"""cuBLAS: vectors, and products of a matrix and a vector (levels 1 and 2 of the reference BLAS)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.blas import POINTER_MODE, Scalar, operated, require, scalar, typed
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_LETTER, INT32, REAL_OF, Element, Matrix, Vector
from quiesce.simulator.libraries.table import Call, Work, computes


def x_of(call: Call[Any], element: Element) -> Vector:
    """Return the vector that arguments call x."""
    of = call.arguments
    return Vector("x", of.x, of.n, of.incx, element)


def y_of(call: Call[Any], element: Element) -> Vector:
    """Return the vector that arguments call y."""
    of = call.arguments
    return Vector("y", of.y, of.n, of.incy, element)


_REAL_SCALED: Final = {"cublasCsscal_v2": ("C", "S"), "cublasZdscal_v2": ("Z", "D")}


@computes({f"cublas{each}scal_v2": (each, each) for each in "SDCZ"} | _REAL_SCALED, "p:handle n:n p:alpha p:x n:incx",
          wide=True)  # fmt: skip
def scal(call: Call[tuple[str, str]]) -> Work:
    """Multiply a vector by a number."""
    of, (letter, of_alpha) = call.arguments, call.about
    x, alpha = x_of(call, BY_LETTER[letter]), scalar(call, "alpha", of.alpha, BY_LETTER[of_alpha])
    return (lambda: x.write(call, x.read(call) * alpha())) if of.n > 0 and of.incx > 0 else None


@computes(typed("cublas{}axpy_v2"), "p:handle n:n p:alpha p:x n:incx p:y n:incy", wide=True)
def axpy(call: Call[Element]) -> Work:
    """Add a multiple of a vector to another one."""
    of = call.arguments
    x, y, alpha = x_of(call, call.about), y_of(call, call.about), scalar(call, "alpha", of.alpha, call.about)

    def run() -> None:
        times = alpha()
        if times != 0:  # then "the routine returns immediately" (the reference BLAS)
            y.write(call, times * x.read(call) + y.read(call))

    return run if of.n > 0 else None


@computes(typed("cublas{}copy_v2"), "p:handle n:n p:x n:incx p:y n:incy", wide=True)
def copy(call: Call[Element]) -> Work:
    """Copy a vector."""
    x, y = x_of(call, call.about), y_of(call, call.about)
    return (lambda: y.write(call, x.read(call))) if call.arguments.n > 0 else None


@computes(typed("cublas{}swap_v2"), "p:handle n:n p:x n:incx p:y n:incy", wide=True)
def swap(call: Call[Element]) -> Work:
    """Exchange two vectors."""
    x, y = x_of(call, call.about), y_of(call, call.about)

    def run() -> None:
        first, second = x.read(call), y.read(call)
        x.write(call, second)
        y.write(call, first)

    return run if call.arguments.n > 0 else None


_ROTATIONS: Final = {
    "cublasSrot_v2": ("S", "S", "S"), "cublasDrot_v2": ("D", "D", "D"), "cublasCrot_v2": ("C", "S", "C"),
    "cublasCsrot_v2": ("C", "S", "S"), "cublasZrot_v2": ("Z", "D", "Z"), "cublasZdrot_v2": ("Z", "D", "D"),
}  # fmt: skip
"""The types of the vectors, of the cosine and of the sine."""


@computes(_ROTATIONS, "p:handle n:n p:x n:incx p:y n:incy p:c p:s", wide=True)
def rot(call: Call[tuple[str, str, str]]) -> Work:
    """Rotate the points (x, y)."""
    of, (vectors, of_c, of_s) = call.arguments, call.about
    x, y = x_of(call, BY_LETTER[vectors]), y_of(call, BY_LETTER[vectors])
    cosine, sine = scalar(call, "c", of.c, BY_LETTER[of_c]), scalar(call, "s", of.s, BY_LETTER[of_s])

    def run() -> None:
        first, second, c, s = x.read(call), y.read(call), cosine(), sine()
        x.write(call, c * first + s * second)
        y.write(call, c * second - np.conj(s) * first)

    return run if of.n > 0 else None


# -- results that are one number ---------------------------------------------------------------------------------------


def result(call: Call[Any], element: Element, compute: Callable[[], Any]) -> Work:
    """Return what computes a number, and writes it where the pointer mode says that it belongs."""
    of = call.arguments
    is_of_host = call.settings[POINTER_MODE] == 0
    call.waits = is_of_host

    def run() -> None:
        value = element.encode(np.asarray([compute()]))
        if is_of_host:
            call.give_to_host("result", of.result, value)
        else:
            call.write("result", of.result, value)

    return run


_DOTS: Final = {
    "cublasSdot_v2": ("S", False), "cublasDdot_v2": ("D", False), "cublasCdotu_v2": ("C", False),
    "cublasCdotc_v2": ("C", True), "cublasZdotu_v2": ("Z", False), "cublasZdotc_v2": ("Z", True),
}  # fmt: skip
"""The type, and whether x is conjugated."""


@computes(_DOTS, "p:handle n:n p:x n:incx p:y n:incy p:result", wide=True)
def dot(call: Call[tuple[str, bool]]) -> Work:
    """Compute the product of two vectors."""
    letter, conjugated = call.about
    element = BY_LETTER[letter]
    x, y = x_of(call, element), y_of(call, element)

    def compute() -> Any:
        if x.count <= 0:
            return element.computed.type(0)
        first = x.read(call)
        return np.dot(first.conj() if conjugated else first, y.read(call))

    return result(call, element, compute)


def _sizes(values: Array) -> Array:
    """Return |re| + |im| of each."""
    return np.abs(values.real) + np.abs(values.imag) if values.dtype.kind == "c" else np.abs(values)


def _euclidean(values: Array) -> Any:
    return np.linalg.norm(values)


_OF_REALS: Final = (("S", "S"), ("D", "D"), ("Sc", "C"), ("Dz", "Z"))
_OF_INDICES: Final = (("s", "S"), ("d", "D"), ("c", "C"), ("z", "Z"))
_Reduction = tuple[str, Callable[[Array], Any], Element | None]
_REDUCTIONS: Final[dict[str, _Reduction]] = {
    **{f"cublas{name}nrm2_v2": (letter, _euclidean, None) for name, letter in _OF_REALS},
    **{f"cublas{name}asum_v2": (letter, lambda values: _sizes(values).sum(), None) for name, letter in _OF_REALS},
    **{f"cublasI{name}amax_v2": (letter, lambda v: _sizes(v).argmax() + 1, INT32) for name, letter in _OF_INDICES},
    **{f"cublasI{name}amin_v2": (letter, lambda v: _sizes(v).argmin() + 1, INT32) for name, letter in _OF_INDICES},
}


@computes(_REDUCTIONS, "p:handle n:n p:x n:incx p:result")
def reduce(call: Call[_Reduction]) -> Work:
    """Compute a number of a vector. "The result is 0 if n, incx <= 0" (cuBLAS)."""
    letter, of_values, element = call.about
    x = x_of(call, BY_LETTER[letter])

    def compute() -> Any:
        return of_values(x.read(call)) if x.count > 0 and x.step > 0 else 0

    return result(call, element or REAL_OF[letter], compute)


# -- matrices and vectors ----------------------------------------------------------------------------------------------


def _multiplied(
    call: Call[Any], matrix: Callable[[], Array], x: Vector, y: Vector, scalars: tuple[Scalar, Scalar]
) -> Callable[[], None]:
    """Return what computes y = alpha A x + beta y."""

    def run() -> None:
        alpha, beta = scalars[0](), scalars[1]()
        old = y.read(call) * beta if beta != 0 else 0
        made = np.zeros(y.count, y.element.computed)
        if alpha != 0 and x.count:
            made = alpha * (matrix() @ x.read(call))
        y.write(call, (made + old).astype(y.element.computed, copy=False))

    return run


def _read(call: Call[Any], a: Matrix, operation: int) -> Array:
    return operated(a.read(call), operation)


_GEMV: Final = "p:handle e:t n:m n:n p:alpha {} n:incx p:beta {} n:incy"


def _gemv_vectors(call: Call[Element]) -> tuple[Matrix, Vector, Vector]:
    of, element = call.arguments, call.about
    require(0 <= of.t <= 2, of.m >= 0, of.n >= 0, of.lda >= max(1, of.m), of.incx != 0, of.incy != 0)
    count_x, count_y = (of.n, of.m) if of.t == 0 else (of.m, of.n)
    a = Matrix("A", of.A, of.m, of.n, of.lda, element)
    return a, Vector("x", of.x, count_x, of.incx, element), Vector("y", of.y, count_y, of.incy, element)


@computes(typed("cublas{}gemv_v2"), _GEMV.format("p:A n:lda p:x", "p:y"), wide=True)
def gemv(call: Call[Element]) -> Work:
    """Multiply a matrix and a vector."""
    of, element = call.arguments, call.about
    a, x, y = _gemv_vectors(call)
    scalars = scalar(call, "alpha", of.alpha, element), scalar(call, "beta", of.beta, element)
    run = _multiplied(call, partial(_read, call, a, of.t), x, y, scalars)
    return run if of.m and of.n else None


@computes(typed("cublas{}gemvStridedBatched"), _GEMV.format("p:A n:lda l:sa p:x", "p:y").replace(
    "n:incx", "n:incx l:sx") + " l:sy n:batch", wide=True)  # fmt: skip
def gemv_strided(call: Call[Element]) -> Work:
    """Multiply matrices and vectors that lie at fixed distances."""
    of, element = call.arguments, call.about
    a, x, y = _gemv_vectors(call)
    scalars = scalar(call, "alpha", of.alpha, element), scalar(call, "beta", of.beta, element)
    size = element.size_bytes

    def run() -> None:
        for number in range(of.batch):
            moved = a.moved(number * of.sa)
            at_x = Vector("x", x.address + number * of.sx * size, x.count, x.step, element)
            at_y = Vector("y", y.address + number * of.sy * size, y.count, y.step, element)
            _multiplied(call, partial(_read, call, moved, of.t), at_x, at_y, scalars)()

    return run if of.m and of.n and of.batch > 0 else None


@computes(typed("cublas{}gemvBatched"), _GEMV.format("a:A n:lda a:x", "a:y") + " n:batch", wide=True)
def gemv_batched(call: Call[Element]) -> Work:
    """Multiply matrices and vectors whose addresses lie in arrays."""
    of, element = call.arguments, call.about
    a, x, y = _gemv_vectors(call)
    scalars = scalar(call, "alpha", of.alpha, element), scalar(call, "beta", of.beta, element)

    def run() -> None:
        places = [call.read_pointers(name, at, of.batch) for name, at in (("A", of.A), ("x", of.x), ("y", of.y))]
        for at_a, at_x, at_y in zip(*places, strict=True):
            moved = a.at(at_a)
            vectors = Vector("x", at_x, x.count, x.step, element), Vector("y", at_y, y.count, y.step, element)
            _multiplied(call, partial(_read, call, moved, of.t), *vectors, scalars)()

    return run if of.m and of.n and of.batch > 0 else None


_GER: Final = {
    "cublasSger_v2": ("S", False), "cublasDger_v2": ("D", False), "cublasCgeru_v2": ("C", False),
    "cublasCgerc_v2": ("C", True), "cublasZgeru_v2": ("Z", False), "cublasZgerc_v2": ("Z", True),
}  # fmt: skip


@computes(_GER, "p:handle n:m n:n p:alpha p:x n:incx p:y n:incy p:A n:lda", wide=True)
def ger(call: Call[tuple[str, bool]]) -> Work:
    """Add a multiple of x times y to a matrix."""
    of, (letter, conjugated) = call.arguments, call.about
    element = BY_LETTER[letter]
    require(of.m >= 0, of.n >= 0, of.incx != 0, of.incy != 0, of.lda >= max(1, of.m))
    x, y = Vector("x", of.x, of.m, of.incx, element), Vector("y", of.y, of.n, of.incy, element)
    a, alpha = Matrix("A", of.A, of.m, of.n, of.lda, element), scalar(call, "alpha", of.alpha, element)

    def run() -> None:
        times = alpha()
        if times != 0:
            second = y.read(call)
            a.write(call, a.read(call) + times * np.outer(x.read(call), second.conj() if conjugated else second))

    return run if of.m and of.n else None


@computes({"cublasSsbmv_v2": BY_LETTER["S"], "cublasDsbmv_v2": BY_LETTER["D"]},
          "p:handle e:uplo n:n n:k p:alpha p:A n:lda p:x n:incx p:beta p:y n:incy", wide=True)  # fmt: skip
def sbmv(call: Call[Element]) -> Work:
    """Multiply a symmetric band matrix and a vector: a column has its part of the band."""
    of, element = call.arguments, call.about
    require(of.uplo in (0, 1), of.n >= 0, of.k >= 0, of.lda > of.k, of.incx != 0, of.incy != 0)
    scalars = scalar(call, "alpha", of.alpha, element), scalar(call, "beta", of.beta, element)

    def matrix() -> Array:
        made = np.zeros((of.n, of.n), element.computed)
        for column in range(of.n):
            first, end = (column, min(of.n, column + of.k + 1)) if of.uplo == 0 else (max(0, column - of.k), column + 1)
            above = 0 if of.uplo == 0 else of.k - (column - first)
            at = of.A + (column * of.lda + above) * element.size_bytes
            values = call.read("A", at, element.stored, end - first)[0]
            made[first:end, column] = values
            made[column, first:end] = values
        return made

    run = _multiplied(call, matrix, x_of(call, element), y_of(call, element), scalars)
    return run if of.n else None
