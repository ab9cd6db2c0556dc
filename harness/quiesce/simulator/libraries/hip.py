"""hipBLAS, hipFFT and hipRAND: the operations of NVIDIA's libraries, by AMD's names, enumerators and statuses.

The functions take what those of the same name take, in the same order. Numbers are those of hipblas.h, hipfft.h and
hiprand.h of ROCm 5 to 7; hipFFT has those of cuFFT. rocRAND's numbers are others of the same distributions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from quiesce.simulator.libraries import blas, blas_least_squares, blas_triangles, blas_vectors, fft, random
from quiesce.simulator.libraries.random import KIND
from quiesce.simulator.libraries.table import TABLE, Call, NotDescribed, Refused, Work, computes

for _module in (blas, blas_least_squares, blas_triangles, blas_vectors, fft):  # they load the rows
    assert _module
INVALID_ENUMERATOR: Final = 10
_BLAS_STATUSES: Final = {blas.INVALID_VALUE: 3, blas.NOT_SUPPORTED: 7}
_INTERNAL: Final = 6

_OPERATIONS: Final = {111: 0, 112: 1, 113: 2}
_TYPES: Final = {
    **{150: 2, 151: 0, 152: 1, 153: 6, 154: 4, 155: 5, 160: 3, 161: 8, 162: 10, 163: 12, 168: 14},
    **{number: number for number in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14)},
}
"""``hipblasDatatype_t``, and ``hipDataType`` of newer releases, whose numbers are those of ``cudaDataType``."""
_COMPUTED: Final = {
    **{number: _TYPES[number] for number in _TYPES if number >= 150},
    **{0: 64, 1: 65, 2: 68, 3: 69, 4: 74, 5: 75, 6: 77, 7: 70, 8: 71, 9: 72, 10: 73},
}
"""The same type, and ``hipblasComputeType_t`` of newer releases."""
_ENUMERATORS: Final[Mapping[str, Mapping[int, int]]] = {
    **dict.fromkeys(("t", "ta", "tb", "trans"), _OPERATIONS), **dict.fromkeys(("at", "bt", "ct"), _TYPES),
    "uplo": {121: 1, 122: 0}, "diag": {131: 0, 132: 1}, "side": {141: 0, 142: 1}, "compute": _COMPUTED,
}  # fmt: skip
_GENERATORS: Final = {
    400: 100, 401: 101, 402: 121, 403: 141, 404: 142, 405: 161, 500: 200, 501: 201, 502: 202, 503: 203, 504: 204,
}  # fmt: skip
_NOT_ALIKE: Final = re.compile(r"cublas(?:Lt|.*3m|[SC]gemmEx|.trmm|.tpttr|.trttp|.matinv)|.*_64")
"""Functions that hipBLAS has not, or that take something else in some of its releases."""


def _blas(operation: Callable[[Call[Any]], Work]) -> Callable[[Call[Any]], Work]:
    """Return an operation of cuBLAS for calls of hipBLAS."""

    def translated(call: Call[Any]) -> Work:
        for name, values in _ENUMERATORS.items():
            given = call.arguments.__dict__.get(name)
            if given is not None and given not in values:
                raise Refused(INVALID_ENUMERATOR)
            if given is not None:
                setattr(call.arguments, name, values[given])
        try:
            return operation(call)
        except Refused as refused:
            raise Refused(_BLAS_STATUSES.get(refused.status, _INTERNAL)) from None

    return translated


def _random(operation: Callable[[Call[Any]], Work]) -> Callable[[Call[Any]], Work]:
    """Return an operation of cuRAND for calls of hipRAND, whose statuses are the same."""

    def translated(call: Call[Any]) -> Work:
        settings = list(call.settings)
        if settings[KIND] not in _GENERATORS:
            raise NotDescribed(f"generators of the type {settings[KIND]} are not described")
        settings[KIND] = _GENERATORS[settings[KIND]]
        call.settings = tuple(settings)
        return operation(call)

    return translated


def _same(operation: Callable[[Call[Any]], Work]) -> Callable[[Call[Any]], Work]:
    return operation


def _add(names: Iterable[str], translate: Callable[[Callable[[Call[Any]], Work]], Callable[[Call[Any]], Work]]) -> None:
    for name in names:
        row = TABLE[name]
        computes({f"hip{name.removeprefix('cu').removesuffix('_v2')}": row.about}, row.signature)(
            translate(row.operation)
        )


_add([name for name in TABLE if name.startswith("cublas") and not _NOT_ALIKE.match(name)], _blas)
_add([name for name in TABLE if name.startswith("cufft")], _same)
_add([name for name in TABLE if name.startswith("curand")], _random)
assert random.PSEUDO.keys() <= set(_GENERATORS.values())
