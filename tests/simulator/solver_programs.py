"""A machine on which cuSOLVER computes: calls with workspaces as large as it asks for."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.simulator.conftest import Start
from tests.simulator.library_programs import Array, Libraries

DTYPES: Final = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
REALS: Final = {"S": np.float32, "D": np.float64, "C": np.float32, "Z": np.float64}
NUMBERS: Final = {"S": 0, "D": 1, "C": 4, "Z": 5}
"""``cudaDataType`` of library_types.h."""
TOLERANCES: Final = {"S": 2e-4, "D": 1e-11, "C": 2e-4, "Z": 1e-11}
REAL_TYPES: Final = {"S": 0, "D": 1, "C": 0, "Z": 1}


class Solver(Libraries):
    """A device with a handle of cuSOLVER."""

    def __init__(self, start: Start, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(start, folder, options)
        self.solver = self.make("simulated_cusolverDnCreate")

    def parameters(self, kind: str = "Params") -> int:
        """Return parameters that a function takes."""
        made = ctypes.c_void_p()
        assert getattr(self.driver, f"computed_cusolverDnCreate{kind}")(ctypes.byref(made)) == 0
        return made.value or 0

    def status(self, function: str, *arguments: Any) -> int:
        """Call a function with the handle; return its status."""
        return self.call(f"cusolverDn{function}", self.solver, *arguments)

    def size(self, function: str, *arguments: Any, tail: tuple[int, ...] = ()) -> int:
        """Return how many elements of workspace a function wants."""
        wanted = np.full(1, -1, np.int32)
        assert self.status(f"{function}_bufferSize", *arguments, int(wanted.ctypes.data), *tail) == 0
        return int(wanted[0])

    def sizes(self, function: str, *arguments: Any, tail: tuple[int, ...] = (), both: bool = True) -> tuple[int, ...]:
        """Return how many bytes of workspace a function wants, on the device and on the host."""
        wanted = np.full(2, -1, np.int64)
        at = int(wanted.ctypes.data)
        places = (at, at + 8) if both else (at,)
        assert self.status(f"{function}_bufferSize", *arguments, *places, *tail) == 0
        return tuple(int(each) for each in wanted[: len(places)])

    def info(self) -> int:
        """Return room for what a function says of its result."""
        return self.room(4)

    def number(self, address: int) -> int:
        """Return an ``int`` of the device."""
        return int(self.get(address, np.int32, 1)[0])

    def factored(self, function: str, sized: tuple[Any, ...], full: tuple[Any, ...], dtype: Any) -> int:
        """Call a function with a workspace; return what it says in ``info``. ``sized``: what its size depends on."""
        lwork, info = self.size(function, *sized), self.info()
        work = self.room(lwork * np.dtype(dtype).itemsize)
        assert self.status(function, *full, work, lwork, info) == 0
        return self.number(info)

    def generic(self, function: str, sized: tuple[Any, ...], full: tuple[Any, ...] = ()) -> int:
        """Call a function with sizes of 64 bits; return what it says in ``info``."""
        device, host = self.sizes(function, *sized)
        on_host, info = np.zeros(max(1, host), np.uint8), self.info()
        self._kept.append(on_host)
        work = self.room(device), device, int(on_host.ctypes.data), host
        assert self.status(function, *(full or sized), *work, info) == 0
        return self.number(info)


def random(letter: str, *shape: int, seed: int = 0) -> Array:
    """Return numbers between -1 and 1, in columns."""
    source = np.random.default_rng((seed, *shape))
    made = source.uniform(-1, 1, shape)
    if letter in "CZ":
        made = made + 1j * source.uniform(-1, 1, shape)
    return np.asfortranarray(made.astype(DTYPES[letter]))


def hermitian(letter: str, size: int, seed: int = 0) -> Array:
    """Return a matrix that is its own conjugate transpose."""
    made = random(letter, size, size, seed=seed)
    return np.asfortranarray(made + made.T.conj())


def positive(letter: str, size: int, seed: int = 0) -> Array:
    """Return a positive definite matrix."""
    made = random(letter, size, size, seed=seed)
    return np.asfortranarray(made @ made.T.conj() + size * np.eye(size, dtype=made.dtype))


def with_gaps(matrix: Array, ld: int, *, kept: str = "") -> Array:
    """Return columns that are ``ld`` apart, with NaN between them and outside the triangle that is kept."""
    made = np.full((ld, matrix.shape[1]), np.nan, matrix.dtype, "F")
    ones = np.ones(matrix.shape)
    chosen = {"": ones, "U": np.triu(ones), "L": np.tril(ones)}[kept] != 0
    made[: len(matrix)][chosen] = matrix[chosen]
    return made


def close(found: Array, wanted: Array, letter: str) -> bool:
    """Say whether results are equal up to rounding."""
    return bool(np.allclose(found, wanted, rtol=TOLERANCES[letter], atol=TOLERANCES[letter]))
