"""cuBLASLt: products, whose operands and what follows them are described by descriptors.

``native/libraries/lt.c`` has the descriptors, and says where each attribute lies in them. They are read when the
function is called: "the descriptor can be destroyed as soon as the call returns".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.blas import Scalar, operated, require, types_of
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_NUMBER, Element, Matrix
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes

_LAYOUT: Final = struct.Struct("<IiQQqiiqq8x")
_DESCRIPTION: Final = struct.Struct("<16Q8iiib3x3i5ii48x")
_TRANSFORM: Final = struct.Struct("<4i48x")
_ALGORITHM: Final = struct.Struct("<56xQ")
ROWS: Final = 1  # cublasLtOrder_t
RELU, BIAS, GELU, AUXILIARY = 2, 4, 32, 128  # cublasLtEpilogue_t
NO_EPILOGUE: Final = 1
HOST, DEVICE, VECTORS, VECTOR_AND_ZERO, VECTOR_AND_HOST = range(5)  # cublasLtPointerMode_t
AS_RESULT: Final = -1


@dataclass(frozen=True, slots=True)
class Layout:
    """A matrix, or a batch of them, at an address."""

    operand: str
    address: int
    number: int
    """Of the type of its elements."""
    element: Element
    is_rows: bool
    rows: int
    columns: int
    ld: int
    batch: int
    stride: int

    @classmethod
    def of(cls, call: Call[Any], operand: str, address: int, descriptor: int, name: str) -> Layout:
        """Read a descriptor."""
        require(descriptor != 0)
        packed = call.host(name, descriptor, np.uint8, _LAYOUT.size).tobytes()
        number, order, rows, columns, ld, batch, _, stride, _ = _LAYOUT.unpack(packed)
        element = BY_NUMBER.get(number)
        if element is None or order not in (0, ROWS):
            raise NotDescribed(f"matrices of the type {number} in the order {order} are not described")
        require(ld >= (columns if order == ROWS else rows), batch >= 1)
        return cls(operand, address, number, element, order == ROWS, rows, columns, ld, batch, stride)

    def _matrix(self, number: int) -> Matrix:
        at = self.address + number * self.stride * self.element.size_bytes
        shape = (self.columns, self.rows) if self.is_rows else (self.rows, self.columns)
        return Matrix(self.operand, at, *shape, self.ld, self.element)

    def read(self, call: Call[Any], number: int) -> Array:
        """Return one matrix of the batch."""
        values = self._matrix(number).read(call)
        return values.T if self.is_rows else values

    def write(self, call: Call[Any], number: int, values: Array) -> None:
        """Write one matrix of the batch."""
        self._matrix(number).write(call, values.T if self.is_rows else values)


@dataclass(frozen=True, slots=True)
class Description:
    """What is computed: the attributes that matter here."""

    compute_type: int
    scale_type: int
    pointer_mode: int
    transposed_a: int
    transposed_b: int
    epilogue: int
    bias: int
    bias_stride: int
    bias_type: int
    auxiliary: int
    auxiliary_ld: int
    auxiliary_stride: int
    vector_stride: int

    @classmethod
    def of(cls, call: Call[Any], descriptor: int) -> Description:
        """Read a descriptor."""
        require(descriptor != 0)
        values = _DESCRIPTION.unpack(call.host("description", descriptor, np.uint8, _DESCRIPTION.size).tobytes())
        bias, bias_stride, auxiliary, auxiliary_ld, auxiliary_stride, vector_stride, *scales = values[:16]
        compute, scale, mode, first, second, third, _, epilogue = values[16:24]
        if any(scales) or third:
            raise NotDescribed("scales of matrices and a transposed C are not described")
        kinds = RELU | BIAS | GELU | AUXILIARY | NO_EPILOGUE
        if epilogue & ~kinds or mode > VECTOR_AND_HOST or values[25] not in (AS_RESULT, 0):
            raise NotDescribed(f"the epilogue {epilogue} or pointer mode {mode} is not described")
        return cls(
            compute, scale, mode, first, second, epilogue, bias, bias_stride, values[27], auxiliary, auxiliary_ld,
            auxiliary_stride, vector_stride,
        )  # fmt: skip


def _scalars(call: Call[Any], description: Description, element: Element, rows: int) -> tuple[Scalar, Scalar]:
    """Return how alpha and beta are had: numbers, or columns of one for each row of the result."""
    of, mode = call.arguments, description.pointer_mode

    def on_host(name: str, address: int) -> Scalar:
        value = element.decode(call.host(name, address, element.stored))[0]
        return lambda: value

    def on_device(name: str, address: int, count: int) -> Scalar:
        def read() -> Any:
            values = element.decode(call.read(name, address, element.stored, count))[0]
            return values[0] if count == 1 else values[:, None]

        return read

    match mode:
        case 0:
            return on_host("alpha", of.alpha), on_host("beta", of.beta)
        case 1:
            return on_device("alpha", of.alpha, 1), on_device("beta", of.beta, 1)
        case 2:
            return on_device("alpha", of.alpha, rows), on_device("beta", of.beta, rows)
        case 3:
            return on_device("alpha", of.alpha, rows), lambda: 0
        case _:
            return on_device("alpha", of.alpha, rows), on_host("beta", of.beta)


def _gelu(values: Array) -> Array:
    """Return x times the normal distribution, by its usual approximation."""
    return np.asarray(values * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3))))


class _Epilogue:
    """What follows a product."""

    def __init__(self, call: Call[Any], description: Description, result: Layout) -> None:
        self._call, self._of, self._result = call, description, result
        number = description.bias_type
        bias = result.element if number == AS_RESULT else BY_NUMBER.get(number)
        if description.epilogue & BIAS and bias is None:
            raise NotDescribed(f"a bias of the type {number} is not described")
        self._bias = bias or result.element

    def applied(self, number: int, values: Array) -> Array:
        """Return what becomes of one product of the batch."""
        kind = self._of.epilogue
        if kind & BIAS:
            at = self._of.bias + number * self._of.bias_stride * self._bias.size_bytes
            read = self._call.read("description", at, self._bias.stored, len(values))[0]
            values = values + self._bias.decode(read)[:, None]
        if kind & AUXILIARY:
            self._keep(number, values)
        if kind & RELU:
            return np.maximum(values, 0)
        return _gelu(values) if kind & GELU else values

    def _keep(self, number: int, values: Array) -> None:
        """Write what the backward pass needs: a bit for each element of a ReLU, or what a GELU is applied to."""
        element, of = self._result.element, self._of
        if of.epilogue & RELU:
            bits = np.packbits(values > 0, axis=0, bitorder="little").T
            at = of.auxiliary + number * of.auxiliary_stride // 8
            self._call.write("description", at, np.ascontiguousarray(bits), of.auxiliary_ld // 8)
            return
        at = of.auxiliary + number * of.auxiliary_stride * element.size_bytes
        Matrix("description", at, len(values), values.shape[1], of.auxiliary_ld, element).write(self._call, values)


_MATMUL: Final = (
    "p:handle p:description p:alpha p:A p:Adesc p:B p:Bdesc p:beta p:C p:Cdesc p:D p:Ddesc p:algorithm p:workspace "
    "z:workspace_bytes p:stream"
)


def _workspace(call: Call[None], result: Layout) -> int:
    """Return how much of its workspace a call uses: what its algorithm wants, as native/libraries/lt.c says it."""
    of = call.arguments
    wanted = min(4 * result.rows * result.columns, of.workspace_bytes)
    if of.algorithm:
        (wanted,) = _ALGORITHM.unpack(call.host("algorithm", of.algorithm, np.uint8, _ALGORITHM.size).tobytes())
        require(wanted <= of.workspace_bytes)
    require(of.workspace % 16 == 0)
    return int(wanted if of.workspace else 0)


@computes({"cublasLtMatmul": None}, _MATMUL)
def matmul(call: Call[None]) -> Work:
    """Compute D = epilogue(alpha op(A) op(B) + beta C + bias), and the same for each of a batch."""
    of = call.arguments
    description = Description.of(call, of.description)
    a, b = Layout.of(call, "A", of.A, of.Adesc, "Adesc"), Layout.of(call, "B", of.B, of.Bdesc, "Bdesc")
    c, d = Layout.of(call, "C", of.C, of.Cdesc, "Cdesc"), Layout.of(call, "D", of.D, of.Ddesc, "Ddesc")
    types = types_of(a.number, b.number, d.number, description.compute_type)
    scale = BY_NUMBER.get(description.scale_type)
    if scale is None:
        raise NotDescribed(f"scalars of the type {description.scale_type} are not described")
    inner, other = (
        (a.columns if description.transposed_a == 0 else a.rows),
        (b.rows if description.transposed_b == 0 else b.columns),
    )
    rows = a.rows if description.transposed_a == 0 else a.columns
    columns = b.columns if description.transposed_b == 0 else b.rows
    require(inner == other, (d.rows, d.columns) == (rows, columns), (c.rows, c.columns) == (rows, columns))
    require(a.batch == b.batch == d.batch)
    alpha, beta = _scalars(call, description, scale, rows)
    workspace = _workspace(call, d)
    epilogue = _Epilogue(call, description, d)
    computed = types.computed

    def run() -> None:
        call.use("workspace", of.workspace, workspace)
        times, times_old = alpha(), beta()
        for number in range(d.batch):
            made = np.zeros((rows, columns), computed)
            if np.any(times != 0) and inner:
                first = operated(a.read(call, number).astype(_fast(computed), copy=False), description.transposed_a)
                second = operated(b.read(call, number).astype(_fast(computed), copy=False), description.transposed_b)
                made = (times * (first @ second)).astype(computed, copy=False)
            if np.any(times_old != 0):
                made = made + times_old * c.read(call, number).astype(computed)
            d.write(call, number, epilogue.applied(number, made))

    return run if rows and columns else None


def _fast(computed: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of products: integers are exact in double precision."""
    return np.dtype(np.float64) if computed.kind == "i" else computed


