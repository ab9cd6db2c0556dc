"""cuDNN's graph interface: an execution plan is a graph of operations, which a variant pack gives the memory.

``native/libraries/dnn_graph.c`` keeps descriptors as lists of attributes, a plan with copies of all that it depends on.
They are read when the plan is executed. Everything that a graph reads of memory it reads before it writes anything, and
tensors that are virtual are nowhere in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from quiesce.simulator.libraries import dnn_pointwise as pointwise
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.dnn_convolutions import Convolution
from quiesce.simulator.libraries.dnn_reductions import reduction
from quiesce.simulator.libraries.dnn_tensors import BY_DATA_TYPE, Tensor, element_of, require
from quiesce.simulator.libraries.elements import Element
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes

PLAN, VARIANT_PACK = 5, 16  # cudnnBackendDescriptorType_t
_DESCRIPTOR: Final = 15  # cudnnBackendAttributeType_t
_FORMS: Final = {0: "Q", 2: "?", 3: "q", 4: "f", 5: "d", 6: "Q", 24: "B", 26: "q"}
_HEAD: Final = struct.Struct("<IIQ8xQ")
_ATTRIBUTE: Final = struct.Struct("<HHI")
_COPY: Final = struct.Struct("<II")
_NO_LIMIT: Final = float(np.finfo(np.float32).max)

Attributes: TypeAlias = "Mapping[int, tuple[Any, ...]]"
Shapes: TypeAlias = "Mapping[str, tuple[int, ...]]"
Values: TypeAlias = "Mapping[str, Array]"
Compute: TypeAlias = "Callable[[Values], Array]"


@dataclass(frozen=True, slots=True)
class Part:
    """A descriptor."""

    type: int
    attributes: Attributes

    def one(self, name: int, default: Any = None) -> Any:
        """Return the only element of an attribute."""
        values = self.attributes.get(name, ())
        if not values and default is None:
            raise NotDescribed(f"an operation without its attribute {name} is not described")
        return values[0] if values else default

    def parts(self, name: int) -> tuple[Part, ...]:
        """Return the descriptors of an attribute."""
        return self.attributes.get(name, ())


def _attributes(content: bytes) -> Attributes:
    """Read what ``struct dnn_descriptor`` has."""
    found: dict[int, tuple[Any, ...]] = {}
    at = 0
    while at < len(content):
        name, kind, size = _ATTRIBUTE.unpack_from(content, at)
        at += _ATTRIBUTE.size
        elements = content[at : at + size]
        if kind == _DESCRIPTOR:
            found[name] = tuple(_copies(elements))
        else:
            form = struct.Struct("<" + _FORMS.get(kind, "i"))
            found[name] = tuple(each for (each,) in form.iter_unpack(elements))
        at += -(-size // 8) * 8
    return found


def _copies(content: bytes) -> Iterator[Part]:
    at = 0
    while at < len(content):
        kind, size = _COPY.unpack_from(content, at)
        at += _COPY.size
        yield Part(kind, _attributes(content[at : at + size]))
        at += size


def _read(call: Call[Any], operand: str, address: int, kind: int) -> Part:
    require(call, address != 0)
    head = call.host(operand, address, np.uint8, _HEAD.size).tobytes()
    found, is_final, size, place = _HEAD.unpack(head)
    require(call, found == kind, is_final == 1)
    return Part(kind, _attributes(call.host(operand, place, np.uint8, size).tobytes() if size else b""))


# -- operations -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of operation: attributes that are tensors, by what their memory is called, and what is computed."""

    inputs: Mapping[str, int]
    output: tuple[str, int]
    prepare: Callable[[Part, Shapes, tuple[int, ...]], Compute]
    """From a descriptor, and the dimensions of what it reads and of its result."""
    factors: tuple[int, int] | None = None
    """The attributes with alpha and beta."""


