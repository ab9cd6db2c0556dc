"""cuSOLVER: orthogonal factors (QR, bidiagonal, tridiagonal) as products of reflectors H = I - tau v v^H.

The vectors lie below or above the factor, each without its first element, which is 1. Only they are read there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import Matrix
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
    real_of,
    require,
    require_types,
    tells_size,
    triangle_of,
    with_info,
)
from quiesce.simulator.libraries.table import Arguments, Call, Work, computes

LEFT, RIGHT = 0, 1  # cublasSideMode_t


def _of_orders(of: Arguments) -> int:
    return int(BLOCK * (of.n if of.side == LEFT else of.m))


# -- QR ----------------------------------------------------------------------------------------------------------------

_GEQRF: Final = "p:handle n:m n:n p:A n:lda"
_XGEQRF: Final = "p:handle p:params l:m l:n e:type_A p:A l:lda e:type_tau p:tau e:type_computed"


@computes(generic("Geqrf"), f"{_XGEQRF} {ON_DEVICE} p:info")
@computes(generic("Xgeqrf"), f"{_XGEQRF} {ON_BOTH} p:info")
@computes(dense("geqrf"), f"{_GEQRF} p:tau {WITH_WORK}")
def geqrf(call: Call[Type]) -> Work:
    """Factor a matrix."""
    of = call.arguments
    a = matrix_of(call, "A", of.m, of.n)
    require_types(call, same="tau")

    def compute() -> int:
        values = a.read(call)
        made, tau, _, _ = lapack("geqrf", values)(values)
        a.write(call, made)
        call.write("tau", of.tau, tau)
        return 0

    return with_info(call, block_of_rows(of), compute, empty=not (of.m and of.n))


tells_size(dense("geqrf"), f"{_GEQRF} p:lwork", block_of_rows)
tells_size(generic("Xgeqrf"), f"{_XGEQRF} {SIZES_OF_BOTH}", block_of_rows)
tells_size(generic("Geqrf"), f"{_XGEQRF} {SIZE_ON_DEVICE}", block_of_rows)

_ORGQR: Final = "p:handle n:m n:n n:k p:A n:lda p:tau"


def _unitary(name: str, *arrays: Array) -> Any:
    """Return LAPACK's function, which has another name for complex numbers."""
    return lapack(("un" if arrays[0].dtype.kind == "c" else "or") + name, *arrays)


@computes(dense("orgqr", "ungqr"), f"{_ORGQR} {WITH_WORK}")
def orgqr(call: Call[Type]) -> Work:
    """Make the first columns of Q in place of its reflectors."""
    of = call.arguments
    require(of.m >= of.n >= of.k >= 0)
    a = matrix_of(call, "A", of.m, of.n)

    def compute() -> int:
        vectors = np.zeros((of.m, of.n), a.element.stored, "F")
        vectors[:, : of.k] = matrix_of(call, "A", of.m, of.k).read_triangle(call, upper=False, unit=True)
        made, _, _ = _unitary("gqr", vectors)(vectors, _read_tau(call, a, of.k))
        a.write(call, made)
        return 0

    return with_info(call, block_of_rows(of), compute, empty=not (of.m and of.n))


tells_size(dense("orgqr", "ungqr"), f"{_ORGQR} p:lwork", block_of_rows)


def _read_tau(call: Call[Type], a: Matrix, count: int) -> Array:
    return np.asarray(call.read("tau", call.arguments.tau, a.element.stored, count)[0])


_ORMQR: Final = "p:handle e:side e:trans n:m n:n n:k p:A n:lda p:tau p:C n:ldc"


def _letter(call: Call[Type]) -> str:
    """Return how LAPACK names op(Q). A transpose is none of a complex Q, nor a conjugate one of a real Q."""
    is_complex = element_of(call).stored.kind == "c"
    require(call.arguments.trans in ((0, 2) if is_complex else (0, 1)))
    return "NTC"[call.arguments.trans]


@computes(dense("ormqr", "unmqr"), f"{_ORMQR} {WITH_WORK}")
def ormqr(call: Call[Type]) -> Work:
    """Multiply a matrix by Q, which stays a product of reflectors."""
    of = call.arguments
    require(of.side in (LEFT, RIGHT))
    order = of.m if of.side == LEFT else of.n
    require(0 <= of.k <= order)
    trans, a, c = _letter(call), matrix_of(call, "A", order, of.k), matrix_of(call, "C", of.m, of.n)

    def compute() -> int:
        vectors = np.asfortranarray(a.read_triangle(call, upper=False, unit=True))
        multiply, side = _unitary("mqr", vectors), "LR"[of.side]
        made, _, _ = multiply(side, trans, vectors, _read_tau(call, a, of.k), c.read(call), max(1, _of_orders(of)))
        c.write(call, made)
        return 0

    return with_info(call, _of_orders(of), compute, empty=not (of.m and of.n and of.k))


