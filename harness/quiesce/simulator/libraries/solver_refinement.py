"""cuSOLVER: systems and least squares that are solved in a lower precision and refined in the one of their operands.

All are computed in the precision of the operands, which is how exact they have to be. A is left as it is: "unchanged
if the iterative refinement process converged".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BY_LETTER, Element, Matrix
from quiesce.simulator.libraries.solver import BLOCK, Type, element_of, lapack, require, write_info
from quiesce.simulator.libraries.table import Arguments, Call, Work, computes

_LOWER_PRECISIONS: Final = {"Z": "ZCKEY", "C": "CKEY", "D": "DSHBX", "S": "SHBX"}
"""By the letter of the operands: the types in which a GPU factors their matrix."""


def _refined(name: str, suffix: str = "") -> dict[str, Type]:
    return {
        f"cusolverDn{letter}{lower}{name}{suffix}": BY_LETTER[letter]
        for letter, lowers in _LOWER_PRECISIONS.items()
        for lower in lowers
    }


def _elements(of: Arguments) -> int:
    return int(BLOCK * (of.n + of.nrhs))


def _operands(call: Call[Type], *shapes: tuple[str, int, int]) -> list[Matrix]:
    of, element = call.arguments, element_of(call)
    made = []
    for name, rows, columns in shapes:
        ld = getattr(of, f"ld{name.lower()}")
        require(rows >= 0, columns >= 0, ld >= max(1, rows))
        made.append(Matrix(name, getattr(of, name), rows, columns, ld, element))
    return made


def _solved(call: Call[Type], element: Element, compute: Callable[[], tuple[Array, int]], x: Matrix) -> Work:
    """Return what computes X, and tells the host how many iterations it took: one, or none where it is singular."""
    of, size_bytes = call.arguments, _elements(call.arguments) * element.size_bytes
    require(of.workspace_bytes >= size_bytes)
    call.waits = bool(of.iterations)

    def run() -> None:
        call.use("workspace", of.workspace, size_bytes)
        made, info = compute()
        if not info:
            x.write(call, made)
        write_info(call, info)
        if of.iterations:
            call.give_to_host("iterations", of.iterations, np.array([int(not info)], np.int32))

    return run if of.n and of.nrhs else None


_GESV: Final = "p:handle n:n n:nrhs p:A n:lda p:pivots p:B n:ldb p:X n:ldx p:workspace"
_GELS: Final = "p:handle n:m n:n n:nrhs p:A n:lda p:B n:ldb p:X n:ldx p:workspace"
_RESULT: Final = "z:workspace_bytes p:iterations p:info"


@computes(_refined("gesv"), f"{_GESV} {_RESULT}")
def gesv(call: Call[Type]) -> Work:
    """Solve systems."""
    of = call.arguments
    a, b, x = _operands(call, ("A", of.n, of.n), ("B", of.n, of.nrhs), ("X", of.n, of.nrhs))

    def compute() -> tuple[Array, int]:
        matrix = a.read(call)
        _, exchanged, made, info = lapack("gesv", matrix)(matrix, b.read(call))
        if of.pivots:
            call.write("pivots", of.pivots, (exchanged + 1).astype(np.int32))
        return made, int(info)

    return _solved(call, a.element, compute, x)


@computes(_refined("gels"), f"{_GELS} {_RESULT}")
def gels(call: Call[Type]) -> Work:
    """Solve least squares: "only m>=n is supported"."""
    of = call.arguments
    require(of.m >= of.n)
    a, b, x = _operands(call, ("A", of.m, of.n), ("B", of.m, of.nrhs), ("X", of.n, of.nrhs))

    def compute() -> tuple[Array, int]:
        matrix = a.read(call)
        _, made, info = lapack("gels", matrix)(matrix, b.read(call))
        return made[: of.n], int(info)

    return _solved(call, a.element, compute, x)


def _tell_size(call: Call[Any]) -> Work:
    """Tell how large the workspace is."""
    of = call.arguments
    require(of.n >= 0, of.nrhs >= 0, of.workspace_bytes != 0)
    size_bytes = _elements(of) * element_of(call).size_bytes
    call.give_to_host("workspace bytes", of.workspace_bytes, np.array([size_bytes], np.uint64))
    return None


computes(_refined("gesv", "_bufferSize"), f"{_GESV} p:workspace_bytes")(_tell_size)
computes(_refined("gels", "_bufferSize"), f"{_GELS} p:workspace_bytes")(_tell_size)