def _convolution(of: Part, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...]) -> Convolution:
    before, after, strides, dilations = (of.attributes.get(name, ()) for name in (105, 104, 103, 102))
    convolution = Convolution(before, after, strides, dilations, turns=of.one(101) == 0)
    if not convolution.is_of(x, w, y):
        raise NotDescribed(f"a convolution of {x} by {w} with the result {y} is not described")
    return convolution


def _forward(of: Part, shapes: Shapes, shape: tuple[int, ...]) -> Compute:
    convolution = _convolution(of.parts(702)[0], shapes["x"], shapes["w"], shape)
    return lambda values: convolution.forward(values["x"], values["w"])


def _backward_data(of: Part, shapes: Shapes, shape: tuple[int, ...]) -> Compute:
    convolution = _convolution(of.parts(708)[0], shape, shapes["w"], shapes["dy"])
    return lambda values: convolution.backward_data(values["w"], values["dy"], shape)


def _backward_filter(of: Part, shapes: Shapes, shape: tuple[int, ...]) -> Compute:
    convolution = _convolution(of.parts(714)[0], shapes["x"], shape, shapes["dy"])
    return lambda values: convolution.backward_filter(values["x"], values["dy"], shape)


def _shape(of: Part) -> pointwise.Shape:
    upper = of.one(4, _NO_LIMIT)
    return pointwise.Shape(
        of.one(3, 0.0), np.inf if upper >= _NO_LIMIT else upper, of.one(5, 0.0), of.one(6, 1.0), of.one(7, 1.0),
        of.one(8, 1.0),
    )  # fmt: skip


def _scaled(value: Array, factor: float) -> Array:
    return value if factor == 1 else value * value.dtype.type(factor)


def _pointwise(operation: Part, shapes: Shapes, shape: tuple[int, ...]) -> Compute:
    of = operation.parts(750)[0]
    mode, axis = of.one(0), of.one(9, 0)
    first, second = operation.one(754, 1.0), operation.one(755, 1.0)
    form = _shape(of)

    def x(values: Values) -> Array:
        return _scaled(values["x"], first)

    def b(values: Values) -> Array:
        return _scaled(values["b"], second)

    if mode in pointwise.FORWARD and "x" in shapes:
        return lambda values: pointwise.FORWARD[mode](x(values), form)
    if mode in pointwise.UNARY and "x" in shapes:
        return lambda values: pointwise.UNARY[mode](x(values))
    if mode in pointwise.BINARY and {"x", "b"} <= shapes.keys():
        return lambda values: pointwise.BINARY[mode](x(values), b(values))
    if mode == pointwise.SELECT and {"x", "b", "t"} <= shapes.keys():
        return lambda values: np.where(values["t"] != 0, x(values), b(values))
    if mode == pointwise.INDEX:
        return lambda _: np.broadcast_to(np.indices(shape, sparse=True)[axis], shape)
    raise NotDescribed(f"the pointwise operation {mode} of these tensors is not described")


def _gradient(operation: Part, shapes: Shapes, _: tuple[int, ...]) -> Compute:
    of = operation.parts(750)[0]
    mode, form = of.one(0), _shape(of)
    if mode in pointwise.SLOPES and {"x", "dy"} <= shapes.keys():
        return lambda values: values["dy"] * pointwise.SLOPES[mode](values["x"], form)
    if mode in pointwise.SLOPES_OF_RESULTS and {"y", "dy"} <= shapes.keys():
        return lambda values: values["dy"] * pointwise.SLOPES_OF_RESULTS[mode](values["y"], form)
    raise NotDescribed(f"the pointwise operation {mode} of these tensors is not described")


def _reduction(operation: Part, shapes: Shapes, shape: tuple[int, ...]) -> Compute:
    reduce = reduction(operation.parts(1612)[0].one(1600), shapes["x"], shape)
    return lambda values: reduce(values["x"])


def _product(_: Part, shapes: Shapes, shape: tuple[int, ...]) -> Compute:
    a, b = shapes["a"], shapes["b"]
    try:
        found: tuple[int, ...] = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    except ValueError:
        found = ()
    if found != shape or a[-1] != b[-2]:
        raise NotDescribed(f"a product of {a} and {b} with the result {shape} is not described")
    return lambda values: values["a"] @ values["b"]


