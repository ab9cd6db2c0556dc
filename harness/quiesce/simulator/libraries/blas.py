"""cuBLAS: products of matrices. What else it computes is in ``blas_vectors`` and ``blas_triangles``.

Matrices are columns, "leading dimension" elements apart, of which exactly those are read and written that the
documentation names (cuBLAS, "Matrix-matrix operations"). Where beta is zero "C does not have to be a valid input".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import (
    BFLOAT,
    BY_LETTER,
    BY_NUMBER,
    COMPLEX,
    DOUBLE,
    DOUBLE_COMPLEX,
    HALF,
    INT32,
    SINGLE,
    Element,
    Matrix,
    Stack,
)
from quiesce.simulator.libraries.table import Arguments, Call, NotDescribed, Refused, Work, computes

INVALID_VALUE: Final = 7
NOT_SUPPORTED: Final = 15
POINTER_MODE: Final = 0
"""The setting of a handle that says where scalars lie: 0 on the host, 1 on the device."""
OPERATIONS: Final = 3
"""Nothing, the transpose, and the conjugate transpose (cublasOperation_t)."""

Scalar = Callable[[], Any]


def typed(pattern: str, letters: str = "SDCZ") -> dict[str, Element]:
    """Return the functions of a name for each type of elements."""
    return {pattern.format(letter): BY_LETTER[letter] for letter in letters}


def scalar(call: Call[Any], operand: str, address: int, element: Element) -> Scalar:
    """Return how a scalar is had when the stream comes to the call.

    One on the host is read when the function is called.
    """
    if call.settings[POINTER_MODE] == 0:
        value = element.decode(call.host(operand, address, element.stored))[0]
        return lambda: value
    return lambda: element.decode(call.read(operand, address, element.stored, 1))[0, 0]


def require(*conditions: bool) -> None:
    """Refuse a call of which some argument is wrong."""
    if not all(conditions):
        raise Refused(INVALID_VALUE)


def turned(columns: Array, operation: int) -> Array:
    """Return the transpose of op(X) from the columns of X, each of which is a row; or of each of many."""
    if operation == 0:
        return columns
    transposed = columns.swapaxes(-1, -2)
    return transposed if operation == 1 else transposed.conj()


def operated(matrix: Array, operation: int) -> Array:
    """Return op(X)."""
    return turned(matrix.T, operation).T


_Operand = Matrix | Stack


@dataclass(frozen=True, slots=True)
class Product:
    """C = alpha op(A) op(B) + beta C, computed in the type ``computed``."""

    operation_a: int
    operation_b: int
    inner: int
    a: Matrix
    b: Matrix
    c: Matrix
    computed: np.dtype[Any]

    @classmethod
    def of(cls, of: Arguments, a: Element, b: Element, c: Element, computed: np.dtype[Any]) -> Product:
        """Return the product that arguments name as gemm has them. Refuses wrong ones."""
        require(0 <= of.ta < OPERATIONS, 0 <= of.tb < OPERATIONS, of.m >= 0, of.n >= 0, of.k >= 0)
        rows_a, columns_a = (of.m, of.k) if of.ta == 0 else (of.k, of.m)
        rows_b, columns_b = (of.k, of.n) if of.tb == 0 else (of.n, of.k)
        require(of.lda >= max(1, rows_a), of.ldb >= max(1, rows_b), of.ldc >= max(1, of.m))
        return cls(
            of.ta,
            of.tb,
            of.k,
            Matrix("A", of.A, rows_a, columns_a, of.lda, a),
            Matrix("B", of.B, rows_b, columns_b, of.ldb, b),
            Matrix("C", of.C, of.m, of.n, of.ldc, c),
            computed,
        )

    @property
    def is_empty(self) -> bool:
        """Say whether C has no elements."""
        return not self.c.rows or not self.c.columns

    def compute(self, call: Call[Any], alpha: Any, beta: Any, a: _Operand, b: _Operand, c: _Operand) -> None:
        """Compute it for matrices like its own, or stacks of them. Without alpha neither A nor B is read."""
        call.reuse_memory()
        old = c.read_columns(call).astype(self.computed) if beta != 0 else None
        if alpha == 0 or not self.inner:
            c.write_columns(call, np.zeros(c.shape, self.computed) if old is None else old * self.computed.type(beta))
            return
        left = turned(self._ready(b.read_columns(call)), self.operation_b)
        right = turned(self._ready(a.read_columns(call)), self.operation_a)
        made = call.room(left.dtype, *c.shape)
        np.matmul(left, right, out=made.values)
        if alpha != 1:
            made.values[...] *= made.values.dtype.type(alpha)
        if old is not None:
            made.values[...] += np.multiply(old, beta, dtype=self.computed)
        c.write_columns(call, made)

    def _ready(self, values: Array) -> Array:
        # integers are exact in double precision, for which there is a fast product
        return values.astype(np.float64 if self.computed.kind == "i" else self.computed, copy=False)


GEMM: Final = "p:handle e:ta e:tb n:m n:n n:k p:alpha {} p:beta {}"
_PLAIN: Final = GEMM.format("p:A n:lda p:B n:ldb", "p:C n:ldc")
_STRIDED: Final = GEMM.format("p:A n:lda l:sa p:B n:ldb l:sb", "p:C n:ldc l:sc n:batch")
_BATCHED: Final = GEMM.format("a:A n:lda a:B n:ldb", "a:C n:ldc n:batch")
_EX: Final = GEMM.format("p:A e:at n:lda p:B e:bt n:ldb", "p:C e:ct n:ldc{}")
_STRIDED_EX: Final = GEMM.format(
    "p:A e:at n:lda l:sa p:B e:bt n:ldb l:sb", "p:C e:ct n:ldc l:sc n:batch e:compute e:algorithm"
)
_BATCHED_EX: Final = GEMM.format("a:A e:at n:lda a:B e:bt n:ldb", "a:C e:ct n:ldc n:batch e:compute e:algorithm")


@dataclass(frozen=True, slots=True)
class _Types:
    a: Element
    b: Element
    c: Element
    scale: Element

    @property
    def computed(self) -> np.dtype[Any]:
        return self.scale.computed


_SCALES: Final = {
    64: HALF, 65: HALF, 68: SINGLE, 69: SINGLE, 74: SINGLE, 75: SINGLE, 77: SINGLE, 78: SINGLE, 70: DOUBLE, 71: DOUBLE,
    72: INT32, 73: INT32,
}  # fmt: skip
"""The type of alpha and beta by cublasComputeType_t. C++ programs may also name a type of elements (cublas_v2.h)."""
_COMPLEX_SCALES: Final = {SINGLE: COMPLEX, DOUBLE: DOUBLE_COMPLEX}


def types_of(a: int, b: int, c: int, computed: int) -> _Types:
    """Return the types of a product whose caller names them by number."""
    scale = _SCALES.get(computed) or BY_NUMBER.get(computed)
    types = [BY_NUMBER.get(each) for each in (a, b, c)]
    if scale is None or None in types or scale is BFLOAT:
        raise NotDescribed(f"products of the types {a}, {b} and {c} (computed: {computed}) are not described")
    first, second, third = (each for each in types if each is not None)
    if third.stored.kind == "c":
        scale = _COMPLEX_SCALES.get(scale, scale)
    if scale is INT32 and third is SINGLE:  # "Int8 inputs, float output": computed in single precision
        raise NotDescribed("products of integers with a result in single precision are not described")
    return _Types(first, second, third, scale)


def _product(call: Call[Any], types: _Types) -> Callable[[Callable[[Product, Any, Any], None]], Work]:
    """Return what begins a product: it reads the scalars, and does nothing for an empty one."""
    of = call.arguments
    product = Product.of(of, types.a, types.b, types.c, types.computed)
    alpha, beta = scalar(call, "alpha", of.alpha, types.scale), scalar(call, "beta", of.beta, types.scale)

    def begin(run: Callable[[Product, Any, Any], None]) -> Work:
        return None if product.is_empty else lambda: run(product, alpha(), beta())

    return begin


def _one(call: Call[Any], types: _Types) -> Work:
    def run(product: Product, alpha: Any, beta: Any) -> None:
        product.compute(call, alpha, beta, product.a, product.b, product.c)

    return _product(call, types)(run)


def _strided(call: Call[Any], types: _Types) -> Work:
    of = call.arguments
    require(of.batch >= 0)

    def run(product: Product, alpha: Any, beta: Any) -> None:
        steps = (product.a, of.sa), (product.b, of.sb), (product.c, of.sc)
        a, b, c = (Stack(first, step, of.batch) for first, step in steps)
        if a.is_simple and b.is_simple and c.is_simple and of.sc:
            product.compute(call, alpha, beta, a, b, c)
            return
        for number in range(of.batch):
            product.compute(call, alpha, beta, *(first.moved(number * step) for first, step in steps))

    begun = _product(call, types)(run)
    return begun if of.batch else None


def _batched(call: Call[Any], types: _Types) -> Work:
    of = call.arguments
    require(of.batch >= 0)

    def run(product: Product, alpha: Any, beta: Any) -> None:
        needs = alpha != 0 and product.inner
        addresses_c = call.read_pointers("C", of.C, of.batch)
        addresses_a = call.read_pointers("A", of.A, of.batch) if needs else addresses_c
        addresses_b = call.read_pointers("B", of.B, of.batch) if needs else addresses_c
        for a, b, c in zip(addresses_a, addresses_b, addresses_c, strict=True):
            product.compute(call, alpha, beta, product.a.at(a), product.b.at(b), product.c.at(c))

    return _product(call, types)(run)


def _same(element: Element) -> _Types:
    return _Types(element, element, element, element)


def _named(call: Call[Any]) -> _Types:
    of = call.arguments
    return types_of(of.at, of.bt, of.ct, of.compute)


@computes(typed("cublas{}gemm_v2") | {"cublasCgemm3m": COMPLEX, "cublasZgemm3m": DOUBLE_COMPLEX, "cublasHgemm": HALF},
          _PLAIN, wide=True)  # fmt: skip
def gemm(call: Call[Element]) -> Work:
    """Multiply two matrices."""
    return _one(call, _same(call.about))


@computes(
    typed("cublas{}gemmStridedBatched") | {"cublasHgemmStridedBatched": HALF, "cublasCgemm3mStridedBatched": COMPLEX},
    _STRIDED,
    wide=True,
)
def gemm_strided(call: Call[Element]) -> Work:
    """Multiply matrices that lie at fixed distances."""
    return _strided(call, _same(call.about))


@computes(
    typed("cublas{}gemmBatched") | {"cublasHgemmBatched": HALF, "cublasCgemm3mBatched": COMPLEX}, _BATCHED, wide=True
)
def gemm_batched(call: Call[Element]) -> Work:
    """Multiply matrices whose addresses lie in arrays."""
    return _batched(call, _same(call.about))


@computes({"cublasGemmEx": None}, _EX.format(" e:compute e:algorithm"), wide=True)
def gemm_ex(call: Call[None]) -> Work:
    """Multiply two matrices whose types are named."""
    return _one(call, _named(call))


@computes({"cublasSgemmEx": SINGLE, "cublasCgemmEx": COMPLEX, "cublasCgemm3mEx": COMPLEX}, _EX.format(""), wide=True)
def typed_gemm_ex(call: Call[Element]) -> Work:
    """Multiply two matrices in single precision."""
    of = call.arguments
    types = types_of(of.at, of.bt, of.ct, 68)
    return _one(call, _Types(types.a, types.b, types.c, call.about))


@computes({"cublasGemmStridedBatchedEx": None}, _STRIDED_EX, wide=True)
def gemm_strided_ex(call: Call[None]) -> Work:
    """Multiply matrices of named types that lie at fixed distances."""
    return _strided(call, _named(call))


@computes({"cublasGemmBatchedEx": None}, _BATCHED_EX, wide=True)
def gemm_batched_ex(call: Call[None]) -> Work:
    """Multiply matrices of named types whose addresses lie in arrays."""
    return _batched(call, _named(call))
