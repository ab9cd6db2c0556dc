"""cuSOLVER: what its dense functions share, which compute with LAPACK.

``cusolverDnSpotrf`` and its kind have a function for each type of elements, sizes of 32 bits and a workspace in
elements. ``cusolverDnXpotrf`` and its kind are told the types (``cudaDataType``), and have sizes of 64 bits and
workspaces in bytes, on the device and on the host. ``cusolverDnPotrf`` is an older form of those, without the host's.
One operation computes all of them, for the names of its arguments are the same; signatures are those of cusolverDn.h.

A workspace is as large as its ``_bufferSize`` function says, and all of that is used. cuSOLVER's own sizes are others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import scipy.linalg

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import (
    BY_LETTER,
    BY_NUMBER,
    COMPLEX,
    DOUBLE,
    DOUBLE_COMPLEX,
    SINGLE,
    Element,
    Matrix,
)
from quiesce.simulator.libraries.table import Arguments, Call, NotDescribed, Refused, Work, computes

INVALID_VALUE: Final = 3
LOWER, UPPER = 0, 1  # cublasFillMode_t
VECTORS: Final = 1  # cusolverEigMode_t
BLOCK: Final = 32
"""Columns that LAPACK's blocked algorithms take at once (its ilaenv): so many rows of workspace they want."""

Type: TypeAlias = Element | None
"""The type of a function's elements; None: its arguments name it."""
Elements: TypeAlias = Callable[[Arguments], int]
"""How many elements of workspace a call needs, by its arguments."""

_KINDS: Final = (SINGLE, DOUBLE, COMPLEX, DOUBLE_COMPLEX)
_REAL_OF: Final = dict(zip(_KINDS, (SINGLE, DOUBLE, SINGLE, DOUBLE), strict=True))
ON_BOTH: Final = "p:workspace z:workspace_bytes p:host_workspace z:host_workspace_bytes"
"""The workspaces of the functions with an X in their names."""
SIZES_OF_BOTH: Final = "p:device_bytes p:host_bytes"
ON_DEVICE: Final = "p:workspace z:workspace_bytes"
SIZE_ON_DEVICE: Final = "p:device_bytes"
WITH_WORK: Final = "p:workspace n:lwork p:info"


def block_of_rows(of: Arguments) -> int:
    """Return the elements of workspace of algorithms that take a block of columns at once."""
    return int(BLOCK * of.n)


def require(*conditions: bool) -> None:
    """Refuse a call of which some argument is wrong."""
    if not all(conditions):
        raise Refused(INVALID_VALUE)


def dense(name: str, of_complex: str = "") -> dict[str, Type]:
    """Return the functions of a name for each type; those of complex numbers may have another one."""
    return {
        f"cusolverDn{letter}{name if letter in 'SD' else of_complex or name}": BY_LETTER[letter] for letter in "SDCZ"
    }


def generic(*names: str) -> dict[str, Type]:
    """Return functions that are told the types of their operands."""
    return {f"cusolverDn{name}": None for name in names}


def element_of(call: Call[Type], operand: str = "A") -> Element:
    """Return the type of an operand's elements."""
    if call.about is not None:
        return call.about
    number = getattr(call.arguments, f"type_{operand}")
    element = BY_NUMBER.get(number)
    if element not in _KINDS:
        raise NotDescribed(f"{operand} of the type {number} is not described")
    return element


def real_of(element: Element) -> Element:
    """Return the type of an element's real part."""
    return _REAL_OF[element]


def require_types(call: Call[Type], *, real: str = "", same: str = "") -> None:
    """Fail by name unless the operands (letters) have A's type, or its real part's, and it computes in A's."""
    of, element = call.arguments, element_of(call)
    if call.about is not None:
        return
    kinds = [(BY_NUMBER.get(getattr(of, f"type_{each}")), real_of(element)) for each in real.split()]
    kinds += [(BY_NUMBER.get(getattr(of, f"type_{each}")), element) for each in same.split()]
    computed = getattr(of, "type_computed", None)
    if computed is not None:
        kinds.append((BY_NUMBER.get(computed), element))
    if any(found is not wanted for found, wanted in kinds):
        raise NotDescribed("this combination of types is not described")


# -- workspaces --------------------------------------------------------------------------------------------------------


def _tell_sizes(call: Call[Type], elements: int) -> None:
    of, names = call.arguments, vars(call.arguments)
    if "device_bytes" not in names:
        require(of.lwork != 0)
        call.give_to_host("lwork", of.lwork, np.array([elements], np.int32))
        return
    require(of.device_bytes != 0)
    size_bytes = elements * element_of(call).size_bytes
    call.give_to_host("device bytes", of.device_bytes, np.array([size_bytes], np.uint64))
    if "host_bytes" in names:
        require(of.host_bytes != 0)
        call.give_to_host("host bytes", of.host_bytes, np.zeros(1, np.uint64))


def tells_size(names: Mapping[str, Type], signature: str, elements: Elements) -> None:
    """Add the ``_bufferSize`` functions of some functions."""

    def tell(call: Call[Type]) -> Work:
        for name, value in vars(call.arguments).items():
            require(name not in ("m", "n", "k", "nrhs", "batch") or value >= 0)
        _tell_sizes(call, elements(call.arguments))
        return None

    computes({f"{name}_bufferSize": about for name, about in names.items()}, signature)(tell)


def workspace(call: Call[Type], elements: int) -> Callable[[], None]:
    """Return what uses a call's workspace. Refuses one that is too small."""
    of, size_bytes = call.arguments, elements * element_of(call).size_bytes
    names = vars(of)
    if "lwork" in names:
        require(of.lwork >= elements)
    if "workspace_bytes" in names:
        require(of.workspace_bytes >= size_bytes)
    return lambda: call.use("workspace", of.workspace, size_bytes) if size_bytes else None


def with_info(call: Call[Type], elements: int, compute: Callable[[], int], *, empty: bool) -> Work:
    """Return work that uses a workspace, computes, and writes what LAPACK calls INFO: 0 of an empty matrix."""
    use = workspace(call, elements)

    def run() -> None:
        use()
        write_info(call, 0 if empty else compute())

    return run


# -- operands ----------------------------------------------------------------------------------------------------------


def matrix_of(call: Call[Type], operand: str, rows: int, columns: int) -> Matrix:
    """Return a matrix among the operands. Refuses a leading dimension that is too small."""
    of = call.arguments
    ld = getattr(of, f"ld{operand.lower()}")
    require(rows >= 0, columns >= 0, ld >= max(1, rows))
    element = element_of(call) if call.about is not None else element_of(call, operand)
    return Matrix(operand, getattr(of, operand), rows, columns, ld, element)


def triangle_of(call: Call[Type]) -> Matrix:
    """Return the matrix A, of which one triangle counts."""
    of = call.arguments
    require(of.uplo in (LOWER, UPPER))
    return matrix_of(call, "A", of.n, of.n)


def lapack(name: str, *arrays: Array) -> Any:
    """Return LAPACK's function for the type of arrays."""
    (function,) = scipy.linalg.lapack.get_lapack_funcs((name,), arrays)
    return function


def write_info(call: Call[Any], info: int | list[int]) -> None:
    """Write what LAPACK calls INFO, or that of each of a batch."""
    call.write("info", call.arguments.info, np.atleast_1d(np.asarray(info, np.int32)))


def destroy(call: Call[Any], matrix: Matrix) -> None:
    """Write a matrix of which the documentation says that its contents are destroyed: no value of it may be used."""
    matrix.write_columns(call, np.full(matrix.shape, np.nan, matrix.element.stored))