_POINTWISE: Final = 13
OPERATIONS: Final = {
    10: Operation({"x": 704, "w": 703}, ("y", 705), _forward, (700, 701)),
    11: Operation({"x": 716, "dy": 717}, ("dw", 715), _backward_filter, (712, 713)),
    12: Operation({"w": 709, "dy": 711}, ("dx", 710), _backward_data, (706, 707)),
    _POINTWISE: Operation({"x": 751, "b": 752, "t": 758}, ("y", 753), _pointwise),
    19: Operation({"a": 1520, "b": 1521}, ("c", 1522), _product),
    22: Operation({"x": 1610}, ("y", 1611), _reduction),
}
"""By ``cudnnBackendDescriptorType_t``, with the attributes of ``cudnnBackendAttributeName_t``."""
_GRADIENT: Final = Operation({"x": 751, "y": 753, "dy": 757}, ("dx", 756), _gradient)
_DX: Final = 756
_NOT_DESCRIBED: Final = {
    1525: "a number of rows in memory", 1526: "a number of columns in memory", 1527: "a number of terms in memory",
    1613: "groups",
}  # fmt: skip
_FACTORS_OF_INPUTS: Final = {"x": 754, "b": 755}


def _kind(operation: Part) -> Operation:
    kind = OPERATIONS.get(operation.type)
    if kind is None:
        raise NotDescribed(f"an operation of the type {operation.type} is not described")
    for name, what in _NOT_DESCRIBED.items():
        if name in operation.attributes:
            raise NotDescribed(f"an operation with {what} is not described")
    return _GRADIENT if _DX in operation.attributes else kind


# -- graphs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor of a graph."""

    number: int
    """Its unique identifier."""
    data_type: int
    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    is_virtual: bool
    is_by_value: bool

    @classmethod
    def of(cls, part: Part) -> Described:
        """Return what a descriptor says."""
        if part.one(904, 1) != 1 or part.one(909, 0) or 913 in part.attributes:
            raise NotDescribed("a tensor with vectors, another order or ragged offsets is not described")
        return cls(
            part.one(906),
            part.one(901),
            part.attributes[902],
            part.attributes[903],
            part.one(907, False),
            part.one(908, False),
        )

    @property
    def element(self) -> Element:
        """Return the type of its elements."""
        return element_of(self.data_type)

    def at(self, operand: str, address: int) -> Tensor:
        """Return it as it lies in memory."""
        return Tensor(operand, address, self.element, self.dimensions, self.strides)


@dataclass(frozen=True, slots=True)
class Step:
    """An operation, with its tensors by what they are called."""

    part: Part
    kind: Operation
    inputs: Mapping[str, Described]
    output: Described
    compute: Compute

    @classmethod
    def of(cls, part: Part) -> Step:
        """Return what a descriptor says."""
        kind = _kind(part)
        inputs = {name: Described.of(*part.parts(at)) for name, at in kind.inputs.items() if part.parts(at)}
        output = Described.of(*part.parts(kind.output[1]))
        shapes = {name: tensor.dimensions for name, tensor in inputs.items()}
        return cls(part, kind, inputs, output, kind.prepare(part, shapes, output.dimensions))

    @property
    def factors(self) -> tuple[float, float]:
        """Return alpha and beta."""
        names = self.kind.factors
        return (self.part.one(names[0], 1.0), self.part.one(names[1], 0.0)) if names else (1.0, 0.0)

    def reads(self, name: str) -> bool:
        """Say whether an input matters: where it is multiplied by 0, clients give memory that nobody has written."""
        factor = _FACTORS_OF_INPUTS.get(name) if self.part.type == _POINTWISE else None
        return factor is None or self.part.one(factor, 1.0) != 0


