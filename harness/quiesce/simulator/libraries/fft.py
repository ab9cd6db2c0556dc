"""cuFFT: transforms, whose plan the client keeps as settings of its handle (``native/libraries/fft_calls.inc``).

Elements lie where the documentation's "Data Layout" and "Advanced Data Layout" have them. No transform is normalised.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import scipy.fft

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.table import Call, NotDescribed, Refused, Work, computes

INVALID_PLAN, EXECUTION_FAILED = 1, 6
MADE, WORK_BYTES, RANK, LENGTHS, BATCH, EMBEDDED, INPUT, OUTPUT, TYPES, CALLBACKS = 0, 2, 3, 4, 7, 8, 9, 14, 19, 21
"""Settings of a plan."""
FORWARD: Final = -1


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of elements. Half precision, of which NumPy has no complex numbers, is stored in parts."""

    stored: np.dtype[Any]
    computed: np.dtype[Any]
    is_half: bool = False

    @property
    def is_complex(self) -> bool:
        """Say whether an element is a complex number."""
        return self.computed.kind == "c"

    def decode(self, values: Array) -> Array:
        """Return what stored elements stand for."""
        if not self.is_half:
            return values
        parts = values.view(np.float16).astype(np.float32)
        return parts.view(np.complex64) if self.is_complex else parts

    def encode(self, values: Array) -> Array:
        """Return elements as they are stored."""
        values = np.ascontiguousarray(values, self.computed)
        if not self.is_half:
            return values
        return values.view(np.float32).astype(np.float16).view(self.stored)


def _kind(stored: type[np.generic], computed: type[np.generic] | None = None) -> Kind:
    return Kind(np.dtype(stored), np.dtype(computed or stored), computed is not None)


KINDS: Final = {
    0: _kind(np.float32), 1: _kind(np.float64), 4: _kind(np.complex64), 5: _kind(np.complex128),
    2: _kind(np.float16, np.float32), 6: _kind(np.uint32, np.complex64),
}  # fmt: skip
"""``cudaDataType`` of library_types.h."""


