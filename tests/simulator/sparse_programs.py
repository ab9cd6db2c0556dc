"""Machines on which functions of cuSPARSE compute: matrices in its formats, by their descriptors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse
from tests.simulator.conftest import Start
from tests.simulator.library_programs import Array, Libraries

NUMBERS: Final = {
    np.dtype(np.float32): 0, np.dtype(np.float64): 1, np.dtype(np.float16): 2, np.dtype(np.int8): 3,
    np.dtype(np.complex64): 4, np.dtype(np.complex128): 5, np.dtype(np.int32): 10,
}  # fmt: skip
"""``cudaDataType``."""
INDEX_NUMBERS: Final = {np.dtype(np.int32): 2, np.dtype(np.int64): 3}
LETTERS: Final = {np.float32: "S", np.float64: "D", np.complex64: "C", np.complex128: "Z"}
COLUMNS, ROWS = 1, 2  # cusparseOrder_t
INVALID: Final = 3


@dataclass(frozen=True, slots=True)
class Stored:
    """A descriptor, and the blocks of what it describes."""

    descriptor: int
    first: int
    """Of its rows: offsets, or an index for each element."""
    second: int
    values: int


class Sparse(Libraries):
    """A device with a handle of cuSPARSE."""

    def __init__(self, start: Start, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(start, folder, options)
        self.sparse = self.make("simulated_cusparseCreate")

    def descriptor(self, function: str, *arguments: int) -> int:
        """Return what a function makes that needs no handle."""
        made = ctypes.c_void_p()
        passed = [ctypes.c_int64(each) for each in arguments]
        assert getattr(self.driver, f"computed_cusparse{function}")(ctypes.byref(made), *passed) == 0
        return made.value or 0

    def tell(self, function: str, *arguments: int) -> int:
        """Call a function that needs no handle; return its status."""
        return self.call(f"cusparse{function}", *arguments)

    def answer(self, function: str, *arguments: Any) -> int:
        """Call a function with the handle; return its status."""
        return self.call(f"cusparse{function}", self.sparse, *arguments)

    def passes(self, function: str, *arguments: Any) -> None:
        """Call a function with the handle, and expect that it succeeds."""
        assert self.answer(function, *arguments) == 0

    def number(self, function: str, *arguments: Any, dtype: Any = np.uint64) -> int:
        """Return the number that a function writes to its last argument, which lies on the host."""
        found = np.zeros(1, dtype)
        self.passes(function, *arguments, found.ctypes.data)
        return int(found[0])

    def buffered(self, function: str, *arguments: Any, size: str = "_bufferSize", short: int = 0) -> int:
        """Call a function with a buffer of the size that it asks for, or less; return the buffer."""
        size_bytes = self.number(f"{function.partition('_')[0]}{size}", *arguments)
        buffer = self.room(size_bytes - short)
        self.passes(function, *arguments, buffer)
        return buffer

    def matrix(self, of: Any, *, index: Any = np.int32, base: int = 0, short: dict[str, int] | None = None) -> Stored:
        """Store a matrix of SciPy in its format. ``short``: bytes that a block lacks."""
        lacks = short or {}
        if of.format == "coo":
            arrays = {"first": of.row.astype(index), "second": of.col.astype(index)}
        else:
            arrays = {"first": of.indptr.astype(index), "second": of.indices.astype(index)}
        blocks = {name: self._put_short(array + base, lacks.get(name, 0)) for name, array in arrays.items()}
        values = self._put_short(of.data, lacks.get("values", 0))
        numbers = [INDEX_NUMBERS[np.dtype(index)]] * (1 if of.format == "coo" else 2)
        places = blocks["first"], blocks["second"], values
        sizes, order = [*of.shape, of.nnz], []
        if of.format == "bsr":
            height, width = of.blocksize
            sizes = [of.shape[0] // height, of.shape[1] // width, len(of.indices), height, width]
            order = [ROWS]
        made = self.descriptor(
            f"Create{of.format.capitalize()}", *sizes, *places, *numbers, base, NUMBERS[of.dtype], *order
        )
        return Stored(made, *places)

    def _put_short(self, array: Array, lacks: int) -> int:
        content = np.ascontiguousarray(array).tobytes()
        return self.put(np.frombuffer(content[: len(content) - lacks], np.uint8))

    def vector(self, values: Array, size: int = 0) -> tuple[int, int]:
        """Return the descriptor of a vector, and its block."""
        block = self.put(values)
        return self.descriptor("CreateDnVec", size or len(values), block, NUMBERS[values.dtype]), block

    def dense(self, values: Array, *, order: int = COLUMNS, ld: int = 0) -> tuple[int, int]:
        """Return the descriptor of a matrix, and its block."""
        inner = values.shape[0 if order == COLUMNS else 1]
        block = self.put(values if order == COLUMNS else values.T)
        made = self.descriptor("CreateDnMat", *values.shape, ld or inner, block, NUMBERS[values.dtype], order)
        return made, block

    def get_dense(self, block: int, dtype: Any, shape: tuple[int, int], order: int = COLUMNS) -> Array:
        """Return a matrix."""
        return self.get(block, dtype, *shape) if order == COLUMNS else self.get(block, dtype, *shape[::-1]).T

    def scalars(self, *values: float, dtype: Any = np.float32) -> tuple[int, ...]:
        """Return addresses of numbers on the host."""
        return tuple(self.host(each, dtype=dtype) for each in values)

    def description(self, *, base: int = 0) -> int:
        """Return a description of a matrix for the older functions."""
        made = self.descriptor("CreateMatDescr")
        assert self.tell("SetMatIndexBase", made, base) == 0
        return made


def singles(values: Any) -> Array:
    """Return numbers in single precision."""
    return np.array(values, np.float32)


def random_matrix(rows: int, columns: int, kind: str = "csr", dtype: Any = np.float32, seed: int = 0) -> Any:
    """Return a matrix of which about a third of the elements aren't zero."""
    rng = np.random.default_rng((seed, rows, columns))
    values = np.where(rng.random((rows, columns)) < 0.35, rng.uniform(-1, 1, (rows, columns)), 0)
    if np.dtype(dtype).kind == "c":
        values = values * (1 + 1j * rng.uniform(-1, 1, (rows, columns)))
    if np.dtype(dtype).kind == "i":
        values = np.round(values * 10)
    made = scipy.sparse.csr_array(values.astype(dtype)).asformat(kind)
    if kind in ("csr", "csc"):
        made.sort_indices()
    return made


def random_values(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Return numbers between -1 and 1."""
    rng = np.random.default_rng((seed, *shape))
    values = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "i":
        values = np.round(values * 10)
    return np.asfortranarray(values.astype(dtype))


def operated(matrix: Any, operation: int) -> Any:
    """Return op(A)."""
    return (matrix, matrix.T, matrix.conj().T)[operation]