@computes({"cublasLtMatrixTransform": None}, "p:handle p:description p:alpha p:A p:Adesc p:beta p:B p:Bdesc p:C "
          "p:Cdesc p:stream")  # fmt: skip
def transform(call: Call[None]) -> Work:
    """Compute C = alpha op(A) + beta op(B), of matrices in any order and type. B may be left out."""
    of = call.arguments
    require(of.description != 0)
    packed = call.host("description", of.description, np.uint8, _TRANSFORM.size).tobytes()
    scale_type, mode, transposed_a, transposed_b = _TRANSFORM.unpack(packed)
    scale = BY_NUMBER.get(scale_type)
    if scale is None or mode > DEVICE:
        raise NotDescribed(f"scalars of the type {scale_type} in the pointer mode {mode} are not described")
    parts: list[tuple[Scalar, Layout, int]] = []
    for name, address, descriptor, factor, at, transposed in (
        ("A", of.A, of.Adesc, "alpha", of.alpha, transposed_a),
        ("B", of.B, of.Bdesc, "beta", of.beta, transposed_b),
    ):
        if address and descriptor:
            parts.append(
                (
                    _one_scalar(call, factor, at, scale, mode),
                    Layout.of(call, name, address, descriptor, f"{name}desc"),
                    transposed,
                )
            )
    c = Layout.of(call, "C", of.C, of.Cdesc, "Cdesc")

    def run() -> None:
        factors = [factor() for factor, _, _ in parts]
        for number in range(c.batch):
            made = np.zeros((c.rows, c.columns), scale.computed)
            for (_, layout, transposed), times in zip(parts, factors, strict=True):
                if times != 0:
                    made = made + times * operated(layout.read(call, number), transposed)
            c.write(call, number, made)

    return run


def _one_scalar(call: Call[Any], name: str, address: int, element: Element, mode: int) -> Callable[[], Any]:
    if mode == HOST:
        value = element.decode(call.host(name, address, element.stored))[0]
        return lambda: value
    return lambda: element.decode(call.read(name, address, element.stored, 1))[0, 0]