@dataclass(frozen=True, slots=True)
class Side:
    """Where one side of a plan has its elements: for each dimension its length, and the elements from one to the next.

    The first dimension is the batch.
    """

    operand: str
    address: int
    kind: Kind
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    def read(self, call: Call[Any]) -> Array:
        """Return the elements."""
        made = np.empty(self._sorted_shape(), self.kind.stored)
        for at, part in self._parts(made):
            part[...] = call.read(self.operand, at, self.kind.stored, part.shape[1], len(part), self._pitch())
        return self.kind.decode(made).transpose(np.argsort(self._order()))

    def write(self, call: Call[Any], values: Array) -> None:
        """Write the elements."""
        stored = self.kind.encode(values.transpose(self._order()))
        for at, part in self._parts(stored.reshape(self._sorted_shape())):
            call.write(self.operand, at, part, self._pitch())

    @property
    def layout(self) -> bytes:
        """Return the lengths and steps of four dimensions, which the client's kernels of callbacks take."""
        more = 4 - len(self.shape)
        return struct.pack("<8q", *[1] * more, *self.shape, *[0] * more, *self.steps)

    def in_area(self, address: int) -> Side:
        """Return the same elements in the plan's work area, one after another."""
        steps = [int(np.prod(self.shape[number:])) for number in range(1, len(self.shape) + 1)]
        return replace(self, operand="work area", address=address, steps=tuple(steps))

    def _order(self) -> list[int]:
        """Return the dimensions from the largest step to the smallest; the last one has neighbours."""
        return sorted(range(len(self.shape)), key=lambda each: (-self.steps[each], each))

    def _sorted_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[each] for each in self._order())

    def _merged(self) -> list[tuple[int, int]]:
        """Return lengths and steps, the largest step first: of dimensions that follow each other without a gap, one.

        The last one has neighbours, the one before is what a pitch is for.
        """
        made: list[tuple[int, int]] = []
        for each in self._order():
            length, step = self.shape[each], self.steps[each]
            if made and made[-1][1] == length * step:
                made[-1] = made[-1][0] * length, step
            elif length > 1 or not made:
                made.append((length, step))
        if made[-1][1] != 1 and made[-1][0] > 1:
            made.append((1, 1))
        return made if len(made) > 1 else [(1, 0), *made]

    def _pitch(self) -> int:
        return self._merged()[-2][1] * self.kind.stored.itemsize

    def _parts(self, values: Array) -> Iterator[tuple[int, Array]]:
        """Yield the address of each piece that one request is about, and its part of the elements."""
        *outer, (rows, _), (count, _) = self._merged()
        pieces = values.reshape(*(length for length, _ in outer), rows, count)
        for index in np.ndindex(*(length for length, _ in outer)):
            offset = sum(number * step for number, (_, step) in zip(index, outer, strict=True))
            yield self.address + offset * self.kind.stored.itemsize, pieces[index]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a plan says, and the two sides of one execution."""

    lengths: tuple[int, ...]
    source: Side
    target: Side

    @classmethod
    def of(cls, call: Call[Any], types: tuple[int, int] | None) -> Plan:
        """Return the plan of a call. Refuses a function of other types than the plan's."""
        settings, of = call.settings, call.arguments
        if not settings[MADE]:
            raise Refused(INVALID_PLAN)
        kinds = settings[TYPES], settings[TYPES + 1]
        if types is not None and types != kinds:
            raise Refused(EXECUTION_FAILED)
        source, target = (KINDS.get(each) for each in kinds)
        if source is None or target is None:
            raise NotDescribed(f"transforms of the types {kinds[0]} and {kinds[1]} are not described")
        lengths = tuple(settings[LENGTHS : LENGTHS + settings[RANK]])
        half = (*lengths[:-1], lengths[-1] // 2 + 1)
        is_real = not (source.is_complex and target.is_complex)
        in_place = of.input == of.output and is_real and not settings[EMBEDDED]

        def side(name: str, address: int, kind: Kind, at: int) -> Side:
            shape = half if is_real and kind.is_complex else lengths
            # "in-place … real data is padded" to the room of the complex elements
            room = (*lengths[:-1], 2 * half[-1]) if in_place and not kind.is_complex else shape
            stride, distance = 1, int(np.prod(room))
            if settings[EMBEDDED]:
                room = tuple(settings[at : at + len(lengths)])
                stride, distance = settings[at + 3], settings[at + 4]
            steps = [stride]
            for length in reversed(room[1:]):
                steps.insert(0, steps[0] * length)
            return Side(name, address, kind, (settings[BATCH], *shape), (distance, *steps))

        return cls(lengths, side("input", of.input, source, INPUT), side("output", of.output, target, OUTPUT))

    def between_callbacks(self, callbacks: int, area: int) -> Plan:
        """Return the same transform of what a callback has loaded, or for one that stores it. Each type has a bit."""
        source = self.source.in_area(area) if callbacks & 0x0F else self.source
        target = self.target.in_area(area) if callbacks & 0xF0 else self.target
        return replace(self, source=source, target=target)

    def transformed(self, values: Array, direction: int) -> Array:
        """Return the transforms of all elements."""
        axes = tuple(range(1, len(self.lengths) + 1))
        if not self.source.kind.is_complex:
            return np.asarray(scipy.fft.rfftn(values, axes=axes))
        if not self.target.kind.is_complex:
            return np.asarray(scipy.fft.irfftn(values, s=self.lengths, axes=axes, norm="forward"))
        if direction == FORWARD:
            return np.asarray(scipy.fft.fftn(values, axes=axes))
        return np.asarray(scipy.fft.ifftn(values, axes=axes, norm="forward"))


def _execute(call: Call[Any], types: tuple[int, int] | None, direction: int) -> Work:
    plan = Plan.of(call, types)
    if call.settings[CALLBACKS]:
        call.tell(plan.source.layout + plan.target.layout)
        plan = plan.between_callbacks(call.settings[CALLBACKS], call.area)

    def run() -> None:
        if call.area:
            call.use("work area", call.area, call.settings[WORK_BYTES])
        plan.target.write(call, plan.transformed(plan.source.read(call), direction))

    return run


_SIDES: Final = "e:plan p:input p:output{} w:work_area"


@computes({"cufftExecC2C": (4, 4), "cufftExecZ2Z": (5, 5)}, _SIDES.format(" e:direction"))
def complex_to_complex(call: Call[tuple[int, int]]) -> Work:
    """Transform complex numbers."""
    return _execute(call, call.about, call.arguments.direction)


@computes(
    {"cufftExecR2C": (0, 4), "cufftExecD2Z": (1, 5), "cufftExecC2R": (4, 0), "cufftExecZ2D": (5, 1)}, _SIDES.format("")
)
def real(call: Call[tuple[int, int]]) -> Work:
    """Transform real numbers, or to real numbers."""
    return _execute(call, call.about, FORWARD)


@computes({"cufftXtExec": None}, _SIDES.format(" e:direction"))
def any_type(call: Call[None]) -> Work:
    """Transform elements of the types that the plan has."""
    return _execute(call, None, call.arguments.direction)