def _ordered(steps: list[Step]) -> list[Step]:
    """Return operations so that each comes after those whose results it reads."""
    made: list[Step] = []
    left = steps
    while left:
        pending = {step.output.number for step in left}
        ready = [step for step in left if not pending & {each.number for each in step.inputs.values()}]
        if not ready:
            raise NotDescribed("operations that depend on each other in a circle are not described")
        made += ready
        left = [step for step in left if step not in ready]
    return made


class _Execution:
    """A graph that runs."""

    def __init__(self, call: Call[Any], steps: list[Step], addresses: Mapping[int, int]) -> None:
        self._call, self._steps, self._addresses = call, steps, addresses
        self._values: dict[int, Array] = {}

    def keep_numbers(self) -> None:
        """Read the tensors that lie in the host's memory."""
        for step in self._steps:
            for tensor in step.inputs.values():
                if tensor.is_by_value and tensor.number not in self._values:
                    element = tensor.element
                    content = self._call.host("variant pack", self._addresses[tensor.number], element.stored)
                    self._values[tensor.number] = element.decode(content).reshape((1,) * len(tensor.dimensions))

    def run(self) -> None:
        """Read, compute and write."""
        results = {step.output.number for step in self._steps}
        for step in self._steps:
            for name, tensor in step.inputs.items():
                if tensor.number not in self._values and tensor.number not in results and step.reads(name):
                    self._values[tensor.number] = self._at(tensor, name).read(self._call)
        made = [(step, self._compute(step)) for step in self._steps]
        for step, value in made:
            if not step.output.is_virtual:
                self._at(step.output, step.kind.output[0]).blend(self._call, value, *step.factors)

    def _at(self, tensor: Described, operand: str) -> Tensor:
        return tensor.at(operand, self._addresses[tensor.number])

    def _compute(self, step: Step) -> Array:
        inputs = {
            name: self._values[tensor.number] if step.reads(name) else np.zeros(tensor.dimensions, np.float32)
            for name, tensor in step.inputs.items()
        }
        kinds = [each.dtype for each in inputs.values() if each.dtype.kind != "b"]
        wide = any(each.kind in "iu" or each == np.float64 for each in kinds)
        computed = np.dtype(np.float64 if wide else np.float32)
        value = step.compute({name: value.astype(computed, copy=False) for name, value in inputs.items()})
        if value.dtype.kind == "f":
            value = value.astype(computed, copy=False)
        self._values[step.output.number] = self._rounded(step, value)
        return value

    def _rounded(self, step: Step, value: Array) -> Array:
        """Return a result as other operations of the graph read it."""
        element = BY_DATA_TYPE.get(step.output.data_type)
        value = _scaled(value, step.factors[0])
        return value if element is None else element.decode(element.encode(value))


_OPERANDS: Final = "x w y dx dw dy a b c t"


@computes({"cudnnBackendExecute": None}, "p:handle p:execution_plan p:variant_pack w:workspace "
          + " ".join(f"w:{name}" for name in _OPERANDS.split()))  # fmt: skip
def execute(call: Call[None]) -> Work:
    """Compute a graph of operations."""
    of = call.arguments
    plan = _read(call, "execution plan", of.execution_plan, PLAN)
    variant = _read(call, "variant pack", of.variant_pack, VARIANT_PACK)
    workspace_bytes = plan.one(402, 0)
    (config,) = plan.parts(401)
    (engine,) = config.parts(300)
    (graph,) = engine.parts(1300)
    steps = _ordered([Step.of(part) for part in graph.parts(801)])
    addresses = dict(zip(variant.attributes[1000], variant.attributes[1001], strict=True))
    tensors = [tensor for step in steps for tensor in (*step.inputs.values(), step.output) if not tensor.is_virtual]
    require(call, *(addresses.get(tensor.number, 0) != 0 for tensor in tensors))
    workspace = variant.one(1003, 0)
    require(call, workspace != 0 or workspace_bytes == 0)
    execution = _Execution(call, steps, addresses)
    execution.keep_numbers()
    for tensor in tensors:
        assert tensor.element  # what is not described says so now

    def run() -> None:
        call.use("workspace", workspace, workspace_bytes)
        execution.run()

    return run
