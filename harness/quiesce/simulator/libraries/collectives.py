"""NCCL of one rank: what it reduces, gathers and scatters it has by itself, so that all of it is copied.

A message that a rank sends to itself is received in the same group: ``native/libraries/collectives.c`` finds the two.
Types and operations are those of nccl.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BFLOAT, DOUBLE, HALF, SINGLE, Element
from quiesce.simulator.libraries.table import Call, NotDescribed, Refused, Work, computes

INVALID_ARGUMENT: Final = 4
_SENT, _OPERATIONS = 3, 4
"""Settings of a communicator, as collectives.c has them: where a message to itself lies, and its operations."""
_OPERATIONS_MAX: Final = 8
_OPERATION_FIRST: Final = 5


_INTEGERS: Final = tuple(np.dtype(f"{sign}{size}") for size in (1, 4, 8) for sign in "iu")
_TYPES: Final[tuple[Element, ...]] = (*(Element(each, each) for each in _INTEGERS), HALF, SINGLE, DOUBLE, BFLOAT)
"""By ``ncclDataType_t``."""


def _element(call: Call[Any]) -> Element:
    number: int = call.arguments.datatype
    if number < 0:
        raise Refused(INVALID_ARGUMENT)
    if number >= len(_TYPES):
        raise NotDescribed(f"elements of the type {number} are not described")
    return _TYPES[number]


def _operation(call: Call[Any], element: Element) -> Callable[[Array], Array]:
    """Return what becomes of the elements of one rank: nothing, or each is multiplied by the operation's factor."""
    number = call.arguments.operation - _OPERATION_FIRST
    if -_OPERATION_FIRST <= number < 0:
        return lambda values: values
    if not 0 <= number < _OPERATIONS_MAX or not call.settings[_OPERATIONS + 2 * number]:
        raise Refused(INVALID_ARGUMENT)
    kind, bits = call.settings[_OPERATIONS + 2 * number :][:2]
    if _TYPES[kind - 1] is not element:
        raise Refused(INVALID_ARGUMENT)
    factor = element.decode(np.frombuffer(np.int64(bits).tobytes(), element.stored, 1))[0]
    return lambda values: element.encode(element.decode(values).astype(element.computed) * factor)


def _moved(call: Call[Any], change: Callable[[Array], Array] = lambda values: values) -> Work:
    of, element = call.arguments, _element(call)
    if not of.count:
        return None
    if not of.sendbuff or not of.recvbuff:
        raise Refused(INVALID_ARGUMENT)

    def run() -> None:
        values = call.read("sendbuff", of.sendbuff, element.stored, of.count)[0]
        call.write("recvbuff", of.recvbuff, change(values).astype(element.stored, copy=False))

    return run


def _of_root(call: Call[Any]) -> None:
    if call.arguments.root != 0:
        raise Refused(INVALID_ARGUMENT)


_TO: Final = "p:sendbuff p:recvbuff z:count e:datatype"
_ON: Final = "p:handle p:stream"


@computes({"ncclAllReduce": None, "ncclReduceScatter": None}, f"{_TO} e:operation {_ON}")
def reduce_all(call: Call[None]) -> Work:
    """Reduce the elements of one rank."""
    return _moved(call, _operation(call, _element(call)))


@computes({"ncclReduce": None}, f"{_TO} e:operation e:root {_ON}")
def reduce(call: Call[None]) -> Work:
    """Reduce the elements of one rank, which is the root."""
    _of_root(call)
    return _moved(call, _operation(call, _element(call)))


@computes({"ncclAllGather": None, "ncclAlltoAll": None}, f"{_TO} {_ON}")
def gather_all(call: Call[None]) -> Work:
    """Copy the elements of one rank."""
    return _moved(call)


@computes({"ncclBroadcast": None, "ncclGather": None, "ncclScatter": None}, f"{_TO} e:root {_ON}")
def broadcast(call: Call[None]) -> Work:
    """Copy the elements of one rank, which is the root."""
    _of_root(call)
    return _moved(call)


@computes({"ncclBcast": None}, f"p:buff z:count e:datatype e:root {_ON}")
def broadcast_in_place(call: Call[None]) -> Work:
    """Read the elements of the root."""
    _of_root(call)
    of, element = call.arguments, _element(call)
    return lambda: (call.read("buff", of.buff, element.stored, of.count), None)[1]


def _of_itself(call: Call[Any]) -> None:
    if call.arguments.peer != 0:
        raise Refused(INVALID_ARGUMENT)


@computes({"ncclSend": None}, f"p:sendbuff z:count e:datatype e:peer {_ON}")
def send(call: Call[None]) -> Work:
    """Read a message to itself."""
    _of_itself(call)
    of, element = call.arguments, _element(call)
    return lambda: (call.read("sendbuff", of.sendbuff, element.stored, of.count), None)[1]


@computes({"ncclRecv": None}, f"p:recvbuff z:count e:datatype e:peer {_ON} w:sendbuff")
def receive(call: Call[None]) -> Work:
    """Write a message that was sent in the same group."""
    _of_itself(call)
    of, element, sent = call.arguments, _element(call), call.settings[_SENT] & 0xFFFFFFFFFFFFFFFF

    def run() -> None:
        call.write("recvbuff", of.recvbuff, call.read("sendbuff", sent, element.stored, of.count)[0])

    return run