tells_size(dense("ormqr", "unmqr"), f"{_ORMQR} p:lwork", _of_orders)


def product(vectors: Array, tau: Array) -> Array:
    """Return the product of the reflectors whose vectors are columns."""
    made: Array = np.eye(len(vectors), dtype=vectors.dtype)
    for vector, times in zip(vectors.T, tau, strict=True):
        made -= np.outer(times * (made @ vector), vector.conj())
    return made


# -- bidiagonal matrices -----------------------------------------------------------------------------------------------

_GEBRD: Final = "p:handle n:m n:n"


def _reflector(column: Array) -> tuple[Array, Any, Any]:
    """Return v and tau of the reflector whose H^H makes a column zero but for its first element, and that element."""
    first, rest = column[0], column[1:]
    length = np.linalg.norm(column)
    vector = np.array(column)
    vector[0] = 1
    if not np.any(rest) and np.imag(first) == 0:
        return vector, column.dtype.type(0), first
    made = -np.copysign(length, np.real(first))
    vector[1:] = rest / (first - made)
    return vector, column.dtype.type((made - first) / made), made


def bidiagonal(matrix: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return LAPACK's gebd2 of a matrix that is not wider than high: it with reflectors in it, D, E, TAUQ and TAUP."""
    made, columns = np.array(matrix, order="F"), matrix.shape[1]
    real = np.zeros(0, made.dtype).real.dtype
    diagonal, beside = np.zeros(columns, real), np.zeros(max(0, columns - 1), real)
    tau_q, tau_p = np.zeros(columns, made.dtype), np.zeros(columns, made.dtype)
    for at in range(columns):
        vector, tau_q[at], value = _reflector(made[at:, at])
        diagonal[at] = np.real(value)
        made[at:, at + 1 :] -= np.outer(np.conj(tau_q[at]) * vector, vector.conj() @ made[at:, at + 1 :])
        made[at:, at] = vector
        made[at, at] = value
        if at + 1 < columns:
            vector, tau_p[at], value = _reflector(made[at, at + 1 :].conj())
            beside[at] = np.real(value)
            made[at + 1 :, at + 1 :] -= np.outer(tau_p[at] * (made[at + 1 :, at + 1 :] @ vector), vector.conj())
            made[at, at + 1 :] = vector.conj()
            made[at, at + 1] = value
    return made, diagonal, beside, tau_q, tau_p


def _elements_of_gebrd(of: Arguments) -> int:
    return int(BLOCK * (of.m + of.n))


@computes(dense("gebrd"), f"{_GEBRD} p:A n:lda p:D p:E p:tauq p:taup {WITH_WORK}")
def gebrd(call: Call[Type]) -> Work:
    """Make a matrix bidiagonal by reflectors from both sides: "only m>=n is supported"."""
    of = call.arguments
    require(of.m >= of.n)
    a = matrix_of(call, "A", of.m, of.n)

    def compute() -> int:
        made, diagonal, beside, tau_q, tau_p = bidiagonal(a.read(call))
        a.write(call, made)
        results = (("D", of.D, diagonal), ("E", of.E, beside), ("tauq", of.tauq, tau_q), ("taup", of.taup, tau_p))
        for name, address, values in results:
            call.write(name, address, values)
        return 0

    return with_info(call, _elements_of_gebrd(of), compute, empty=not of.n)


tells_size(dense("gebrd"), f"{_GEBRD} p:lwork", _elements_of_gebrd)

_ORGBR: Final = "p:handle e:side n:m n:n n:k p:A n:lda p:tau"


def _of_bidiagonal(call: Call[Type], a: Matrix) -> tuple[Array, Array]:
    """Return the vectors that gebrd left, as columns, and their numbers.

    They begin one place later where the matrix that it was given was not higher than wide (from the right: not wider).
    """
    of, element = call.arguments, a.element
    order = of.m if of.side == LEFT else of.n
    shifted = order < of.k if of.side == LEFT else order <= of.k
    count = order - 1 if shifted else of.k
    vectors = np.zeros((order, count), element.stored)
    if count:
        length, step = order - int(shifted), 1 if of.side == LEFT else of.lda
        part = a.moved(step if shifted else 0)
        if of.side == LEFT:
            part = Matrix("A", part.address, length, count, of.lda, element)
            vectors[order - length :] = part.read_triangle(call, upper=False, unit=True)
        else:
            part = Matrix("A", part.address, count, length, of.lda, element)
            vectors[order - length :] = part.read_triangle(call, upper=True, unit=True).T.conj()
    return vectors, _read_tau(call, a, count)


@computes(dense("orgbr", "ungbr"), f"{_ORGBR} {WITH_WORK}")
def orgbr(call: Call[Type]) -> Work:
    """Make Q (the side is left) or P^H (right) in place of the reflectors that gebrd left."""
    of = call.arguments
    require(of.side in (LEFT, RIGHT), of.k >= 0)
    a = matrix_of(call, "A", of.m, of.n)
    require(of.m >= of.n >= min(of.m, of.k) if of.side == LEFT else of.n >= of.m >= min(of.n, of.k))

    def compute() -> int:
        made = product(*_of_bidiagonal(call, a))
        a.write(call, made[:, : of.n] if of.side == LEFT else made.T.conj()[: of.m])
        return 0

    return with_info(call, block_of_rows(of), compute, empty=not (of.m and of.n))


tells_size(dense("orgbr", "ungbr"), f"{_ORGBR} p:lwork", block_of_rows)


# -- tridiagonal matrices ----------------------------------------------------------------------------------------------

_SYTRD: Final = "p:handle e:uplo n:n p:A n:lda p:D p:E p:tau"


@computes(dense("sytrd", "hetrd"), f"{_SYTRD} {WITH_WORK}")
def sytrd(call: Call[Type]) -> Work:
    """Make a symmetric matrix tridiagonal by reflectors."""
    of, a = call.arguments, triangle_of(call)
    upper = of.uplo == UPPER
    real = real_of(a.element).stored

    def compute() -> int:
        triangle = a.read_triangle(call, upper=upper)
        name = "hetrd" if triangle.dtype.kind == "c" else "sytrd"
        made, diagonal, beside, tau, _ = lapack(name, triangle)(triangle, lower=not upper)
        a.write_triangle(call, made, upper=upper)
        call.write("D", of.D, diagonal.astype(real, copy=False))
        call.write("E", of.E, beside.astype(real, copy=False))
        call.write("tau", of.tau, tau)
        return 0

    return with_info(call, block_of_rows(of), compute, empty=not of.n)


tells_size(dense("sytrd", "hetrd"), f"{_SYTRD} p:lwork", block_of_rows)


def _of_tridiagonal(call: Call[Type], a: Matrix) -> Array:
    """Return the product of the reflectors that sytrd left."""
    order, upper = a.rows, call.arguments.uplo == UPPER
    part = a.moved(a.ld if upper else 1)
    part = Matrix("A", part.address, order - 1, order - 1, a.ld, a.element)
    vectors, tau = np.zeros((order, order - 1), a.element.stored), _read_tau(call, a, order - 1)
    if upper:  # the last of them is the first factor
        vectors[:-1] = part.read_triangle(call, upper=True, unit=True)
        return product(vectors[:, ::-1], tau[::-1])
    vectors[1:] = part.read_triangle(call, upper=False, unit=True)
    return product(vectors, tau)


_ORGTR: Final = "p:handle e:uplo n:n p:A n:lda p:tau"


@computes(dense("orgtr", "ungtr"), f"{_ORGTR} {WITH_WORK}")
def orgtr(call: Call[Type]) -> Work:
    """Make Q in place of the reflectors that sytrd left."""
    of, a = call.arguments, triangle_of(call)

    def compute() -> int:
        a.write(call, _of_tridiagonal(call, a))
        return 0

    return with_info(call, block_of_rows(of), compute, empty=not of.n)


tells_size(dense("orgtr", "ungtr"), f"{_ORGTR} p:lwork", block_of_rows)

_ORMTR: Final = "p:handle e:side e:uplo e:trans n:m n:n p:A n:lda p:tau p:C n:ldc"


@computes(dense("ormtr", "unmtr"), f"{_ORMTR} {WITH_WORK}")
def ormtr(call: Call[Type]) -> Work:
    """Multiply a matrix by the Q of sytrd."""
    of = call.arguments
    require(of.side in (LEFT, RIGHT), of.uplo in (0, 1))
    order = of.m if of.side == LEFT else of.n
    letter, a, c = _letter(call), matrix_of(call, "A", order, order), matrix_of(call, "C", of.m, of.n)

    def compute() -> int:
        q = _of_tridiagonal(call, a)
        q = q if letter == "N" else q.T.conj()
        values = c.read(call)
        c.write(call, q @ values if of.side == LEFT else values @ q)
        return 0

    return with_info(call, _of_orders(of), compute, empty=not (of.m and of.n))


tells_size(dense("ormtr", "unmtr"), f"{_ORMTR} p:lwork", _of_orders)
